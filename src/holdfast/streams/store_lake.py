"""The lake behind the logs of a broker's own pubends, read: what a log has given up is looked for there.

What a lake is made of is for others to know (``pipeline.lake``); here it is whoever answers for a range of ticks. What
it says of a range is final: what is not in it is lost, for the reason for which the log gave it up. If it cannot be
asked, nothing is known, and it is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from holdfast.errors import EnvironmentsFault
from holdfast.intervals import Intervals, Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, ORIGIN, Lost, Tick
from holdfast.streams.store_reads import Row, losses
from holdfast.streams.storing import LakeRead, ReadLake

__all__ = ["Lake", "LakeLane", "LakePage", "LakeUnreadable"]

#: A read ends when it has found so many bytes of events.
READ_BYTES_MAX: Final = 8 << 20


class LakeUnreadable(EnvironmentsFault):
    """A lake that cannot be asked now; later it may."""


@dataclass(frozen=True, slots=True, eq=False)
class LakePage:
    """All that a lake has of the ticks from where it was asked up to ``covered``; between its events is silence."""

    covered: Tick
    ticks: Sequence[Tick] = ()
    publications: Sequence[Publication] = ()
    lost: Sequence[Lost] = ()  #: what its log had lost when it was taken, or what is damaged since
    absent: Sequence[Span] = ()  #: what it never had
    damages: Sequence[str] = ()  #: files that are not as they were written, and what is wrong


class Lake(Protocol):
    """Everything that was taken from logs before they gave it up. Used by one thread."""

    def page(self, pubend: str, after: Tick, upto: Tick, limit: int) -> LakePage:
        """What it has of some of (after, upto], from its beginning, with at most ``limit`` events.

        :raises LakeUnreadable: if that cannot be said now.
        """


@dataclass(slots=True)
class _Found:
    """What was read of some spans."""

    parts: list[Span] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)
    publications: list[Publication] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    absent: list[Span] = field(default_factory=list)
    damages: list[str] = field(default_factory=list)
    bytes: int = 0

    def add(self, after: Tick, page: LakePage) -> None:
        """The next page, from a tick on."""
        self.parts.append((after, page.covered))
        self.ticks += page.ticks
        self.publications += page.publications
        self.bytes += sum(len(each.event) for each in page.publications)
        self.lost += page.lost
        self.absent += page.absent
        self.damages += page.damages


class LakeLane:
    """Reads of the lake. ``rows`` belong to another thread, which only puts whole new values there."""

    def __init__(self, lake: Lake, rows: Mapping[str, Row]) -> None:
        self._lake = lake
        self._rows = rows

    def turn(self, effects: Sequence[ReadLake]) -> list[LakeRead]:
        """Carry out what has come."""
        return [self._read(effect) for effect in effects]

    def _read(self, effect: ReadLake) -> LakeRead:
        found = _Found()
        problem = ""
        try:
            for after, upto in Intervals(effect.spans):
                self._take(effect.pubend, after, upto, effect.limit, found)
        except LakeUnreadable as error:
            problem = str(error)
        row = self._rows.get(effect.pubend, Row())
        lost = sorted([*found.lost, *losses(found.absent, row, ABSOLUTE, ())])
        return LakeRead(
            effect.pubend, found.parts, found.ticks, found.publications, lost, found.damages, problem
        )

    def _take(self, pubend: str, after: Tick, upto: Tick, limit: int, found: _Found) -> None:
        """A span, or what there is room for."""
        while after < upto and len(found.ticks) < limit and found.bytes < READ_BYTES_MAX:
            page = self._lake.page(pubend, after, upto, limit - len(found.ticks))
            assert ORIGIN <= after < page.covered <= upto
            found.add(after, page)
            after = page.covered
