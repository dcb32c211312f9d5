"""What one publisher has had logged at a pubend: its last number, and under which ticks its latest ones stand.

A publisher that has not heard what became of an event sends it again, and is told the tick the event has had since.
What arrived together mostly has consecutive numbers and ticks, so runs of both are kept, for ``RECENT`` events.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import Final, NamedTuple

__all__ = ["RECENT", "Receipts"]

#: A publisher's window is smaller than this: what is older was acknowledged, and nobody asks for it.
RECENT: Final = 100_000


class _Run(NamedTuple):
    number: int
    tick: int
    length: int


class Receipts:
    """Of one publisher; numbers and ticks only grow, numbers may have holes."""

    __slots__ = ("_count", "_runs", "last", "tick")

    def __init__(self, last: int = 0, tick: int = 0) -> None:
        self.last = last  #: the highest number that was logged
        self.tick = tick  #: and where
        self._runs: deque[_Run] = deque()
        self._count = 0

    def add(self, number: int, tick: int, length: int = 1) -> None:
        """Other events were logged: so many, with consecutive numbers and ticks."""
        assert number > self.last
        assert tick > self.tick
        self.last, self.tick = number + length - 1, tick + length - 1
        runs = self._runs
        if runs and (number, tick) == (runs[-1].number + runs[-1].length, runs[-1].tick + runs[-1].length):
            last = runs[-1]
            runs[-1] = _Run(last.number, last.tick, last.length + length)
        else:
            runs.append(_Run(number, tick, length))
        self._count += length
        while self._count - runs[0].length >= RECENT:
            self._count -= runs.popleft().length

    def remembers(self, number: int) -> bool:
        """Whether, if it had been logged, it would be known where."""
        return bool(self._runs) and number >= self._runs[0].number

    def tick_of(self, number: int) -> int | None:
        """Where an event stands; None if it is too old, or its number was never used."""
        if number == self.last:
            return self.tick
        place = bisect_right(self._runs, number, key=_number) - 1
        if place < 0:
            return None
        run = self._runs[place]
        return run.tick + number - run.number if number < run.number + run.length else None


def _number(run: _Run) -> int:
    return run.number
