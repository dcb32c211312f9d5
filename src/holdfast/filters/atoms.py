"""Atoms: the columns of the formulas that are compared, each made once.

A proof looks up the same columns over and over. Hashing an XPath of a hundred steps each time would cost more than the
proof; an atom is hashed by identity. It also knows its operands, as atoms, and the attributes it reads.

The normal form has a column for ``a = b`` and one for ``a < b`` in each direction. Here they become one, ``Order``, and
the six relations become regions of it, which imply each other as they should.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from holdfast.filters.expression import (
    Arithmetic,
    Attribute,
    Comparison,
    Expression,
    Like,
    Literal,
    Signed,
    XPath,
)
from holdfast.filters.like import LikePattern
from holdfast.filters.normal import Member, ShardOf
from holdfast.filters.region import ABSENT, EMPTY, Region, comparison_region
from holdfast.filters.text import expression_text
from holdfast.filters.xpath import walk

__all__ = ["DOCUMENT", "Atom", "Atoms", "Order"]

DOCUMENT = ""  #: stands among the names an atom reads for the payload; no attribute has this name


@dataclass(frozen=True, slots=True)
class Order:
    """How two values compare, as the sign of ``left - right``; absent if they do not compare."""

    left: Expression
    right: Expression


AtomColumn: TypeAlias = Attribute | Literal | Signed | Arithmetic | ShardOf | Order | Like | XPath


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """A column, its operands, and what it takes to reason about it."""

    column: AtomColumn
    operands: tuple[Atom, ...]
    names: frozenset[str]  #: the attributes it reads, or ``DOCUMENT``
    like: LikePattern | None = None  #: of a LIKE
    steps: int = 0  #: of an XPath, branches included


class Atoms:
    """Makes the atoms of a few formulas; two columns are equal exactly when their atoms are the same."""

    def __init__(self) -> None:
        self._made: dict[AtomColumn, Atom] = {}

    def leaf(self, member: Member) -> tuple[Atom, Region]:
        """The atom, and the region of it, that say what the member says."""
        column = member.column
        if not isinstance(column, Comparison):
            return self.atom(column), member.region
        relation, left, right = column.relation, column.left, column.right
        if expression_text(left) > expression_text(right):
            relation, left, right = relation.flipped, right, left
        region = ABSENT if member.region.absent else EMPTY
        if member.region.contains(True):
            region |= comparison_region(relation, 0)
        if member.region.contains(False):
            region |= comparison_region(relation.negated, 0)
        return self.atom(Order(left, right)), region

    def atom(self, column: AtomColumn) -> Atom:
        """The atom of a column."""
        atom = self._made.get(column)
        if atom is None:
            atom = self._made[column] = self._new(column)
        return atom

    def _new(self, column: AtomColumn) -> Atom:
        match column:
            case Attribute(name):
                return Atom(column, (), frozenset((name,)))
            case Literal():
                return Atom(column, (), frozenset())
            case XPath(path):
                return Atom(column, (), frozenset((DOCUMENT,)), steps=sum(1 for _ in walk(path.steps)))
            case Like(operand, pattern, escape):
                inner = self.atom(operand)
                return Atom(column, (inner,), inner.names, like=LikePattern(pattern, escape))
            case Signed(_, operand) | ShardOf(operand, _):
                inner = self.atom(operand)
                return Atom(column, (inner,), inner.names)
            case Arithmetic(_, left, right) | Order(left, right):
                first, second = self.atom(left), self.atom(right)
                return Atom(column, (first, second), first.names | second.names)
            case _:
                assert_never(column)
