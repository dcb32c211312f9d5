"""Everybody who reads streams that are logged, at one broker: subscriptions of its clients, here or away [BZA §4].

A durable subscription belongs to a name, not to a client: whoever presents the name reads it, at any broker. It is
known in the whole network where each of them is; one that comes from elsewhere is taken over there first, so that what
it has not acknowledged stays in the logs, and then forgotten where it was (B1.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from holdfast.broker.durable.course import Course
from holdfast.broker.durable.reader import Reader
from holdfast.broker.durable.records import (
    HOSTED,
    PLACES,
    READERS,
    PlaceRow,
    ReaderRow,
    change,
    joined,
)
from holdfast.broker.durable.saving import Saving
from holdfast.broker.settings import Settings
from holdfast.broker.statistics import Counters
from holdfast.clock import SECOND, Instant
from holdfast.errors import MalformedEvent
from holdfast.events.event import Content
from holdfast.events.packed import unpack
from holdfast.filters.expression import Filter
from holdfast.filters.subject import Subject
from holdfast.identity import SubscriptionId
from holdfast.matching.engine import new_index
from holdfast.messages.durable import Acknowledge, Ousted, Portion, Saved, Stand
from holdfast.messages.publications import Publication
from holdfast.messages.subscriptions import Confirmed, Durable, Partition, Refused, Resume, Upgraded
from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.node.breach import Breach
from holdfast.node.interest import Interest
from holdfast.overlay.transport import Send, Trace
from holdfast.routing.port import ClientPort, Port

__all__ = ["Network", "Readers"]

#: So many answers of the matching engine are remembered as readers; then all are forgotten.
ANSWERS_MAX: int = 10_000

#: A token may be so far ahead of our clock; beyond that it is none of this network's.
AHEAD_MAX: int = 60 * SECOND // 1_000

#: So long after a start a subscription may turn out to have moved while we were down; who has no token waits for that.
SURE_AFTER_NS: int = 2 * SECOND

#: Clocks of two brokers differ by less, mostly: what they disagree on is told as a gap.
SKEW_MAX: int = 5 * SECOND // 1_000

#: Why something may be missing before the first event of a pubend.
UNREACHED: str = "could not be reached"

#: A new subscription is confirmed without the pubends that have not answered within this time.
ADMIT_WITHIN_NS: int = 2 * SECOND


class Network(Protocol):
    """What readers need of the rest of the broker."""

    now: Instant

    @property
    def clock(self) -> Tick:
        """The present as a tick."""

    def emit(self, effect: object) -> None:
        """Have something done."""

    def courses_for(self, filter: Filter) -> list[Course]:
        """The pubends whose events a filter may match."""

    def admit(self, course: Course, since: Tick | None) -> None:
        """See to it that nothing above a tick is given up without us; None: from now on."""

    def touch(self, course: Course) -> None:
        """Something of a course has changed."""

    def direct(self, reader: Reader) -> None:
        """Whoever reads a durable subscription gets what is not logged, too, while it is there."""

    def new_id(self) -> SubscriptionId:
        """An id for a subscription of the broker's."""

    def postpone(
        self, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume, until: Instant
    ) -> None:
        """Let a durable subscription be read later."""

    def fetch(
        self, broker: str, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume
    ) -> None:
        """Ask a broker where a durable subscription stands, and then ``take_over``."""

    def spread(self, reader: Reader) -> None:
        """Make a durable reader's subscription known to the network."""

    def withdraw(self, reader: Reader) -> None:
        """The network need not know it any more."""


