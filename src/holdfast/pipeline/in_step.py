"""A stream read in step: every batch ends at one moment, the same for all pubends, before which nothing more can come.

Spark takes the largest time that it has seen for the time it is. That is right if rows come in the order of their
times, but for a delay; a stream with several pubends does not: one is read up to now, while of another an hour is
still to be read, whose rows would be late then, and be left out in silence. Here a batch goes as far as all brokers
promise that nothing is missing (``Ranges.silence``), and no farther. So no row of a later batch is before the end of an
earlier one, a watermark needs no delay, and nothing is late.

Each batch has one row more, of the kind ``silence``, whose ``accepted`` is the moment up to which it goes: it tells the
watermark of it, also where there are no events, or no pubends. Whoever asks for that has to leave it out again, above
the watermark (``derive.views``).

A pubend that comes later, of a broker whose clock is behind, may have events from before the moment. They count as
accepted at the moment: too late for their window, they are in the next one, and not lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.pipeline.columns import Shape
from holdfast.pipeline.options import Options
from holdfast.pipeline.planning import TickRange
from holdfast.pipeline.ranges import Silence
from holdfast.pipeline.reading import task_of
from holdfast.pipeline.requests import ReachAnswer, ReachRequest
from holdfast.pipeline.rows import SILENCE, RowBuilder
from holdfast.pipeline.streaming import TOKEN, HoldfastStreamReader, places_of
from holdfast.streams.checkpoint_token import Place, Token

__all__ = ["InStepReader"]

MOMENT: Final = "moment"
#: The pubend of the row that tells of the moment.
NOBODY: Final = ""


class InStepReader(HoldfastStreamReader):
    """Reads on and on, in step."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._until: Tick | None = None  #: what is there now is all that is read

    def initialOffset(self) -> dict[str, str]:  # noqa: N802  # Spark's name, as those below
        """Where a query begins that has no checkpoint; no moment is over then."""
        return {**super().initialOffset(), MOMENT: str(ORIGIN)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is there now is all that is read."""
        self._until = self._origins.silence().upto

    def latestOffset(self, start: Mapping[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        """The last moment before which nothing is missing, as far as the limit goes; the start, if it is no later."""
        token, begin = Token.parse(start[TOKEN]), places_of(start)
        self.acknowledge(token)
        found = self._origins.silence()
        if self._until is not None:
            found = found._replace(upto=min(found.upto, self._until))
        upto = found.upto if isinstance(limit, ReadAllAvailable) else self._cut(found, start, limit)
        if upto <= int(start[MOMENT]):
            return dict(start)
        for pubend, end in found.pubends.items():
            tick = min(upto, end.last)
            if tick > begin.get(pubend, ORIGIN):
                token = token.advanced(pubend, Place(end.incarnation, tick))
        return {TOKEN: str(token), MOMENT: str(upto)}

    def _cut(self, found: Silence, start: Mapping[str, str], limit: ReadLimit) -> Tick:
        """A moment before which there is not more than the limit, or one event of a pubend where that is more."""
        begin, moment = places_of(start), int(start[MOMENT])
        after = {pubend: max(begin.get(pubend, ORIGIN), moment) for pubend in found.pubends}
        busy = [pubend for pubend in after if self._reach(pubend, after, found, found.upto, 1, 1).events]
        events, size = (-(-most // max(len(busy), 1)) for most in self.limits(limit))
        upto = found.upto
        for pubend in busy:
            covered = self._reach(pubend, after, found, upto, events, size).covered
            upto = min(upto, covered) if covered < found.pubends[pubend].last else upto
        return upto

    def _reach(
        self, pubend: str, after: Mapping[str, Tick], found: Silence, upto: Tick, events: int, size: int
    ) -> ReachAnswer:
        """How far so many events of a pubend go, up to a moment."""
        begin, last = after[pubend], min(upto, found.pubends[pubend].last)
        if begin >= last:
            return ReachAnswer(last, 0, 0)
        return self._origins.of(pubend).reach(ReachRequest(pubend, begin, last, events, size))

    def acknowledge(self, upto: Token) -> None:
        """Of silence behind the last event the broker that keeps the subscription may know nothing."""
        if self._acknowledging is not None:
            ends = self._origins.ends()
            places = {
                pubend: place._replace(tick=min(place.tick, ends[pubend].last))
                for pubend, place in upto.items()
                if pubend in ends
            }
            super().acknowledge(Token(places))

    def partitions(self, start: Mapping[str, str], end: Mapping[str, str]) -> Sequence[InputPartition]:
        """One for each range, and one for the moment; each with the moment before which nothing may be any more."""
        moment = int(start[MOMENT])
        ranges = [TickRange(*each.value) for each in super().partitions(start, end)]
        ranges.append(TickRange(NOBODY, moment, int(end[MOMENT])))
        return [InputPartition((*each, moment)) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one."""
        *wanted, moment = partition.value
        where = TickRange(*wanted)
        if where.pubend == NOBODY:
            yield _silence(self._options.shape, self._options.stream, where)
            return
        for batch in task_of(self._options, self._origins).rows(where):
            yield _not_before(batch, moment) if where.after < moment else batch


def _silence(shape: Shape, stream: str, where: TickRange) -> Any:
    """The row that tells of a moment."""
    rows = RowBuilder(shape, stream, where.pubend, 0)
    rows.add_other(SILENCE, where.after, where.upto)
    [batch] = rows.batches()
    return _with_accepted(batch, lambda old: pa.array([where.upto], old.type))


def _not_before(batch: Any, moment: Tick) -> Any:
    """Rows of which none was accepted at a moment that is over."""

    def later(old: Any) -> Any:
        return pc.max_element_wise(old.cast(pa.int64()), moment + 1, skip_nulls=False).cast(old.type)

    return _with_accepted(batch, later)


def _with_accepted(batch: Any, change: Callable[[Any], Any]) -> Any:
    at = batch.schema.get_field_index("accepted")
    return batch.set_column(at, batch.schema.field(at), change(batch.column(at)))
