"""What the logs of a durable run must hold, as far as its trace tells: receipts say where each event stands [R1.5].

So do deliveries, of events too whose publisher crashed before it had the receipt: whoever got one got it from the log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from holdfast.scenarios.trace import TraceLine

__all__ = ["Log", "Position", "position_of"]


class Position(NamedTuple):
    """A tick of a pubend."""

    pubend: str
    tick: int


def position_of(line: TraceLine) -> Position | None:
    """Where a receipt or a delivery says that its event stands; a receipt for a repeat may not know that any more."""
    return Position(line["pubend"], line["tick"]) if line["tick"] else None


class Log:
    """The events of all pubends, by tick; where lines contradict each other the first one counts (see ``ticks``)."""

    def __init__(
        self,
        published: Mapping[tuple[str, int], Sequence[TraceLine]],
        receipts: Mapping[tuple[str, int], Sequence[TraceLine]],
        delivered: Mapping[tuple[str, str], Sequence[TraceLine]],
    ) -> None:
        self.positions: dict[tuple[str, int], Position] = {}
        told = [*receipts.values(), *delivered.values()]
        for line in (line for lines in told for line in lines):
            position = position_of(line)
            if position is not None:
                self.positions.setdefault((line["publisher"], line["n"]), position)
        found: dict[str, list[tuple[int, TraceLine]]] = defaultdict(list)
        for key, (pubend, tick) in self.positions.items():
            if key in published:
                found[pubend].append((tick, published[key][0]))
        self._ticks: dict[str, list[int]] = {}
        self._events: dict[str, list[TraceLine]] = {}
        for pubend, events in found.items():
            events.sort(key=lambda event: event[0])
            self._ticks[pubend] = [tick for tick, _ in events]
            self._events[pubend] = [line for _, line in events]

    @property
    def pubends(self) -> list[str]:
        """All that have an event."""
        return sorted(self._ticks)

    def within(self, pubend: str, after: int, upto: int) -> Iterator[tuple[int, TraceLine]]:
        """The events in (after, upto] with their ticks, as their ``publish`` lines, in order."""
        ticks = self._ticks.get(pubend, [])
        for i in range(bisect_right(ticks, after), bisect_right(ticks, upto)):
            yield ticks[i], self._events[pubend][i]
