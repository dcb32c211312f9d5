"""The subscribers of one pubend at their broker: those who are current, and those who catch up [BZA §4].

Whoever is current gets what the consolidated stream hands out; who has run out of credit leaves it, and comes back by
catching up, from the filtering log, as one that was away does. So a slow subscriber costs nobody else anything, and no
memory. A subscription that is not durable catches up too, by filtering once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from holdfast.broker.durable.noting import Notes
from holdfast.broker.durable.reader import Reader
from holdfast.broker.durable.records import HostedRow, PlaceRow
from holdfast.clock import MICROSECOND, Instant
from holdfast.events.event import Content
from holdfast.messages.credit import CREDIT_BYTES, affordable, cost_of
from holdfast.messages.durable import Portion
from holdfast.messages.publications import Batch, Publication
from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.overlay.transport import Send
from holdfast.storage.filtering_log import Reading
from holdfast.streams.catchup import READING_MAX, CatchUp
from holdfast.streams.constream import Constream
from holdfast.streams.storing import ForgetMatches, ReadMatches
from holdfast.streams.tick import Stretch

if TYPE_CHECKING:
    from holdfast.broker.durable.course import Course

__all__ = ["Desk", "Hosted"]

#: So many events are handed out, or told to one who catches up, at once.
STRETCH_MAX: Final = 1_000

#: So many events are asked for at least, however few a subscriber can take: one at a time, each would wait for its
#: pubend; and where everything is filtered again most may be for others (I35).
ASKED_MIN: Final = 32

#: So many stretches are remembered, for others who catch up.
BATCHES_MAX: Final = 8


class Desk(Protocol):
    """What all pubends have in common where subscribers are: who they are, and how they are spoken to."""

    readers: dict[int, Reader]

    def emit(self, effect: object) -> None:
        """Have something done."""

    def matches(self, events: Sequence[Content]) -> list[list[int]]:
        """For each event the numbers of the readers it is for, ascending."""

    def accepted(self, reader: Reader, publications: Sequence[Publication]) -> list[int]:
        """The positions of what one reader wants."""

    def on_delivered(self, reader: Reader, portion: Portion) -> None:
        """Something was sent to a reader's client."""


