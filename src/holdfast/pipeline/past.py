"""The past of streams, read: ranges of lake and logs, merged in the order in which events were accepted.

Nothing is kept in memory but a page of each pubend, and nothing is pinned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import merge
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from holdfast.client.item import Gap, LoggedEvent
from holdfast.errors import InvalidEvent
from holdfast.events.timestamp import time_from_text
from holdfast.filters.parse import parse_filter
from holdfast.filters.topic import TopicPattern, parse_pattern
from holdfast.messages.streams import Guarantee
from holdfast.messages.ticks import Tick
from holdfast.pipeline.columns import arrow_schema, shape_of
from holdfast.pipeline.errors import BadOption
from holdfast.pipeline.history import Moment
from holdfast.pipeline.lake.errors import LakeFailed
from holdfast.pipeline.options import Offset
from holdfast.pipeline.origin import From
from holdfast.pipeline.origins import Origins, network_at, origins_in
from holdfast.pipeline.planning import TickRange, placed, ranges_between
from holdfast.pipeline.reading import Task
from holdfast.pipeline.rows import GAP
from holdfast.pipeline.variant_reading import VariantReader
from holdfast.runtime.addresses import words_of
from holdfast.runtime.network_file import Network

__all__ = ["History", "Read", "history_of", "write_parquet"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OF_ITEMS: Final = (
    "kind",
    "pubend",
    "incarnation",
    "after",
    "tick",
    "topic",
    "publisher",
    "n",
    "time",
    "content_type",
    "payload",
    "attributes",
    "reason",
)


@dataclass(frozen=True, slots=True)
class Read:
    """How much of the lake was read, in bytes, and of how much."""

    bytes: int
    of: int


class History:
    """An answer that is read when it is iterated over; again and again, if need be."""

    def __init__(
        self,
        network: Network,
        filter: str,
        streams: Sequence[str],
        start: Offset,
        end: Offset,
        source: From,
        *,
        local: bool,
    ) -> None:
        self._filter = filter
        self._origins = [origins_in(network, stream, local=local, source=source) for stream in streams]
        self._start = start
        self._end = end

    @property
    def read(self) -> Read:
        """How much of the lake was read so far."""
        lakes = [origins.lake for origins in self._origins if origins.lake is not None]
        return Read(sum(lake.read_bytes for lake in lakes), sum(lake.table_bytes for lake in lakes))

    def __iter__(self) -> Iterator[LoggedEvent | Gap]:
        """Events and gaps, in the order in which they were accepted.

        :raises HoldfastError: if a log or the lake cannot be read.
        """
        for _, _, item in merge(*(self._items(*each) for each in self._ranges()), key=lambda each: each[:2]):
            yield item

    def batches(self, attributes: Mapping[str, str] | None = None) -> Iterator[Any]:
        """The same as record batches with the columns of contracts.md §7, pubend by pubend."""
        columns, declared = shape_of(None, attributes)
        for origins, wanted in self._ranges():
            yield from Task(origins, columns, declared, self._filter, "row", False).rows(wanted)

    def _ranges(self) -> Iterator[tuple[Origins, TickRange]]:
        for origins in self._origins:
            ends = origins.ends()
            start = placed(self._start, ends, origins.stream, "since")
            end = placed(self._end, ends, origins.stream, "until")
            end = {pubend: min(tick, ends[pubend].last) for pubend, tick in end.items()}
            for wanted in ranges_between(start, end):
                yield origins, wanted

    def _items(self, origins: Origins, wanted: TickRange) -> Iterator[tuple[Tick, str, LoggedEvent | Gap]]:
        variants = VariantReader()
        task = Task(origins, _OF_ITEMS, {}, self._filter, "row", False)
        for batch in task.rows(wanted):
            for row in batch.to_pylist():
                yield row["tick"], wanted.pubend, _item(row, variants)


def _item(row: Mapping[str, Any], variants: VariantReader) -> LoggedEvent | Gap:
    if row["kind"] == GAP:
        return Gap(row["pubend"], row["after"], row["tick"], row["reason"])
    attributes = row["attributes"]
    return LoggedEvent(
        row["topic"],
        variants.attributes(attributes["value"], attributes["metadata"]),
        row["payload"],
        row["content_type"] or "",
        row["publisher"],
        row["n"],
        None if row["time"] is None else _microseconds(row["time"]) * 1_000,
        row["pubend"],
        row["incarnation"],
        row["tick"],
    )


def history_of(
    filter: str,
    network: str | Path | Network,
    stream: str | None,
    since: Moment | None,
    until: Moment | None,
    source: From,
    *,
    local: bool,
) -> History:
    """As ``history.history``."""
    if not isinstance(network, Network):
        network = network_at(Path(network))
    pattern = parse_filter(filter).pattern
    streams = [stream] if stream is not None else _streams(network, pattern)
    start: Offset = "earliest" if since is None else _before("since", since)
    end: Offset = "latest" if until is None else _before("until", until)
    return History(network, filter, streams, start, end, source, local=local)


def write_parquet(found: History, path: Path, most: int | None = None) -> int:
    """An answer as a file, pubend by pubend, with the columns of contracts.md §7; how many rows it has.

    :raises LakeFailed: if it cannot be written.
    """
    rows = 0
    try:
        with pq.ParquetWriter(path, arrow_schema(shape_of())) as writer:
            for batch in found.batches():
                batch = batch if most is None else batch.slice(0, most - rows)
                writer.write_batch(batch)
                rows += batch.num_rows
                if rows == most:
                    break
    except OSError as error:
        raise LakeFailed(f"{path}: cannot be written: {words_of(error)}") from error
    return rows


def _streams(network: Network, wanted: TopicPattern) -> list[str]:
    """The durable streams with topics that a pattern can match."""
    return [
        stream.name
        for stream in network.streams
        if stream.guarantee is Guarantee.DURABLE
        and any(parse_pattern(topics).overlaps(wanted) for topics in stream.topics)
    ]


def _before(option: str, moment: Moment) -> Tick:
    """The last tick before a moment."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise BadOption(option, f"{moment} has no time zone; expected one that has")
        return max(_microseconds(moment) - 1, 0)
    try:
        return max(-(-time_from_text(option, moment) // 1_000) - 1, 0)
    except InvalidEvent as error:
        raise BadOption(option, error.problem) from error


def _microseconds(moment: datetime) -> int:
    """Since 1970, exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)
