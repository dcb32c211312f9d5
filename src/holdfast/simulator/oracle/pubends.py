"""What anybody knows of a pubend of a durable network: its events, at which ticks, and how far it has been told."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from holdfast.events.packed import unpack
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.messages.publications import Publication

__all__ = ["KnownPubend"]


@dataclass(slots=True)
class KnownPubend:
    """One of them."""

    asserted: int = 0  #: the highest tick that anybody was told is past
    chopped: int = 0
    ticks: list[int] = field(default_factory=list)  #: with an event, ascending
    events: dict[int, Publication] = field(default_factory=dict)
    appended: dict[int, Publication] = field(default_factory=dict)  #: whatever became of it
    #: appends that are not stable
    pending: list[Sequence[tuple[int, Publication]]] = field(default_factory=list)
    _verdicts: dict[str, dict[int, bool]] = field(default_factory=dict)  #: by filter and tick
    _filters: dict[str, Callable[[Subject], bool]] = field(default_factory=dict)

    def append(self, records: Sequence[tuple[int, Publication]]) -> None:
        """Events are to be logged; they may be on disk without anybody hearing of it."""
        self.pending.append(records)
        self.appended.update(records)

    def note(self, tick: int, event: Publication) -> Publication:
        """An event stands at a tick; the one that stood there first."""
        if tick not in self.events:
            insort(self.ticks, tick)
            self.events[tick] = event
        return self.events[tick]

    def within(self, lo: int, hi: int) -> list[int]:
        """The ticks strictly between two at which events stand."""
        return self.ticks[bisect_right(self.ticks, lo) : bisect_left(self.ticks, hi)]

    def is_for(self, filter: str, tick: int) -> bool:
        """Whether an event stands at a tick, or may, and matches."""
        verdicts = self._verdicts.setdefault(filter, {})
        if tick not in verdicts:
            event = self.events.get(tick) or self.appended.get(tick)
            if event is None:
                return False
            if filter not in self._filters:
                self._filters[filter] = compile_filter(parse_filter(filter))
            verdicts[tick] = self._filters[filter](Subject(unpack(event.event)))
        return verdicts[tick]
