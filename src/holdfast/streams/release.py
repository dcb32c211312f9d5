"""When the log may forget: what every subscriber-hosting broker has delivered and released, and a policy [BZA §3].

T_d is the least that any subscriber-hosting broker (SHB) has delivered to those who are current; T_r the least that any
has released: what all its durable subscribers, here or away, have acknowledged (R1.13). A tick is given up when all
have released it, or when a policy wants it gone early and all have delivered it; so who is current sees no gap (R1.14):

    t ≤ T_r  ∨  (t ≤ T_d ∧ the policy lets t go)                                                           (R1.15)

Minima are over SHBs, never over links (B1.8). A broker that is bypassed, cut off or down keeps the last values it
reported, and pins the log with them until an operator removes it. One that is expected and has not reported counts as
having nothing. T_r and T_d only grow; a new SHB begins at T_d, and cannot drag them down.

Reports travel over any road and may overtake each other: each has its SHB's number, and the latest counts. ``released``
may go *down* in it: a subscriber with an older token has moved there, and pins the log before its old broker lets go of
it (B1.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from holdfast.messages.ticks import ORIGIN, Tick

__all__ = [
    "Expiry",
    "Facts",
    "MaxBytes",
    "MaxRetain",
    "Minima",
    "Policy",
    "Reason",
    "Release",
    "Report",
    "acknowledged_through",
    "release",
]


class Report(NamedTuple):
    """What one SHB has released and delivered of a pubend; ``number`` grows with each, over all its lives."""

    shb: str
    number: int
    released: Tick
    delivered: Tick


class Minima:
    """The reports of all SHBs of one pubend, at the broker that has it."""

    def __init__(
        self, released: Tick = ORIGIN, delivered: Tick = ORIGIN, reports: Iterable[Report] = ()
    ) -> None:
        self.released = released  #: T_r
        self.delivered = delivered  #: T_d
        self._reports = {report.shb: report for report in reports}
        self._advance()

    @property
    def reports(self) -> list[Report]:
        """The latest of every SHB, to be saved."""
        return list(self._reports.values())

    def expect(self, shb: str) -> None:
        """There is such an SHB, and until it reports nothing is released (B1.8), whatever the others have."""
        if shb not in self._reports:
            self._reports[shb] = Report(shb, 0, ORIGIN, ORIGIN)
            self.released = self.delivered = ORIGIN

    def admit(self, shb: str, at: Tick | None = None) -> Report:
        """A new SHB, which begins at T_d and is told so; or ``at`` a tick, if it had subscribers before it was known.

        To be called before its first subscription is confirmed: nothing above may be released without it from then on.
        One that begins at T_d drags nothing down; the other should have been waited for all the time (B1.8), and T_r
        and T_d go back to what is still there for it. Until it reports it may want to begin earlier still.
        """
        known = self._reports.get(shb)
        at = self.delivered if at is None else at
        is_new = known is None or known.delivered == ORIGIN
        if known is None or (known.number == 0 and (is_new or at < known.delivered)):
            self._reports[shb] = Report(shb, 0, at, at)
            self.released, self.delivered = min(self.released, at), min(self.delivered, at)
        return self._reports[shb]

    def remove(self, shb: str) -> None:
        """An operator says that an SHB will not come back; whoever is there has lost what is released from now on."""
        self._reports.pop(shb, None)
        self._advance()

    def on_report(self, report: Report) -> bool:
        """An SHB has reported; whether it is news."""
        last = self._reports.get(report.shb)
        if last is not None and report.number <= last.number:
            return False
        delivered = report.delivered if last is None else max(report.delivered, last.delivered)
        released = min(report.released, delivered)  # T_r ≤ T_d, whatever somebody says (I17)
        self._reports[report.shb] = report._replace(released=released, delivered=delivered)
        self._advance()
        return True

    def pinning(self) -> list[Report]:
        """Whose reports hold T_r where it is, for whoever asks why a log is full."""
        least = min((report.released for report in self._reports.values()), default=ORIGIN)
        return [report for report in self._reports.values() if report.released == least]

    def _advance(self) -> None:
        if self._reports:
            self.released = max(self.released, min(report.released for report in self._reports.values()))
            self.delivered = max(self.delivered, min(report.delivered for report in self._reports.values()))


# Policies


class Reason(StrEnum):
    """Why ticks were given up; a gap tells its subscriber."""

    ACKNOWLEDGED = "acknowledged"  #: all had released them: only an older token meets this (R1.9)
    MAX_RETAIN = "max_retain"
    MAX_BYTES = "max_bytes"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a policy may go by."""

    now: Tick  #: T(p), the present as a tick
    keep: int = (
        0  #: what everybody has released goes when it is so old: its publisher may ask where it stands
    )
    #: the log's parts: the last tick of each, and its bytes; the oldest first
    segments: Sequence[tuple[Tick, int]] = ()
    expired_through: Tick = (
        ORIGIN  #: what is not acknowledged up to here has outlived the time its publisher gave it (R1.33)
    )


class Policy(Protocol):
    """What may go although somebody has not acknowledged it (R1.15); with none, nothing does (R1.34)."""

    def allows(self, facts: Facts) -> tuple[Tick, Reason]:
        """The highest tick that may go early, and why."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """What has outlived the time its publisher gave it goes (R1.33)."""

    def allows(self, facts: Facts) -> tuple[Tick, Reason]:
        """What has expired."""
        return facts.expired_through, Reason.EXPIRED


@dataclass(frozen=True, slots=True)
class MaxRetain:
    """What is older goes (R1.15)."""

    ticks: int

    def allows(self, facts: Facts) -> tuple[Tick, Reason]:
        """T(p) - t > max_retain."""
        return facts.now - self.ticks - 1, Reason.MAX_RETAIN


@dataclass(frozen=True, slots=True)
class MaxBytes:
    """Of the oldest parts of the log so many go that the rest is no larger; what came last stays in any case."""

    bytes: int

    def allows(self, facts: Facts) -> tuple[Tick, Reason]:
        """The end of the last part that must go."""
        upto, left = ORIGIN, sum(size for _, size in facts.segments)
        for last, size in facts.segments[:-1]:
            if left <= self.bytes:
                break
            upto, left = last, left - size
        return upto, Reason.MAX_BYTES


class Release(NamedTuple):
    """Ticks (after, upto] are given up, all for one reason."""

    after: Tick
    upto: Tick
    reason: Reason


def acknowledged_through(minima: Minima, now: Tick, keep: int) -> Tick:
    """What everybody has released, and is old enough to go."""
    return min(minima.released, now - keep) if keep else minima.released


def release(lost_through: Tick, minima: Minima, facts: Facts, policies: Sequence[Policy]) -> list[Release]:
    """What is to become L above what is already: the rule R1.15, as pieces by reason.

    What everybody has released goes first; where several policies want the same, the first one is the reason.
    """
    wanted = [(acknowledged_through(minima, facts.now, facts.keep), Reason.ACKNOWLEDGED)]
    for policy in policies:
        upto, reason = policy.allows(facts)
        wanted.append((min(upto, minima.delivered), reason))
    pieces = []
    for upto, reason in wanted:
        if upto > lost_through:
            pieces.append(Release(lost_through, upto, reason))
            lost_through = upto
    return pieces