class Hosted:
    """One pubend's part. Without a ``constream`` we have not been admitted yet."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self.constream: Constream | None = None
        self.incarnation = 1  #: of the pubend
        self.created: Tick = ORIGIN  #: up to here there never was anything
        #: Of readers from before we were started again their last matches; up to ``unsure`` any may have been broken.
        self.matched: dict[int, Tick] = {}
        self.unsure: Tick = ORIGIN
        #: Up to here the filtering log was written for those who read then: who comes later begins above (B1.5).
        self.written: Tick = ORIGIN
        self.is_awaited = False  #: the next report is waited for by a reader that has come, whatever it says
        self.waiting: dict[int, None] = {}  #: readers to be installed when we are admitted
        self.catchups: dict[int, CatchUp] = {}
        self._reading: dict[int, None] = {}  #: whose matches are being read
        self._batches: dict[tuple[Tick, ...], Batch] = {}  #: the last that were told to who catches up
        #: Up to where was handed out, and since when no farther.
        self._rests: tuple[Tick, Instant] = (ORIGIN, 0)
        self.notes = Notes(course.pubend)
        # Reports
        self.number = 0
        self.taken = 0  #: the last report that counts at the pubend
        self.reported = (ORIGIN, ORIGIN)
        self.chopped: Tick = ORIGIN

    @property
    def is_wanted(self) -> bool:
        """Whether anybody here wants to know of the pubend."""
        return bool(self.waiting) or (self.constream is not None and len(self.constream) > 0)

    @property
    def is_behind(self) -> bool:
        """Whether somebody who is here has not been told everything that is known."""
        constream = self.constream
        if constream is None:
            return bool(self.waiting)
        is_current = constream.handed >= self._course.edge_told() and self.notes.is_stable
        return not is_current or bool(self.catchups)

    # Being there

    def row(self) -> HostedRow:
        """What outlives us, as it was last reported."""
        released, delivered = self.reported
        return HostedRow(self.incarnation, delivered, self.number, self.created, released)

    def next_number(self) -> int:
        """That of the next report, which somebody waits for: it is made, even if it says the same as the last."""
        self.is_awaited = True
        return self.number + 1

    def pin(self, position: Tick) -> bool:
        """Somebody needs what we had reported that nobody needs; whether the row is to be saved with that."""
        released, delivered = self.reported
        self.reported = (min(position, released), delivered)
        return position < released

    def begin(self, tick: Tick, incarnation: int, number: int, created: Tick) -> None:
        """We are admitted, or were before: from here on everything is ours to hand out."""
        self.constream = Constream(self._course.knowledge, tick)
        self.incarnation = incarnation
        self.created = created
        self.notes.begin(tick)
        self.number = self.taken = number
        self.reported = (self.created, tick)

    def resign(self) -> None:
        """Nobody here wants anything any more."""
        assert self.constream is not None
        self.written = max(self.written, self.constream.handed)
        self.constream = None

    def install(self, reader: Reader, position: Tick | None, acknowledged: Tick | None = None) -> None:
        """A reader is confirmed; one that comes from elsewhere has been told everything up to ``position``.

        What it has ``acknowledged`` may be less: what is in between was known to be silence.
        """
        assert self.constream is not None
        self.constream.install(
            reader.number,
            reader.version,
            self.written,
            token=position,
            acknowledged=None if position is None else acknowledged,
            is_durable=reader.durable is not None,
            is_held=reader.is_held,
        )
        self.waiting.pop(reader.number, None)

    def restore(self, reader: Reader, place: PlaceRow) -> None:
        """A durable reader that was here before we were started again."""
        assert self.constream is not None
        self.constream.restore(
            reader.number,
            reader.version,
            place.start,
            max(place.released, self.reported[0]),  # nobody here needed what we had reported
            acknowledged=place.acknowledged,
            matched=max(self.matched.pop(reader.number, ORIGIN), self.unsure),
            is_held=reader.is_held,
        )

    def remove(self, reader: Reader, desk: Desk) -> None:
        """A reader is gone for good."""
        self.stop(reader)
        self.waiting.pop(reader.number, None)
        if self.constream is not None and reader.number in self.constream:
            self.constream.remove(reader.number)
            if reader.durable is not None:
                desk.emit(ForgetMatches(self._course.pubend, reader.number))

    # Reading

    def start(self, reader: Reader, stands: Tick, position: Tick, desk: Desk) -> None:
        """A reader's client is here, stands somewhere by its token, and goes on at ``position``.

        If that is farther there was nothing in between, and it is told so now: a pubend at rest says nothing later.
        """
        constream = self.constream
        assert constream is not None
        position = constream.skip(reader.number, position)
        reader.told[self._course.pubend] = min(stands, position)
        self._send(reader, Batch([]), (), (), position, desk)
        constream.on_told(reader.number, position)
        if not self._attach(reader, position, desk):
            self._fall_behind(reader, position)

    def stop(self, reader: Reader) -> None:
        """A reader's client is away: from this instant on it must catch up (R1.12)."""
        self.catchups.pop(reader.number, None)
        self._reading.pop(reader.number, None)
        reader.told.pop(self._course.pubend, None)
        reader.silent.pop(self._course.pubend, None)
        if self.constream is not None:
            self.constream.detach(reader.number)

    def _attach(self, reader: Reader, position: Tick, desk: Desk) -> bool:
        assert self.constream is not None
        stretches = self.constream.attach(reader.number, position)
        if stretches is None:
            return False
        for stretch in stretches:
            if not self._tell(reader, stretch, desk):
                break  # it has no credit for more, and catches up
        return True

    def _fall_behind(self, reader: Reader, position: Tick) -> None:
        assert self.constream is not None
        self.constream.fall_behind(reader.number, position)
        self.catchups[reader.number] = CatchUp(
            position,
            self.constream.start_of(reader.number),
            reader.version,
            has_lake=self._course.has_lake,
        )

    # The consolidated stream

    def hand(self, desk: Desk, budget: int) -> bool:
        """Hand out what can be, about so many events; whether there may be more."""
        while budget > 0:
            count = self._hand_stretch(desk)
            if count is None:
                return False
            budget -= count + 1
        return True

    def _hand_stretch(self, desk: Desk) -> int | None:
        """Hand out the next stretch; how many events it has, None if there is none."""
        constream = self.constream
        stretch = None if constream is None else constream.next_stretch(STRETCH_MAX)
        if constream is None or stretch is None:
            return None
        events = self._course.contents(stretch.ticks, stretch.publications)
        handing = constream.hand(stretch, desk.matches(events))
        for number, told in handing.gaps:
            gap = Stretch(told, stretch.lost_through, (), (), stretch.lost_through, stretch.reason)
            self._tell(desk.readers[number], gap, desk)
        if handing.deliveries:
            batch = Batch(list(stretch.publications))
            for number, at in handing.deliveries.items():
                self._deliver(desk.readers[number], batch, stretch.ticks, at, desk)
        self.notes.add(handing.records, stretch.upto)
        if self.notes.is_stable:
            constream.on_stable(stretch.upto)
        return len(stretch.ticks)

    def _deliver(
        self, reader: Reader, batch: Batch, ticks: Sequence[Tick], at: list[int], desk: Desk
    ) -> None:
        """Events for somebody who is current, as many as it has credit for."""
        assert self.constream is not None
        count = affordable(batch, at, reader.credit)
        if count < len(at):
            position = reader.told[self._course.pubend] if not count else ticks[at[count - 1]]
            self._fall_behind(reader, position)
            at = at[:count]
        if at:
            self._send(reader, batch, ticks, at, ticks[at[-1]], desk)

    def on_stable(self, upto: Tick) -> None:
        """The filtering log has everything that was noted up to a tick on disk."""
        upto = self.notes.on_stable(upto)
        if self.constream is not None:
            self.constream.on_stable(upto)

    # Catching up

    def appetites(self, desk: Desk) -> dict[int, int]:
        """How many events are to be looked at for each of those who are behind."""
        return {
            number: max(0, desk.readers[number].credit) if catchup.is_sure else STRETCH_MAX
            for number, catchup in self.catchups.items()
        }

    def catch_up(self, desk: Desk, shares: Mapping[int, int]) -> bool:
        """Tell those who are behind what can be told, each its share; whether there may be more at once."""
        has_more = False
        if not self.catchups:
            self._batches.clear()
        for number in list(self.catchups):
            share = shares.get(number, 0)
            has_more |= self._catch_up(desk.readers[number], self.catchups[number], desk, share)
        return has_more

    def _catch_up(self, reader: Reader, catchup: CatchUp, desk: Desk, budget: int) -> bool:
        knowledge, constream = self._course.knowledge, self.constream
        assert constream is not None
        while reader.credit > 0:
            if self._attach(reader, catchup.position, desk):
                if self.catchups.get(reader.number) is catchup:
                    del self.catchups[reader.number]
                return False
            if catchup.wants_reading:
                self._read(reader, catchup, desk)
                return False
            catchup.version = max(catchup.version, constream.version)  # what is known for others will do
            room = max(ASKED_MIN, reader.credit)
            wanted = max(1, room * CREDIT_BYTES // max(CREDIT_BYTES, knowledge.average_bytes))
            edge = max(knowledge.edge, self._course.edge_told())
            self._course.ask(catchup.version, catchup.next_wanted(knowledge, wanted, edge))
            if budget <= 0:
                return True
            limit = min(reader.credit, STRETCH_MAX) if catchup.is_sure else STRETCH_MAX
            stretch = catchup.next_stretch(knowledge, limit)
            if stretch is None:
                return False
            budget -= len(stretch.ticks) + 1
            if not catchup.is_sure and stretch.ticks:
                stretch = _picked(stretch, desk.accepted(reader, stretch.publications))
            batch = self._batch(stretch)
            count = affordable(batch, range(len(batch)), reader.credit)
            if count < len(batch):
                stretch = _cut(stretch, count)
                batch = self._batch(stretch)
            catchup.on_told(stretch)
            constream.on_told(reader.number, stretch.upto)
            self._tell(reader, stretch, desk, batch)
        return False

    def _read(self, reader: Reader, catchup: CatchUp, desk: Desk) -> None:
        assert self.constream is not None
        if reader.number not in self._reading:
            self._reading[reader.number] = None
            noted = self.constream.latest_delivered
            desk.emit(ReadMatches(self._course.pubend, reader.number, catchup.position, READING_MAX, noted))

    def on_read(self, subscriber: int, reading: Reading) -> None:
        """The filtering log was read for a subscriber; it may have gone, or come anew, meanwhile."""
        is_awaited = subscriber in self._reading
        self._reading.pop(subscriber, None)
        catchup = self.catchups.get(subscriber)
        if is_awaited and catchup is not None and catchup.wants_reading and reading.after <= catchup.position:
            catchup.on_reading(reading)

    # Telling

    def silences(self, desk: Desk, lag: int, now: Instant) -> None:
        """Tell those who have heard nothing for long that there was nothing (R1.20).

        Of a pubend that rests nothing comes that would tell them of the last bit: then they are told of that, too.
        """
        constream = self.constream
        if constream is None:
            return
        if constream.handed != self._rests[0]:
            self._rests = constream.handed, now
        is_at_rest = now - self._rests[1] > lag * MICROSECOND
        for number, after, upto in constream.next_silences(0 if is_at_rest else lag):
            self._tell(desk.readers[number], Stretch(after, after, (), (), upto), desk)

    def tell_gap(self, reader: Reader, upto: Tick, reason: str, desk: Desk) -> None:
        """Something may be missing up to a tick."""
        self._send(reader, Batch([]), (), (), upto, desk, lost_through=upto, reason=reason)

    def _tell(self, reader: Reader, stretch: Stretch, desk: Desk, batch: Batch | None = None) -> bool:
        """One reader's stretch; False if it had no credit for all of it, and must catch up now."""
        if stretch.lost_through > stretch.after:
            self.tell_gap(reader, stretch.lost_through, stretch.reason, desk)
        at = list(range(len(stretch.ticks)))
        if batch is None:
            batch = self._batch(stretch)
        if affordable(batch, at, reader.credit) < len(at):
            self._deliver(reader, batch, stretch.ticks, at, desk)
            return False
        self._send(reader, batch, stretch.ticks, at, stretch.upto, desk)
        return True

    def _batch(self, stretch: Stretch) -> Batch:
        """The events of a stretch. Those who catch up together are told the same, and it is written once."""
        key = tuple(stretch.ticks)
        batch = self._batches.get(key)
        if batch is None:
            if len(self._batches) >= BATCHES_MAX:
                del self._batches[next(iter(self._batches))]
            batch = self._batches[key] = Batch(list(stretch.publications))
        return batch

    def _send(
        self,
        reader: Reader,
        batch: Batch,
        ticks: Sequence[Tick],
        at: Sequence[int],
        upto: Tick,
        desk: Desk,
        *,
        lost_through: Tick = ORIGIN,
        reason: str = "",
    ) -> None:
        pubend = self._course.pubend
        told = reader.told.get(pubend)
        if told is None or reader.connection is None or (upto <= told and not lost_through):
            return
        reader.told[pubend] = max(told, upto)
        last = ticks[at[-1]] if at else max(told, lost_through)
        if upto > last and reader.durable is not None:
            reader.on_silence(pubend, last, upto)
        if at:
            reader.credit -= cost_of(batch, at)
            reader.served = pubend
        portion = Portion(
            reader.subscription, pubend, self.incarnation, batch, ticks, at, upto, lost_through, reason
        )
        desk.emit(Send(reader.connection, [portion]))
        desk.on_delivered(reader, portion)


def _picked(stretch: Stretch, at: Sequence[int]) -> Stretch:
    """What one reader wants of a stretch."""
    ticks, publications = [stretch.ticks[i] for i in at], [stretch.publications[i] for i in at]
    return Stretch(stretch.after, stretch.lost_through, ticks, publications, stretch.upto, stretch.reason)


def _cut(stretch: Stretch, count: int) -> Stretch:
    """So many events of a stretch, of more, and nothing behind them."""
    ticks, publications = stretch.ticks[:count], stretch.publications[:count]
    return Stretch(stretch.after, stretch.lost_through, ticks, publications, ticks[-1], stretch.reason)
