"""Streams as streams of Spark: ``spark.readStream.format("holdfast")``.

Spark's offset is a checkpoint token, as text. It follows events and gaps, not silence: a stream on which nothing
happens makes no empty batches. What is between two offsets is the same rows whenever it is read, as long as the log has
them; Spark keeps the offsets in its own checkpoint, and nothing is pinned here, unless a ``subscription`` is named.

How much a batch may hold is decided by asking the readers how far so many events go. Those pubends come first that are
farthest behind, so that none waits for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.pipeline.acknowledging import Acknowledging
from holdfast.pipeline.options import Options
from holdfast.pipeline.origins import Origins, network_at, origins_of
from holdfast.pipeline.planning import TickRange, placed, ranges_between, token_of
from holdfast.pipeline.reading import task_of
from holdfast.pipeline.requests import ReachRequest
from holdfast.streams.checkpoint_token import Place, Token

__all__ = ["TOKEN", "HoldfastStreamReader", "limited", "places_of"]

TOKEN: Final = "token"
UNLIMITED: Final = 2**63 - 1


class HoldfastStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads on and on; lives in the driver, and its copies in tasks."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._origins = origins_of(
            options.network, options.stream, local=options.local, source=options.source
        )
        self._acknowledging = _acknowledging_of(options)
        self._target: dict[str, Tick] | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802  # Spark's name, as those below
        """Where a query begins that has no checkpoint."""
        ends = self._origins.ends()
        mine = None if self._acknowledging is None else self._acknowledging.place()
        offset = self._options.start if mine is None or self._options.is_start_given else mine
        start = token_of(placed(offset, ends, self._options.stream, "startingOffsets"), ends)
        if self._acknowledging is not None and mine is None:
            self._acknowledging.make(start)
        return {TOKEN: str(start)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What the options say; of two limits Spark knows one, and both are kept."""
        if self._options.events_max is not None:
            return ReadMaxRows(self._options.events_max)
        if self._options.bytes_max is not None:
            return ReadMaxBytes(self._options.bytes_max)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is there now is all that is read."""
        self._target = {pubend: end.last for pubend, end in self._origins.ends().items()}

    def latestOffset(self, start: Mapping[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        """As far as the limit goes; the start itself, if there is nothing new."""
        token = Token.parse(start[TOKEN])
        self.acknowledge(token)  # what is before it is done with, and may never be committed
        ends = self._origins.ends()
        last = {pubend: end.last for pubend, end in ends.items()}
        if self._target is not None:
            last = {pubend: min(tick, last.get(pubend, tick)) for pubend, tick in self._target.items()}
        begin = places_of(start)
        if not isinstance(limit, ReadAllAvailable):
            last = limited(self._origins, begin, last, *self.limits(limit))
        for pubend, tick in last.items():
            if tick > begin.get(pubend, ORIGIN):
                token = token.advanced(pubend, Place(ends[pubend].incarnation, tick))
        return {TOKEN: str(token)}

    def commit(self, end: Mapping[str, str]) -> None:
        """Everything up to here is done with."""
        self.acknowledge(Token.parse(end[TOKEN]))

    def acknowledge(self, upto: Token) -> None:
        """Say so, if this is a durable subscriber."""
        if self._acknowledging is not None:
            self._acknowledging.acknowledge(upto)

    def limits(self, limit: ReadLimit) -> tuple[int, int]:
        """Events and bytes."""
        events = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.events_max
        size = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.bytes_max
        return events or UNLIMITED, size or UNLIMITED

    def partitions(self, start: Mapping[str, str], end: Mapping[str, str]) -> Sequence[InputPartition]:
        """One for each range."""
        ranges = ranges_between(places_of(start), places_of(end), self._options.min_partitions)
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one."""
        return task_of(self._options, self._origins).rows(TickRange(*partition.value))


def _acknowledging_of(options: Options) -> Acknowledging | None:
    if options.subscription is None:
        return None
    return Acknowledging(network_at(options.network), options.stream, options.subscription, options.filter)


def places_of(offset: Mapping[str, str]) -> dict[str, Tick]:
    """By pubend, how far an offset is."""
    return {pubend: place.tick for pubend, place in Token.parse(offset[TOKEN]).items()}


def limited(
    origins: Origins, start: Mapping[str, Tick], end: Mapping[str, Tick], events: int, size: int
) -> dict[str, Tick]:
    """How far one comes from start to end with so many events, and so many bytes of them, of all pubends together.

    At least one event is always taken: a limit below the next event would stop everything.
    """
    waiting = sorted((start.get(each, ORIGIN), each) for each in end if start.get(each, ORIGIN) < end[each])
    reached: dict[str, Tick] = {}
    for i, (after, pubend) in enumerate(waiting):
        if events <= 0 or size <= 0:
            break
        shares = len(waiting) - i
        request = ReachRequest(pubend, after, end[pubend], -(-events // shares), -(-size // shares))
        answer = origins.of(pubend).reach(request)
        reached[pubend] = answer.covered
        events -= answer.events
        size -= answer.bytes
    return reached
