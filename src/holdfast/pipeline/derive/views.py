"""A stream as the table that a query names: its events in step, with a watermark that silence moves on, too.

The source's rows of silence have to pass the watermark's operator, and must not reach the query. Spark would have it
otherwise: whatever a query asks of its rows it asks as early as it can, below the watermark, since that only needs the
times; and there a row of silence fails every ``WHERE``, and the watermark never hears of it. What Spark does not move,
nor put together with other conditions, is a filter that it takes for random. ``ABOVE`` is one: it names the number of
its task, which says nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from holdfast.pipeline.columns import COLUMNS
from holdfast.pipeline.rows import SILENCE

__all__ = ["ABOVE", "EVENT_TIME", "columns_for", "stream_frame"]

#: When a broker took an event, to the microsecond: the order in which streams are in step.
EVENT_TIME: Final = "accepted"

#: True of all rows but those of silence, in a way that keeps every other condition above it.
ABOVE: Final = f"spark_partition_id() >= IF(kind = '{SILENCE}', {2**31 - 1}, 0)"

_ALWAYS: Final = ("kind", EVENT_TIME)
_COUNTED: Final = re.compile(r"\(\s*\*\s*\)")


def columns_for(text: str, *, has_attributes: bool) -> list[str]:
    """Those that a query may mean: all if there is a star in it, else those whose names stand there.

    What is not asked for is not made by the log readers: payloads, and the attributes as variants, are most of a row.
    """
    there = [name for name in COLUMNS if name != "a" or has_attributes]
    if "*" in _COUNTED.sub("()", text):
        return there
    words = set(re.findall(r"\w+", text.lower()))
    return [name for name in there if name in words or name in _ALWAYS]


def stream_frame(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """The events of a stream; ``options`` are the source's."""
    source = spark.readStream.format("holdfast").options(**options, inStep="true").load()
    return source.withWatermark(EVENT_TIME, "0 seconds").where(ABOVE)
