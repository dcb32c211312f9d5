"""A process that stood still: what its peers said meanwhile is read before it obeys its own timers.

The core of these tests is a detector in small: whatever it hears puts its deadline off, and ``Wake`` means that it has
taken its peer for silent.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.messages.session import Heartbeat
from holdfast.overlay.transport import Received, Wake
from holdfast.runtime import clock
from holdfast.runtime.driver import LATE_NS, Driver
from raw_peer import frames, hello, wait_until
from scripted_core import ScriptedCore, driven

PEERS = 5
SOON_NS = 30 * MILLISECOND
LATER_NS = 3600 * SECOND

LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])


class Peers:
    """Plain sockets: what they send is in the kernel at once, whether or not a loop runs."""

    def __init__(self, port: int) -> None:
        self._sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(PEERS)]

    def __enter__(self) -> Peers:
        return self

    def __exit__(self, *failure: object) -> None:
        for each in self._sockets:
            each.close()

    def send(self, data: bytes) -> None:
        for each in self._sockets:
            each.sendall(data)


def run(new_loop: Callable[[], asyncio.AbstractEventLoop], main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main)


async def greeted(core: ScriptedCore, peers: Peers) -> None:
    peers.send(frames(hello("p")))
    await wait_until(lambda: heard(core) == PEERS)
    core.inputs.clear()


def heard(core: ScriptedCore) -> int:
    return sum(isinstance(each, Received) for each in core.inputs)


async def stand_still(driver: Driver, core: ScriptedCore, peers: Peers) -> None:
    """The core's deadline comes, and goes by for long; meanwhile every peer says something.

    The callback we stand still in is due in the same iteration of the loop as the driver's timer, and before it: there
    the loop looks for what has arrived neither after the one nor before the other.
    """
    deadline = core.deadline = clock.now() + SOON_NS
    driver.submit("deadline")
    await asyncio.sleep(0)
    assert core.inputs[-1] == "deadline"

    def stand() -> None:
        peers.send(frames(Heartbeat(), after=1))
        wait_busily(deadline + LATE_NS + MILLISECOND)

    asyncio.get_running_loop().call_later(SOON_NS / 2 / SECOND, stand)
    wait_busily(deadline + 2 * MILLISECOND)


def wait_busily(until: Instant) -> None:
    while clock.now() <= until:
        pass


@LOOPS
def test_after_a_standstill_everything_that_has_arrived_is_read_before_the_core_is_woken(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def main() -> None:
        def react(stimulus: Any) -> list[Any]:
            if stimulus == Wake():
                core.deadline = None
            return []

        core = ScriptedCore(react)
        async with driven(core) as (driver, port):
            with Peers(port) as peers:
                await greeted(core, peers)
                await stand_still(driver, core, peers)
                await wait_until(lambda: Wake() in core.inputs)
                assert heard(core) == PEERS
                assert core.inputs[-1] == Wake()

    run(new_loop, main())


@LOOPS
def test_whoever_knocked_during_a_standstill_is_heard_too(
    new_loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.runtime.driver.LET_READ_NS", SECOND // 5)  # several looks at the sockets

    async def main() -> None:
        def react(stimulus: Any) -> list[Any]:
            if stimulus == Wake():
                core.deadline = None
            return []

        core = ScriptedCore(react)
        async with driven(core) as (driver, port):
            with Peers(port) as peers:
                await greeted(core, peers)
                await stand_still(driver, core, peers)
                with Peers(port) as others:
                    others.send(frames(hello("q")))
                    await wait_until(lambda: Wake() in core.inputs)
                    assert heard(core) == 2 * PEERS
                    assert core.inputs[-1] == Wake()

    run(new_loop, main())


@LOOPS
def test_who_spoke_during_a_standstill_is_not_taken_for_silent_however_often_we_stand_still(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def main() -> None:
        def react(stimulus: Any) -> list[Any]:
            if isinstance(stimulus, Received):
                core.deadline = clock.now() + LATER_NS
            return []

        core = ScriptedCore(react)
        async with driven(core) as (driver, port):
            with Peers(port) as peers:
                await greeted(core, peers)
                for times in (1, 2, 3):
                    await stand_still(driver, core, peers)
                    await wait_until(lambda times=times: heard(core) == times * PEERS)  # type: ignore[misc]
                    await wait_until(lambda: driver._timer_at > clock.now() + LATER_NS // 2)
                assert Wake() not in core.inputs

    run(new_loop, main())


class Asked(ScriptedCore):
    """Counts how often it is asked when it is to be woken, and remembers how early it was."""

    def __init__(self) -> None:
        super().__init__(self._on_wake)
        self.asked = 0
        self.early: list[Instant] = []

    def next_deadline(self) -> Instant | None:
        self.asked += 1
        return super().next_deadline()

    def _on_wake(self, stimulus: Any) -> list[Any]:
        if stimulus == Wake():
            assert self.deadline is not None
            self.early.append(self.deadline - clock.now())
            self.deadline = None
        return []


@LOOPS
@pytest.mark.parametrize("tenths", range(1, 40, 3))
def test_a_timer_does_not_come_early_and_look_again_until_it_is_time(
    new_loop: Callable[[], asyncio.AbstractEventLoop], tenths: int
) -> None:
    """One that is rounded down to nothing would: a broker was busy for half a millisecond before whatever was due."""

    async def main() -> None:
        core = Asked()
        async with driven(core) as (driver, _):
            driver.submit("first")
            await wait_until(lambda: core.inputs == ["first"])
            core.asked = 0
            core.deadline = clock.now() + tenths * MILLISECOND // 10
            driver.submit("deadline")
            await wait_until(lambda: Wake() in core.inputs)
            assert core.early[0] <= 0
            assert core.asked <= 3  # when it is set, when it fires, and after the wake

    run(new_loop, main())


@LOOPS
def test_a_core_whose_deadline_is_always_long_past_is_woken_all_the_same(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def main() -> None:
        core = ScriptedCore()
        async with driven(core) as (driver, _):
            core.deadline = clock.now() - 2 * LATE_NS
            driver.submit("deadline")
            await wait_until(lambda: core.inputs.count(Wake()) >= 3)
            core.deadline = None

    run(new_loop, main())
