"""A query that runs: started from its checkpoint, followed batch by batch, and told from what can be waited for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from holdfast.errors import InvalidEvent
from holdfast.events.event import make_event
from holdfast.events.timestamp import time_from_text
from holdfast.events.topic import topic_levels
from holdfast.filters.topic import parse_pattern
from holdfast.pipeline.derive.checkpoint import Begun
from holdfast.pipeline.derive.errors import BadQuery, Derailed
from holdfast.pipeline.derive.query import Query, bad_query
from holdfast.pipeline.derive.results import results_of
from holdfast.pipeline.derive.views import columns_for, stream_frame
from holdfast.pipeline.errors import BadOption, CannotPublish, CannotRead, ReaderUnreachable
from holdfast.pipeline.homes import homes_of
from holdfast.pipeline.options import Gaps
from holdfast.pipeline.origins import origins_in
from holdfast.runtime.network_file import StreamEntry

__all__ = ["Batch", "Wanted", "follow", "prepare", "start"]

POLL_SECONDS: Final = 0.5
_NEVER: Final = "1970-01-01"  #: of a watermark that nothing has moved yet

#: What is over when others are back; the rest would come again.
_PASSING: Final = {each.__name__ for each in (ReaderUnreachable, CannotRead, CannotPublish)}
#: How errors of ours stand in what Spark says of a Python process.
_OURS: Final = re.compile(r"\bholdfast\.[\w.]*?(\w+): (.+)")

#: How Spark is to do it. Of a join, Spark 4.3.0 prunes fields of ``a`` that it needs, and fails; who reads whole
#: columns anyway loses nothing without that.
_SETTINGS: Final = {
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.optimizer.expression.nestedPruning.enabled": "false",
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be derived, and how."""

    query: Query
    into: str
    topic: str | None
    checkpoint: Path
    since: str  #: earliest, latest or RFC 3339: where a new checkpoint begins
    every_seconds: float | None  #: None: once, what is there now
    gaps: Gaps
    subscription: str | None
    events_max: int  #: of one batch, of each stream

    @property
    def begun(self) -> Begun:
        """What its checkpoint is of."""
        return Begun(self.query.network.name, self.query.text, self.into, self.topic)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one has done."""

    number: int
    events: int  #: read
    results: int | None  #: published, where Spark says how many
    watermark: str | None  #: up to here everything was counted and published with it; None: nothing yet
    late: int  #: rows that no window would take any more


def prepare(wanted: Wanted) -> None:
    """See whether the network can be read and written so, without Spark.

    :raises BadOption: if the target cannot be written, or a broker not be read.
    :raises BadQuery: if the query is of no use.
    """
    network = wanted.query.network
    homes = homes_of(network.path, wanted.into)
    if wanted.topic is not None:
        entry = next(each for each in network.streams if each.name == wanted.into)
        _check_topic(entry, wanted.topic)
    if wanted.since not in ("earliest", "latest"):
        try:
            time_from_text("since", wanted.since)
        except InvalidEvent as error:
            raise BadOption("since", f"{error.problem}; expected earliest, latest or such a time") from error
    if not wanted.query.text.strip():
        raise BadQuery(wanted.query.file, "is empty; expected one SELECT")
    origins_in(network, homes.stream, local=False)  # all brokers have readers


def _check_topic(entry: StreamEntry, topic: str) -> None:
    try:
        levels = topic_levels(make_event(topic).topic)
    except InvalidEvent as error:
        raise BadOption("topic", str(error)) from error
    if not any(parse_pattern(each).matches(levels) for each in entry.topics):
        problem = f"{topic} is not of the stream {entry.name}"
        raise BadOption("topic", f"{problem}; expected one of {', '.join(entry.topics)}")


def start(spark: SparkSession, wanted: Wanted) -> StreamingQuery:
    """Start the query, or go on with it.

    :raises BadQuery: if Spark, the streams or the target cannot do it.
    """
    query, network = wanted.query, wanted.query.network
    for name, text in _SETTINGS.items():
        spark.conf.set(name, text)
    spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    result = query.frame(spark, lambda stream: _view(spark, wanted, stream))
    if wanted.into in [each.name for each in query.streams]:
        raise BadQuery(query.file, f"reads {wanted.into}, into which its results go: it would never end")
    frame, options = results_of(query.file, result, wanted.topic, network.common["limits"])
    writer = frame.writeStream.format("holdfast").outputMode("append").queryName(query.file.stem)
    writer = writer.options(network=str(network.path), stream=wanted.into, **options)
    writer = writer.option("checkpointLocation", str(wanted.checkpoint.absolute()))
    if wanted.every_seconds is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{round(wanted.every_seconds * 1_000)} milliseconds")
    try:
        return writer.start()
    except AnalysisException as error:
        raise bad_query(query.file, error) from error


def _view(spark: SparkSession, wanted: Wanted, stream: StreamEntry) -> DataFrame:
    """A stream, as its source is told of it."""
    columns = columns_for(wanted.query.text, has_attributes=bool(stream.attributes))
    options = {
        "network": str(wanted.query.network.path),
        "stream": stream.name,
        "columns": ",".join(columns),
        "onGap": wanted.gaps,
        "maxEventsPerTrigger": str(wanted.events_max),
    }
    if "a" in columns:
        options["attributes"] = ", ".join(f"`{name}` {kind}" for name, kind in stream.attributes.items())
    is_word = wanted.since in ("earliest", "latest")
    options["startingOffsets" if is_word else "startingTimestamp"] = wanted.since
    if wanted.subscription is not None:
        options["subscription"] = f"{wanted.subscription}-{stream.name}"
    return stream_frame(spark, options)


def follow(query: StreamingQuery, report: Callable[[Batch], None], stopping: Event) -> None:
    """Until it ends, or is to be stopped: tell of every batch in which something happened.

    :raises Derailed: if it ended by an error.
    """
    told = -1
    is_over = False
    while not is_over and not stopping.is_set():
        try:
            is_over = bool(query.awaitTermination(POLL_SECONDS))
        except StreamingQueryException as error:
            raise _derailed(error) from error
        for progress in query.recentProgress:
            if progress.batchId > told and "addBatch" in progress.durationMs:
                told = progress.batchId
                batch = _batch(progress)
                if batch.events or batch.results or batch.late:
                    report(batch)


def _batch(progress: Any) -> Batch:
    sources = [each.numInputRows for each in progress.sources]
    results, watermark = progress.sink.numOutputRows, progress.eventTime.get("watermark")
    return Batch(
        progress.batchId,
        sum(rows - 1 for rows in sources if rows),  # one row of each tells of the moment
        None if results is None or results < 0 else results,
        None if watermark is None or watermark.startswith(_NEVER) else watermark,
        sum(each.numRowsDroppedByWatermark for each in progress.stateOperators),
    )


def _derailed(error: StreamingQueryException) -> Derailed:
    """The error of ours that is somewhere in what Spark says, or the first line of that."""
    found = _OURS.findall(str(error))
    if not found:
        return Derailed(str(error).strip().partition("\n")[0], is_passing=False)
    name, said = found[-1]
    return Derailed(said.strip(), is_passing=name in _PASSING)
