"""Hostile peers at the ports of brokers with durable streams, while honest ones publish and read through them.

Two brokers run, b1 and its child b3, on folders of their own; a third, b2, is known to them and impersonated. Events go
to a stream in the order of their publishers and to one in total order, whose sequencer is b1. At both brokers somebody
publishes and somebody reads durably; another reader is away all the time. After every round each of them must have had
what was published, once and in order; in the end the one that was away too, and every log must verify.

By hand: ``python tests/fuzz_durable_campaign.py SECONDS SEED``.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random

import holdfast
from durable_brokers import PATIENCE_S, Brokers, brokers_in, verified
from fuzz_campaign import GROWTH_BYTES_MAX, attack
from hostile import hostile_request
from hostile_logged import hostile_logged_bytes

PARENTS = {"b1": None, "b2": "b1", "b3": "b1"}
ALIVE = ("b1", "b3")
STREAMS = """
[[stream]]
name = "orders"
topics = ["a/#", "honest/fifo"]
guarantee = "durable"

[[stream]]
name = "ledger"
topics = ["honest/total"]
guarantee = "durable"
order = "total"
sequencer = "b1"
"""
TOPICS = ("honest/fifo", "honest/total")
FILTER = "honest/#"
ROUND = 30
SILENCE_S = PATIENCE_S  #: if a reader that is owed something is given nothing for so long, it is lost

Event = tuple[str, str, int]  #: topic, publisher and number


class Reader:
    """Somebody who reads durably, and what it was given."""

    def __init__(self, name: str, items: holdfast.Subscription) -> None:
        self.name = name
        self._items = items

    async def get(self, count: int) -> list[Event]:
        """The next events; a gap is a fault, and so is silence that lasts."""
        found: list[Event] = []
        while len(found) < count:
            for item in await self._items.get_batch(SILENCE_S):
                assert not isinstance(item, holdfast.Gap), f"{self.name} is told of {item}"
                assert isinstance(item, holdfast.LoggedEvent)
                found.append((item.topic, item.publisher, item.n))
        await self._items.commit(timeout=PATIENCE_S)
        return found


class Honest:
    """Those who keep the rules."""

    def __init__(self, publishers: dict[str, holdfast.Publisher], readers: list[Reader]) -> None:
        self._publishers = publishers
        self._readers = readers
        self.published: list[Event] = []  #: all of it
        self._last: dict[str, int] = {}  #: by pubend the last tick of an event

    @property
    def tick(self) -> int:
        """One that every pubend has come to: a token behind it claims nothing."""
        return min(self._last.values())

    @classmethod
    @asynccontextmanager
    async def at(cls, brokers: Brokers) -> AsyncIterator[Honest]:
        async with AsyncExitStack() as stack:
            publishers, readers = {}, []
            for broker in ALIVE:
                reading = await stack.enter_async_context(reader_at(brokers, broker, f"reader of {broker}"))
                readers.append(reading)
                name = f"honest {broker}"
                network = await stack.enter_async_context(
                    holdfast.connect(brokers.url(broker), name=name, timeout=PATIENCE_S)
                )
                publishers[name] = await stack.enter_async_context(network.publisher(timeout=PATIENCE_S))
            yield cls(publishers, readers)

    async def check(self) -> None:
        """Everybody publishes, and everybody gets it."""
        published: list[Event] = []
        for name, publisher in self._publishers.items():
            sent = [
                (topic, await publisher.send(topic, timeout=PATIENCE_S)) for topic in (*TOPICS, TOPICS[0])
            ]
            for topic, each in sent:
                receipt = await each.receipt(PATIENCE_S)
                self._last[receipt.pubend] = receipt.tick
                published.append((topic, name, each.n))
        got = [await reader.get(len(published)) for reader in self._readers]
        self.published += published
        for events in got:
            in_order(events, published)
        totals = [[event for event in events if event[0] == "honest/total"] for events in got]
        assert totals[0] == totals[1], "a total order is the same for all"


@asynccontextmanager
async def reader_at(brokers: Brokers, broker: str, name: str) -> AsyncIterator[Reader]:
    """A client that reads a durable subscription of its own name."""
    async with (
        holdfast.connect(brokers.url(broker), name=name, timeout=PATIENCE_S) as network,
        network.subscribe(FILTER, durable=name, timeout=PATIENCE_S) as items,
    ):
        yield Reader(name, items)


def in_order(got: list[Event], published: list[Event]) -> None:
    """Each publisher's events on a topic came once and in order, and no others did."""
    streams = {event[:2] for event in (*got, *published)}
    for stream in sorted(streams):
        theirs = [event for event in published if event[:2] == stream]
        assert [event for event in got if event[:2] == stream] == theirs, f"{stream}: {got}"


