"""Several brokers over real sockets in one loop: events cross them, and a broker that comes back is found again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from holdfast.broker.settings import Neighbour, Settings
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.publications import Accepted, Batch, Deliveries, Publication, Publish
from holdfast.messages.session import Welcome
from holdfast.messages.subscriptions import Confirmed, Subscribe
from holdfast.runtime.addresses import Address
from holdfast.runtime.broker_process import BrokerService
from holdfast.runtime.faults import Faults
from raw_peer import RawPeer, hello, wait_until

ANY = Address("127.0.0.1", 0)
CHAIN = ("b1", "b2", "b3")


def service(
    name: str, parent: BrokerService | None, children: tuple[str, ...], incarnation: int = 1
) -> BrokerService:
    neighbours = [Neighbour(child, None) for child in children]
    if parent is not None:
        neighbours.append(Neighbour(parent.broker.name, str(parent.listen)))
    return BrokerService(Settings(name, incarnation, tuple(neighbours)), ANY, faults=Faults())


@asynccontextmanager
async def chain() -> AsyncIterator[list[BrokerService]]:
    """b1, its child b2, and b2's child b3, all in session."""
    async with AsyncExitStack() as stack:
        services: list[BrokerService] = []
        for i, name in enumerate(CHAIN):
            made = service(name, services[-1] if services else None, CHAIN[i + 1 : i + 2])
            await made.start()
            stack.push_async_callback(made.stop)
            services.append(made)
        await wait_until(lambda: all(map(is_whole, services)))
        yield services


def is_whole(one: BrokerService) -> bool:
    return all(neighbour["state"] == "active" for neighbour in one.broker.status()["neighbours"])


@asynccontextmanager
async def subscriber(port: int, name: str) -> AsyncIterator[RawPeer]:
    async with await RawPeer.dial(port) as peer:
        await peer.send(hello(name), Subscribe(SubscriptionId(name, 1, 1), "a/#", (Element(name, 1, 1),)))
        await peer.next_of(Confirmed)
        yield peer


@asynccontextmanager
async def publisher(port: int, name: str) -> AsyncIterator[RawPeer]:
    async with await RawPeer.dial(port) as peer:
        await peer.send(hello(name))
        await peer.next_of(Welcome)
        yield peer


async def publish(peer: RawPeer, name: str, n: int) -> None:
    await peer.send(Publish(Batch([Publication(name, n, pack(make_event("a/b", {"n": n})))])))
    assert (await peer.next_of(Accepted)).upto == n


async def received(peer: RawPeer) -> list[int]:
    return [publication.n for publication in (await peer.next_of(Deliveries)).batch.publications]


def test_an_event_crosses_a_chain_of_brokers() -> None:
    async def main() -> None:
        async with (
            chain() as services,
            subscriber(services[2].listen.port, "s") as out,
            publisher(services[0].listen.port, "p") as into,
        ):
            for n in range(1, 4):
                await publish(into, "p", n)
                assert await received(out) == [n]

    asyncio.run(main())


def test_a_broker_that_stops_and_comes_back_is_found_again_and_serves_as_before() -> None:
    async def main() -> None:
        async with chain() as services, subscriber(services[2].listen.port, "s") as out:
            b1, b2, _ = services
            await b1.stop()
            await wait_until(lambda: not is_whole(b2))
            again = BrokerService(Settings("b1", 2, (Neighbour("b2", None),)), b1.listen)
            await again.start()
            try:
                await wait_until(lambda: is_whole(b2) and is_whole(again))
                async with publisher(again.listen.port, "p") as into:
                    await publish(into, "p", 1)
                    assert await received(out) == [1]
            finally:
                await again.stop()

    asyncio.run(main())


def test_a_cut_is_noticed_by_both_brokers_and_healed() -> None:
    async def main() -> None:
        async with chain() as services, subscriber(services[2].listen.port, "s") as out:
            b1, b2, _ = services
            b1.driver.cut(["b2"])
            b2.driver.cut(["b1"])
            await wait_until(lambda: not is_whole(b1) and not is_whole(b2))
            b1.driver.heal(["b2"])
            b2.driver.heal(["b1"])
            await wait_until(lambda: is_whole(b1) and is_whole(b2))
            async with publisher(b1.listen.port, "p") as into:
                await publish(into, "p", 1)
                assert await received(out) == [1]

    asyncio.run(main())
