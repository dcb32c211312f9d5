"""Whether a value lies in some intervals, in Spark SQL.

Int and float compare by exact value: bounds that a double might blur (from 2**53) are found once per type.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from holdfast.events.value import INT_MAX, INT_MIN
from holdfast.filters.region import TOP, Cut, Interval, after_prefix
from holdfast.filters.spark_text import (
    TRUE_SQL,
    Sql,
    all_of,
    any_of,
    encodable_cut,
    equality,
    literal_sql,
    negation,
)

__all__ = ["Intervals", "among_doubles", "among_ints", "interval_test", "known_interval_test"]

Intervals: TypeAlias = tuple[Interval, ...]


def interval_test(value: str, intervals: Intervals) -> Sql:
    """Whether a value lies in one of the intervals; TRUE, also of NULL, if they are everything."""
    points = [literal_sql(low[0]) for low, high in intervals if _is_point(low, high)]
    ranges = [_range_test(value, *wide) for wide in _joined_over_holes(intervals)]
    return any_of([equality(value, points), *ranges] if points else ranges)


def known_interval_test(value: str, intervals: Intervals) -> Sql:
    """The same, but never TRUE of NULL."""
    test = interval_test(value, intervals)
    return Sql(f"{value} IS NOT NULL") if test == TRUE_SQL else test


def _joined_over_holes(intervals: Intervals) -> list[tuple[Cut, Cut, list[Interval]]]:
    """The intervals that are no points; those with only a point or a prefix between them as one, with holes."""
    wide: list[tuple[Cut, Cut, list[Interval]]] = []
    for low, high in intervals:
        if _is_point(low, high):
            continue
        if wide and not _is_prefix(low, high) and not _is_prefix(*wide[-1][:2]):
            start, end, holes = wide[-1]
            if _is_point(end, low) or _is_prefix(end, low):
                holes.append((end, low))
                wide[-1] = (start, high, holes)
                continue
        wide.append((low, high, []))
    return wide


def _range_test(value: str, low: Cut, high: Cut, holes: list[Interval]) -> Sql:
    parts = [_prefix_test(value, low)] if _is_prefix(low, high) else _bounds(value, low, high)
    points = [literal_sql(start[0]) for start, end in holes if _is_point(start, end)]
    if points:
        parts.append(equality(value, points, negated=True))
    parts.extend(negation(_prefix_test(value, start)) for start, end in holes if _is_prefix(start, end))
    return all_of(parts)


def _bounds(value: str, low: Cut, high: Cut) -> list[Sql]:
    if (low[1], high[1]) == (0, 1) and low not in _ENDS and high not in _ENDS:
        return [Sql(f"{value} BETWEEN {literal_sql(low[0])} AND {literal_sql(high[0])}")]
    above = [] if low in _ENDS else [Sql(f"{value} {'>' if low[1] else '>='} {literal_sql(low[0])}")]
    below = [] if high in _ENDS else [Sql(f"{value} {'<=' if high[1] else '<'} {literal_sql(high[0])}")]
    return above + below


_ENDS: Final[tuple[Cut, ...]] = ((-math.inf, 0), (math.inf, 1), ("", 0), (TOP, 0))


def _is_point(low: Cut, high: Cut) -> bool:
    return low == (high[0], 0) and high[1] == 1


def _is_prefix(low: Cut, high: Cut) -> bool:
    return (
        isinstance(low[0], str)
        and low not in _ENDS
        and low[1] == 0
        and high == encodable_cut(after_prefix(low[0]))
    )


def _prefix_test(value: str, low: Cut) -> Sql:
    return Sql(f"startswith({value}, {literal_sql(low[0])})")


def among_ints(intervals: Intervals) -> Intervals:
    """The same 64-bit integers, between cuts beside integers."""
    found: list[Interval] = []
    for low, high in intervals:
        if _next_int(low) >= _next_int(high):
            continue
        if found and _next_int(found[-1][1]) == _next_int(low):
            low = found.pop()[0]
        found.append((_whole_cut(low), _whole_cut(high)))
    return tuple(found)


def _next_int(cut: Cut) -> int:
    """The first 64-bit integer after the cut, or one more than the last."""
    value, side = cut
    if math.isinf(value):
        return INT_MIN if value < 0 else INT_MAX + 1
    following: int = math.floor(value) + 1 if side else math.ceil(value)
    return max(INT_MIN, min(following, INT_MAX + 1))


def _whole_cut(cut: Cut) -> Cut:
    if isinstance(cut[0], int):
        return cut
    following = _next_int(cut)
    if following == INT_MIN:
        return -math.inf, 0
    if following == INT_MAX + 1:
        return math.inf, 1
    return (following - 1, 1) if cut[1] else (following, 0)


def among_doubles(intervals: Intervals) -> Intervals:
    """The same doubles, between cuts beside doubles."""
    found: list[Interval] = []
    for interval in intervals:
        low, high = map(_real_cut, interval)
        if found and found[-1][1] == low:
            low = found.pop()[0]
        if low < high:
            found.append((low, high))
    return tuple(found)


def _real_cut(cut: Cut) -> Cut:
    """The cut itself, or, between two doubles, the cut below the upper one."""
    value, _ = cut
    nearest = float(value)
    if nearest == value:
        return cut
    return (nearest if nearest > value else math.nextafter(nearest, math.inf)), 0
