"""Virtual time: one heap of things to do, each at its instant, ties in the order they were asked for.

Nothing happens between two instants, so a minute of an idle network costs nothing. The sequence number makes
the order of equal instants a fact of the run, never of memory addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

from holdfast.clock import Instant

__all__ = ["VirtualClock"]


class VirtualClock:
    """The time of a simulated world, and what is still to happen in it."""

    __slots__ = ("_heap", "_sequence", "now")

    def __init__(self) -> None:
        self.now: Instant = 0
        self._heap: list[tuple[Instant, int, Callable[[Any], None], Any]] = []
        self._sequence = count()

    def at(self, when: Instant, action: Callable[[Any], None], argument: Any = None) -> None:
        """Do something at an instant; one in the past is taken for now."""
        heappush(self._heap, (when if when > self.now else self.now, next(self._sequence), action, argument))

    def next_instant(self) -> Instant | None:
        """When the next thing happens, if anything is still to happen."""
        return self._heap[0][0] if self._heap else None

    def run_until(self, until: Instant) -> None:
        """Let everything happen up to and including an instant; then that instant is now."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, action, argument = heappop(heap)
            action(argument)
        self.now = max(self.now, until)

    def run_while(self, condition: Callable[[], bool], until: Instant) -> bool:
        """Go on while a condition holds, to an instant at the latest; whether the condition has ceased.

        It is asked whenever time has moved on, not after every single thing.
        """
        while condition():
            upcoming = self.next_instant()
            if upcoming is None or upcoming > until:
                self.now = max(self.now, until)
                return not condition()
            self.run_until(upcoming)
        return True
