"""Sets of values: the region in which a test on one value is true.

A test of the language on one value (``price > 100``, ``sym IN (…)``, ``x IS NULL``, ``name LIKE 'A%'``) is true on a
set of values that consists of intervals within one type family each. Such sets are closed under AND, OR and NOT:
that is what lets the index hash them and the covering relation compare them.

An interval lies between two *cuts*. A cut ``(value, 0)`` lies just before the value and ``(value, 1)`` just after it,
so cuts are ordered like tuples and no interval needs to say whether its ends belong to it: ``x > 5`` runs from
``(5, 1)``, ``x >= 5`` from ``(5, 0)``. Python compares int and float by exact value, which is what the language asks.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from holdfast.events.value import Value
from holdfast.filters.expression import Relation, Scalar

__all__ = [
    "ABSENT",
    "BOOLEAN",
    "BYTES",
    "EMPTY",
    "FALSE_ONLY",
    "NUMBER",
    "PRESENT",
    "STRING",
    "TOP",
    "TRUE_ONLY",
    "Cut",
    "Interval",
    "Intervals",
    "Region",
    "after_prefix",
    "comparison_region",
    "points_region",
    "prefix_region",
]

NUMBER, STRING, BOOLEAN, BYTES = range(4)  #: the type families, as positions in ``Region.families``
_FAMILY: Final[dict[type, int]] = {int: NUMBER, float: NUMBER, str: STRING, bool: BOOLEAN, bytes: BYTES}


class _Top:
    """Above every string: there is no greatest one to stand for it."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return other is self

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __ge__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "TOP"


TOP: Final = _Top()

Cut: TypeAlias = tuple[Any, int]
Interval: TypeAlias = tuple[Cut, Cut]
Intervals: TypeAlias = tuple[Interval, ...]

_LOWEST: Final[tuple[Cut, ...]] = ((-math.inf, 0), ("", 0), (0, 0), (0, 0))
_HIGHEST: Final[tuple[Cut, ...]] = ((math.inf, 1), (TOP, 0), (2, 0), (1, 0))
_NOTHING: Final[tuple[Intervals, ...]] = ((), (), (), ())
_EVERYTHING: Final[tuple[Intervals, ...]] = tuple(
    ((low, high),) for low, high in zip(_LOWEST, _HIGHEST, strict=True)
)


def _low(interval: Interval) -> Cut:
    return interval[0]


@dataclass(frozen=True, slots=True)
class Region:
    """For each family its intervals, ascending and apart; and whether *no value* belongs too."""

    families: tuple[Intervals, ...]
    absent: bool = False

    def contains(self, value: Value | None) -> bool:
        """Whether a value, or its absence, lies in the region."""
        if value is None:
            return self.absent
        family = _FAMILY[type(value)]
        at: Cut = (0, 0) if family == BYTES else (value, 0)
        intervals = self.families[family]
        i = bisect_right(intervals, at, key=_low)
        return i > 0 and at < intervals[i - 1][1]

    @property
    def is_empty(self) -> bool:
        """Whether nothing belongs."""
        return not self.absent and not any(self.families)

    @property
    def is_everything(self) -> bool:
        """Whether every value and its absence belong."""
        return self.absent and self.families == _EVERYTHING

    def __and__(self, other: Region) -> Region:
        families = tuple(map(_intersection, self.families, other.families))
        return Region(families, self.absent and other.absent)

    def __or__(self, other: Region) -> Region:
        families = tuple(map(_union, self.families, other.families))
        return Region(families, self.absent or other.absent)

    def __invert__(self) -> Region:
        """Everything else: other values of all families, and absence if it does not belong."""
        return Region(tuple(_outside(f, self.families[f]) for f in range(4)), not self.absent)

    def __le__(self, other: Region) -> bool:
        """Whether this region is part of the other."""
        return (other.absent or not self.absent) and all(map(_within, self.families, other.families))


EMPTY: Final = Region(_NOTHING)
ABSENT: Final = Region(_NOTHING, absent=True)
PRESENT: Final = Region(_EVERYTHING)


