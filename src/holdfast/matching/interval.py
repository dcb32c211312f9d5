"""Intervals as the index files and tests them: floats that stand for numbers, prefixes that stand for strings.

A test compares floats; so every number needs a float that compares with all bounds as the number itself does, and
every bound a float that parts the numbers as the cut does, or none if there is no such float.
"""

from __future__ import annotations

import math
from typing import Any, Final

from holdfast.filters.region import Cut, Intervals, after_prefix

__all__ = ["clamp", "float_bound", "floor_float", "is_crumbled", "shared_prefix", "whole"]

NAN: Final = float("nan")
_EXACT: Final = 2.0**53  # below it all integers are floats, and none lies between two neighbouring floats
_HUGE: Final = 1e200  # grids clamp here, so that scaling never overflows
_PIECES_MAX: Final = 16  # intervals of one subscription in one column


def is_crumbled(intervals: Intervals) -> bool:
    """Whether there are so many intervals, other than points, that filing each would cost more than it saves.

    That is what NOT IN leaves: nearly everything, in pieces.
    """
    if len(intervals) <= _PIECES_MAX:
        return False
    return len([low for low, high in intervals if low[0] != high[0]]) > _PIECES_MAX


def whole(intervals: Intervals) -> Intervals:
    """The intervals; crumbled ones as the one they were cut from."""
    return ((intervals[0][0], intervals[-1][1]),) if is_crumbled(intervals) else intervals


def floor_float(value: int) -> float:
    """The largest float that is not above an integer: it compares with every float as the integer does."""
    number = float(value)
    return number if number <= value else math.nextafter(number, -math.inf)


def float_bound(cut: Cut) -> float:
    """The float ``f`` with ``f <= v`` exactly for the numbers v beyond the cut, or NaN if no float is.

    Below 2**53 the successor of a number, among all integers and floats, is the next float; beyond, it may be
    an integer that is no float.
    """
    value = cut[0]
    if value == math.inf or value == -math.inf:
        return float(value)
    if not -_EXACT < value < _EXACT:
        return NAN
    number = float(value)
    return math.nextafter(number, math.inf) if cut[1] else number


def clamp(value: Any) -> float:
    """A number as a float the grids can scale; order is kept, and integers are rounded as in the vector.

    (``Any``, because compiled code would round an int to the nearest float on its way into a float parameter.)
    """
    number: float = floor_float(value) if isinstance(value, int) else value
    if number > _HUGE:
        return _HUGE
    return number if number > -_HUGE else -_HUGE


def shared_prefix(low: Cut, high: Cut) -> str:
    """A prefix that every string between the cuts has, as long as is easily seen."""
    a, b = low[0], high[0]
    if not isinstance(b, str):
        return ""
    if low[1] == 0 and high == after_prefix(a):
        return str(a)
    length = 0
    while length < len(a) and length < len(b) and a[length] == b[length]:
        length += 1
    return str(a[:length])
