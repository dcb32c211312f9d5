"""A publishing endpoint: where events of a durable stream get their ticks, and are logged once [BZA §2, R1.3, R1.5].

A tick is a time in microseconds, made unique. An event is accepted when the log has it on disk; until then nobody hears
of it. Requests may be repeated, and may overtake each other on their way: each names the number its publisher sent
before it, so that a hole is seen; what comes behind it is not taken, and asked for again [design.md §2].

Where there is no event there is silence. It is asserted up to now only while a *lease* on disk covers it: whoever
starts again begins above its lease, so no event ever gets a tick that was said to be silent [B1.3].

The pubend does not write. It says what is to be appended, in order, and hears how far the log is stable; what the disk
refused it takes back, all of it, since what came behind was built on it. Then it refuses whatever comes until there is
room, and of each publisher what that had sent before it heard: that would be logged before what is sent again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from holdfast.messages.durable import BEGIN
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Lost
from holdfast.streams.expiring import Expiries
from holdfast.streams.receipts import Receipts

__all__ = [
    "LEASE_TICKS",
    "REFUSED_FOR",
    "Append",
    "Hole",
    "Kept",
    "Mark",
    "Outcome",
    "Pubend",
    "Receipt",
    "Refusal",
    "Request",
]

#: Of so many runs of events, of all publishers together, it is remembered where they stand; what is older was
#: acknowledged long ago. 32 bytes each.
RUNS_MAX: Final = 250_000

#: So long after an event was refused what was sent before may arrive: letters are repeated every second.
REFUSED_FOR: Final = 10_000_000

#: How far ahead silence is leased.
LEASE_TICKS: Final = 2_000_000

#: Of so many pieces that were given up the reasons are kept; before that they were just released.
REASONS_MAX: Final = 100
RELEASED: Final = "released"

#: Why ticks are gone that somebody has seen, and the log has not: it is an older copy of itself.
RESTORED: Final = "restored from a backup"

TICK_MAX: Final = 2**63 - 1


class Request(NamedTuple):
    """A publication to be logged; ``previous`` is the number its publisher sent here before it, 0 for its first.

    ``BEGIN``: whoever asks has nothing under way before it, and everything below was answered.
    """

    previous: int
    publication: Publication


class Receipt(NamedTuple):
    """Accepted: ``length`` events with consecutive numbers are on disk, under consecutive ticks; 0: it was long ago."""

    publisher: str
    n: int
    tick: int
    is_repeat: bool
    length: int = 1


class Hole(NamedTuple):
    """Something is missing before what came: nothing behind it was taken. What follows ``last`` is to be sent again."""

    publisher: str
    last: int


class Refusal(NamedTuple):
    """Certainly not accepted, and why; ``code`` as in ``messages.publications.Rejected``."""

    publisher: str
    n: int
    reason: str
    code: str = ""


Answer = Receipt | Hole | Refusal


class Append(NamedTuple):
    """To be logged: one batch, ticks increasing. The appends of a pubend are to be made in order."""

    ticks: range
    publications: Sequence[Publication]
    is_one_publishers: bool = False  #: and their numbers ascend


class Outcome(NamedTuple):
    """What became of requests: what is to be appended, if anything, and what can be answered now."""

    append: Append | None
    answers: list[Answer]


class _Refused(NamedTuple):
    """The highest number of a publisher that was refused, until when something sent before may come, and why it was."""

    n: int
    until: int
    reason: str


class Mark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The last that was logged of a publisher."""

    last: int
    tick: int


@dataclass(slots=True)
class Kept:
    """What outlives a pubend's process besides its log: saved before the log is chopped, and when it is closed."""

    incarnation: int = 1
    lease: int = 0
    marks: dict[str, Mark] = field(default_factory=dict)
    upto: int = 0  #: the tick the marks are of: those of later events are read from the log
    lost: list[Lost] = field(default_factory=list)  #: of which the log was robbed
    #: what was given up, ascending, the latest with reasons
    released: list[Lost] = field(default_factory=list)
    created: int = 0  #: the tick before the first: up to here there is nothing, for ever
    expiries: Expiries | None = None  #: when the events up to ``upto`` expire, of a stream on which they do


