"""What one publisher has had logged at a pubend: its last number, and under which ticks its latest ones stand.

A publisher that has not heard what became of an event sends it again, and is told the tick the event has had since.
What arrived together mostly has consecutive numbers and ticks, so runs of both are kept. They stand in arrays: there is
a run for every event that came alone, and an object for each would be one more for Python's collector to look at.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

__all__ = ["Receipts"]


class Receipts:
    """Of one publisher; numbers and ticks only grow, numbers may have holes. How many runs to keep is its owner's."""

    __slots__ = ("_begin", "_lengths", "_numbers", "_ticks", "last", "tick")

    def __init__(self, last: int = 0, tick: int = 0) -> None:
        self.last = last  #: the highest number that was logged
        self.tick = tick  #: and where
        self._numbers = array("q")  #: the first of each run
        self._ticks = array("q")  #: and its tick
        self._lengths = array("q")
        self._begin = 0  #: the runs before this one are forgotten

    def add(self, number: int, tick: int, length: int = 1) -> bool:
        """Other events were logged: so many, with consecutive numbers and ticks. Whether they begin a run."""
        assert number > self.last
        assert tick > self.tick
        has_runs = self._begin < len(self._numbers)
        continues = has_runs and number == self.last + 1 and tick == self.tick + 1
        self.last, self.tick = number + length - 1, tick + length - 1
        if continues:
            self._lengths[-1] += length
            return False
        self._numbers.append(number)
        self._ticks.append(tick)
        self._lengths.append(length)
        return True

    def forget_oldest(self) -> None:
        """Of the oldest run it need not be known any more where it stands; there must be one."""
        self._begin += 1
        if 2 * self._begin > len(self._numbers):  # half of them at once: each is moved about once
            for each in (self._numbers, self._ticks, self._lengths):
                del each[: self._begin]
            self._begin = 0

    def remembers(self, number: int) -> bool:
        """Whether, if it had been logged, it would be known where."""
        return self._begin < len(self._numbers) and number >= self._numbers[self._begin]

    def tick_of(self, number: int) -> int | None:
        """Where an event stands; None if it is too old, or its number was never used."""
        if number == self.last:
            return self.tick
        place = bisect_right(self._numbers, number, self._begin) - 1
        if place < self._begin:
            return None
        beyond = number - self._numbers[place]
        return self._ticks[place] + beyond if beyond < self._lengths[place] else None
