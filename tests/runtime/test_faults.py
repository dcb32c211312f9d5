"""Cut and heal: a connection as a black hole, and what both ends see of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast.messages.publications import Accepted
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Kind, Welcome
from holdfast.overlay.transport import (
    Close,
    Connect,
    Connected,
    ConnectFailed,
    Disconnected,
    Send,
)
from holdfast.runtime.driver import Driver
from holdfast.runtime.faults import Faults
from raw_peer import RawPeer, hello, wait_until
from scripted_core import ScriptedCore, driven


def obedient(stimulus: Any) -> list[Any]:
    """Carries out effects handed in as inputs."""
    return [stimulus] if isinstance(stimulus, Send | Close | Connect) else []


@asynccontextmanager
async def met() -> AsyncIterator[tuple[Driver, ScriptedCore, RawPeer]]:
    """A driver with faults and a peer that has introduced itself as p."""
    core = ScriptedCore(obedient)
    async with driven(core, faults=Faults()) as (driver, port), await RawPeer.dial(port) as peer:
        await peer.send(hello("p"))
        await wait_until(lambda: core.heard(1))
        yield driver, core, peer


async def turn(driver: Driver, core: ScriptedCore) -> None:
    """Everything submitted so far has been done."""
    driver.submit("nudge")
    await wait_until(lambda: core.inputs[-1] == "nudge")


def test_nothing_passes_a_cut_link_and_a_session_with_a_hole_does_not_survive_healing() -> None:
    async def main() -> None:
        async with met() as (driver, core, peer):
            driver.cut(["p"])
            driver.submit(Send(1, [Accepted(1)]))
            await peer.send(Accepted(2))
            link = driver.connections.open[1]
            await wait_until(lambda: link._holed)
            assert core.heard(1) == [hello("p")]
            driver.heal(["p"])
            await wait_until(lambda: core.lost)
            assert "frames were lost" in core.lost[1]
            assert await peer.rest() == [], "the other end sees the connection end, and no reason"

    asyncio.run(main())


def test_a_cut_in_which_only_heartbeats_were_lost_leaves_the_session_whole() -> None:
    async def main() -> None:
        async with met() as (driver, core, peer):
            driver.cut(["p"])
            driver.submit(Send(1, [Heartbeat()]))
            await peer.send(Heartbeat())
            await turn(driver, core)
            driver.heal(["p"])
            driver.submit(Send(1, [Accepted(1)]))
            assert await peer.next() == Accepted(1)
            await peer.send(Accepted(2))
            await wait_until(lambda: core.heard(1)[-1] == Accepted(2))

    asyncio.run(main())


def test_the_end_of_a_cut_connection_is_seen_when_it_heals_and_not_before() -> None:
    async def main() -> None:
        async with met() as (driver, core, peer):
            driver.cut(["p"])
            link = driver.connections.open[1]
            await peer.close()
            await wait_until(lambda: link._unreported)
            await turn(driver, core)
            assert not core.lost
            driver.heal(["p"])
            await wait_until(lambda: core.lost)
            await wait_until(lambda: len(driver.connections) == 0)

    asyncio.run(main())


def test_a_peer_does_not_see_that_it_was_given_up_until_the_link_heals() -> None:
    async def main() -> None:
        async with met() as (driver, core, peer):
            driver.cut(["p"])
            driver.submit(Send(1, [Goodbye(Farewell.SILENT, "gone")]))
            driver.submit(Close(1, "silent"))
            await turn(driver, core)
            reading = asyncio.create_task(peer.rest())
            await asyncio.sleep(0)
            assert not reading.done()
            driver.heal(["p"])
            assert await reading == []
            assert not core.lost

    asyncio.run(main())


def test_a_hello_from_a_node_that_is_cut_off_is_ignored_and_others_are_heard() -> None:
    async def main() -> None:
        async with met() as (driver, core, _):
            driver.cut(["q"])
            port = driver.connections._servers[0].sockets[0].getsockname()[1]
            async with await RawPeer.dial(port) as q, await RawPeer.dial(port) as r:
                await q.send(hello("q"))
                await r.send(hello("r"))
                await wait_until(lambda: core.heard(3))
                assert core.inputs.count(Connected(2, None)) == 1
                assert core.heard(2) == []

    asyncio.run(main())


def test_dialling_a_node_that_is_cut_off_fails_under_its_name_and_at_its_address() -> None:
    async def main() -> None:
        welcome = Welcome("b1", Kind.BROKER, 1, 1, 1)
        broker = ScriptedCore(
            lambda stimulus: [Send(stimulus.connection, [welcome])] if isinstance(stimulus, Connected) else []
        )
        core = ScriptedCore(obedient)
        async with driven(broker) as (_, port), driven(core, faults=Faults()) as (driver, _):
            address = f"127.0.0.1:{port}"
            driver.submit(Connect("", address))
            await wait_until(lambda: core.heard(1))
            driver.cut(["b1"])
            driver.submit(Connect("", address))
            driver.submit(Connect("b1", "127.0.0.1:1"))
            await wait_until(lambda: len([x for x in core.inputs if isinstance(x, ConnectFailed)]) == 2)
            driver.heal(["b1"])
            driver.submit(Connect("", address))
            await wait_until(lambda: core.heard(2))

    asyncio.run(main())


def test_a_broker_that_was_known_and_is_cut_off_hears_no_hello_from_a_connection_made_in_time() -> None:
    async def main() -> None:
        broker = ScriptedCore(name="b1")
        core = ScriptedCore(obedient)
        faults = Faults()
        async with driven(broker) as (_, port), driven(core, faults=faults) as (driver, _):
            faults.note(f"127.0.0.1:{port}", "b1")
            driver.submit(Connect("", f"127.0.0.1:{port}"))
            await wait_until(lambda: core.connections)
            driver.cut(["b1"])
            driver.submit(Send(1, [hello("c")]))
            await turn(driver, core)
            driver.heal(["b1"])
            driver.submit(Send(1, [Heartbeat()]))
            await wait_until(lambda: broker.lost)
            assert broker.heard(1) == []

    asyncio.run(main())


def test_a_driver_stops_at_once_although_a_link_is_cut() -> None:
    async def main() -> None:
        async with met() as (driver, core, peer):
            driver.cut(["p"])
            await driver.stop()
            assert await peer.rest() == []
            assert not [x for x in core.inputs if isinstance(x, Disconnected)]

    asyncio.run(main())


def test_without_faults_nothing_can_be_cut() -> None:
    async def main() -> None:
        async with driven(ScriptedCore()) as (driver, _):
            with pytest.raises(AssertionError, match="faults"):
                driver.cut(["p"])

    asyncio.run(main())
