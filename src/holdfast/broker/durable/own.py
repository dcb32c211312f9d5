"""A pubend at the broker it belongs to: what is appended, what is told of it, and what is given up [BZA §2, §3].

It takes events once the network knows it, so that whoever subscribed before will hear of them (B1.11). Silence is told
for a while after the last event, under a lease; then there is nothing more to tell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from holdfast.broker.durable.course import Course
from holdfast.broker.durable.records import LEASES, PUBENDS, REPORTS, ReportRow, change, joined
from holdfast.broker.settings import Stream
from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.events.event import Content
from holdfast.events.packed import unpack
from holdfast.messages.durable import Run
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, ORIGIN, Items, Lost, Tick
from holdfast.storage.tables import Change
from holdfast.streams.ends import Leased
from holdfast.streams.expiring import Expiring
from holdfast.streams.pubend import LEASE_TICKS, Answer, Kept, Outcome, Pubend, Receipt, Request
from holdfast.streams.release import (
    Expiry,
    Facts,
    MaxBytes,
    MaxRetain,
    Minima,
    Policy,
    Reason,
    Release,
    Report,
    acknowledged_through,
    release,
)
from holdfast.streams.storing import AppendEvents, LogState, TryEvents

__all__ = ["GONE", "OwnPubend", "runs_of"]

#: So long after the last event silence is told: after that, nothing has changed.
QUIET_AFTER: Final = 3 * SECOND // 1_000

#: What everybody has had is kept so long, for publishers that did not hear of it.
KEEP: Final = 10 * SECOND // 1_000

#: So long a disk that has refused something is not asked whether there is room again; nothing is taken meanwhile.
REFUSE_NS: Final = SECOND

#: Why everything of a pubend is lost.
GONE: Final = "the log is gone"

#: So long after it was last saved where the log ends, it is saved again: together with the next lease.
END_EVERY: Final = LEASE_TICKS // 2

#: Nothing is given up for less: the marks of all publishers are saved first.
RELEASE_EVERY: Final = 200 * MILLISECOND // 1_000


class OwnPubend:
    """One of them; times are ticks."""

    def __init__(
        self, course: Course, stream: Stream, kept: Kept, log: LogState | None, reports: Iterable[Report]
    ) -> None:
        self.course = course
        self.stream = stream
        self.core = Pubend(course.pubend, kept, () if log is None else log.tail)
        self.minima = Minima(reports=reports)
        self.is_begun = kept.upto > kept.created  #: it is on disk that there are events
        self.is_announced = False  #: the network knows it
        self.held: list[Publication] = []  #: what came from publishers here before it was open
        #: and who asked from elsewhere: publishers, and their brokers
        self.early: dict[tuple[str, str], None] = {}
        #: Brokers that may know more of it than its log does, and have not been heard since we were started again.
        self.unheard: dict[str, None] = {}
        #: from which broker the last requests of a publisher came, if not from here
        self.origins: dict[str, str] = {}
        self.refusals = 0
        self._try_at: Instant = 0  #: not before that the disk is asked whether it would take events again
        self._is_tried = False  #: whether it would by now is being asked
        self.failure: str | None = None  #: nothing can be logged any more, and why
        self.size = 0 if log is None else sum(size for _, size in log.segments)
        self.segments: Sequence[tuple[Tick, int]] = () if log is None else log.segments
        self.saved_size = self.size  #: when the marks of publishers were last saved
        self.releasing: Tick | None = None  #: up to here it is given up as soon as that is on disk
        self.cut_off_until: Instant = 0  #: nothing is given up before that: not everybody could be reached
        self.absent_since: dict[str, int] = {}  #: brokers that are expected, and have no subscribers
        self._leasing: Leased | None = None  #: being saved
        self._leased_at: Tick = ORIGIN  #: when that was last begun
        self._end: Tick = ORIGIN if log is None else log.last  #: a log that ends below has lost something
        self._policies: list[Policy] = []
        if stream.retain_ns is not None:
            self._policies.append(MaxRetain(stream.retain_ns // 1_000))
        if stream.retain_bytes is not None:
            self._policies.append(MaxBytes(stream.retain_bytes))
        self._expiring: Expiring | None = None
        if stream.expires is not None:
            self._policies.append(Expiry())
            self._expiring = self._recover_expiring(stream.expires, kept, log)
        self._active_at: Tick = ORIGIN  #: when there was last something to tell
        #: of events on their way to the disk, by their first tick
        self._contents: dict[Tick, Sequence[Content]] = {}
        self._robbed: deque[Lost] = deque()  #: what stands behind appends that are not known yet
        self._base = self._recover(kept, log)

    def _recover(self, kept: Kept, log: LogState | None) -> Tick:
        """What is known of the log without reading it; up to where everything there is stands in it."""
        knowledge = self.course.knowledge
        stable = max(self.core.stable, ORIGIN if log is None else log.last)
        losses = [*kept.lost, *(() if log is None else log.lost)]
        if not self.stream.lake:
            losses += kept.released
        for lost in losses:
            knowledge.add_lost(*lost)
        if log is not None and log.tail:
            ticks = [tick for tick, _ in log.tail if tick not in knowledge.lost]
            events = [publication for tick, publication in log.tail if tick not in knowledge.lost]
            knowledge.add_events(ticks, events)
        # if not, an earlier one of this name may have been lost
        if self.is_begun or kept.lease or kept.released:
            self.be_first()
        base = max(stable, kept.lease, kept.created, *(lost.upto for lost in losses))
        knowledge.edge = max(knowledge.edge, stable)  # all of it may have been given up, and is in the lake
        if stable < base:
            for after, upto in knowledge.lost.gaps(stable, base):
                knowledge.add_silence(after, upto)
        return base

    def _recover_expiring(self, attribute: str, kept: Kept, log: LogState | None) -> Expiring:
        """When events expire: what was saved, and what was logged after that."""
        expiring = Expiring(attribute, kept.expiries, kept.upto)
        expiring.drop(self.core.forgotten)
        if log is not None:
            expiring.add((tick, unpack(each.event)) for tick, each in log.tail if tick > kept.upto)
        return expiring

    @property
    def is_open(self) -> bool:
        """Whether it takes events."""
        return self.is_announced and not self.unheard and self.failure is None

    def be_first(self) -> None:
        """Before its creation there was nothing, as far as anybody knows."""
        for after, upto in self.course.knowledge.lost.gaps(ORIGIN, self.core.created):
            self.course.knowledge.add_silence(after, upto)

    def on_stranger(self, released: Tick) -> Lost | None:
        """A broker knows a pubend of this name from before: that is lost, with all that somebody still needs."""
        if not ORIGIN < released < self.core.created:
            return None
        lost = Lost(released, self.core.created, GONE)
        self.core.lost.append(lost)
        self.course.knowledge.add_lost(*lost)
        return lost

    # Publishing

    @property
    def problem(self) -> str | None:
        """Why nothing can be logged, now or any more."""
        return self.failure or self.core.refusal

    def take(
        self, publications: Sequence[Publication], contents: Sequence[Content], now: Tick, heard: int
    ) -> tuple[AppendEvents | None, list[Answer]]:
        """Take what a publisher here sends; what is to be appended, and what can be answered at once."""
        outcome = self.core.take(publications, now, heard)
        append = outcome.append
        is_looked_at = self.course.is_wanted or self._expiring is not None
        if is_looked_at and append is not None and append.publications is publications:
            self._contents[append.ticks[0]] = contents
        return self._outcome(outcome, now)

    def take_epoch(
        self, publications: Sequence[Publication], now: Tick
    ) -> tuple[AppendEvents | None, list[Answer]]:
        """Take all events of an epoch, of which none was taken before: one append. Who tries again has heard why."""
        return self._outcome(self.core.take(publications, now, publications[-1].n), now)

    def publish(
        self, requests: Sequence[Request], now: Tick, heard: int = 0
    ) -> tuple[AppendEvents | None, list[Answer]]:
        """Take requests from elsewhere."""
        return self._outcome(self.core.publish(requests, now, heard), now)

    def _outcome(self, outcome: Outcome, now: Tick) -> tuple[AppendEvents | None, list[Answer]]:
        if outcome.append is None:
            return None, outcome.answers
        self._active_at = now
        append = outcome.append
        taken = AppendEvents(self.core.name, append.ticks, append.publications, self.refusals)
        return taken, outcome.answers

    def on_stable(self, appends: int, size: int) -> list[Answer]:
        """Appends are on disk: their events are accepted, and known from now on."""
        self.size = size
        answers: list[Answer] = []
        for _ in range(appends):
            append, accepted = self.core.on_stable()
            contents = self._contents.pop(append.ticks[0], None)
            self._know(append.ticks, append.publications, contents)
            if self._expiring is not None:
                contents = contents or [unpack(each.event) for each in append.publications]
                self._expiring.add(zip(append.ticks, contents, strict=True))
            answers += accepted
            self._lose()
        return answers

    def _know(
        self, ticks: range, publications: Sequence[Publication], contents: Sequence[Content] | None
    ) -> None:
        """Keep in memory what is in the log, if anybody wants it: whoever comes begins with what is new, or the log."""
        knowledge = self.course.knowledge
        if not self.course.is_wanted:
            knowledge.pass_over(ticks[-1])
            return
        if contents is not None:
            self.course.know_contents(ticks, contents)
        knowledge.extend(max(knowledge.edge, self._base), ticks, publications)

    def on_refused(self, reason: str, clock: Tick, now: Instant, *, is_final: bool) -> list[Answer]:
        """The disk would not take what was appended, and for a while takes nothing."""
        self.refusals += 1
        self._try_at = now + REFUSE_NS
        if is_final:
            self.failure = reason
            return []  # nobody knows what became of them
        self._contents.clear()
        answers = self.core.on_refused(reason, clock)
        self._lose()
        return answers

    def try_again(self, now: Instant) -> TryEvents | None:
        """From time to time: ask whether the disk would take events again, if it did not; then ``on_tried``."""
        if self.core.refusal is None or self.failure is not None or self._is_tried or now < self._try_at:
            return None
        self._is_tried = True
        return TryEvents(self.core.name)

    def on_tried(self, problem: str | None) -> bool:
        """It would, or there is still a problem; whether it would."""
        self._is_tried = False
        self.core.refusal = problem
        return problem is None

    # Silence

    def be_silent(self, now: Tick) -> bool:
        """Know that there is nothing up to now, as far as the lease goes; whether that is news."""
        if not self._active_at:
            return False
        if now - self._active_at > QUIET_AFTER:
            self._active_at = ORIGIN
            return False
        upto = self.core.silent_upto(now)
        after = max(self.course.knowledge.edge, self._base)
        if upto <= after:
            return False
        self.course.learn(Items(self.core.name, ABSOLUTE, [after], [upto], [None]))
        return True

    def next_lease(self, now: Tick, vouch_every: Tick | None = None) -> Change | None:
        """A lease to be saved, if there is something to tell, and with it where the log ends; then ``on_leased``.

        Where it ends is saved without a new lease, too, if a clock was set and none is wanted for long. With
        ``vouch_every`` there is something to tell so long after the last one: that nothing has happened.
        """
        since = abs(now - self._leased_at)
        is_vouched_for = vouch_every is not None and since >= vouch_every
        lease = self.core.lease_wanted(now) if self._active_at or is_vouched_for else None
        is_due = is_vouched_for or (self.core.stable > self._end and since > END_EVERY)
        if self._leasing is not None or (lease is None and not is_due):
            return None
        lease = lease or self.core.lease
        silent = self.core.silent_upto(now, lease)
        self._leasing = Leased(lease, max(self.core.stable, self._end), silent)
        self._leased_at = now
        return change(LEASES, self.core.name, self._leasing)

    def on_leased(self) -> None:
        """It is on disk."""
        assert self._leasing is not None
        self.core.on_leased(self._leasing.lease)
        self._end = self._leasing.stable
        self._leasing = None

    # Release

    def admit(self, shb: str, now: Tick, since: Tick | None) -> tuple[Tick, Change]:
        """A broker has subscribers now: where it begins, and what is to be saved before it is told."""
        known = self.course.knowledge
        self._active_at = now
        at = max(known.edge, self._base)
        if since is not None:
            at = max(self.core.forgotten, self.releasing or ORIGIN, min(at, since))
        report = self.minima.admit(shb, at)
        return at if not report.number else report.delivered, self._row(report)

    def expect(self, shb: str) -> Change:
        """A broker has subscribers that do not know of this pubend yet: nothing goes before it has been heard of."""
        self.minima.expect(shb)
        return next(self._row(report) for report in self.minima.reports if report.shb == shb)

    def on_report(self, report: Report) -> Change | None:
        """A broker has reported; what is to be saved, if it is news."""
        return self._row(report) if self.minima.on_report(report) else None

    def remove(self, shb: str) -> Change:
        """A broker has no subscribers any more, or will not come back."""
        self.minima.remove(shb)
        return change(REPORTS, joined(self.core.name, shb), None)

    def _row(self, report: Report) -> Change:
        row = ReportRow(report.number, report.released, report.delivered)
        return change(REPORTS, joined(self.core.name, report.shb), row)

    def next_release(self, now: Tick) -> list[Release]:
        """What is to be given up now."""
        released = self.core.forgotten
        if not self.minima.reports:  # nobody subscribes, and nobody is expected
            self.minima.released = self.minima.delivered = self.core.stable
        pieces = release(released, self.minima, self._facts(now), self._policies)
        pieces = [replace_end(piece, self.core.stable) for piece in pieces if piece.after < self.core.stable]
        return pieces if pieces and self._is_worth_it(pieces[-1], released) else []

    def _facts(self, now: Tick) -> Facts:
        if self._expiring is None:
            return Facts(now, KEEP, self.segments)
        acknowledged = acknowledged_through(self.minima, now, KEEP)
        return Facts(now, KEEP, self.segments, self._expiring.expired_through(now, acknowledged))

    def _is_worth_it(self, last: Release, released: Tick) -> bool:
        """Little is not, if more will follow by itself; behind what has expired may stand what never does."""
        is_much = last.upto - released >= RELEASE_EVERY or last.upto >= self.core.stable
        return is_much or last.reason is Reason.EXPIRED

    def on_released(self, pieces: Iterable[Release]) -> Tick:
        """These are given up, for good; up to where."""
        upto = ORIGIN
        for after, upto, reason in pieces:
            self.core.on_released(Lost(after, upto, str(reason)))
            if not self.stream.lake:
                self.course.knowledge.add_lost(after, upto, str(reason))
        if self._expiring is not None:
            self._expiring.drop(upto)
        return upto

    @property
    def in_lake_through(self) -> Tick:
        """Up to here what is asked for is read in the lake, if there is one: the log has given it up."""
        return self.core.released[-1].upto if self.stream.lake and self.core.released else ORIGIN

    def row(self, pieces: Iterable[Release] = ()) -> Change:
        """What outlives us, as it will be when these are given up."""
        kept = self.core.kept()
        later = [Lost(after, upto, str(reason)) for after, upto, reason in pieces]
        expiries = None if self._expiring is None else self._expiring.kept()
        kept = replace(kept, released=[*kept.released, *later], expiries=expiries)
        return change(PUBENDS, self.core.name, kept)

    # Backups

    def on_claim(self, tick: Tick) -> Lost | None:
        """Somebody has consumed up to a tick; what our log was robbed of, if it never came so far."""
        robbed = self.core.on_token(tick)
        if robbed is not None:
            self._robbed.append(robbed)
            self._active_at = max(self._active_at, tick)
            self._lose()
        return robbed

    def _lose(self) -> None:
        """Know what we were robbed of, as soon as all that was appended before is known, or refused."""
        while self._robbed and (self.core.stable >= self._robbed[0].after or not self.core.unstable):
            robbed = self._robbed.popleft()
            self.course.knowledge.add_lost(*robbed)
            self._base = max(self._base, robbed.upto)


def replace_end(piece: Release, upto: Tick) -> Release:
    """A piece that goes no farther."""
    return piece if piece.upto <= upto else piece._replace(upto=upto)


def runs_of(receipts: Sequence[Receipt]) -> tuple[Run, ...]:
    """Receipts of one publisher, in order, as runs that are as long as can be."""
    runs: list[Run] = []
    for _, n, tick, _, length in receipts:
        if runs and tick and (n, tick) == (runs[-1].n + runs[-1].length, runs[-1].tick + runs[-1].length):
            runs[-1] = Run(runs[-1].n, runs[-1].tick, runs[-1].length + length)
        else:
            runs.append(Run(n, tick, length))
    return tuple(runs)
