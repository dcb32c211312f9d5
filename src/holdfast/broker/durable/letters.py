"""What brokers write to each other by name: who has subscribers, what they have had, what may be given up, who moved.

Letters are passed on from broker to broker and may be lost; whoever wants something writes again until it is answered.
What a letter tells is on the sender's disk before it is sent, and on the receiver's before it is answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from holdfast.broker.durable.course import Course
from holdfast.broker.durable.names import broker_filter, owner_in
from holdfast.broker.durable.own import OwnPubend
from holdfast.broker.durable.records import HOSTED, change
from holdfast.clock import SECOND
from holdfast.messages.durable import (
    Admit,
    Admitted,
    Answers,
    Claim,
    Ended,
    Fetch,
    Fetched,
    Letter,
    Moved,
    MovedTaken,
    Report,
    Reported,
    Requests,
    Resign,
    Withheld,
)
from holdfast.messages.message import Message
from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.node.station import Station
from holdfast.overlay.transport import Log, Send
from holdfast.streams import release
from holdfast.streams.release import Release
from holdfast.streams.storing import ChopEvents, ChopMatches

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["Letters"]

#: After so many rounds of reports without any subscriber a broker resigns.
RESIGN_AFTER: Final = 20

#: A filtering log is chopped when so many ticks more are not needed.
CHOP_EVERY: Final = 5 * SECOND // 1_000

#: So long a broker is waited for that never was there, and has no subscribers any more: it may be starting again.
ABSENT_MAX_NS: Final = 60 * SECOND

#: How a pubend stands is saved when its log has grown by so many bytes.
SAVE_EVERY: Final = 32 << 20

#: A tick may be so far ahead of our clock and still be one of ours, from a life whose log is lost.
CLAIM_MAX: Final = 60 * SECOND // 1_000


class Letters:
    """Of one broker."""

    def __init__(self, plane: DurablePlane) -> None:
        self._plane = plane
        self._me = plane.name
        self._admitting: dict[str, Tick | None] = {}  #: pubends we want to be admitted to, and from where on
        self._idle: dict[str, int] = {}  #: how long nobody here has wanted a pubend
        self._resigning: dict[str, int] = {}  #: pubends we want to be rid of, and our last number there

    def announce(self) -> None:
        """Let others find us."""
        self._plane.announce(broker_filter(self._me), lambda is_whole: None)

    # On the way

    def post(self, letter: Letter, sender: Station | None = None) -> None:
        """Send a letter, or pass it on; without a way it is lost, and it never goes back."""
        if letter.to == self._me:
            self._receive(letter)
            return
        hop = self._plane.toward(self._plane.brokers.get(letter.to))
        if hop is not None and hop.connection is not None and hop is not sender:
            self._plane.emit(Send(hop.connection, [_as_message(letter)]))

    def _receive(self, letter: Letter) -> None:
        match letter:
            case Requests():
                self._plane.pubends.on_requests(letter)
            case Answers():
                self._plane.pubends.on_answers(letter)
            case Admit():
                self._on_admit(letter)
            case Admitted():
                self._on_admitted(letter)
            case Report():
                self._on_report(letter)
            case Resign():
                self._on_resign(letter)
            case Reported():
                self._on_reported(letter)
            case Claim(pubend=pubend, tick=tick):
                own = self._plane.own.get(pubend)
                if own is not None:
                    self._claim_own(own, tick)
            case Moved() | Ended() | MovedTaken() | Fetch() | Fetched() | Withheld():
                self._plane.moving.receive(letter)

    # Admission

    def on_new(self, course: Course) -> None:
        """A pubend has become known to whoever had subscribed before."""
        for reader in list(self._plane.readers.audience.readers.values()):
            if reader.is_confirmed and course in self._plane.courses_for(reader.filter):
                self._plane.readers.greeting.meet_late(reader, course)

    def admit(self, course: Course, since: Tick | None) -> None:
        """Ask a pubend to wait for us."""
        known = self._admitting.get(course.pubend)
        wanted = [each for each in (known, since) if each is not None]
        self._admitting[course.pubend] = min(wanted, default=None)
        if course.pubend not in self._resigning:
            self._ask_admission(course)

    def _ask_admission(self, course: Course) -> None:
        since = self._admitting[course.pubend]
        own = self._plane.own.get(course.pubend)
        if own is not None:
            tick, row = own.admit(self._me, self._plane.clock, since)
            self._plane.saving.add(
                row, then=lambda: self._begin(course, tick, own.core.incarnation, 0, own.core.created)
            )
            return
        self.post(Admit(owner_in(course.pubend), self._me, course.pubend, since))

    def _on_admit(self, letter: Admit) -> None:
        own = self._plane.own.get(letter.pubend)
        if own is None:
            return
        tick, row = own.admit(letter.origin, self._plane.clock, letter.since)
        number = next(each.number for each in own.minima.reports if each.shb == letter.origin)
        self._hear(own, letter.origin)
        core = own.core
        answer = Admitted(
            letter.origin, self._me, letter.pubend, core.incarnation, tick, number, core.created
        )
        self._plane.saving.add(row, then=lambda: self.post(answer))

    def _hear(self, own: OwnPubend, shb: str) -> None:
        """A broker has said what it knows of a pubend of ours; when all have, it takes events."""
        if own.unheard.pop(shb, 0) is None and not own.unheard:
            self._plane.pubends.open(own)

    def _on_admitted(self, letter: Admitted) -> None:
        course = self._plane.courses.get(letter.pubend)
        if course is not None:
            self._begin(course, letter.tick, letter.incarnation, letter.number, letter.created)

    def _begin(self, course: Course, tick: Tick, incarnation: int, number: int, created: Tick) -> None:
        if course.hosted.constream is not None or course.pubend not in self._admitting:
            return
        del self._admitting[course.pubend]
        course.hosted.begin(tick, incarnation, number, created)
        self._plane.emit(course.hosted.notes.first())
        self._plane.saving.add(change(HOSTED, course.pubend, course.hosted.row()))
        self._plane.readers.greeting.on_admitted(course)
        self._plane.touch(course)

    # Reports

    def report(self) -> None:
        """From time to time: tell pubends what was delivered and acknowledged, and what else is due."""
        coming = self._plane.readers.coming()
        for course in self._plane.courses.values():
            if course.pubend in self._resigning:
                self._resign(course)
            elif course.pubend in self._admitting:
                self._ask_admission(course)
            elif course.pubend in coming or not self._plane.readers.places.is_complete(course):
                pass  # what we have reported last is kept for those who are not in place yet
            elif course.hosted.constream is not None:
                self._report(course)
        self._plane.moving.repeat()
        self._plane.wishes.repeat()
        for own in self._plane.own.values():
            self._release(own)
            self._expect_no_more(own)
            if own.size - own.saved_size > SAVE_EVERY:  # the next start reads what was logged since
                own.saved_size = own.size
                self._plane.saving.add(own.row())

    def _report(self, course: Course) -> None:
        hosted, constream = course.hosted, course.hosted.constream
        assert constream is not None
        if hosted.is_wanted:
            self._idle.pop(course.pubend, None)
        else:
            self._idle[course.pubend] = self._idle.get(course.pubend, 0) + 1
            if self._idle[course.pubend] > RESIGN_AFTER:
                del self._idle[course.pubend]
                self._resigning[course.pubend] = hosted.number + 1
                hosted.resign()
                return
        told = constream.released, constream.latest_delivered
        is_news = told != hosted.reported or hosted.is_awaited or not hosted.number
        if not is_news and hosted.taken == hosted.number:
            return
        if is_news:
            hosted.number += 1
            hosted.reported, hosted.is_awaited = told, False
        letter = Report(owner_in(course.pubend), self._me, course.pubend, hosted.number, *told)
        row = change(HOSTED, course.pubend, hosted.row())
        if letter.to == self._me:  # both sides of it are saved at once
            self._plane.saving.add(row)
            self._on_report(letter)
        else:
            self._plane.saving.add(row, then=lambda: self.post(letter))
        # after it is saved, or who is restored stands below what is left
        if told[0] - hosted.chopped > CHOP_EVERY:
            hosted.chopped = told[0]
            self._plane.saving.add(then=lambda: self._plane.emit(ChopMatches(course.pubend, told[0])))

    def _resign(self, course: Course) -> None:
        number = self._resigning[course.pubend]
        self.post(Resign(owner_in(course.pubend), self._me, course.pubend, number))

    def _on_report(self, letter: Report) -> None:
        own = self._plane.own.get(letter.pubend)
        if own is None:
            return
        if max(letter.delivered, letter.released) > own.course.knowledge.edge:
            self._claim_own(own, letter.delivered)
        is_first = all(each.shb != letter.origin or not each.number for each in own.minima.reports)
        report = release.Report(letter.origin, letter.number, letter.released, letter.delivered)
        row = own.on_report(report)
        answer = Reported(letter.origin, self._me, letter.pubend, letter.number, own.core.incarnation)
        from_before = min(letter.released, letter.delivered)
        if is_first and not own.is_begun and own.on_stranger(from_before) is not None:
            fields = {"pubend": own.core.name, "known to": letter.origin}
            self._plane.emit(Log("error", "a log of this name is gone", fields))
            self._plane.saving.add(own.row())
        self._hear(own, letter.origin)
        if row is not None:
            self._plane.saving.add(row, then=lambda: self.post(answer))
        else:
            self.post(answer)

    def _on_resign(self, letter: Resign) -> None:
        own = self._plane.own.get(letter.pubend)
        if own is not None:
            known = [each for each in own.minima.reports if each.shb == letter.origin]
            answer = Reported(letter.origin, self._me, letter.pubend, letter.number, own.core.incarnation)
            if known and known[0].number < letter.number:
                self._plane.saving.add(own.remove(letter.origin), then=lambda: self.post(answer))
            else:
                self.post(answer)

    def _on_reported(self, letter: Reported) -> None:
        course = self._plane.courses.get(letter.pubend)
        if course is None:
            return
        if self._resigning.get(letter.pubend) == letter.number:
            del self._resigning[letter.pubend]
            self._plane.saving.add(change(HOSTED, letter.pubend, None))
            if course.hosted.waiting:
                self._plane.admit(course, None)
            self._plane.touch(course)
        else:
            course.hosted.taken = max(course.hosted.taken, letter.number)
            course.hosted.incarnation = max(course.hosted.incarnation, letter.incarnation)

    # Release

    def _release(self, own: OwnPubend) -> None:
        if own.releasing is not None or not own.is_announced or self._plane.now < own.cut_off_until:
            return
        pieces = own.next_release(self._plane.clock)
        if not pieces:
            limit = own.stream.retain_bytes
            if limit is not None and own.size > limit:  # how it is parted only the disk can tell
                self._plane.emit(ChopEvents(own.core.name, ORIGIN))
            return
        own.releasing = pieces[-1].upto
        self._plane.saving.add(own.row(pieces), then=lambda: self._give_up(own, pieces))

    def _expect_no_more(self, own: OwnPubend) -> None:
        """Brokers that had subscribers once, and never came for this pubend, are not waited for."""
        expected = [
            report.shb for report in own.minima.reports if not report.number and report.shb != self._me
        ]
        hosts = self._plane.hosts_for(own.stream.name) if expected else ()
        for shb in expected:
            since = own.absent_since.setdefault(shb, self._plane.now)
            if shb in hosts:
                del own.absent_since[shb]
            elif self._plane.now - since > ABSENT_MAX_NS:
                del own.absent_since[shb]
                self._plane.saving.add(own.remove(shb))

    def _give_up(self, own: OwnPubend, pieces: Sequence[Release]) -> None:
        own.releasing = None
        self._plane.emit(ChopEvents(own.core.name, own.on_released(pieces)))
        self._plane.touch(own.course)

    # Backups

    def claim(self, course: Course, tick: Tick) -> None:
        """Somebody here has consumed a pubend up to a tick we know nothing of."""
        own = self._plane.own.get(course.pubend)
        if own is not None:
            self._claim_own(own, tick)
        else:
            self.post(Claim(owner_in(course.pubend), self._me, course.pubend, tick))

    def _claim_own(self, own: OwnPubend, tick: Tick) -> None:
        if tick > self._plane.clock + CLAIM_MAX:
            return
        robbed = own.on_claim(tick)
        if robbed is not None:
            fields = {"pubend": own.core.name, "after": robbed.after, "upto": robbed.upto}
            self._plane.emit(Log("error", "the log is older than what others have had of it", fields))
            self._plane.saving.add(own.row())
            self._plane.touch(own.course)


def _as_message(letter: Letter) -> Message:
    """Every letter is a message; that all are in the union is for the type checker to believe."""
    return letter  # type: ignore[return-value]
