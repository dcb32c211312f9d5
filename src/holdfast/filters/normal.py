"""The normal form: a condition as ALL and ANY over "this value lies in that region".

Three-valued logic ends here. NOT is pushed down to the single tests; each test is replaced by the region in which
it is true (or, under NOT, the region in which it is false). What is left is two-valued and monotone: true exactly
when the condition is true. Tests of the same value meet in one region (``x > 1 AND x < 5``, ``x = 1 OR x = 2``).

The value tested is called a *column*: an attribute, an arithmetic expression, the shard of an attribute, or, for
whatever does not compare one value with constants, the truth of a comparison, a LIKE or an XPath itself. So the
index and the covering relation know one kind of leaf only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import and_, or_
from typing import Final, TypeAlias, assert_never

from holdfast.events.value import Value
from holdfast.filters.arithmetic import calculate, negate, plus
from holdfast.filters.expression import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Relation,
    Shard,
    Signed,
    Truth,
    XPath,
)
from holdfast.filters.like import LikePattern
from holdfast.filters.region import (
    ABSENT,
    FALSE_ONLY,
    PRESENT,
    TRUE_ONLY,
    Region,
    comparison_region,
    points_region,
    prefix_region,
)

__all__ = ["ALWAYS", "NEVER", "All", "Any", "Column", "Formula", "Member", "ShardOf", "normalise"]


@dataclass(frozen=True, slots=True)
class ShardOf:
    """The number of the part, out of ``count``, into which an attribute's value falls."""

    attribute: Attribute
    count: int


Column: TypeAlias = Attribute | Signed | Arithmetic | ShardOf | Comparison | Like | XPath


