"""Durable streams under kill -9: ``python tests/real_durable.py KILLS SEED``.

    root ── phb1, phb2 (publishers) · shb1, shb2 (subscribers)

Five broker processes; two publishers, whose events go to two streams, one of them in total order; forty durable
subscribers with filters. Some stay, some move between the brokers, some are away for a while; some have little room,
and fall behind. One broker after the other is killed and started again. When all are up: every accepted event was
delivered exactly once, in order, where it was accepted, to everybody who wanted it; there was no gap; and every log
verifies [issue 5; I16-I21, I26].

A failing run prints its seed; the last line of a good one has its counts, for ``tools/soak.py``.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import holdfast
from durable_brokers import PATIENCE_S, Brokers, brokers_in, verified

PARENTS = {"root": None, "phb1": "root", "phb2": "root", "shb1": "root", "shb2": "root"}
PUBLISHERS = {"p1": "phb1", "p2": "phb2"}
HOSTS = ("shb1", "shb2")
SUBSCRIBERS = 40
RATE = 200  #: events per second, of all publishers

#: Seconds for which a broker is down: a moment, or longer than it takes to be missed.
PAUSES = (0.0, 0.1, 0.5, 4.0)
#: Events a subscriber has room for.
ROOMS = (1000, 1000, 1000, 50, 10)

STREAMS = """
[[stream]]
name = "orders"
topics = ["orders/#"]
guarantee = "durable"
pubends = 2

