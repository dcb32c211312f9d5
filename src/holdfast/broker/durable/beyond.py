"""Which events are wanted beyond which neighbour.

A neighbour that follows a pubend is told of everything that somebody wants who lies beyond it, whoever is served by
whom at the moment: what is left out counts as silence. Events that match the same subscriptions are wanted beyond the
same neighbours, and mostly that was asked before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from holdfast.events.event import Content
from holdfast.node.station import Station
from holdfast.routing.table import Table

__all__ = ["Beyond"]

#: So many answers are remembered; then all are forgotten.
ANSWERS_MAX: Final = 10_000


class Beyond:
    """Remembers, for the subscriptions an event matches, the stations on the ways to them."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._stamp = (0, 0)
        self._answers: dict[tuple[int, ...], tuple[str, ...]] = {}

    def wanted(self, followers: Iterable[str], events: Sequence[Content]) -> dict[str, list[int]]:
        """By follower the positions of what somebody beyond it wants."""
        found: dict[str, list[int]] = {name: [] for name in followers}
        if not events:
            return found
        stamp = self._table.additions, len(self._table)
        if stamp != self._stamp or len(self._answers) > ANSWERS_MAX:
            self._stamp = stamp
            self._answers.clear()
        answers = self._answers
        for i, slots in enumerate(self._table.match(events)):
            key = tuple(slots)
            names = answers.get(key)
            if names is None:
                names = answers[key] = self._on_way(slots)
            for name in names:
                if name in found:
                    found[name].append(i)
        return found

    def _on_way(self, slots: Sequence[int]) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for slot in slots:
            entry = self._table.by_slot[slot]
            assert entry is not None
            if isinstance(entry.port, Station):
                names.update(dict.fromkeys(entry.port.path))
        return tuple(names)
