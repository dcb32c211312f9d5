"""Hostile bytes at every listening port of a broker, while an honest publisher and subscriber look on.

``campaign(seconds, seed)`` goes on until the clock says so, and raises as soon as the broker crashes, hangs, grows, or
lets the honest ones feel anything. By hand: ``python tests/fuzz_campaign.py SECONDS SEED``.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random

from child_broker import ChildBroker, child_broker
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.publications import Batch, Deliveries, Publication, Publish
from holdfast.messages.session import Heartbeat, Welcome
from holdfast.messages.subscriptions import Confirmed, Subscribe
from hostile import NEIGHBOUR, hostile_bytes, hostile_request
from raw_peer import PATIENCE_SECONDS, RawPeer, hello

#: Hostile peers at a time, and what the broker's memory may grow by once it is warm.
ROUND = 50
GROWTH_BYTES_MAX = 64 * 1024 * 1024
HONEST_EVENTS = 3


class Bystanders:
    """A subscriber and a publisher who keep the rules; each round must reach one from the other, exactly once."""

    def __init__(self, publisher: RawPeer, subscriber: RawPeer, published: int) -> None:
        self._publisher = publisher
        self._subscriber = subscriber
        self._published = published  #: the last number, in earlier lives too

    @classmethod
    @asynccontextmanager
    async def at(cls, port: int) -> AsyncIterator[Bystanders]:
        async with await RawPeer.dial(port) as publisher, await RawPeer.dial(port) as subscriber:
            await publisher.send(hello("honest publisher"))
            published = (await publisher.next_of(Welcome)).last_number
            await subscriber.send(hello("honest subscriber"))
            await subscriber.next_of(Welcome)
            mine = SubscriptionId("honest subscriber", 1, 1)
            await subscriber.send(Subscribe(mine, "honest", (Element("honest subscriber", 1, 1),)))
            await subscriber.next_of(Confirmed)
            yield cls(publisher, subscriber, published)

    async def check(self) -> None:
        numbers = range(self._published + 1, self._published + HONEST_EVENTS + 1)
        self._published += HONEST_EVENTS
        batch = Batch([Publication("honest publisher", n, pack(make_event("honest"))) for n in numbers])
        await self._publisher.send(Publish(batch))
        await self._subscriber.send(Heartbeat())
        got: list[int] = []
        while len(got) < HONEST_EVENTS:
            got += [item.n for item in (await self._subscriber.next_of(Deliveries)).batch.publications]
        assert got == list(numbers)


async def attack(port: int, data: bytes, *, ends: bool) -> None:
    """Send, read whatever comes, and leave: politely, in which case the broker must hang up too, or not."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            with suppress(ConnectionError):
                writer.write(data)
                if ends:
                    writer.write_eof()
                    await reader.read()
                else:
                    await writer.drain()
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def one_round(broker: ChildBroker, bystanders: Bystanders, draw: Random) -> None:
    attacks = [attack(broker.port, hostile_bytes(draw), ends=draw.random() < 0.7) for _ in range(ROUND)]
    attacks += [attack(broker.admin_port, hostile_request(draw), ends=True) for _ in range(ROUND // 10)]
    await asyncio.gather(bystanders.check(), *attacks)
    await bystanders.check()
    assert broker.process.poll() is None, "the broker has crashed"


async def _rounds(broker: ChildBroker, seconds: float, seed: int, rounds_min: int) -> int:
    ends_at = time.monotonic() + seconds
    warm_bytes = 0
    done = 0
    async with Bystanders.at(broker.port) as bystanders:
        while done < rounds_min or time.monotonic() < ends_at:
            await one_round(broker, bystanders, Random(f"{seed} {done}"))
            done += 1
            if done == rounds_min // 2:
                warm_bytes = broker.memory_bytes
        growth = broker.memory_bytes - warm_bytes
        assert growth < GROWTH_BYTES_MAX, f"the broker has grown by {growth} bytes"
        async with asyncio.timeout(PATIENCE_SECONDS):
            while broker.status()["process"]["connections"] > 2:
                await asyncio.sleep(0.01)
        await bystanders.check()
    return done * (ROUND + ROUND // 10)


def campaign(seconds: float, seed: int, rounds_min: int = 4, sabotage: str = "") -> int:
    """Attack a broker for so long, and so many rounds at least; returns how many connections were made.

    :raises AssertionError: with the line that repeats it.
    """
    with tempfile.TemporaryFile("w+") as errors, child_broker(errors, NEIGHBOUR, sabotage=sabotage) as broker:
        try:
            attacks = asyncio.run(_rounds(broker, seconds, seed, rounds_min))
            assert broker.stop() == 0
            bugs = [record for record in broker.log if record["level"] == "error"]
            assert not bugs, bugs[0]
        except (AssertionError, TimeoutError, OSError) as error:
            errors.seek(0)
            tracebacks = [line for line in errors if "traceback" in line][:1]
            repeat = f"python tests/fuzz_campaign.py {seconds:g} {seed}"
            raise AssertionError(f"{error!r}\n{''.join(tracebacks)}\nto repeat: {repeat}") from error
    return attacks


if __name__ == "__main__":
    print(campaign(float(sys.argv[1]), int(sys.argv[2])), "connections")  # noqa: T201
