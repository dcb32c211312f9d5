"""A broker as a process: how it ends, and how it lives with a thousand clients."""

from __future__ import annotations

import asyncio
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from child_broker import ChildBroker, child_broker
from holdfast.broker.broker import Broker
from holdfast.broker.settings import Settings
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.publications import Batch, Deliveries, Publication, Publish
from holdfast.messages.session import Farewell, Goodbye, Welcome
from holdfast.messages.subscriptions import Confirmed, Subscribe
from holdfast.runtime.addresses import Address
from holdfast.runtime.broker_process import BrokerService, run_broker
from raw_peer import RawPeer, hello, wait_until

CLIENTS = 1_000


@pytest.fixture
def broker() -> Iterator[ChildBroker]:
    with tempfile.TemporaryFile("w+") as errors, child_broker(errors) as child:
        yield child


async def subscriber(port: int, name: str, filter: str) -> RawPeer:
    peer = await RawPeer.dial(port)
    await peer.send(hello(name))
    assert isinstance(await peer.next(), Welcome)
    subscription = SubscriptionId(name, 1, 1)
    await peer.send(Subscribe(subscription, filter, (Element(name, 1, 1),)))
    assert (await peer.next_of(Confirmed)).subscription == subscription
    return peer


def publication(n: int, topic: str, payload: bytes = b"") -> Publication:
    return Publication("pub", n, pack(make_event(topic, {"n": n}, payload)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_says_goodbye_to_all_and_ends_with_status_0(
    broker: ChildBroker, number: signal.Signals
) -> None:
    async def main() -> None:
        peers = [await subscriber(broker.port, f"c{i}", "#") for i in range(3)]
        stopping = asyncio.get_running_loop().run_in_executor(None, broker.stop, number)
        for peer in peers:
            farewell = await peer.next_of(Goodbye)
            assert farewell.farewell is Farewell.STOPPING
            assert await peer.next() is None
            await peer.close()
        assert await stopping == 0

    asyncio.run(main())
    assert not [record for record in broker.log if record["level"] == "error"]


def test_a_client_that_does_not_hang_up_cannot_keep_a_broker_from_stopping(broker: ChildBroker) -> None:
    with socket.create_connection(("127.0.0.1", broker.port)):
        assert broker.stop() == 0


def test_a_bug_ends_the_process_with_status_1(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> list[object]:
        raise KeyError("a bug")

    any_port = Address("127.0.0.1", 0)
    monkeypatch.setattr(Broker, "step", broken)
    assert run_broker(Settings("b", 1), any_port, any_port) == 1
    assert "a bug" in caplog.text


def test_a_running_broker_leaves_nothing_behind_in_its_loop() -> None:
    async def main() -> None:
        service = BrokerService(Settings("b", 1), Address("127.0.0.1", 0), Address("127.0.0.1", 0))
        await service.start()
        peer = await subscriber(service.listen.port, "c", "#")
        stopping = asyncio.create_task(service.stop())
        assert isinstance(await peer.next(), Goodbye)
        await peer.close()
        await stopping
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert len(service.driver.connections) == 0

    asyncio.run(main())


def test_of_a_thousand_clients_one_that_does_not_read_is_dropped_and_told_and_the_others_get_everything(
    broker: ChildBroker,
) -> None:
    # 39 MB, more than kernel and broker hold
    bulk = [publication(n, "bulk", bytes(65_000)) for n in range(1, 601)]
    news = [publication(n, "news") for n in range(601, 606)]

    async def main() -> None:
        async with AsyncExitStack() as stack:

            async def subscribe(name: str, filter: str) -> RawPeer:
                return await stack.enter_async_context(await subscriber(broker.port, name, filter))

            slow = await subscribe("slow", "#")
            clients = [await subscribe(f"c{i}", "news") for i in range(CLIENTS - 2)]
            publisher = await stack.enter_async_context(await RawPeer.dial(broker.port))
            await publisher.send(hello("pub"))
            await publisher.next_of(Welcome)
            for i in range(0, len(bulk), 10):
                await publisher.send(Publish(Batch(bulk[i : i + 10])))
            await publisher.send(Publish(Batch(news)))
            for client in clients:
                got: list[int] = []
                while len(got) < len(news):
                    got += [item.n for item in (await client.next_of(Deliveries)).batch.publications]
                assert got == [item.n for item in news]
            await wait_until(lambda: broker.status()["clients"]["connected"] == CLIENTS - 1)
            *deliveries, last = await slow.rest()
            assert isinstance(last, Goodbye)
            assert last.farewell is Farewell.TOO_SLOW
            numbers = [
                item.n
                for message in deliveries
                if isinstance(message, Deliveries)
                for item in message.batch.publications
            ]
            assert numbers == list(range(1, len(numbers) + 1))  # nothing is missing before it was dropped

    asyncio.run(main())
    assert broker.stop() == 0
    assert [record["reason"] for record in broker.log if record["text"] == "peer given up, too-slow"]
