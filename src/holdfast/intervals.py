"""Sets of ticks, kept as the few ranges they consist of.

A range is a pair ``(after, upto)`` and means ``after < tick ≤ upto``, as a subscriber reads ``Silence(a..b]``; so an
item's ``lo``, a horizon and a token are ends of ranges as they are. Ranges of one set neither overlap nor touch: two
lists, both ascending, are the whole structure, and every question is a bisection. Sets of ticks mostly grow at
their end, which costs nothing here; many ranges at once (``…_all``) are merged with the part of the set they touch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

__all__ = ["Intervals", "Span"]

#: (after, upto]: the ticks above the first, up to and including the second.
Span = tuple[int, int]

#: So few ranges are looked up one by one.
_FEW: Final = 8


class Intervals:
    """A set of integers as disjoint ranges (after, upto].

    Invariant: ``_after[i] < _upto[i] < _after[i + 1]``.
    """

    __slots__ = ("_after", "_upto")

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._after: list[int] = []
        self._upto: list[int] = []
        for after, upto in spans:
            self.add(after, upto)

    def __iter__(self) -> Iterator[Span]:
        return zip(self._after, self._upto, strict=True)

    def __len__(self) -> int:
        """How many ranges there are."""
        return len(self._after)

    def __bool__(self) -> bool:
        return bool(self._after)

    def __contains__(self, tick: int) -> bool:
        i = bisect_left(self._after, tick) - 1
        return i >= 0 and tick <= self._upto[i]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Intervals):
            return NotImplemented
        return self._after == other._after and self._upto == other._upto

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Intervals({list(self)})"

    @property
    def size(self) -> int:
        """How many ticks there are."""
        return sum(self._upto) - sum(self._after)

    @property
    def first(self) -> int:
        """The lowest tick; there must be one."""
        return self._after[0] + 1

    @property
    def last(self) -> int | None:
        """The highest tick, if there is any."""
        return self._upto[-1] if self._upto else None

    def copy(self) -> Intervals:
        """A set of its own."""
        twin = Intervals()
        twin._after, twin._upto = self._after.copy(), self._upto.copy()
        return twin

    # Changing

    def add(self, after: int, upto: int) -> None:
        """Put a range in; one without a tick changes nothing."""
        if after >= upto:
            return
        if not self._upto or after > self._upto[-1]:
            self._after.append(after)
            self._upto.append(upto)
            return
        if after >= self._after[-1]:
            self._upto[-1] = max(self._upto[-1], upto)
            return
        first = bisect_left(self._upto, after)  # the first that reaches the range,
        beyond = bisect_right(self._after, upto)  # and the first beyond it
        if first < beyond:
            after = min(after, self._after[first])
            upto = max(upto, self._upto[beyond - 1])
        self._after[first:beyond] = [after]
        self._upto[first:beyond] = [upto]

    def add_all(self, spans: Sequence[Span]) -> None:
        """Put in ranges that ascend."""
        if not spans:
            return
        first = bisect_left(self._upto, spans[0][0])
        beyond = bisect_right(self._after, spans[-1][1])
        if len(spans) * _FEW < beyond - first:
            for span in spans:
                self.add(*span)
            return
        self._replace(first, beyond, _joined([*self._block(first, beyond), *spans]))

    def add_ticks(self, ticks: Iterable[int]) -> None:
        """Put in single ticks that ascend."""
        self.add_all([(tick - 1, tick) for tick in ticks])

    def remove(self, after: int, upto: int) -> None:
        """Take a range out."""
        if after >= upto:
            return
        first = bisect_right(self._upto, after)
        beyond = bisect_left(self._after, upto)
        if first >= beyond:
            return
        ends = [(self._after[first], after), (upto, self._upto[beyond - 1])]
        self._replace(first, beyond, [(low, high) for low, high in ends if low < high])

    def remove_all(self, spans: Sequence[Span]) -> None:
        """Take out ranges that ascend."""
        if not spans:
            return
        first = bisect_right(self._upto, spans[0][0])
        beyond = bisect_left(self._after, spans[-1][1])
        if len(spans) * _FEW < beyond - first:
            for span in spans:
                self.remove(*span)
        elif first < beyond:
            self._replace(first, beyond, _minus(self._block(first, beyond), spans))

    def _block(self, first: int, beyond: int) -> list[Span]:
        return list(zip(self._after[first:beyond], self._upto[first:beyond], strict=True))

    def _replace(self, first: int, beyond: int, spans: Sequence[Span]) -> None:
        self._after[first:beyond] = [after for after, _ in spans]
        self._upto[first:beyond] = [upto for _, upto in spans]

    # Asking

    def within(self, after: int, upto: int) -> list[Span]:
        """The parts of the set in a range, ascending."""
        first = bisect_right(self._upto, after)
        beyond = bisect_left(self._after, upto)
        if first >= beyond or after >= upto:
            return []
        spans = self._block(first, beyond)
        spans[0] = (max(after, spans[0][0]), spans[0][1])
        spans[-1] = (spans[-1][0], min(upto, spans[-1][1]))
        return spans

    def gaps(self, after: int, upto: int) -> list[Span]:
        """The parts of a range that are not in the set, ascending."""
        found: list[Span] = []
        for begin, end in self.within(after, upto):
            if begin > after:
                found.append((after, begin))
            after = end
        if after < upto:
            found.append((after, upto))
        return found

    def within_all(self, spans: Sequence[Span]) -> list[Span]:
        """The parts of the set in ranges that ascend."""
        if len(spans) < _FEW:
            return [part for span in spans for part in self.within(*span)]
        return _minus(spans, self.gaps_all(spans))

    def gaps_all(self, spans: Sequence[Span]) -> list[Span]:
        """The parts of ranges that ascend which are not in the set."""
        if len(spans) < _FEW:
            return [gap for span in spans for gap in self.gaps(*span)]
        first = bisect_right(self._upto, spans[0][0])
        beyond = bisect_left(self._after, spans[-1][1])
        return _minus(spans, self._block(first, beyond))

    def covers(self, after: int, upto: int) -> bool:
        """Whether all of a range is in the set."""
        return self.reach(after) >= upto

    def reach(self, after: int) -> int:
        """The highest tick such that all of (after, it] is in the set; ``after`` if the next is not."""
        i = bisect_right(self._after, after) - 1
        return max(after, self._upto[i]) if i >= 0 else after

    def floor(self, tick: int) -> int:
        """The highest tick up to this one that is *not* in the set."""
        i = bisect_left(self._after, tick) - 1
        return self._after[i] if i >= 0 and tick <= self._upto[i] else tick

    def around(self, tick: int) -> Span:
        """The range of the set that has a tick; (tick, tick) if there is none."""
        after = self.floor(tick)
        return (after, self.reach(after)) if after < tick else (tick, tick)

    def union(self, other: Intervals) -> Intervals:
        """What is in either."""
        result = self.copy()
        result.add_all(list(other))
        return result

    def intersection(self, other: Intervals) -> Intervals:
        """What is in both."""
        return Intervals(self.within_all(list(other)))

    def difference(self, other: Intervals) -> Intervals:
        """What is in this one alone."""
        return Intervals(other.gaps_all(list(self)))


def _joined(spans: list[Span]) -> list[Span]:
    """The ranges, sorted, and joined where they overlap or touch."""
    spans.sort()
    joined: list[Span] = []
    last = -1  #: where the last one ends
    for span in spans:
        if span[0] > last or not joined:
            joined.append(span)
            last = span[1]
        elif span[1] > last:
            last = span[1]
            joined[-1] = joined[-1][0], last
    return joined


def _minus(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """What is in the first ranges and not in the second; both ascend."""
    left: list[Span] = []
    at, count = 0, len(others)
    for after, upto in spans:
        while at < count and others[at][1] <= after:
            at += 1
        while at < count and others[at][0] < upto:
            begin, end = others[at]
            if begin > after:
                left.append((after, begin))
            after = end
            if end >= upto:
                break
            at += 1
        if after < upto:
            left.append((after, upto))
    return left
