"""The numbers of a publisher's events: unique for ever, and always above the last.

Nobody but the publisher can give them, and it may have lost its memory. So a named client starts above its clock's
microseconds, and above whatever its broker has seen of it: nobody publishes a million events a second for long, so a
restart continues above. Unless its clock was set back, and its broker restarted too: where that matters there is a
store, which reserves blocks on disk before the first of their numbers is used. It does not make the clock needless,
since the name may have been used without it before. An unnamed client has a name nobody had before, and starts at 1.

Or the application gives them itself, for which only the order is checked here. Holes are allowed [contracts.md §1].
"""

from __future__ import annotations

from typing import Protocol

from holdfast.errors import InvalidEvent
from holdfast.events.value import INT_MAX

__all__ = ["NumberSource", "Numbers"]


class NumberSource(Protocol):
    """Numbers that survive the process, such as ``runtime.disk.NumberStore``."""

    def next_number(self, above: int) -> int:
        """A number above this one and above every number used in any life; on disk before it is returned."""


class Numbers:
    """Gives each event of one client its number.

    Invariant: ``last`` is the highest number used here; 0: none yet.
    """

    def __init__(self, floor: int = 0, source: NumberSource | None = None) -> None:
        self.last = 0
        self._floor = floor
        self._source = source

    def raise_floor(self, seen: int) -> None:
        """The network knows a number of ours, from an earlier life; go on above it."""
        self._floor = max(self._floor, seen)

    def next_number(self) -> int:
        """The number of the next event."""
        above = max(self.last, self._floor)
        n = above + 1 if self._source is None else self._source.next_number(above)
        assert n > above
        if n > INT_MAX:
            raise InvalidEvent("n", f"no number is left above {above}")
        self.last = n
        return n

    def use(self, n: int) -> int:
        """The application's own number for the next event.

        What an earlier life used is not refused: that is how an application finds out whether an event was accepted.

        :raises InvalidEvent: if it is no number, or not above those used in this life.
        """
        if not isinstance(n, int) or isinstance(n, bool):
            raise InvalidEvent("n", f"must be an int, not {type(n).__name__}")
        if not 1 <= n <= INT_MAX:
            raise InvalidEvent("n", f"is {n}, not between 1 and {INT_MAX}")
        if n <= self.last:
            raise InvalidEvent("n", f"is {n}, not above {self.last}, the last number used")
        if self._source is not None:
            # so that a later life goes on above this one; what it gives is left out
            self._source.next_number(n - 1)
        self.last = n
        return n