class Pubend:
    """One ordered sequence of ticks.

    ``logged`` is the end of the log: all that is above ``kept.upto``, and what is below it as far back as a publisher
    may ask where its events stand.
    """

    def __init__(self, name: str, kept: Kept, logged: Iterable[tuple[int, Publication]] = ()) -> None:
        self.name = name
        self.incarnation = kept.incarnation
        self.lease = kept.lease  #: silence may be asserted so far
        self.stable = kept.upto  #: the last tick that is on disk
        self.lost = list(kept.lost)
        self._publishers: dict[str, Receipts] = {}
        self._remembered: deque[Receipts] = deque()  #: whose each run is that is remembered, the oldest first
        for tick, publication in logged:
            self._remember(publication.publisher, publication.n, tick, 1)
            self.stable = max(self.stable, tick)
        for publisher, mark in kept.marks.items():
            if mark.last > self._of(publisher).last:
                self._publishers[publisher] = Receipts(mark.last, mark.tick)
        self.released = list(kept.released)
        self.created = kept.created
        #: No later tick is at or below.
        self._last = max(
            self.stable, kept.lease, kept.created, *(lost.upto for lost in (*kept.lost, *kept.released))
        )
        self._appended: deque[Append] = deque()  #: not known to be stable
        self._numbers: dict[str, int] = {}  #: the last number of a publisher among those
        #: Of each publisher the last that the disk would not take; who was refused last stands at the end.
        self._refused: dict[str, _Refused] = {}
        #: Why the disk would not take the last append. Nothing is taken until its owner says that there is none.
        self.refusal: str | None = None

    def _of(self, publisher: str) -> Receipts:
        known = self._publishers.get(publisher)
        if known is None:
            known = self._publishers[publisher] = Receipts()
        return known

    def _remember(self, publisher: str, number: int, tick: int, length: int) -> None:
        known = self._of(publisher)
        if known.add(number, tick, length):
            self._remembered.append(known)
            if len(self._remembered) > RUNS_MAX:
                self._remembered.popleft().forget_oldest()

    # Publishing

    def take(self, publications: Sequence[Publication], now: int, heard: int = 0) -> Outcome:
        """One publisher's events, as it sends them itself: their numbers ascend, and nothing is missing before them."""
        publisher = publications[0].publisher
        if self.refusal is not None or self._refused or publications[0].n <= self.last_number(publisher):
            return self.publish([Request(BEGIN, each) for each in publications], now, heard)
        self._numbers[publisher] = publications[-1].n
        return Outcome(self._append(publications, now, is_one_publishers=True), [])

    def publish(self, requests: Sequence[Request], now: int, heard: int = 0) -> Outcome:
        """Take what publishers send; ``now`` is the time as a tick, which may have gone back.

        They had ``heard`` of refusals up to a number. What one has sent before it heard is refused as well: it was to
        come behind that, and what is sent again could only come behind it.
        """
        self._forget_refused(now)
        answers: list[Answer] = []
        taken: list[Publication] = []
        holes: dict[str, None] = {}
        for previous, publication in requests:
            publisher, n = publication.publisher, publication.n
            last = self.last_number(publisher)
            if n <= last:
                self._answer_repeat(publisher, n, answers)
            elif self.refusal is not None:
                answers.append(self._refuse(publication, self.refusal, now))
            elif (refused := self._refused.get(publisher)) is not None and heard < refused.n:
                answers.append(Refusal(publisher, n, refused.reason))
            elif publisher in holes:
                continue
            elif previous == BEGIN:
                taken.append(publication)
                self._numbers[publisher] = n
            elif previous > last:
                holes[publisher] = None
                answers.append(Hole(publisher, last))
            elif previous < last:
                reason = f"{publisher} sent {n} after {previous}, and {last} was logged: two publishers have this name"
                answers.append(Refusal(publisher, n, reason, "event"))
            else:
                taken.append(publication)
                self._numbers[publisher] = n
        return Outcome(self._append(taken, now) if taken else None, answers)

    def _append(self, taken: Sequence[Publication], now: int, *, is_one_publishers: bool = False) -> Append:
        first = max(now, self._last + 1)
        self._last = first + len(taken) - 1
        assert self._last <= TICK_MAX
        append = Append(range(first, self._last + 1), taken, is_one_publishers)
        self._appended.append(append)
        return append

    def last_number(self, publisher: str) -> int:
        """The last that was taken of a publisher, on disk or on its way there; 0: nothing was."""
        on_its_way = self._numbers.get(publisher)
        if on_its_way is not None:
            return on_its_way
        return self.stable_number(publisher)

    def stable_number(self, publisher: str) -> int:
        """The last of a publisher that is on disk; 0: nothing is."""
        known = self._publishers.get(publisher)
        return 0 if known is None else known.last

    def _answer_repeat(self, publisher: str, n: int, answers: list[Answer]) -> None:
        """What is on its way to the disk is answered when it is there."""
        known = self._publishers.get(publisher)
        if known is None or n > known.last:
            return
        tick = known.tick_of(n)
        if tick is None and known.remembers(n):
            reason = f"{publisher} sent {n} after {known.last}: two publishers have this name"
            answers.append(Refusal(publisher, n, reason, "event"))
        else:
            answers.append(Receipt(publisher, n, tick or 0, is_repeat=True))

    # The disk

    def on_stable(self) -> tuple[Append, list[Answer]]:
        """The oldest append is on disk: its events are accepted, and may be told to others."""
        append = self._appended.popleft()
        answers: list[Answer] = []
        for at, length in _runs(append.publications, is_one_publishers=append.is_one_publishers):
            first, tick = append.publications[at], append.ticks[at]
            self._remember(first.publisher, first.n, tick, length)
            if self._numbers.get(first.publisher) == first.n + length - 1:
                del self._numbers[first.publisher]
            answers.append(Receipt(first.publisher, first.n, tick, is_repeat=False, length=length))
        self.stable = append.ticks[-1]
        return append, answers

    def on_refused(self, reason: str, now: int) -> list[Answer]:
        """The disk was full: nothing of what was appended and is not stable was kept, and nothing is taken now."""
        refused = [publication for append in self._appended for publication in append.publications]
        self._appended.clear()
        self._numbers.clear()
        self.refusal = reason
        return [self._refuse(publication, reason, now) for publication in refused]

    def _refuse(self, publication: Publication, reason: str, now: int) -> Refusal:
        """It may be sent again by who has heard of it, and a refusal is certain: not what is still on its way."""
        publisher, n = publication.publisher, publication.n
        last = self._refused.pop(publisher, None)
        highest = n if last is None else max(n, last.n)
        self._refused[publisher] = _Refused(highest, now + REFUSED_FOR, reason)
        return Refusal(publisher, n, reason)

    def _forget_refused(self, now: int) -> None:
        while self._refused:
            publisher = next(iter(self._refused))
            if now < self._refused[publisher].until:
                return
            del self._refused[publisher]

    @property
    def unstable(self) -> int:
        """How many appends are not known to be on disk."""
        return len(self._appended)

    @property
    def unstable_since(self) -> int | None:
        """The tick of the oldest event that is not known to be on disk."""
        return self._appended[0].ticks[0] if self._appended else None

    # Silence

    def silent_upto(self, now: int, lease: int | None = None) -> int:
        """Every tick up to this one is an event that is stable, lost, or silent for ever.

        With a ``lease`` that is not on disk yet it is to be told with that lease, or not at all.
        """
        lease = self.lease if lease is None else lease
        if self._appended:  # what is not stable may be lost, and its tick with it
            return min(self._appended[0].ticks[0] - 1, max(self.stable, lease))
        upto = max(self.stable, min(now, lease))
        self._last = max(self._last, upto)
        return upto

    def lease_wanted(self, now: int) -> int | None:
        """A lease to be saved, if the present one will soon be over."""
        return now + LEASE_TICKS if self.lease < now + LEASE_TICKS // 2 else None

    def on_leased(self, lease: int) -> None:
        """A lease is on disk."""
        self.lease = max(self.lease, lease)

    # What outlives us

    def kept(self) -> Kept:
        """To be saved, before the log is chopped, or when it is closed."""
        marks = {publisher: Mark(each.last, each.tick) for publisher, each in self._publishers.items()}
        return Kept(
            self.incarnation,
            self.lease,
            marks,
            self.stable,
            list(self.lost),
            list(self.released),
            self.created,
        )

    @property
    def forgotten(self) -> int:
        """Up to here nothing is there any more, or never was."""
        return self.released[-1].upto if self.released else self.created

    def on_released(self, lost: Lost) -> None:
        """Ticks were given up; of long ago the reasons are forgotten."""
        if self.released and self.released[-1][1:] == (lost.after, lost.reason):
            lost = Lost(self.released.pop().after, lost.upto, lost.reason)
        self.released.append(lost)
        if len(self.released) > REASONS_MAX:
            first, second, *rest = self.released
            self.released = [Lost(first.after, second.upto, RELEASED), *rest]

    def on_token(self, tick: int) -> Lost | None:
        """A subscriber has consumed up to a tick; if we never got so far, the log is a backup's.

        Returned are the ticks (after, upto] it was robbed of. This is a new incarnation then, to be saved before
        anything else is published: no tick is used twice.
        """
        if tick <= max(self._last, self.lease):
            return None
        # What is on its way to the disk is not lost.
        after = self._appended[-1].ticks[-1] if self._appended else self.stable
        robbed = Lost(after, tick, RESTORED)
        self.incarnation += 1
        self.lost.append(robbed)
        self._last = tick
        return robbed


def _runs(publications: Sequence[Publication], *, is_one_publishers: bool) -> Iterator[tuple[int, int]]:
    """Where runs of one publisher's consecutive numbers begin, and how long they are."""
    at = 0
    if is_one_publishers and publications[-1].n - publications[0].n == len(publications) - 1:
        yield at, len(publications)  # they ascend
        return
    for i in range(1, len(publications)):
        first, each = publications[at], publications[i]
        if each.n != first.n + i - at or each.publisher != first.publisher:
            yield at, i - at
            at = i
    yield at, len(publications) - at
