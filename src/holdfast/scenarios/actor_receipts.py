"""What a publisher of a scenario waits for: that its events are accepted, and where they stand.

Where nothing is logged, an event is its own place: its publisher is the pubend, its number the tick.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from holdfast.client.effect import Placed
from holdfast.overlay.transport import Trace

__all__ = ["Receipts"]


class Receipts:
    """The events that were submitted and not accepted yet, in the order of their numbers."""

    def __init__(self, publisher: str) -> None:
        self._publisher = publisher
        self._waiting: deque[int] = deque()
        self._placed: dict[int, tuple[str, int]] = {}

    def await_for(self, numbers: Iterable[int]) -> None:
        """Events were submitted."""
        self._waiting += numbers

    def on_placed(self, placed: Placed) -> None:
        """Events stand somewhere; of a repeat nobody may know where any more: tick 0."""
        for n, tick, length in (*placed.runs, *placed.repeats):
            for k in range(length):
                self._placed[n + k] = placed.pubend, tick + k if tick else 0

    def on_accepted(self, upto: int) -> list[Trace]:
        """All up to a number are accepted; the lines that say so."""
        lines: list[Trace] = []
        while self._waiting and self._waiting[0] <= upto:
            n = self._waiting.popleft()
            pubend, tick = self._placed.pop(n, (self._publisher, n))
            lines.append(
                Trace("accepted", {"publisher": self._publisher, "n": n, "pubend": pubend, "tick": tick})
            )
        return lines

    def on_refused(self, n: int) -> None:
        """One will never be."""
        self._waiting.remove(n)