[[stream]]
name = "audit"
topics = ["audit/#"]
guarantee = "durable"
order = "total"
"""
TOPICS = ("orders/eu", "orders/us", "audit/eu")

#: Texts, and what they mean. Every filter matches one of the last events of each publisher (``LAST``).
FILTERS: dict[str, Callable[[str, int], bool]] = {
    "#": lambda topic, price: True,
    "orders/#": lambda topic, price: topic.startswith("orders/"),
    "+/eu WHERE price > 100": lambda topic, price: topic.endswith("/eu") and price > 100,
    "# WHERE price <= 150": lambda topic, price: price <= 150,
    "audit/#": lambda topic, price: topic.startswith("audit/"),
    "orders/eu WHERE price = 120": lambda topic, price: (topic, price) == ("orders/eu", 120),
}
LAST = (("orders/eu", 120), ("audit/eu", 120))

#: So much is said of a reader with whom something is wrong.
PROBLEMS_MAX = 20

Name = tuple[str, int]  #: of an event: its publisher and number


@dataclass
class Published:
    """What publishers know: what they sent, and where it was accepted."""

    sent: dict[Name, tuple[str, int]] = field(default_factory=dict)
    last: set[Name] = field(default_factory=set)
    accepted: dict[Name, tuple[str, int]] = field(default_factory=dict)


@dataclass
class Reader:
    """A durable subscriber, and what it was given."""

    name: str
    filter: str
    habit: str  #: stay, move, away
    has_token: bool  #: it says itself where it stood; or its broker does
    home: str
    buffer: int  #: so much it has room for
    given: list[holdfast.LoggedEvent] = field(default_factory=list)
    gaps: list[holdfast.Gap] = field(default_factory=list)
    visits: int = 0
    story: list[str] = field(default_factory=list)  #: its visits, for whoever has to find out
    failure: holdfast.HoldfastError | None = None
    was_there: asyncio.Event = field(default_factory=asyncio.Event)

    def lacks(self, published: Published) -> bool:
        """Whether it has not been given the last events yet."""
        wanted = {name for name in published.last if FILTERS[self.filter](*published.sent[name])}
        return not wanted <= {(event.publisher, event.n) for event in self.given}


class Run:
    """One run: ``kills`` of them, everything else drawn from the seed."""

    def __init__(self, brokers: Brokers, kills: int, seed: int, pauses: Sequence[float] = PAUSES) -> None:
        self.brokers = brokers
        self.kills = kills
        self.pauses = pauses
        self.random = Random(f"{seed} real durable")
        self.published = Published()
        self.readers = [self._reader(i) for i in range(SUBSCRIBERS)]
        self.killed: Counter[str] = Counter()
        self._is_calm = asyncio.Event()  #: no more kills
        self._is_over = asyncio.Event()  #: everything is published
        self._deadline = inf  #: for what is still missing then

    def _reader(self, i: int) -> Reader:
        filters = list(FILTERS)
        habit = ("stay", "stay", "move", "away")[i % 4]
        return Reader(
            f"u{i}", filters[i % len(filters)], habit, i % 8 >= 4, HOSTS[i // 8 % 2], ROOMS[i % len(ROOMS)]
        )

    async def perform(self) -> None:
        """All of it; raises whatever goes wrong."""
        await self.brokers.start(*PARENTS)
        async with asyncio.TaskGroup() as group:
            for reader in self.readers:
                group.create_task(self._read(reader))
            for reader in self.readers:
                await reader.was_there.wait()
            publishing = [group.create_task(self._publish(name)) for name in PUBLISHERS]
            await self._kill()
            self._is_calm.set()
            await asyncio.gather(*publishing)
            self._deadline = time.monotonic() + PATIENCE_S
            self._is_over.set()

    def _is_done(self, reader: Reader) -> bool:
        is_late = time.monotonic() > self._deadline
        return self._is_over.is_set() and (is_late or not reader.lacks(self.published))

    # Who does what

    async def _kill(self) -> None:
        """One broker at a time."""
        victims = [*PARENTS, *PUBLISHERS.values(), *HOSTS]  # the root as well, but not as often
        for _ in range(self.kills):
            await asyncio.sleep(self.random.uniform(0.2, 1.5))
            victim = self.random.choice(victims)
            self.brokers.kill(victim)
            self.killed[victim] += 1
            await asyncio.sleep(self.random.choice(self.pauses))
            await self.brokers.start(victim)

    async def _publish(self, name: str) -> None:
        async with (
            holdfast.connect(self.brokers.url(PUBLISHERS[name]), name=name, timeout=PATIENCE_S) as network,
            network.publisher(window=2000, timeout=PATIENCE_S) as publisher,
        ):
            sent: list[holdfast.Sent] = []
            while not self._is_calm.is_set():
                topic, price = self.random.choice(TOPICS), self.random.randint(1, 200)
                sent.append(await self._send(publisher, name, topic, price))
                await asyncio.sleep(len(PUBLISHERS) / RATE)
            for topic, price in LAST:
                sent.append(await self._send(publisher, name, topic, price))
                self.published.last.add((name, sent[-1].n))
            for each in sent:
                receipt = await each.receipt(PATIENCE_S)
                self.published.accepted[name, each.n] = receipt.pubend, receipt.tick

    async def _send(self, publisher: holdfast.Publisher, name: str, topic: str, price: int) -> holdfast.Sent:
        payload = self.random.randbytes(self.random.choice((10, 300, 3000)))
        sent = await publisher.send(topic, {"price": price}, payload, timeout=PATIENCE_S)
        self.published.sent[name, sent.n] = topic, price
        return sent

    async def _read(self, reader: Reader) -> None:
        """Visit after visit; between two, the broker or the subscriber itself knows where it stood."""
        start: Any = "now"
        random = Random(f"{self.random.random()} {reader.name}")
        while not self._is_done(reader):
            try:
                start = await self._visit(reader, start, random)
            except holdfast.Refused as refused:
                # the broker that knows where it stood is down
                reader.story.append(f"refused: {refused.reason}")
                continue
            except holdfast.HoldfastError as error:
                reader.failure = error
                reader.was_there.set()
                return
            reader.visits += 1
            if reader.habit == "move":
                reader.home = HOSTS[1 - HOSTS.index(reader.home)]
            if reader.habit == "away" and not self._is_over.is_set():
                await asyncio.sleep(random.uniform(0.5, 4.0))

    async def _visit(self, reader: Reader, start: Any, random: Random) -> Any:
        """One visit; where to begin the next one."""
        url = self.brokers.url(reader.home)
        until = time.monotonic() + (inf if reader.habit == "stay" else random.uniform(1.0, 4.0))
        async with (
            holdfast.connect(url, name=reader.name, timeout=PATIENCE_S) as network,
            network.subscribe(
                reader.filter, durable=reader.name, start=start, buffer=reader.buffer, timeout=PATIENCE_S
            ) as items,
        ):
            reader.story.append(f"at {reader.home} from {start!r}: begins at {items.token!r}")
            if not reader.visits:
                await items.wait_whole(PATIENCE_S)
                reader.was_there.set()
            while not self._is_done(reader):
                await self._take(reader, items)
                if random.random() < 0.3:
                    await items.commit(timeout=PATIENCE_S)
                if time.monotonic() > until:
                    break
            reader.story.append(f"leaves {reader.home} after {len(reader.given)} events at {items.token!r}")
            if reader.has_token:
                return items.token
            await items.commit(timeout=PATIENCE_S)
            return "now"

    async def _take(self, reader: Reader, items: holdfast.Subscription) -> None:
        try:
            batch = await items.get_batch(0.5)
        except holdfast.TimedOut:
            return
        for item in batch:
            if isinstance(item, holdfast.LoggedEvent):
                reader.given.append(item)
            elif isinstance(item, holdfast.Gap):
                reader.gaps.append(item)

    # What came of it

    def problems(self) -> list[str]:
        """All that is wrong; the brokers are stopped by this, and their logs read."""
        found = [f"{name} was sent, and is not accepted" for name in self._unaccepted()]
        places = Counter(self.published.accepted.values())
        found += [f"{count} events at {place}" for place, count in places.items() if count > 1]
        for reader in self.readers:
            wrong = [f"{reader.name}: {each}" for each in wrong_with(reader, self.published)]
            found += wrong[:PROBLEMS_MAX] + (reader.story if wrong else [])
        for name in PARENTS:
            self.brokers.stop(name)
            found += [said for log in self.brokers.logs(name) for status, said in [verified(log)] if status]
        return found

    def _unaccepted(self) -> list[Name]:
        return [name for name in self.published.sent if name not in self.published.accepted]

    def counts(self) -> dict[str, int]:
        """What it amounts to."""
        return {
            "runs": 1,
            "kills": self.killed.total(),
            "events": len(self.published.accepted),
            "deliveries": sum(len(reader.given) for reader in self.readers),
            "moves": sum(reader.visits - 1 for reader in self.readers if reader.habit == "move"),
            "absences": sum(reader.visits - 1 for reader in self.readers if reader.habit == "away"),
        }


def wrong_with(reader: Reader, published: Published) -> list[str]:
    """It was given what it wanted, once, from where that was accepted, each pubend in order, and nothing else."""
    if reader.failure is not None:
        return [f"{type(reader.failure).__name__}: {reader.failure}"]
    if reader.lacks(published):
        return [f"it did not come to the end, but to {reader.given[-1:]}"]
    found = [f"{gap}" for gap in reader.gaps]
    wanted = {name for name, said in published.sent.items() if FILTERS[reader.filter](*said)}
    given = Counter((event.publisher, event.n) for event in reader.given)
    found += [f"{name} came {count} times" for name, count in given.items() if count > 1]
    found += [f"{name} was not wanted" for name in given if name not in wanted]
    found += [f"{name} is missing: {published.accepted.get(name)}" for name in wanted - given.keys()]
    last: dict[str, int] = {}
    for event in reader.given:
        name, place = (event.publisher, event.n), (event.pubend, event.tick)
        if published.accepted.get(name) != place:
            found.append(f"{name} at {place}, accepted at {published.accepted.get(name)}")
        if event.tick <= last.get(event.pubend, 0):
            found.append(f"{name} at {place} after {last[event.pubend]}")
        last[event.pubend] = event.tick
    return found


def performed(
    kills: int, seed: int, folder: Path, pauses: Sequence[float] = PAUSES
) -> tuple[list[str], dict[str, int]]:
    """One run: what is wrong with it, and its counts."""

    async def perform(brokers: Brokers) -> Run:
        run = Run(brokers, kills, seed, pauses)
        await run.perform()
        return run

    with brokers_in(folder, PARENTS, streams=STREAMS) as brokers:
        run = asyncio.run(perform(brokers))
        return run.problems(), run.counts()


def main(kills: int, seed: int) -> int:
    """One run; its exit status."""
    with tempfile.TemporaryDirectory(prefix="holdfast-durable-") as folder:
        found, counts = performed(kills, seed, Path(folder))
    if found:
        print("\n".join([f"seed {seed}, {counts}:", *found[:50]]), file=sys.stderr)  # noqa: T201
        return 1
    print(f"counts: {json.dumps(counts)}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
