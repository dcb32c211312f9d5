"""A driver and a core it can rely on, over real sockets on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.clock import MILLISECOND
from holdfast.messages.publications import Accepted, Publication
from holdfast.messages.session import Farewell, Goodbye, Heartbeat
from holdfast.overlay.transport import (
    Close,
    Connect,
    Connected,
    ConnectFailed,
    Disconnected,
    Log,
    Pause,
    Received,
    Send,
    Trace,
    Wake,
)
from holdfast.runtime import clock
from holdfast.runtime.connections import UNSERVED_BYTES_MAX
from holdfast.runtime.driver import Driver, DriverFailed
from holdfast.runtime.real_store import RealStore
from holdfast.streams.storing import AppendEvents
from raw_peer import RawPeer, frames, hello, wait_until
from scripted_core import LogBook, ScriptedCore, driven


def echo(stimulus: Any) -> list[Any]:
    return [Send(stimulus.connection, stimulus.messages)] if isinstance(stimulus, Received) else []


def tapped(driver: Driver, tap: Callable[[bytes], object], connection: int = 1) -> None:
    """Have every write to a connection seen."""
    transport = driver.connections.open[connection]._transport
    write = transport.write

    def tapped_write(data: bytes) -> None:
        tap(data)
        write(data)

    transport.write = tapped_write  # type: ignore[method-assign, assignment]


def test_what_a_peer_says_reaches_the_core_and_the_answer_the_peer() -> None:
    async def main() -> None:
        core = ScriptedCore(echo)
        async with driven(core) as (_, port), await RawPeer.dial(port) as peer:
            await peer.send(hello("p"), Heartbeat(), Accepted(7))
            assert [await peer.next() for _ in range(3)] == [hello("p"), Heartbeat(), Accepted(7)]
            assert core.inputs[0] == Connected(1, None)

    asyncio.run(main())


def test_two_drivers_meet_and_the_dialler_knows_whom_it_dialled() -> None:
    async def main() -> None:
        server, client = ScriptedCore(), ScriptedCore()
        async with driven(server) as (_, port), driven(client) as (dialler, _):
            client.react = lambda stimulus: (
                [Connect("server", f"127.0.0.1:{port}")] if stimulus == Wake() else []
            )
            await dialler.start(Wake())
            await wait_until(lambda: client.connections and server.connections)
            assert client.inputs == [Wake(), Connected(1, "server")]
            assert server.inputs == [Connected(1, None)]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1:1", "127.0.0.1:1"), ("192.0.2.1:7000", "insecure"), ("nonsense", "host:port")],
)
def test_a_connection_that_cannot_be_had_is_reported(address: str, expected: str) -> None:
    async def main() -> None:
        core = ScriptedCore(lambda stimulus: [Connect("b", address)] if stimulus == Wake() else [])
        async with driven(core) as (driver, _):
            await driver.start(Wake())
            await wait_until(lambda: len(core.inputs) == 2)
            failed = core.inputs[1]
            assert isinstance(failed, ConnectFailed)
            assert failed.peer == "b"
            assert expected in failed.reason

    asyncio.run(main())


def test_everything_that_arrived_for_a_link_is_one_input_and_every_link_is_flushed_once() -> None:
    async def main() -> None:
        writes: list[bytes] = []

        def react(stimulus: Any) -> list[Any]:
            if stimulus != Wake():
                return []
            return [
                Send(1, [Accepted(1)]),
                Send(1, [Accepted(2), Accepted(3)]),
                Trace("x", {}),
                Send(1, [Accepted(4)]),
            ]

        core = ScriptedCore(react)
        async with driven(core) as (driver, port), await RawPeer.dial(port) as peer:
            await wait_until(lambda: core.connections)
            tapped(driver, writes.append)
            driver.submit(Wake())
            assert [await peer.next() for _ in range(4)] == [Accepted(n) for n in (1, 2, 3, 4)]
            assert len(writes) == 1
            await peer.send_bytes(b"")
            await peer.send(hello("p"), *(Accepted(n) for n in range(100)))
            await wait_until(lambda: len(core.heard(1)) == 101)
            assert sum(isinstance(stimulus, Received) for stimulus in core.inputs) == 1

    asyncio.run(main())


def test_a_core_that_is_given_much_at_once_can_say_stop_before_it_is_given_more() -> None:
    """uvloop reads a connection up to 32 times, 8 MB, before anything else is done."""

    async def main() -> None:
        large = [Goodbye(Farewell.LEAVING, f"{n} " + "x" * 50_000) for n in range(200)]
        given = frames(*large, after=1)
        core = ScriptedCore()
        async with (
            driven(core) as (driver, port),
            await RawPeer.dial(port) as first,
            await RawPeer.dial(port) as second,
        ):
            await first.send(hello("p"))
            await second.send(hello("q"))
            await wait_until(lambda: core.heard(1) and core.heard(2))
            before = len(core.inputs)
            core.react = lambda stimulus: [Pause(2)] if stimulus.connection == 2 else []
            one, two = driver.connections.open[1], driver.connections.open[2]
            one.data_received(frames(Heartbeat()))  # a turn of its own; what comes now waits for the next
            read = 0
            while two._transport.is_reading() and read < len(given):
                two.data_received(given[read : read + 100_000])
                read += 100_000
            assert read < 2 * UNSERVED_BYTES_MAX
            assert len(core.inputs) == before + 2
            assert core.heard(2)[1:] == large[: len(core.heard(2)) - 1]

    asyncio.run(main())


def test_links_are_flushed_in_the_order_of_what_each_got_last() -> None:
    """A publisher that is told where its event stands, and at the end that it is accepted, waits for the delivery."""

    async def main() -> None:
        order: list[int] = []

        def react(stimulus: Any) -> list[Any]:
            return (
                [Send(1, [Accepted(1)]), Send(2, [Accepted(2)]), Send(1, [Accepted(3)])]
                if stimulus == Wake()
                else []
            )

        core = ScriptedCore(react)
        async with (
            driven(core) as (driver, port),
            await RawPeer.dial(port) as publisher,
            await RawPeer.dial(port) as subscriber,
        ):
            await wait_until(lambda: len(core.connections) == 2)
            tapped(driver, lambda _: order.append(1), 1)
            tapped(driver, lambda _: order.append(2), 2)
            driver.submit(Wake())
            assert [await publisher.next() for _ in range(2)] == [Accepted(1), Accepted(3)]
            assert await subscriber.next() == Accepted(2)
            assert order == [2, 1]

    asyncio.run(main())


def test_the_trace_is_written_before_anything_of_the_turn_is_sent() -> None:
    async def main() -> None:
        order: list[str] = []

        def react(stimulus: Any) -> list[Any]:
            if isinstance(stimulus, Received):
                return [
                    Send(1, [Accepted(1)]),
                    Trace("accepted", {"n": 1}),
                    Send(1, [Accepted(2)]),
                    Close(1, "done"),
                ]
            return []

        core = ScriptedCore(react)
        options = {
            "trace": lambda kind, fields: order.append(kind),
            "before_flush": lambda: order.append("before flush"),
        }
        async with driven(core, **options) as (driver, port), await RawPeer.dial(port) as peer:
            await wait_until(lambda: core.connections)
            tapped(driver, lambda data: order.append("write"))
            order.clear()
            await peer.send(hello("p"))
            assert await peer.rest() == [Accepted(1), Accepted(2)]
            assert order == ["accepted", "before flush", "write"]

    asyncio.run(main())


def test_there_is_a_rest_after_a_turn_when_nothing_waits_here_or_for_the_disk(tmp_path: Path) -> None:
    """Whoever writes to the disk needs the interpreter next, and somebody waits for that."""

    async def main() -> None:
        order: list[str] = []

        def react(stimulus: Any) -> list[Any]:
            order.append(type(stimulus).__name__)
            if isinstance(stimulus, Received):
                return [AppendEvents("s@b/0", [1], [Publication("p", 1, b"x")], 0), Send(1, [Accepted(1)])]
            return []

        store = RealStore(tmp_path)
        store.start()
        try:
            core = ScriptedCore(react)
            options = {"store": store, "rest": lambda: order.append("rest")}
            async with driven(core, **options) as (driver, port), await RawPeer.dial(port) as peer:
                await wait_until(lambda: core.connections)
                tapped(driver, lambda data: order.append("write"))
                await peer.send(hello("p"))
                await wait_until(lambda: "EventsStable" in order)
                await wait_until(lambda: order[-1] == "rest")
                driver.submit(Wake())
                driver.submit(Wake())
                await wait_until(lambda: order.count("Wake") == 2)
        finally:
            await asyncio.to_thread(store.close)
        assert order[: order.index("Wake")] == [
            *("Connected", "rest"),
            *("Received", "write"),
            *("EventsStable", "rest"),
        ]
        assert order[order.index("Wake") :][:3] == ["Wake", "Wake", "rest"]

    asyncio.run(main())


def test_after_its_own_close_the_core_hears_nothing_of_a_connection() -> None:
    async def main() -> None:
        core = ScriptedCore(
            lambda stimulus: (
                [Send(1, [Goodbye(Farewell.UNKNOWN, "who?")]), Close(1, "unknown")]
                if isinstance(stimulus, Received)
                else []
            )
        )
        async with driven(core) as (driver, port), await RawPeer.dial(port) as peer:
            await peer.send(hello("p"))
            assert await peer.rest() == [Goodbye(Farewell.UNKNOWN, "who?")]
            await peer.send_bytes(b"\0" * 100)
            await peer.close()
            await wait_until(lambda: len(driver.connections) == 0)
            assert [type(stimulus) for stimulus in core.inputs] == [Connected, Received]

    asyncio.run(main())


def test_the_end_of_a_connection_is_the_last_the_core_hears_of_it() -> None:
    async def main() -> None:
        core = ScriptedCore(echo)
        async with driven(core) as (_, port), await RawPeer.dial(port) as peer:
            await peer.send(hello("p"), Accepted(3))
            peer.end()
            assert await peer.rest() == [hello("p"), Accepted(3)]
            await wait_until(lambda: core.lost)
            assert core.inputs[-1] == Disconnected(1, "closed by the peer")

    asyncio.run(main())


def test_a_deadline_wakes_the_core_and_an_earlier_one_earlier() -> None:
    async def main() -> None:
        woken: list[int] = []

        def react(stimulus: Any) -> list[Any]:
            if stimulus == Wake():
                woken.append(clock.now())
                core.deadline = None
            return []

        core = ScriptedCore(react)
        async with driven(core) as (driver, _):
            start = clock.now()
            core.deadline = start + 10**12
            driver.submit("later")
            await wait_until(lambda: core.inputs)
            core.deadline = start + 20 * MILLISECOND
            driver.submit("sooner")
            await wait_until(lambda: woken)
            assert 20 * MILLISECOND <= woken[0] - start < 2_000 * MILLISECOND

    asyncio.run(main())


def test_a_deadline_that_was_put_off_does_not_wake_the_core() -> None:
    async def main() -> None:
        core = ScriptedCore()
        async with driven(core) as (driver, _):
            core.deadline = clock.now() + 5 * MILLISECOND
            driver.submit("first")
            await wait_until(lambda: core.inputs)
            armed = driver._timer
            core.deadline = clock.now() + 10**12
            await wait_until(lambda: driver._timer is not armed)
            assert core.inputs == ["first"]

    asyncio.run(main())


def test_effects_the_driver_does_not_know_go_to_the_application_in_order() -> None:
    async def main() -> None:
        told: list[Any] = []
        core = ScriptedCore(lambda stimulus: ["a", Log("info", "between", {"x": 1}), "b"])
        log = LogBook()
        async with driven(core, application=told.append, log=log) as (driver, _):
            driver.submit(Wake())
            await wait_until(lambda: len(told) == 2)
            assert told == ["a", "b"]
            assert log.records == [("info", "between", {"node": "core", "x": 1})]

    asyncio.run(main())


@pytest.mark.parametrize("culprit", ["core", "application"])
def test_an_exception_from_a_turn_stops_the_driver_and_is_raised_where_it_is_waited_for(
    culprit: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        def react(stimulus: Any) -> list[Any]:
            if isinstance(stimulus, Received) and culprit == "core":
                raise KeyError("a bug")
            return ["effect"] if isinstance(stimulus, Received) else []

        def application(effect: Any) -> None:
            raise KeyError("a bug")

        core = ScriptedCore(react)
        async with driven(core, application=application) as (driver, port):
            async with await RawPeer.dial(port) as peer, await RawPeer.dial(port) as other:
                await peer.send(hello("p"))
                with pytest.raises(DriverFailed) as failed:
                    await driver.wait_stopped()
                assert isinstance(failed.value.__cause__, KeyError)
                assert await peer.rest() == await other.rest() == []
            with pytest.raises(ConnectionRefusedError):
                await RawPeer.dial(port)
            steps = len(core.inputs)
            driver.submit(Wake())
            await asyncio.sleep(0)
            assert len(core.inputs) == steps

    asyncio.run(main())
    assert [record.fields["input"] for record in caplog.records] == ["Received"]  # type: ignore[attr-defined]


def test_a_clean_stop_sends_what_was_queued_and_leaves_no_task_timer_or_socket() -> None:
    async def main() -> None:
        core = ScriptedCore(
            lambda stimulus: [Send(1, [Goodbye(Farewell.STOPPING, "bye")])] if stimulus == "stop" else []
        )
        async with driven(core) as (driver, port):
            core.deadline = clock.now() + 10**12
            peer = await RawPeer.dial(port)
            await wait_until(lambda: core.connections)
            driver.submit("stop")
            stopping = asyncio.create_task(driver.stop())
            assert await peer.rest() == [Goodbye(Farewell.STOPPING, "bye")]
            await peer.close()
            await stopping
            await driver.wait_stopped()
            assert len(driver.connections) == 0
            assert asyncio.all_tasks() == {asyncio.current_task()}
            with pytest.raises(ConnectionRefusedError):
                await RawPeer.dial(port)

    asyncio.run(main())


def test_a_stop_does_not_wait_for_ever_for_a_peer_that_does_not_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.runtime.connections.CLOSE_SECONDS", 0.05)

    async def main() -> None:
        core = ScriptedCore(lambda stimulus: [Connect("b", "127.0.0.1:1")] if stimulus == Wake() else [])
        async with driven(core) as (driver, port):
            peer = await RawPeer.dial(port)
            await wait_until(lambda: core.connections)
            driver.submit(Wake())
            await driver.stop()
            assert len(driver.connections) == 0
            await peer.close()

    asyncio.run(main())


def test_a_core_that_fails_when_asked_for_its_deadline_stops_the_driver_too() -> None:
    async def main() -> None:
        core = ScriptedCore()
        async with driven(core) as (driver, _):
            core.deadline = clock.now() + MILLISECOND
            driver.submit("first")
            await wait_until(lambda: core.inputs)
            del core.deadline
            with pytest.raises(DriverFailed):
                await driver.wait_stopped()

    asyncio.run(main())
