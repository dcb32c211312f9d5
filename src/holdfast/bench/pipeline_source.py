"""A stream read by Spark, beside plain Parquet with the same rows: all columns, and a selective filter.

Nothing is done with the rows (the sink ``noop``), so what is measured is how they come to Spark. How fast that can be
from Python at all is said by a source that has its rows already. The ways take turns; the ratio of two is that of
neighbouring runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

import holdfast.pipeline
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.pipeline_lake import plain_parquet
from holdfast.bench.pipeline_ready import ReadySource, keep
from holdfast.bench.pipeline_scale import Setting
from holdfast.bench.pipeline_stream import ATTRIBUTES, STREAM
from holdfast.bench.process_tree import processor_seconds
from holdfast.pipeline.columns import arrow_schema, declared, shape_of
from holdfast.pipeline.pages import BATCH_ROWS

__all__ = [
    "ALL_JOB",
    "FILTER_JOB",
    "LAKE",
    "LOCAL",
    "NETWORK",
    "PARQUET",
    "PROCESSOR",
    "READY",
    "TABLE",
    "source",
]

PROCESSOR: Final = ": processor time"

ALL_JOB: Final = "reading, all columns"
FILTER_JOB: Final = "reading, a filter for one in two thousand"
PARQUET = "spark.read.parquet"
READY: Final = "a source whose rows are made already"
NETWORK, LOCAL, LAKE = "source, from log readers", "source, localSegments", "source, readFrom=lake"
TABLE: Final = "pipeline.table, read_from=lake"
WARM_ROWS: Final = 200_000
FILTER: Final = "orders/# WHERE symbol = 'S007' AND price > 225"
WHERE: Final = "a.symbol = 'S007' AND a.price > 225"


def source(setting: Setting) -> Iterator[Outcome]:
    """The lake must have been written: its rows are the plain ones."""
    rows, spark = setting.stored.rows, setting.spark
    parquet: Any = spark.read.parquet(str(plain_parquet(setting)))

    def logged(way: str, **options: str) -> Any:
        where = {NETWORK: {"readFrom": "log"}, LAKE: {"readFrom": "lake"}}
        local = {"readFrom": "log", "localSegments": "true"}
        return setting.source(**where.get(way, local), **options)

    def table() -> Any:
        """Of a table nobody writes, with what finds its files."""
        network = setting.stored.network
        return holdfast.pipeline.table(
            spark, network=network, stream=STREAM, attributes=ATTRIBUTES, read_from="lake"
        )

    def ways(**options: str) -> dict[str, Callable[[], Any]]:
        return {way: partial(logged, way, attributes=ATTRIBUTES, **options) for way in (NETWORK, LOCAL, LAKE)}

    made = _ready_batch(setting)

    def ready() -> Any:
        options = {"attributes": ATTRIBUTES, "rows": str(rows), "path": str(made)}
        return spark.read.format(ReadySource.name()).options(**options).load()

    for each in (parquet, table()):
        _nowhere(each.limit(WARM_ROWS))  # as the source was when Spark was started
    spark.dataSource.register(ReadySource)
    everything = {PARQUET: lambda: parquet, TABLE: table, READY: ready, **ways()}
    yield from _measured(setting, ALL_JOB, everything, _nowhere)
    filtered = {
        PARQUET: lambda: parquet.where(WHERE),
        TABLE: lambda: table().where(WHERE),
        **ways(filter=FILTER),
    }
    del filtered[LAKE]  # what a filter spares there is asked of history
    counts: set[int] = set()
    yield from _measured(setting, FILTER_JOB, filtered, lambda frame: counts.add(len(frame.collect())))
    if len(counts) > 1:
        raise BenchFailed(f"{FILTER_JOB}: {sorted(counts)} rows, each way others")
    for way, frame in ((PARQUET, parquet), (TABLE, table()), (NETWORK, logged(NETWORK, columns="n"))):
        [found] = frame.selectExpr("count(*) AS rows", "sum(n) AS numbers").collect()
        setting.check_rows(found.rows, rows, way)
        halves = (rows - rows // 2, rows // 2)
        setting.check_rows(found.numbers, sum(half * (half + 1) // 2 for half in halves), f"{way}, sum of n")


def _ready_batch(setting: Setting) -> Path:
    """The first of the plain rows, as many as the source hands over at once, as it does."""
    path = setting.folder / "ready.arrow"
    schema = arrow_schema(shape_of(None, declared(ATTRIBUTES)))
    first = min(plain_parquet(setting).glob("*.parquet"))
    rows = pa.Table.from_batches([next(pq.ParquetFile(first).iter_batches(BATCH_ROWS))])
    [batch] = rows.cast(schema).combine_chunks().to_batches()
    keep(batch, path)
    return path


def _nowhere(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _measured(
    setting: Setting, job: str, ways: dict[str, Callable[[], Any]], work: Callable[[Any], None]
) -> Iterator[Outcome]:
    """Rows a second that were looked at, whatever came of them; and the processor time that took, of all processes."""
    rows = setting.stored.rows
    runs: dict[str, list[float]] = {way: [] for way in ways}
    used: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(setting.scale.repetitions):
        for way, frame in ways.items():
            before, began = processor_seconds(), time.perf_counter()
            work(frame())
            runs[way].append(rows / (time.perf_counter() - began))
            used[way].append(1e6 * (processor_seconds() - before) / rows)
    for way in ways:
        yield Outcome(job, way, "rows/s", tuple(runs[way]))
        yield Outcome(f"{job}{PROCESSOR}", way, "µs/row", tuple(used[way]))
