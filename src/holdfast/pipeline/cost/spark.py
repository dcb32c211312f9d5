"""Stretches tallied by Spark's workers, one task each: what comes back are the counts, and no event moves.

The filters are sent to every executor once; each Python worker makes one matching index of them and keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from holdfast.errors import CallersFault, HoldfastError
from holdfast.pipeline.cost.engine import index_of
from holdfast.pipeline.cost.stretches import BadLine, Stretch
from holdfast.pipeline.cost.tally import Tally, tally
from holdfast.pipeline.errors import CannotRead
from holdfast.pipeline.preflight import check_executors
from holdfast.pipeline.spark_session import spark_session

__all__ = ["tally_in", "tally_with_spark"]

_SCHEMA = pa.schema([("tally", pa.binary()), ("problem", pa.string()), ("is_ours", pa.bool_())])
_DDL = "tally BINARY, problem STRING, is_ours BOOLEAN"


def tally_with_spark(
    stretches: Sequence[Stretch], filters: tuple[str, ...], held: int, master: str | None
) -> list[Tally]:
    """In a session of its own."""
    with spark_session(master) as spark:
        check_executors(spark)
        return tally_in(spark, stretches, filters, held)


def tally_in(
    spark: SparkSession, stretches: Sequence[Stretch], filters: tuple[str, ...], held: int
) -> list[Tally]:
    """In a session that there is.

    :raises CallersFault: if something in the history is no event.
    :raises CannotRead: if a stretch could not be read where its task ran.
    """
    if not stretches:
        return []
    sent = spark.sparkContext.broadcast((filters, list(stretches)))

    def tallied(batches: Iterator[Any]) -> Iterator[Any]:
        texts, places = sent.value
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _row(places[number], texts, held)

    rows = spark.range(0, len(stretches), 1, len(stretches)).mapInArrow(tallied, _DDL).collect()
    sent.destroy()
    for row in rows:
        if row.problem is not None:
            raise BadLine(row.problem) if row.is_ours else CannotRead(row.problem)
    return [msgspec.msgpack.decode(row.tally, type=Tally) for row in rows]


def _row(stretch: Stretch, filters: tuple[str, ...], held: int) -> Any:
    """One stretch's counts, or what is wrong with it: an exception would come back as pages of Java."""
    try:
        found = msgspec.msgpack.encode(tally(index_of(filters), held, stretch.batches()))
        values: tuple[bytes | None, str | None, bool] = (found, None, False)
    except (HoldfastError, OSError) as error:
        values = (None, str(error), isinstance(error, CallersFault))
    arrays = [pa.array([value], field.type) for value, field in zip(values, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