class Readers:
    """The readers by their numbers, and the durable ones by name."""

    def __init__(self, settings: Settings, network: Network, saving: Saving, counters: Counters) -> None:
        self._settings = settings
        self._network = network
        self._saving = saving
        self._counters = counters
        self.readers: dict[int, Reader] = {}
        self.durable: dict[str, Reader] = {}
        self._by_own: dict[SubscriptionId, Reader] = {}
        self._by_port: dict[ClientPort, dict[int, Reader]] = {}
        self.gaps: dict[str, int] = {}  #: that were told, by reason
        self._started_at: Instant = 0
        self._last_number = 0
        self._absences = 0  #: how many pubends were ever missing when a reader began
        self._index = new_index()
        self._slots: dict[int, int] = {}  #: by reader
        self._by_slot: dict[int, int] = {}
        self._answers: dict[tuple[int, ...], list[int]] = {}  #: for the slots that match, the readers
        self._dirty: dict[tuple[int, str], None] = {}  #: places that are not on disk as they are
        #: By pubend, of readers that are not confirmed yet since we started.
        self._kept: dict[str, dict[int, PlaceRow]] = {}
        self.elsewhere: dict[
            str, Interest
        ] = {}  #: durable subscriptions at other brokers, the one of the last epoch

    # As the streams see it (``hosted.Desk``)

    def emit(self, effect: object) -> None:
        """Have something done."""
        self._network.emit(effect)

    def matches(self, events: Sequence[Content]) -> list[list[int]]:
        """For each event the readers it is for, ascending; of events that are for the same ones, the same list."""
        if not self._slots or not events:
            return [[] for _ in events]
        if len(self._answers) > ANSWERS_MAX:
            self._answers.clear()
        by_slot, answers = self._by_slot, self._answers
        matches = []
        for slots in self._index.match(events):
            key = tuple(slots)
            found = answers.get(key)
            if found is None:
                found = answers[key] = sorted([by_slot[slot] for slot in slots])
            matches.append(found)
        return matches

    def accepted(self, reader: Reader, publications: Sequence[Publication]) -> list[int]:
        """The positions of what one reader wants."""
        found = []
        for i, publication in enumerate(publications):
            try:
                if reader.accepts(Subject(unpack(publication.event))):
                    found.append(i)
            except MalformedEvent as error:  # only the pubend's own broker could have let it in
                raise Breach(f"an event that cannot be read: {error}") from error
        return found

    def on_delivered(self, reader: Reader, portion: Portion) -> None:
        """Something was sent to a client."""
        self._counters.delivered += len(portion.at)
        if portion.lost_through:
            for gaps in (reader.gaps, self.gaps):
                gaps[portion.reason] = gaps.get(portion.reason, 0) + 1
        if self._settings.trace_forwards:
            for i in portion.at:
                publisher, n = portion.batch.publications[i].id
                copy = {"from": self._settings.name, "to": reader.port.name if reader.port else ""}
                self.emit(Trace("forward", {**copy, "publisher": publisher, "n": n, "again": False}))

    # Who there is

    def of(self, port: ClientPort, subscription: int) -> Reader | None:
        """What a client reads under a number of its own."""
        return self._by_port.get(port, {}).get(subscription)

    def is_ours(self, own: SubscriptionId) -> bool:
        """Whether a subscription of this broker is a reader's."""
        return own in self._by_own

    def is_complete(self, course: Course) -> bool:
        """Whether everybody who read a pubend before we were started again is known to the network.

        Until then nothing of it is handed out: it might be for them.
        """
        return not self._kept.get(course.pubend)

    def _add(self, reader: Reader) -> None:
        self.readers[reader.number] = reader
        self._by_own[reader.own] = reader
        slot = self._index.add(reader.filter)
        self._slots[reader.number] = slot
        self._by_slot[slot] = reader.number
        self._answers.clear()
        if reader.durable is not None:
            self.durable[reader.durable.name] = reader

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    # Subscribing

    def pass_by(
        self,
        port: ClientPort,
        subscription: SubscriptionId,
        own: SubscriptionId,
        filter: Filter,
        resume: Resume,
    ) -> None:
        """A subscription that is not durable, made by its client's own broker as any other."""
        reader = Reader(self._next_number(), filter, None, port, own)
        self._add(reader)
        self._seat(reader, port, subscription.number, resume)

    def read(self, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume) -> None:
        """Somebody presents the name of a durable subscription."""
        assert resume.durable is not None
        problem = self._ahead(resume)
        if problem is not None:
            self._refuse(port, subscription, problem, "token-ahead")
            return
        reader, elsewhere = self._find(resume.durable)
        sure_at = self._started_at + SURE_AFTER_NS
        if reader is not None and reader.is_restored and resume.token is None and self._network.now < sure_at:
            self._network.postpone(port, subscription, filter, resume, sure_at)
            return
        known = reader.filter if reader is not None else None if elsewhere is None else elsewhere.filter
        if known is not None and known != filter:
            problem = f"{resume.durable!r} is a durable subscription to {known}, and not to {filter}"
            self._refuse(port, subscription, problem, "durable")
        elif elsewhere is not None:
            self._network.fetch(elsewhere.subscription.subscriber, port, subscription, filter, resume)
        else:
            self.take_over(port, subscription, filter, resume, resume.token)

    def _find(self, name: str) -> tuple[Reader | None, Interest | None]:
        """A durable subscription that is here, or else where it is."""
        reader, elsewhere = self.durable.get(name), self.elsewhere.get(name)
        if reader is None or elsewhere is None:
            return reader, elsewhere
        assert reader.durable is not None
        assert elsewhere.durable is not None
        is_ours = reader.durable.epoch >= elsewhere.durable.epoch
        return (reader, None) if is_ours else (None, elsewhere)

    def take_over(
        self,
        port: ClientPort,
        subscription: SubscriptionId,
        filter: Filter,
        resume: Resume,
        presented: Mapping[str, tuple[int, Tick]] | None = None,
    ) -> None:
        """Whoever presents a name reads from now on, and nobody else does."""
        assert resume.durable is not None
        reader, elsewhere = self._find(resume.durable)
        if reader is None:
            left = self.durable.get(resume.durable)
            if left is not None:  # from before it moved away
                self.remove(left)
            reader = self._create(resume.durable, filter, elsewhere)
        elif reader.port is not None and (reader.port, reader.subscription) != (port, subscription.number):
            self.oust(reader, f"another client reads {reader.name}")
        elif reader.port is not None:
            self._unseat(reader)
        self._seat(reader, port, subscription.number, resume)
        reader.presented = presented

    def _create(self, name: str, filter: Filter, elsewhere: Interest | None) -> Reader:
        epoch, moved_from = self._network.clock, {}
        if elsewhere is not None and elsewhere.durable is not None:
            epoch = max(epoch, elsewhere.durable.epoch + 1)
            moved_from[elsewhere.subscription.subscriber] = elsewhere.durable.epoch
        reader = Reader(self._next_number(), filter, Durable(name, epoch), Port(name), self._network.new_id())
        reader.moved_from = moved_from
        self._add(reader)
        self._network.spread(reader)
        return reader

    def _ahead(self, resume: Resume) -> str | None:
        """What is wrong with a token or a start, if it cannot be from here."""
        limit = self._network.clock + AHEAD_MAX
        for pubend, (_, tick) in (resume.token or {}).items():
            if tick > limit:
                return f"the token stands at {tick} in {pubend}, and the clock here at {limit - AHEAD_MAX}"
        return None

    def _refuse(self, port: ClientPort, subscription: SubscriptionId, problem: str, code: str) -> None:
        assert port.connection is not None
        self.emit(Send(port.connection, [Refused(subscription, problem, code)]))

    def _seat(self, reader: Reader, port: ClientPort, number: int, resume: Resume) -> None:
        """A client reads from now on, as soon as everything is in place."""
        reader.port, reader.subscription = port, number
        reader.credit, reader.resume = max(0, resume.credit), resume
        self._network.direct(reader)
        reader.is_greeted = False
        reader.presented = resume.token
        reader.away_since, reader.seated_on = 0, self._network.clock
        self._by_port.setdefault(port, {})[number] = reader
        if reader.is_confirmed:
            self._greet(reader)

    def _unseat(self, reader: Reader) -> None:
        """Its client does not read any more."""
        assert reader.port is not None
        for course in self._network.courses_for(reader.filter):
            course.hosted.stop(reader)
        seats = self._by_port.get(reader.port, {})
        seats.pop(reader.subscription, None)
        if not seats:
            self._by_port.pop(reader.port, None)
        reader.port, reader.resume, reader.is_greeted = None, None, False
        self._network.direct(reader)
        reader.away_since = self._network.clock
        self.save(reader)

    def oust(self, reader: Reader, reason: str) -> None:
        """Somebody else reads it from now on."""
        if reader.connection is not None:
            self.emit(Send(reader.connection, [Ousted(reader.subscription, reason)]))
        self._unseat(reader)

    # Confirming

    def on_subscribed(self, own: SubscriptionId, partial: tuple[Partition, ...], version: int) -> None:
        """The network knows a subscription: from now on its events come."""
        reader = self._by_own[own]
        reader.version, reader.partial = version, partial
        reader.confirmed_at, reader.confirmed_on = self._network.now, self._network.clock
        for course in self._network.courses_for(reader.filter):
            self.meet(reader, course, ORIGIN if reader.is_restored else None)
        reader.is_confirmed = True  # not before: it is told when all is in place
        self.save(reader)
        self._greet(reader)

    def on_upgraded(
        self, own: SubscriptionId, cleared: tuple[Partition, ...], partial: tuple[Partition, ...]
    ) -> None:
        """Partitions are over; whoever reads durably hears it from here."""
        reader = self._by_own.get(own)
        if reader is None:
            return
        reader.partial = partial
        port = reader.port
        if reader.durable is not None and port is not None and port.connection is not None:
            subscription = SubscriptionId(port.name, port.incarnation, reader.subscription)
            self.emit(Send(port.connection, [Upgraded(subscription, cleared, partial)]))

    def meet(self, reader: Reader, course: Course, since: Tick | None) -> None:
        """A pubend is, or will be, read by a reader, from a tick on; None: from now on, or from its token on."""
        hosted = course.hosted
        token = reader.resume.token if reader.resume is not None else None
        if since is None and token is not None and course.pubend in token:
            _, since = token[course.pubend]
        if hosted.constream is None:
            hosted.waiting[reader.number] = None
            reader.awaited[course.pubend] = since
            self._network.admit(course, since)
        elif reader.number not in hosted.constream:
            reader.awaited[course.pubend] = since
            self._admit(reader, course)

    def _install(self, reader: Reader, course: Course) -> None:
        hosted = course.hosted
        kept = self._kept.get(course.pubend, {}).pop(reader.number, None)
        since = reader.awaited.pop(course.pubend, None)
        position = self._position(reader, course)
        if kept is not None:
            hosted.restore(reader, kept)
        elif position is None and since is not None:  # it had subscribed before the pubend was known here
            hosted.install(reader, max(since, hosted.created))
        else:
            hosted.install(reader, position)
        reader.pins[course.pubend] = hosted.number + 1
        self._dirty[reader.number, course.pubend] = None

    def _position(self, reader: Reader, course: Course) -> Tick | None:
        """Where a reader's client wants to go on; None: from now, or from where it had acknowledged."""
        resume, is_known = reader.resume, self._is_known(reader, course)
        position: Tick | None = None
        if resume is not None and resume.token is not None:
            _, position = resume.token.get(course.pubend, (0, None if is_known else ORIGIN))
        elif resume is not None and not is_known:
            position = resume.start
        return None if position is None else max(position, course.hosted.created)

    def _is_known(self, reader: Reader, course: Course) -> bool:
        constream = course.hosted.constream
        return constream is not None and reader.number in constream

    def on_admitted(self, course: Course) -> None:
        """A pubend waits for us from now on."""
        for number in list(course.hosted.waiting):
            self._admit(self.readers[number], course)

    def _admit(self, reader: Reader, course: Course) -> None:
        self._install(reader, course)
        self.save(reader)
        if reader.is_greeted:
            self._start_late(reader, course)
        else:
            self._greet(reader)

    def _greet(self, reader: Reader) -> None:
        """Tell a client that its subscription stands, and go on where it was, if everything is in place."""
        is_late = self._network.now >= reader.confirmed_at + ADMIT_WITHIN_NS
        if reader.connection is None or reader.is_greeted or not reader.is_confirmed:
            return
        if reader.awaited and not is_late:
            return
        reader.absent = {}
        for course in self._network.courses_for(reader.filter):
            if course.pubend in reader.awaited and reader.awaited[course.pubend] is None:
                self._go_without(reader, course)
        reader.is_greeted = True
        self.save(reader)
        port, number = reader.port, reader.subscription
        if (
            reader.durable is None or reader.is_stored
        ):  # a disk that is full does not keep anybody from reading on
            self._begin(reader, port, number)
        else:
            self._saving.add(then=lambda: self._begin(reader, port, number))

    def _go_without(self, reader: Reader, course: Course) -> None:
        """A pubend does not answer; once it does, what came meanwhile is made up for."""
        self._network.admit(course, max(ORIGIN, reader.confirmed_on - SKEW_MAX))
        self._absences += 1
        here = self._settings.name, self._settings.incarnation
        reader.absent[course.pubend] = Partition(*here, -self._absences, (course.pubend,))

    def greet_late(self) -> None:
        """Those who have waited long enough for pubends that do not answer."""
        for reader in self.readers.values():
            if reader.awaited and not reader.is_greeted:
                self._greet(reader)

    def _begin(self, reader: Reader, port: ClientPort | None, number: int) -> None:
        """It is on disk: say so, and begin."""
        reader.is_stored = reader.durable is not None
        if (reader.port, reader.subscription) != (port, number) or reader.connection is None:
            return  # somebody else came meanwhile, or nobody is there any more
        assert port is not None
        self._network.direct(reader)
        subscription = SubscriptionId(port.name, port.incarnation, number)
        courses = [
            course for course in self._network.courses_for(reader.filter) if self._is_known(reader, course)
        ]
        places = {course: self._place(reader, course) for course in courses}
        token = {course.pubend: (course.hosted.incarnation, tick) for course, tick in places.items()}
        if (
            reader.presented is not None
        ):  # where its client stands; that there is nothing behind it, it will be told
            token.update({each: place for each, place in reader.presented.items() if each in token})
        absent = tuple(reader.absent.values())
        self.emit(Send(reader.connection, [Confirmed(subscription, reader.partial + absent, token)]))
        for course, tick in places.items():
            course.hosted.start(reader, tick, self)
            self._network.touch(course)

    def _place(self, reader: Reader, course: Course) -> Tick:
        constream = course.hosted.constream
        assert constream is not None
        position = self._position(reader, course)
        return constream.released_by(reader.number) if position is None else position

    def _start_late(self, reader: Reader, course: Course) -> None:
        """A pubend that came later: because it is new, or could not be reached, and then something may be missing."""
        port, constream = reader.port, course.hosted.constream
        assert constream is not None
        if port is None or port.connection is None:
            return
        absent = reader.absent.pop(course.pubend, None)
        if absent is not None:
            reader.told[course.pubend] = ORIGIN
            course.hosted.tell_gap(reader, constream.released_by(reader.number), UNREACHED, self)
            subscription = SubscriptionId(port.name, port.incarnation, reader.subscription)
            left = (*reader.partial, *reader.absent.values())
            self.emit(Send(port.connection, [Upgraded(subscription, (absent,), left)]))
        course.hosted.start(reader, None, self)
        self._network.touch(course)

    def stands(self, reader: Reader) -> dict[str, Stand]:
        """Where a durable subscription stands, by pubend."""
        found = {
            pubend: Stand(row.start, row.acknowledged, row.released)
            for pubend, rows in self._kept.items()
            if (row := rows.get(reader.number)) is not None
        }
        for course in self._network.courses_for(reader.filter):
            constream = course.hosted.constream
            if constream is not None and reader.number in constream:
                found[course.pubend] = constream.stand(reader.number)
        return found

    # Reading

    def credit(self, port: ClientPort, subscription: int, count: int) -> None:
        """A client has room for more."""
        reader = self.of(port, subscription)
        if reader is not None:
            reader.credit += count
            for course in self._network.courses_for(reader.filter):
                if reader.number in course.hosted.catchups:
                    self._network.touch(course)

    def acknowledge(self, port: ClientPort, message: Acknowledge) -> None:
        """A client has consumed something."""
        reader = self.of(port, message.subscription)
        if reader is None:
            return
        for course in self._network.courses_for(reader.filter):
            tick = message.places.get(course.pubend)
            constream = course.hosted.constream
            if tick is None or constream is None or reader.number not in constream:
                continue
            if constream.acknowledge(reader.number, tick) and reader.durable is not None:
                self._dirty[reader.number, course.pubend] = None
        if message.number:
            self._save_places([reader.number])
            connection, saved = port.connection, Saved(message.subscription, message.number)
            assert connection is not None
            self._saving.add(then=lambda: self._say(port, connection, saved))

    def _say(self, port: ClientPort, connection: int, message: Saved) -> None:
        if port.connection == connection:
            self.emit(Send(connection, [message]))

    def seek(self, reader: Reader, tick: Tick | None, places: Mapping[str, Tick] | None) -> None:
        """Let a reader that is away go on elsewhere: behind a tick, behind places, or from now.

        It begins here anew, as if it came from another broker with a token: what the filtering log has forgotten
        meanwhile is filtered once more.
        """
        for course in self._network.courses_for(reader.filter):
            constream = course.hosted.constream
            if constream is None or reader.number not in constream:
                continue
            position = constream.handed if tick is None else tick
            if places is not None:
                position = places.get(course.pubend, ORIGIN)
            constream.remove(reader.number)
            course.hosted.install(reader, position)
            reader.pins[course.pubend] = course.hosted.number + 1
            self._dirty[reader.number, course.pubend] = None
            hosted = course.hosted
            hosted.reported = (min(position, hosted.reported[0]), hosted.reported[1])  # it is needed again
            self._saving.add(change(HOSTED, course.pubend, hosted.row()))
        self.save(reader)

    # Leaving

    def detach(self, port: ClientPort, subscription: int) -> bool:
        """A client does not read a durable subscription any more for now; whether it did."""
        reader = self.of(port, subscription)
        if reader is None or reader.durable is None:
            return False
        self._unseat(reader)
        return True

    def on_lost(self, port: ClientPort) -> None:
        """A client is away: who is not durable keeps its place as long as the client's port is kept."""
        for reader in list(self._by_port.get(port, {}).values()):
            if reader.durable is not None:
                self._unseat(reader)
            else:
                for course in self._network.courses_for(reader.filter):
                    course.hosted.stop(reader)

    def resume(self, port: ClientPort, subscription: int, resume: Resume) -> bool:
        """A client is back, and goes on with a subscription that is not durable; whether there is one."""
        reader = self.of(port, subscription)
        if reader is None or reader.durable is not None:
            return False
        self._seat(reader, port, subscription, resume)
        return True

    def end(self, port: ClientPort, subscription: int) -> Reader | None:
        """A durable subscription is over for good, at its client's wish; the reader it was."""
        reader = self.of(port, subscription)
        if reader is None or reader.durable is None:
            return None
        self.remove(reader)
        return reader

    def end_own(self, own: SubscriptionId) -> None:
        """A subscription that is not durable is over."""
        reader = self._by_own.get(own)
        if reader is not None and reader.durable is None:
            self._forget(reader)

    def remove(self, reader: Reader) -> None:
        """A durable subscription is over, here."""
        self._forget(reader)
        self._network.withdraw(reader)

    def _forget(self, reader: Reader) -> None:
        if reader.port is not None:
            seats = self._by_port.get(reader.port, {})
            seats.pop(reader.subscription, None)
            if not seats:
                self._by_port.pop(reader.port, None)
        for course in self._network.courses_for(reader.filter):
            course.hosted.remove(reader, self)
            key = reader.number, course.pubend
            self._dirty.pop(key, None)
            self._kept.get(course.pubend, {}).pop(reader.number, None)
            if reader.durable is not None:
                self._saving.add(change(PLACES, joined(*key), None))
        slot = self._slots.pop(reader.number)
        del self._by_slot[slot]
        self._answers.clear()
        self._index.remove(slot)
        del self.readers[reader.number]
        del self._by_own[reader.own]
        if reader.durable is not None:
            del self.durable[reader.durable.name]
            self._saving.add(change(READERS, reader.durable.name, None))

    # On disk

    def save(self, reader: Reader) -> None:
        """Have a durable subscription saved as it is."""
        if reader.durable is None:
            return
        row = ReaderRow(
            reader.number,
            str(reader.filter),
            reader.durable.epoch,
            dict(reader.moved_from),
            reader.away_since,
        )
        self._saving.add(change(READERS, reader.durable.name, row))
        self._save_places([reader.number])

    def save_places(self) -> None:
        """All that have changed (R1.30)."""
        self._save_places(dict.fromkeys(number for number, _ in self._dirty))

    def _save_places(self, numbers: Iterable[int]) -> None:
        wanted = set(numbers)
        for number, pubend in [key for key in self._dirty if key[0] in wanted]:
            del self._dirty[number, pubend]
            reader = self.readers[number]
            course = next(
                (each for each in self._network.courses_for(reader.filter) if each.pubend == pubend), None
            )
            constream = None if course is None else course.hosted.constream
            if reader.durable is None or constream is None or number not in constream:
                continue
            stand = constream.stand(number)
            row = PlaceRow(stand.start, stand.released, stand.acknowledged)
            self._saving.add(change(PLACES, joined(number, pubend), row))

    def restore(
        self,
        rows: Iterable[tuple[str, ReaderRow, Filter]],
        places: Iterable[tuple[int, str, PlaceRow]],
    ) -> None:
        """Those who were here before we were started again; they are to be spread anew."""
        self._started_at = self._network.now
        for name, row, filter in rows:
            reader = Reader(row.number, filter, Durable(name, row.epoch), Port(name), self._network.new_id())
            reader.moved_from = dict(row.moved_from)
            reader.away_since = row.away_since or self._network.clock
            reader.is_restored = reader.is_stored = True
            self._last_number = max(self._last_number, row.number)
            self._add(reader)
        for number, pubend, place in places:
            if number in self.readers:
                self._kept.setdefault(pubend, {})[number] = place
