"""Hostile bytes at every listening port: no crash, no hang, no growth, and nobody else feels it.

A longer campaign of the same kind is part of `make soak`.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from random import Random

import pytest

from child_broker import ChildBroker, child_broker
from fuzz_campaign import Bystanders, attack, campaign
from holdfast.broker import broker as broker_module
from holdfast.broker.settings import Settings as BrokerSettings
from holdfast.client.input import AddSubscription, Open
from holdfast.client.protocol import ClientCore
from holdfast.client.settings import Settings as ClientSettings
from holdfast.clock import MILLISECOND
from holdfast.messages.message import Message
from holdfast.messages.session import Farewell, Goodbye, Kind, Welcome
from holdfast.runtime.addresses import Address
from holdfast.runtime.broker_process import BrokerService
from holdfast.runtime.driver import Driver
from hostile import MESSAGES, NEIGHBOUR, OPENINGS, client_session, damaged_frame
from hostile_values import damaged
from raw_peer import RawPeer, frames, wait_until
from scripted_core import LogBook

DRAWS = 8


@pytest.fixture(scope="module")
def broker() -> Iterator[ChildBroker]:
    """One broker for all of this file: what one test leaves behind, the next must survive."""
    with tempfile.TemporaryFile("w+") as errors, child_broker(errors, NEIGHBOUR) as child:
        yield child
        assert child.stop() == 0
        assert not [record for record in child.log if record["level"] == "error"]


@pytest.mark.parametrize("opening", OPENINGS)
def test_no_message_from_anybody_is_felt_by_others(broker: ChildBroker, opening: str) -> None:
    async def main() -> None:
        async with Bystanders.at(broker.port) as bystanders:
            for kind, made in MESSAGES.items():
                draw = Random(f"{opening} {kind.__name__}")
                for _ in range(DRAWS):
                    await attack(broker.port, frames(*OPENINGS[opening], made(draw), made(draw)), ends=True)
                await bystanders.check()

    asyncio.run(main())


@pytest.mark.parametrize("seed", [1, 2])
def test_a_broker_outlives_a_campaign(seed: int) -> None:
    assert campaign(1.0, seed, rounds_min=8) >= 8 * 50


CRASHES = """
from holdfast.broker.broker import Broker
Broker._on_goodbye = lambda *_: 1 / 0
"""
GROWS = """
from holdfast.runtime.connections import Connections as C
kept, opened = [], C.on_open
C.on_open = lambda self, link: (kept.append(b"x" * 1_500_000), opened(self, link))
"""
REPEATS = """
from holdfast.runtime.link import Link
from holdfast.messages.publications import Deliveries
put = Link.put
Link.put = lambda self, ms: put(self, [x for m in ms for x in [m] * (1 + isinstance(m, Deliveries))])
"""
SABOTAGE = {
    "crashes": (CRASHES, "ZeroDivisionError"),
    "grows": (GROWS, "grown by"),
    "repeats": (REPEATS, "AssertionError"),
}


@pytest.mark.parametrize("fault", SABOTAGE)
def test_a_campaign_catches_a_broker_that(fault: str) -> None:
    code, expected = SABOTAGE[fault]
    with pytest.raises(AssertionError, match=expected) as caught:
        campaign(0.0, 1, rounds_min=4, sabotage=code)
    assert "to repeat: python tests/fuzz_campaign.py 0 1" in str(caught.value)


def test_a_stranger_that_says_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_module, "HELLO_WITHIN_NS", 100 * MILLISECOND)

    async def main() -> None:
        service = BrokerService(BrokerSettings("b", 1), Address("127.0.0.1", 0))
        await service.start()
        async with (
            await RawPeer.dial(service.listen.port) as silent,
            await RawPeer.dial(service.listen.port) as beating,
        ):
            await beating.send_bytes(b"\0\0\0")
            for peer in (silent, beating):
                assert (await peer.next_of(Goodbye)).farewell is Farewell.SILENT
                assert await peer.next() is None
        await wait_until(lambda: len(service.driver.connections) == 0)
        await service.stop()

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(30))
def test_a_client_survives_a_hostile_broker(seed: int) -> None:
    draw = Random(seed)
    welcome: list[Message] = [Welcome("b", Kind.BROKER, 1, 1, 1_000_000_000)]
    drawn: list[Message] = [MESSAGES[kind](draw) for kind in draw.choices(list(MESSAGES), k=4)]
    said = draw.choice(
        (
            frames(*welcome, *drawn),
            frames(*drawn),
            damaged(draw, frames(*welcome, *drawn)),
            damaged_frame(draw, [*welcome, *drawn]),
            frames(*welcome, *client_session(draw)),
        )
    )

    async def main() -> None:
        met = asyncio.Event()

        async def betray(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(said)
            writer.write_eof()
            await reader.read()
            writer.close()
            met.set()

        server = await asyncio.start_server(betray, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        effects: list[object] = []
        core = ClientCore(ClientSettings("c", 1, f"127.0.0.1:{port}"))
        driver = Driver(core, application=effects.append, log=LogBook())
        await driver.start(Open(), AddSubscription(1, "#", 10))
        await asyncio.wait_for(met.wait(), 10)
        await driver.stop()
        await driver.wait_stopped()
        server.close()
        await server.wait_closed()

    asyncio.run(main())