def _in_family(family: int, intervals: Intervals) -> Region:
    return Region((*_NOTHING[:family], intervals, *_NOTHING[family + 1 :]))


def comparison_region(relation: Relation, literal: Scalar) -> Region:
    """Where ``value relation literal`` is true: within the literal's own family only."""
    family = _FAMILY[type(literal)]
    low, high = _LOWEST[family], _HIGHEST[family]
    before, after = (literal, 0), (literal, 1)
    if family == BOOLEAN:  # as the numbers 0 and 1, so that nothing lies between or beside them
        before, after = (int(literal), 0), (int(literal) + 1, 0)
    match relation:
        case Relation.EQ:
            return _in_family(family, ((before, after),))
        case Relation.NE:
            return _in_family(family, _proper(((low, before), (after, high))))
        case Relation.LT:
            return _in_family(family, _proper(((low, before),)))
        case Relation.LE:
            return _in_family(family, ((low, after),))
        case Relation.GT:
            return _in_family(family, _proper(((after, high),)))
        case Relation.GE:
            return _in_family(family, ((before, high),))


def points_region(values: Iterable[Scalar], *, inside: bool) -> Region:
    """Where a value equals one of several, or is known to equal none of them.

    Known: a comparison with another type is unknown, so values of two families leave nothing outside.
    """
    families: list[set[Cut]] = [set(), set(), set(), set()]
    for value in values:
        family = _FAMILY[type(value)]
        families[family].add((int(value) if family == BOOLEAN else value, 0))
    if inside:
        return Region(tuple(_merged(_point(f, cut) for cut in sorted(families[f])) for f in range(4)))
    used = [f for f in range(4) if families[f]]
    if len(used) != 1:
        return EMPTY
    (family,) = used
    return _in_family(
        family, _outside(family, tuple(_point(family, low) for low in sorted(families[family])))
    )


def _point(family: int, low: Cut) -> Interval:
    return (low, (low[0] + 1, 0)) if family == BOOLEAN else (low, (low[0], 1))


TRUE_ONLY: Final = comparison_region(Relation.EQ, True)
FALSE_ONLY: Final = comparison_region(Relation.EQ, False)


def prefix_region(prefix: str, *, inside: bool) -> Region:
    """The strings that begin with a prefix, or those that do not."""
    low, high = (prefix, 0), after_prefix(prefix)
    if inside:
        return _in_family(STRING, _proper(((low, high),)))
    return _in_family(STRING, _proper(((_LOWEST[STRING], low), (high, _HIGHEST[STRING]))))


def after_prefix(prefix: str) -> Cut:
    """The cut above every string with this prefix: its last character raised, if it can be."""
    stem = prefix.rstrip("\U0010ffff")
    return (stem[:-1] + chr(ord(stem[-1]) + 1), 0) if stem else _HIGHEST[STRING]


def _proper(intervals: Intervals) -> Intervals:
    return tuple((low, high) for low, high in intervals if low < high)


def _outside(family: int, intervals: Intervals) -> Intervals:
    ends = [cut for interval in intervals for cut in interval]
    cuts = [_LOWEST[family], *ends, _HIGHEST[family]]
    return _proper(tuple(zip(cuts[::2], cuts[1::2], strict=True)))


def _intersection(mine: Intervals, theirs: Intervals) -> Intervals:
    if not mine or not theirs:
        return ()
    found: list[Interval] = []
    i = j = 0
    while i < len(mine) and j < len(theirs):
        low = max(mine[i][0], theirs[j][0])
        high = min(mine[i][1], theirs[j][1])
        if low < high:
            found.append((low, high))
        if mine[i][1] < theirs[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def _union(mine: Intervals, theirs: Intervals) -> Intervals:
    if not mine or not theirs:
        return mine or theirs
    return _merged(sorted((*mine, *theirs)))


def _merged(ascending: Iterable[Interval]) -> Intervals:
    found: list[Interval] = []
    for low, high in ascending:
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def _within(mine: Intervals, theirs: Intervals) -> bool:
    j = 0
    for low, high in mine:
        while j < len(theirs) and theirs[j][1] < high:
            j += 1
        if j == len(theirs) or low < theirs[j][0]:
            return False
    return True
