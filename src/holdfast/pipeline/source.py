"""Streams as tables of Spark: ``spark.read.format("holdfast")``, after ``holdfast.pipeline.register(spark)``.

The driver asks every broker how far its pubends go, and divides what is between start and end into ranges of ticks; a
task reads one of them (``reading``). Nothing is kept between two queries, and nothing is pinned: what a log gives up
meanwhile is a gap.

Comparisons that Spark could hand down to us are not taken: Spark 4.3 keeps them with the DataFrame, and not with the
query that made them, so that another query of the same DataFrame lacks rows (decision 0017). The option ``filter`` is
how less is read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from holdfast.pipeline.columns import Shape, declared, shape_of, spark_ddl
from holdfast.pipeline.errors import BadOption
from holdfast.pipeline.homes import homes_of
from holdfast.pipeline.in_step import InStepReader
from holdfast.pipeline.options import BATCH, STREAMING, Options, read_options
from holdfast.pipeline.origins import Origins, origins_of
from holdfast.pipeline.planning import TickRange, placed, ranges_between
from holdfast.pipeline.ranges import End
from holdfast.pipeline.reading import task_of
from holdfast.pipeline.sink import HoldfastStreamWriter, HoldfastWriter, Staging
from holdfast.pipeline.sink_options import BATCH_SINK, STREAM_SINK, SinkOptions, read_sink_options
from holdfast.pipeline.sink_rows import Rows
from holdfast.pipeline.streaming import HoldfastStreamReader
from holdfast.streams.checkpoint_token import Token

__all__ = ["HoldfastSource"]

#: What an ending token names is on disk, and the tables vouch for it after about a second; so long is waited for that.
VOUCHED_SECONDS: Final = 3.0
ASK_EVERY_SECONDS: Final = 0.1


class HoldfastSource(DataSource):
    """``format("holdfast")``."""

    @classmethod
    def name(cls) -> str:
        """As Spark calls it."""
        return "holdfast"

    def schema(self) -> str:
        """The columns that are wanted."""
        return spark_ddl(_shape(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Of a batch."""
        options = read_options(self.options, BATCH)
        _check_schema(schema, options.shape)
        return HoldfastReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # Spark's own
        """Of a batch."""
        options = read_sink_options(self.options, BATCH_SINK, schema, overwrite=overwrite)
        return HoldfastWriter(_staging(options), options.app, options.version)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """Of a stream; Spark says overwrite where a query has the output mode complete."""
        options = read_sink_options(self.options, STREAM_SINK, schema, overwrite=overwrite)
        return HoldfastStreamWriter(_staging(options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Of a stream."""
        options = read_options(self.options, STREAMING)
        _check_schema(schema, options.shape)
        return InStepReader(options) if options.in_step else HoldfastStreamReader(options)


class HoldfastReader(DataSourceReader):
    """Reads once, from start to end."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._origins = origins_of(
            options.network, options.stream, local=options.local, source=options.source
        )

    def partitions(self) -> Sequence[InputPartition]:
        """One for each range."""
        options = self._options
        ends = ends_for(self._origins, options)
        start = placed(options.start, ends, options.stream, "startingOffsets")
        end = placed(options.end, ends, options.stream, "endingOffsets")
        end = {pubend: min(tick, ends[pubend].last) for pubend, tick in end.items()}
        return [InputPartition(each) for each in ranges_between(start, end, options.min_partitions)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one; of none, if there is nothing to read."""
        if partition.value is not None:
            yield from task_of(self._options, self._origins).rows(TickRange(*partition.value))


def _staging(options: SinkOptions) -> Staging:
    homes = homes_of(options.network, options.stream)
    return Staging(Rows(options, homes.limits), homes)


def _shape(options: Mapping[str, str]) -> Shape:
    """The columns that options ask for, whatever else they say."""
    attributes = declared(options["attributes"]) if "attributes" in options else {}
    columns = [each.strip() for each in options["columns"].split(",")] if "columns" in options else None
    return shape_of(columns, attributes)


def _check_schema(schema: StructType, shape: Shape) -> None:
    """A schema that somebody else has thought of is none of ours."""
    if tuple(schema.fieldNames()) != shape.columns:
        problem = f"the schema has {', '.join(schema.fieldNames())}"
        raise BadOption("columns", f"{problem}; expected no schema: columns and attributes make it")


def ends_for(origins: Origins, options: Options) -> dict[str, End]:
    """How far the pubends go, once the tables vouch for what a token names; silence they never vouch for."""
    deadline = time.monotonic() + VOUCHED_SECONDS
    while True:
        ends = origins.ends()
        token = options.end if isinstance(options.end, Token) else Token()
        late = [each for each, end in ends.items() if each in token and token[each].tick > end.last]
        if not late or time.monotonic() > deadline:
            return ends
        time.sleep(ASK_EVERY_SECONDS)