@dataclass(frozen=True, slots=True)
class Member:
    """The column's value (or its absence) lies in the region."""

    column: Column
    region: Region


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds. No part is an ``All``; without parts it is always true."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """Some part holds. No part is an ``Any``; without parts it is never true."""

    parts: tuple[Formula, ...]


Formula: TypeAlias = Member | All | Any

ALWAYS: Final = All(())
NEVER: Final = Any(())


def normalise(condition: Condition | None) -> Formula:
    """The formula that is true exactly when the condition is."""
    return ALWAYS if condition is None else _formula(condition, True)


def _formula(condition: Condition, wanted: bool) -> Formula:
    """Where ``condition`` is true, or, not ``wanted``, where it is false."""
    match condition:
        case Comparison(relation, left, right):
            return _comparison(relation if wanted else relation.negated, left, right)
        case And(operands):
            return _join([_formula(c, wanted) for c in operands], conjunctive=wanted)
        case Or(operands):
            return _join([_formula(c, wanted) for c in operands], conjunctive=not wanted)
        case Not(operand):
            return _formula(operand, not wanted)
        case Between(operand, low, high):
            at_least = _comparison(Relation.GE if wanted else Relation.LT, operand, low)
            at_most = _comparison(Relation.LE if wanted else Relation.GT, operand, high)
            return _join([at_least, at_most], conjunctive=wanted)
        case In(operand, values):
            return _member(operand, points_region([v.value for v in values], inside=wanted))
        case Like(operand, pattern, escape):
            return _like(operand, LikePattern(pattern, escape), condition, wanted)
        case IsNull(operand):
            return _member(operand, ABSENT if wanted else PRESENT)
        case Truth(operand):
            return _member(operand, TRUE_ONLY if wanted else FALSE_ONLY)
        case XPath():
            return Member(condition, TRUE_ONLY if wanted else FALSE_ONLY)
        case Shard(attribute, count, index):
            relation = Relation.EQ if wanted else Relation.NE
            return Member(ShardOf(attribute, count), comparison_region(relation, index))
        case _:
            assert_never(condition)


def _comparison(relation: Relation, left: Expression, right: Expression) -> Formula:
    first, second = _folded(left), _folded(right)
    if first is None or second is None:
        return NEVER
    if isinstance(second, Literal):
        return _member(first, comparison_region(relation, second.value))
    if isinstance(first, Literal):
        return _member(second, comparison_region(relation.flipped, first.value))
    # Two values: one column for the six relations of each pair, told apart by = and <.
    match relation:
        case Relation.EQ | Relation.NE:
            column = Comparison(Relation.EQ, first, second)
        case Relation.LT | Relation.GE:
            column = Comparison(Relation.LT, first, second)
        case Relation.GT | Relation.LE:
            column = Comparison(Relation.LT, second, first)
    positive = relation in (Relation.EQ, Relation.LT, Relation.GT)
    return Member(column, TRUE_ONLY if positive else FALSE_ONLY)


def _member(expression: Expression, region: Region) -> Formula:
    folded = _folded(expression)
    if folded is None:
        return ALWAYS if region.absent else NEVER
    if isinstance(folded, Literal):
        return ALWAYS if region.contains(folded.value) else NEVER
    return NEVER if region.is_empty else Member(folded, region)


def _folded(expression: Expression) -> Expression | None:
    """The expression with its constant parts calculated; None if it never has a value."""
    match expression:
        case Attribute() | Literal():
            return expression
        case Signed(negative, operand):
            inner = _folded(operand)
            if isinstance(inner, Literal):
                return _constant((negate if negative else plus)(inner.value))
            return None if inner is None else Signed(negative, inner)
        case Arithmetic(operator, left, right):
            first, second = _folded(left), _folded(right)
            if first is None or second is None:
                return None
            if isinstance(first, Literal) and isinstance(second, Literal):
                return _constant(calculate(operator, first.value, second.value))
            return Arithmetic(operator, first, second)
        case _:
            assert_never(expression)


def _constant(value: Value | None) -> Literal | None:
    assert not isinstance(value, bytes)
    return None if value is None else Literal(value)


def _like(operand: Expression, pattern: LikePattern, condition: Like, wanted: bool) -> Formula:
    if pattern.shape == LikePattern.EXACT:
        return _comparison(Relation.EQ if wanted else Relation.NE, operand, Literal(pattern.prefix))
    if pattern.shape == LikePattern.PREFIX:
        return _member(operand, prefix_region(pattern.prefix, inside=wanted))
    folded = _folded(operand)
    if folded is None:
        return NEVER
    if isinstance(folded, Literal):
        truth = type(folded.value) is str and pattern.matches(folded.value) == wanted
        return ALWAYS if truth else NEVER
    exact = Member(Like(folded, condition.pattern, condition.escape), TRUE_ONLY if wanted else FALSE_ONLY)
    if not wanted or not pattern.prefix:
        return exact
    # What the prefix says is implied, but it is something the index can hash and covering can compare.
    return _join([_member(folded, prefix_region(pattern.prefix, inside=True)), exact], conjunctive=True)


def _join(parts: list[Formula], *, conjunctive: bool) -> Formula:
    """ALL or ANY of the parts: flattened, constants dropped, members of one column joined."""
    joined: type[All] | type[Any] = All if conjunctive else Any
    neutral, absorbing = (ALWAYS, NEVER) if conjunctive else (NEVER, ALWAYS)
    regions: dict[Column, list[Region]] = {}
    others: list[Formula] = []
    queue = list(reversed(parts))
    while queue:
        part = queue.pop()
        if part == absorbing:
            return absorbing
        if isinstance(part, joined):
            queue.extend(reversed(part.parts))
        elif isinstance(part, Member):
            regions.setdefault(part.column, []).append(part.region)
        else:
            others.append(part)
    members = {column: _met(found, and_ if conjunctive else or_) for column, found in regions.items()}
    if conjunctive and any(region.is_empty for region in members.values()):
        return NEVER
    if not conjunctive and any(region.is_everything for region in members.values()):
        return ALWAYS
    flat = (*(Member(column, region) for column, region in members.items()), *others)
    if len(flat) == 1:
        return flat[0]
    return joined(flat) if flat else neutral


def _met(regions: list[Region], join: Callable[[Region, Region], Region]) -> Region:
    """All the regions joined, two by two: one after the other would take quadratic time for a thousand terms."""
    while len(regions) > 1:
        odd = regions[len(regions) // 2 * 2 :]
        regions = [*map(join, regions[::2], regions[1::2]), *odd]
    return regions[0]