class Campaign:
    """One of them."""

    def __init__(self, brokers: Brokers, seed: int) -> None:
        self.brokers = brokers
        self.seed = seed
        self.attacks = 0

    async def fight(self, seconds: float, rounds_min: int) -> None:
        """So long, and so many rounds at least."""
        await self.brokers.start(*ALIVE)
        async with Honest.at(self.brokers) as honest:
            async with reader_at(self.brokers, "b3", "away"):
                pass
            await honest.check()
            ends_at, done = time.monotonic() + seconds, 0
            warm: dict[str, int] = {}
            while done < rounds_min or time.monotonic() < ends_at:
                await self._round(honest, Random(f"{self.seed} {done}"))
                done += 1
                if done == rounds_min // 2:
                    warm = {name: memory_bytes(self.brokers.pid(name)) for name in ALIVE}
            for name in ALIVE:
                growth = memory_bytes(self.brokers.pid(name)) - warm[name]
                assert growth < GROWTH_BYTES_MAX, f"{name} has grown by {growth} bytes"
            await honest.check()
            async with reader_at(self.brokers, "b1", "away") as back:
                in_order(await back.get(len(honest.published)), honest.published)

    async def _round(self, honest: Honest, draw: Random) -> None:
        clock = honest.tick
        attacks = []
        for _ in range(ROUND):
            port = self.brokers.port(draw.choice(ALIVE))
            attacks.append(attack(port, hostile_logged_bytes(draw, clock), ends=draw.random() < 0.7))
        for name in ALIVE:
            attacks.append(attack(self.brokers.admin_port(name), hostile_request(draw), ends=True))
        self.attacks += len(attacks)
        await asyncio.gather(honest.check(), *attacks)
        await honest.check()
        for name in ALIVE:
            assert self.brokers.is_running(name), f"{name} has crashed"

    def judge(self) -> None:
        """What the brokers leave behind."""
        for name in ALIVE:
            self.brokers.stop(name)
            bugs = [
                line for line in self.brokers.said(name) if line.get("level") == "error" or "words" in line
            ]
            assert not bugs, bugs[0]
            for log in self.brokers.logs(name):
                status, said = verified(log)
                assert status == 0, said


def memory_bytes(pid: int) -> int:
    """How much of the memory a process has."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * 4_096


def campaign(seconds: float, seed: int, rounds_min: int = 4, sabotage: str = "") -> int:
    """Attack two brokers for so long, and so many rounds at least; how many connections were made.

    :raises AssertionError: with the line that repeats it.
    """
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-fuzz-") as folder,
        brokers_in(Path(folder), PARENTS, streams=STREAMS, first=sabotage) as brokers,
    ):
        fighting = Campaign(brokers, seed)
        try:
            asyncio.run(fighting.fight(seconds, rounds_min))
            fighting.judge()
        except (AssertionError, TimeoutError, OSError, holdfast.HoldfastError) as error:
            logged = "".join(
                f"{name}: {line}\n"
                for name in ALIVE
                for line in brokers.words(name).splitlines()
                if "traceback" in line or "error" in line
            )
            repeat = f"python tests/fuzz_durable_campaign.py {seconds:g} {seed}"
            raise AssertionError(f"{error!r}\n{logged[:5_000]}\nto repeat: {repeat}") from error
    return fighting.attacks


if __name__ == "__main__":
    print(campaign(float(sys.argv[1]), int(sys.argv[2])), "connections")  # noqa: T201
