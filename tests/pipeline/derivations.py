"""Queries that are derived, with real brokers: orders and news at two of them, what was accepted, and what came out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import holdfast
from durable_brokers import PATIENCE_S, Brokers
from holdfast.cli.lake_view import moment_of
from holdfast.pipeline.derive.query import Query
from holdfast.pipeline.derive.run import Batch, Wanted, follow, start
from holdfast.runtime.network_file import read_network
from tested_spark import spark

#: Silence is told on disk more often than by default, so that windows of a second end soon.
STREAMS = """
[durable]
vouch_every_ms = 500
[[stream]]
name = "orders"
topics = ["orders/#"]
attributes = "i BIGINT, price DOUBLE, sym STRING"
[[stream]]
name = "news"
topics = ["news/#"]
attributes = "i BIGINT, sym STRING"
[[stream]]
name = "quiet"
topics = ["quiet/#"]
attributes = "i BIGINT, sym STRING"
[[stream]]
name = "derived"
topics = ["derived/#"]
[[stream]]
name = "fast"
topics = ["fast/#"]
guarantee = "best-effort"
"""
SECOND = 1_000_000  #: in ticks
SYMBOLS = ("IBM", "SAP", "ABC")


class Accepted(NamedTuple):
    """An event as a plain computation sees it."""

    tick: int
    i: int
    sym: str
    price: float


async def publish(
    brokers: Brokers, name: str, topic: str, numbers: Sequence[int], pause: float = 0
) -> list[Accepted]:
    """One event for each number, at a broker, with a pause after each; all accepted."""
    found: list[Accepted] = []
    async with holdfast.connect(brokers.url(name), name=f"p-{name}-{topic}-{numbers[0]}") as network:
        for i in numbers:
            sym, price = SYMBOLS[i % len(SYMBOLS)], i * 0.5
            receipt = await network.publish(topic, {"i": i, "sym": sym, "price": price})
            assert receipt.tick is not None
            found.append(Accepted(receipt.tick, i, sym, price))
            await asyncio.sleep(pause)
    return found


async def results(brokers: Brokers, topic: str, count: int) -> list[dict[str, Any]]:
    """The attributes of the first results of a topic, and of whatever else comes within a second."""
    found: list[dict[str, Any]] = []
    async with (
        holdfast.connect(brokers.url("b1"), name=f"reader-{topic}") as network,
        network.subscribe(topic, start="earliest") as items,
    ):
        try:
            while True:
                async with asyncio.timeout(4 * PATIENCE_S if len(found) < count else 1):
                    item = await anext(items)
                if isinstance(item, holdfast.Event):  # a gap is before the first: there never was anything
                    found.append(dict(item.attributes))
        except TimeoutError:
            return found


def wanted(brokers: Path | Brokers, folder: Path, text: str, topic: str | None, **changes: Any) -> Wanted:
    """As the command line would want it; ``folder`` is for its file and checkpoint."""
    file = folder / "query.sql"
    file.write_text(text)
    network = read_network(brokers.file if isinstance(brokers, Brokers) else brokers)
    given: dict[str, Any] = {
        "into": "derived",
        "topic": topic,
        "checkpoint": folder / "query.checkpoint",
        "since": "earliest",
        "every_seconds": 0.5,
        "gaps": "fail",
        "subscription": None,
        "events_max": 100_000,
    }
    return Wanted(Query(file, text, network), **given | changes)


class Running(NamedTuple):
    """A query that runs, and what was told of it."""

    query: Any
    batches: list[Batch]
    stopping: Event


@asynccontextmanager
async def deriving(what: Wanted) -> AsyncIterator[Running]:
    """It runs during the block, is followed, and has not failed at its end."""
    query = start(spark(), what)  # in the thread of the session, where alone Spark knows our source
    running = Running(query, [], Event())
    following = asyncio.create_task(
        asyncio.to_thread(follow, query, running.batches.append, running.stopping)
    )
    try:
        yield running
    finally:
        running.stopping.set()
        await asyncio.to_thread(query.stop)
        await following


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.05)


def text_of(tick: int) -> str:
    """A tick as derived events say it."""
    return moment_of(tick)
