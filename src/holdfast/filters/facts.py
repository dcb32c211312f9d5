"""What is known of a column when some memberships hold.

A fact says in which region the value of a column lies. ``Facts.known`` answers for any column, whether there is a
fact about it or not: its value lies in the region returned. That joins what was learned of the column itself with
what follows from its operands (``x = 'abc'`` settles ``x LIKE '%b%'``); and to learn that a computed column has a value
is to learn something of its operands (``x + 1 > 5``: x is a number).

A region returned here may be too wide; it must never be too narrow. All that covering claims rests on that.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Final, assert_never

from holdfast.events.value import INT_MAX, INT_MIN, Value
from holdfast.filters.arithmetic import calculate, negate, plus
from holdfast.filters.atoms import Atom, Order
from holdfast.filters.evaluate import shard_of
from holdfast.filters.expression import (
    Arithmetic,
    Attribute,
    Like,
    Literal,
    Relation,
    Scalar,
    Signed,
    XPath,
)
from holdfast.filters.like import LikePattern, like_covers
from holdfast.filters.normal import ShardOf
from holdfast.filters.region import (
    ABSENT,
    BOOLEAN,
    BYTES,
    EMPTY,
    FALSE_ONLY,
    NUMBER,
    PRESENT,
    STRING,
    TRUE_ONLY,
    Interval,
    Region,
    comparison_region,
    points_region,
    prefix_region,
)
from holdfast.filters.tree_pattern import path_covers

__all__ = ["Budget", "Exhausted", "Facts"]

EVERYTHING: Final = PRESENT | ABSENT
NUMBERS: Final = comparison_region(Relation.LT, 0) | comparison_region(Relation.GE, 0)
STRINGS: Final = prefix_region("", inside=True)
BOOLEANS: Final = TRUE_ONLY | FALSE_ONLY
COMPARABLE: Final = NUMBERS | STRINGS | BOOLEANS

VALUES_MAX: Final = 16  #: up to so many values of an operand are tried one by one


class Exhausted(Exception):
    """The work that one question may cost is used up."""


class Budget:
    """The work that is left, in units of a few microseconds."""

    __slots__ = ("left",)

    def __init__(self, work: int) -> None:
        self.left = work

    def spend(self, work: int) -> None:
        """Use some of it.

        :raises Exhausted: if there is no more.
        """
        self.left -= work
        if self.left < 0:
            raise Exhausted


class Facts:
    """One region for each column of which something was learned.

    Invariant: ``impossible`` once what was learned of some column contradicts itself; then anything follows.
    """

    __slots__ = ("_known", "budget", "impossible", "regions")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.regions: dict[Atom, Region] = {}
        self.impossible = False
        self._known: dict[Atom, Region] = {}

    def copy(self) -> Facts:
        """The same facts, to learn more from."""
        self.budget.spend(1 + len(self.regions) // 8)
        other = Facts(self.budget)
        other.regions.update(self.regions)
        other.impossible = self.impossible
        return other

    def learn(self, atom: Atom, region: Region) -> None:
        """Take in that the value of a column lies in a region."""
        self._known.clear()
        before = self.regions.get(atom, EVERYTHING)
        self._pay_for(before, region)
        both = self.regions[atom] = before & region
        if both.is_empty or (isinstance(atom.column, Literal) and not both.contains(atom.column.value)):
            self.impossible = True
        if before.absent and not both.absent:
            for operand, domain in zip(atom.operands, _domains(atom), strict=True):
                self.learn(operand, domain)

    def _pay_for(self, mine: Region, theirs: Region) -> None:
        intervals = sum(map(len, mine.families)) + sum(map(len, theirs.families))
        self.budget.spend(2 + intervals // 4)

    def hold(self, atom: Atom, region: Region) -> bool:
        """Whether the value of a column is certain to lie in a region."""
        known = self.known(atom)
        self._pay_for(known, region)
        return known <= region

    def are_impossible(self, watched: Iterable[Atom] = ()) -> bool:
        """Whether they contradict each other, as far as computed columns and those watched show."""
        if self.impossible:
            return True
        computed = (atom for atom in self.regions if atom.operands)
        return any(self.known(atom).is_empty for atom in (*watched, *computed))

    def known(self, atom: Atom) -> Region:
        """A region in which the value of a column is certain to lie."""
        region = self._known.get(atom)
        if region is None:
            learned, bound = self.regions.get(atom), self._bound(atom)
            region = self._known[atom] = bound if learned is None else learned & bound
        return region

    def _bound(self, atom: Atom) -> Region:
        """What follows about a column from other columns."""
        match atom.column:
            case Attribute():
                return EVERYTHING
            case Literal(value):
                return points_region([value], inside=True)
            case Signed() | Arithmetic():
                return self._number(atom)
            case ShardOf(_, count):
                return self._shard(atom, count)
            case Order(left, right):
                first, second = map(self.known, atom.operands)
                self._pay_for(first, second)
                return _order(first, second) & (_EQUAL if left == right else EVERYTHING)
            case Like():
                assert atom.like is not None
                return self._like(atom, atom.like)
            case XPath():
                return self._xpath(atom, atom.column)
            case _:
                assert_never(atom.column)

    def _number(self, atom: Atom) -> Region:
        self.budget.spend(5)
        if any((self.known(operand) & NUMBERS).is_empty for operand in atom.operands):
            return ABSENT
        values = self._values(atom)
        return NUMBERS | ABSENT if values is None else _region_of(values)

    def _values(self, atom: Atom) -> list[Value | None] | None:
        """The values an expression can have (None among them: no value) if they are few, or None."""
        self.budget.spend(1)
        match atom.column:
            case Signed(negative, _):
                inner = self._values(atom.operands[0])
                return None if inner is None else _few(map(negate if negative else plus, inner))
            case Arithmetic(operator, _, _):
                first, second = map(self._values, atom.operands)
                if first is None or second is None:
                    return None
                self.budget.spend(len(first) * len(second))
                return _few(calculate(operator, a, b) for a, b in product(first, second))
            case _:
                return _listed(self.known(atom))

    def _shard(self, atom: Atom, count: int) -> Region:
        known = self.known(atom.operands[0])
        region = NUMBERS if known <= COMPARABLE else NUMBERS | ABSENT
        values = _listed(known)
        if values is not None:
            region &= _region_of(shard_of(value, count) for value in values)
        self.budget.spend(1 + len(self.regions) // 4)
        for other, fact in self.regions.items():
            if isinstance(other.column, ShardOf) and other.operands == atom.operands and not fact.absent:
                # What is left modulo 12 tells what is left modulo 4.
                shards = _listed(fact) if other.column.count % count == 0 else None
                if shards is not None:
                    region &= _region_of(s % count for s in shards if isinstance(s, int))
        return region

    def _like(self, atom: Atom, pattern: LikePattern) -> Region:
        known = self.known(atom.operands[0])
        length = sum(map(len, pattern.parts))
        strings = known.families[STRING]
        self.budget.spend(2 + len(strings) * (4 + length // 4) + len(self.regions) // 4)
        region = EMPTY if known <= STRINGS else ABSENT
        for interval in strings:
            region |= _like_within(pattern, interval)
        for other, fact in self.regions.items():
            if other.like is not None and other.operands == atom.operands:
                self.budget.spend(2 + (length + sum(map(len, other.like.parts))) // 4)
                if fact <= TRUE_ONLY and like_covers(pattern.parts, other.like.parts):
                    region &= TRUE_ONLY
                elif fact <= FALSE_ONLY and like_covers(other.like.parts, pattern.parts):
                    region &= FALSE_ONLY
        return region

    def _xpath(self, atom: Atom, column: XPath) -> Region:
        self.budget.spend(1 + len(self.regions) // 4)
        region = BOOLEANS | ABSENT
        for other, fact in self.regions.items():
            if isinstance(other.column, XPath) and not fact.absent:
                self.budget.spend(10 + atom.steps * other.steps // 2)
                region &= BOOLEANS  # there is a document, or the other path were unknown too
                if fact <= TRUE_ONLY and path_covers(column.path, other.column.path):
                    region &= TRUE_ONLY
                elif fact <= FALSE_ONLY and path_covers(other.column.path, column.path):
                    region &= FALSE_ONLY
        return region


def _domains(atom: Atom) -> tuple[Region, ...]:
    """Where each operand must lie for the column to have a value."""
    match atom.column:
        case Signed():
            return (NUMBERS,)
        case Arithmetic():
            return (NUMBERS, NUMBERS)
        case Like():
            return (STRINGS,)
        case ShardOf():
            return (COMPARABLE,)
        case Order(left, right):
            numeric = isinstance(left, Signed | Arithmetic) or isinstance(right, Signed | Arithmetic)
            return (NUMBERS, NUMBERS) if numeric else (COMPARABLE, COMPARABLE)
        case _:
            return ()


_EQUAL: Final = comparison_region(Relation.EQ, 0) | ABSENT
_AT_MOST: Final = comparison_region(Relation.LE, 0)
_AT_LEAST: Final = comparison_region(Relation.GE, 0)
_UNEQUAL: Final = comparison_region(Relation.NE, 0)


def _order(first: Region, second: Region) -> Region:
    """How a value of one region compares with a value of another."""
    region, common = EMPTY, first & second
    for family in (NUMBER, STRING, BOOLEAN):
        mine, theirs = first.families[family], second.families[family]
        if mine and theirs:
            sign = NUMBERS if common.families[family] else _UNEQUAL
            # All of mine end at or before the value at which theirs begin.
            if mine[-1][1] <= (theirs[0][0][0], 1):
                sign &= _AT_MOST
            if theirs[-1][1] <= (mine[0][0][0], 1):
                sign &= _AT_LEAST
            region |= sign
    return region if _comparable(first, second) else region | ABSENT


def _comparable(first: Region, second: Region) -> bool:
    return any(first <= family and second <= family for family in (NUMBERS, STRINGS, BOOLEANS))


def _like_within(pattern: LikePattern, interval: Interval) -> Region:
    """Whether the strings of an interval match: all, none, or some."""
    low, high = interval
    if high == (low[0], 1):
        return TRUE_ONLY if pattern.matches(low[0]) else FALSE_ONLY
    strings = Region(((), (interval,), (), ()))
    if (strings & prefix_region(pattern.prefix, inside=True)).is_empty:
        return FALSE_ONLY
    prefix = _common_prefix(low[0], high[0], strings)
    return TRUE_ONLY if like_covers(pattern.parts, [list(prefix), []]) else BOOLEANS


def _common_prefix(low: str, high: object, strings: Region) -> str:
    """What all strings between two begin with; perhaps less of it."""
    same = 0
    if isinstance(high, str):
        while same < min(len(low), len(high)) and low[same] == high[same]:
            same += 1
    # Between 'abc' and 'abd' lies what begins with 'abc'.
    longer = low[: same + 1]
    return longer if strings <= prefix_region(longer, inside=True) else low[:same]


def _listed(region: Region) -> list[Value | None] | None:
    """Every value of a region that has few; None among them stands for no value."""
    numbers, strings = region.families[NUMBER], region.families[STRING]
    if region.families[BYTES] or len(numbers) + len(strings) > VALUES_MAX:
        return None
    values: list[Value | None] = [value for value in (None, False, True) if region.contains(value)]
    for low, high in (*numbers, *strings):
        if high != (low[0], 1):
            return None
        values.extend(_spellings(low[0]))
    return values


def _spellings(value: Scalar) -> list[Scalar]:
    """The values that compare equal to one; they may divide, or fall into shards, differently."""
    if isinstance(value, str):
        return [value]
    spellings: list[Scalar] = []
    if value == int(value) and INT_MIN <= value <= INT_MAX:
        spellings.append(int(value))
    if float(value) == value:
        spellings.append(float(value))
    return [*spellings, -0.0] if value == 0 else spellings


def _few(values: Iterable[Value | None]) -> list[Value | None] | None:
    distinct = {(type(value), repr(value)): value for value in values}
    return list(distinct.values()) if len(distinct) <= VALUES_MAX else None


def _region_of(values: Iterable[Value | None]) -> Region:
    found = list(values)
    region = points_region([v for v in found if v is not None and not isinstance(v, bytes)], inside=True)
    return region | ABSENT if None in found else region
