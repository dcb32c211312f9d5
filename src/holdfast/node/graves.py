"""Subscriptions that are over: a withdrawal beats whatever else is told of a subscription, in any order [B0.24].

The numbers of a subscriber are used once each and in turn, so those that are over make a few ranges, however many there
were. A life of a subscriber that is over takes all its earlier lives with it; whoever begins another says so.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from holdfast.identity import SubscriptionId
from holdfast.messages.subscriptions import Grave

__all__ = ["NUMBER_MAX", "Graves", "is_of_life", "of_life"]

#: Every number a subscription can have.
NUMBER_MAX: Final = 2**63 - 1

#: So many subscribers are remembered; then the one buried first is forgotten.
SUBSCRIBERS_MAX: Final = 100_000


def of_life(subscriber: str, incarnation: int) -> Grave:
    """The grave of everything a life of a subscriber, and those before it, ever subscribed to."""
    return Grave(subscriber, incarnation, 1, NUMBER_MAX)


def is_of_life(grave: Grave) -> bool:
    """Whether it is the grave of a life."""
    return grave.first == 1 and grave.last == NUMBER_MAX


class Graves:
    """By subscriber the last life that is over; of later ones the ranges of numbers that are, ascending and apart."""

    def __init__(self) -> None:
        self._lives: dict[str, int] = {}
        self._ranges: dict[tuple[str, int], list[tuple[int, int]]] = {}

    def __contains__(self, subscription: SubscriptionId) -> bool:
        if subscription.incarnation <= self._lives.get(subscription.subscriber, -1):
            return True
        return self._reaches(subscription.subscriber, subscription.incarnation, subscription.number) >= 0

    def __iter__(self) -> Iterator[Grave]:
        for subscriber, incarnation in self._lives.items():
            yield of_life(subscriber, incarnation)
        for (subscriber, incarnation), ranges in self._ranges.items():
            for first, last in ranges:
                yield Grave(subscriber, incarnation, first, last)

    def last_life(self, subscriber: str) -> int:
        """The last of a subscriber's lives that is over; 0 if none is known to be."""
        return self._lives.get(subscriber, 0)

    def covers(self, grave: Grave) -> bool:
        """Whether all of it is known."""
        if grave.incarnation <= self._lives.get(grave.subscriber, -1):
            return True
        return self._reaches(grave.subscriber, grave.incarnation, grave.first) >= grave.last

    def _reaches(self, subscriber: str, incarnation: int, number: int) -> int:
        """How far the range goes that a number lies in; -1 if it lies in none."""
        ranges = self._ranges.get((subscriber, incarnation), [])
        place = bisect_right(ranges, (number, NUMBER_MAX)) - 1
        return ranges[place][1] if place >= 0 and number <= ranges[place][1] else -1

    def add(self, grave: Grave) -> None:
        """These are over."""
        if self.covers(grave):
            return
        if is_of_life(grave):
            self._add_life(grave)
        else:
            self._add_range(grave)

    def _add_life(self, grave: Grave) -> None:
        if grave.subscriber not in self._lives and len(self._lives) >= SUBSCRIBERS_MAX:
            del self._lives[next(iter(self._lives))]
        self._lives[grave.subscriber] = grave.incarnation
        for owner in [
            each for each in self._ranges if each[0] == grave.subscriber and each[1] <= grave.incarnation
        ]:
            del self._ranges[owner]

    def _add_range(self, grave: Grave) -> None:
        owner = grave.subscriber, grave.incarnation
        if owner not in self._ranges and len(self._ranges) >= SUBSCRIBERS_MAX:
            del self._ranges[next(iter(self._ranges))]
        ranges = self._ranges.setdefault(owner, [])
        low, high = grave.first, grave.last
        begin = bisect_left(ranges, (low, 0))
        if begin and ranges[begin - 1][1] >= low - 1:  # the one before touches it
            begin -= 1
            low = ranges[begin][0]
        end = bisect_right(ranges, (high + 1, NUMBER_MAX), lo=begin)
        if end > begin:
            high = max(high, ranges[end - 1][1])
        ranges[begin:end] = [(low, high)]
