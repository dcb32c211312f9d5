"""Backfill from the lake, then live, in one query of Spark, while the logs forget what the lake has: exact [issue 6].

    python tests/large_backfill.py EVENTS [SEED]      with so many that only the lake has; `make soak` calls it so

Two brokers publish in portions. Each is taken into the lake and acknowledged, until the logs have given it up; then a
query begins that reads everything from the beginning, and goes on while more is published, taken and given up.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from durable_brokers import Brokers, brokers_in
from holdfast.pipeline.lake.keeping import Keeping
from holdfast.pipeline.lake.run import take_round
from holdfast.pipeline.lake.table import LakeTable
from holdfast.pipeline.origins import origins_of
from holdfast.runtime.network_file import read_network
from holdfast.streams.checkpoint_token import Place
from tested_spark import spark

sys.path.append(str(Path(__file__).resolve().parent / "pipeline"))

from kept_logs import publish

NAMES = ("b1", "b2")
STREAM = "all"
PORTION = 50_000  #: published at once by each broker
LIVE = 20_000  #: published while the query runs, in each of two ways
PATIENCE_S = 3_000.0


class Forgetting:
    """Brokers whose logs give up what the lake has."""

    def __init__(self, brokers: Brokers, lake: Path) -> None:
        self._brokers = brokers
        self._origins = origins_of(brokers.file, STREAM, local=False)
        self._table = LakeTable.made(lake / STREAM, STREAM, {"i": "BIGINT"})
        self._keeping = Keeping(read_network(brokers.file), self._table, self._origins, "lake")

    async def begin(self) -> None:
        await asyncio.to_thread(self._keeping.begin)

    async def publish(self, portions: Sequence[range]) -> None:
        """Published, one portion at each broker, taken into the lake, and gone from the logs."""
        places: dict[str, Place] = {}
        for name, numbers in zip(NAMES, portions, strict=False):
            places.update(await publish(self._brokers, name, numbers))
        while any((self._table.place(pubend) or 0) < place.tick for pubend, place in places.items()):
            await asyncio.to_thread(take_round, self._table, self._origins)
        while not await asyncio.to_thread(self._have_forgotten, places):
            await asyncio.to_thread(self._keeping.acknowledge)

    def _have_forgotten(self, places: dict[str, Place]) -> bool:
        ends = self._origins.ends()
        return all(ends[pubend].first >= place.tick for pubend, place in places.items())


async def backfilled(folder: Path, portions: Sequence[Sequence[range]], live: range, at_once: int) -> None:
    """Everything in portions is in the lake alone but for the last of them, which comes while the query runs.

    ``live`` comes then too, and stays in the log. The query takes ``at_once`` in a batch.
    """
    *before, during = portions
    total = sum(len(numbers) for each in portions for numbers in each) + len(live)
    with brokers_in(folder, {"b1": None, "b2": "b1"}, readers=True) as brokers:
        await brokers.start(*NAMES)
        forgetting = Forgetting(brokers, folder / "lake")
        await forgetting.begin()
        for each in before:
            await forgetting.publish(each)
        query = await asyncio.to_thread(_query, brokers.file, folder, at_once)
        sizes: dict[int, int] = {}
        try:
            await forgetting.publish(during)
            await publish(brokers, NAMES[1], live)
            while sum(sizes.values()) < total:
                assert query.isActive, query.exception()
                sizes |= {each.batchId: each.numInputRows for each in query.recentProgress}
                await asyncio.sleep(0.1)
        finally:
            await asyncio.to_thread(query.stop)
    assert max(sizes.values()) <= at_once
    _check(folder, total)


def _query(network: Path, folder: Path, at_once: int) -> Any:
    return (
        spark()
        .readStream.format("holdfast")
        .options(network=str(network), stream=STREAM, columns="a", attributes="i BIGINT")
        .options(startingOffsets="earliest", maxEventsPerTrigger=str(at_once))
        .load()
        .select("a.i")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "rows"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )


def _check(folder: Path, total: int) -> None:
    """Every number is there once."""
    found = spark().read.schema("i BIGINT").parquet(str(folder / "rows"))
    [row] = found.selectExpr("count(i)", "count(DISTINCT i)", "min(i)", "max(i)").collect()
    assert tuple(row) == (total, total, 0, total - 1)


def main(events: int) -> int:
    """One run, of so many events in the lake; its exit status."""
    starts = range(0, events, PORTION)
    ranges = [range(start, min(start + PORTION, events)) for start in starts]
    portions = [ranges[i : i + len(NAMES)] for i in range(0, len(ranges), len(NAMES))]
    during = [range(events, events + LIVE)]
    live = range(events + LIVE, events + 2 * LIVE)
    with tempfile.TemporaryDirectory(prefix="holdfast-backfill-") as folder:
        running = backfilled(Path(folder), [*portions, during], live, at_once=100_000)
        asyncio.run(asyncio.wait_for(running, PATIENCE_S))
    print(f"counts: {json.dumps({'runs': 1, 'events': events + 2 * LIVE})}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))  # there is nothing to draw: the seed is not used
