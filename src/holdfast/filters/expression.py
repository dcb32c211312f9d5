"""The filter language as a tree: what a parser makes and everything else reads.

A filter is a topic pattern and, perhaps, a condition (`contracts.md` §2). Conditions have a truth (true, false,
unknown), expressions have a value (or none). AND and OR hold all their operands in one flat tuple, so a
condition with a thousand terms is not a thousand levels deep. `x NOT IN (…)` is ``Not(In(…))``, `IS NOT NULL`
is ``Not(IsNull(…))``: fewer kinds, the same truth.

Two trees are equal exactly when they print alike; in particular ``Literal(1)``, ``Literal(1.0)`` and
``Literal(True)`` differ, though Python says ``1 == 1.0 == True``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from holdfast.filters.topic import TopicPattern
from holdfast.filters.xpath import Path

__all__ = [
    "And",
    "Arithmetic",
    "Attribute",
    "Between",
    "Comparison",
    "Condition",
    "Expression",
    "Filter",
    "In",
    "IsNull",
    "Like",
    "Literal",
    "Not",
    "Operator",
    "Or",
    "Relation",
    "Scalar",
    "Shard",
    "Signed",
    "Truth",
    "XPath",
    "attributes_of",
    "conjunction",
    "disjunction",
]

Scalar: TypeAlias = bool | int | float | str


class Relation(Enum):
    """The six comparisons, by their spelling."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def flipped(self) -> Relation:
        """The relation that holds of (b, a) when this one holds of (a, b)."""
        return _FLIPPED[self]

    @property
    def negated(self) -> Relation:
        """The relation that is true exactly where this one is false."""
        return _NEGATED[self]


_FLIPPED = {
    Relation.EQ: Relation.EQ,
    Relation.NE: Relation.NE,
    Relation.LT: Relation.GT,
    Relation.LE: Relation.GE,
    Relation.GT: Relation.LT,
    Relation.GE: Relation.LE,
}
_NEGATED = {
    Relation.EQ: Relation.NE,
    Relation.NE: Relation.EQ,
    Relation.LT: Relation.GE,
    Relation.GE: Relation.LT,
    Relation.GT: Relation.LE,
    Relation.LE: Relation.GT,
}


class Operator(Enum):
    """Arithmetic, by its spelling."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"


@dataclass(frozen=True, slots=True)
class Attribute:
    """The value of one attribute; absent means NULL."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant. Numbers keep their sign: ``-5`` is a literal, not a negation."""

    value: Scalar

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        # repr tells 1 from 1.0 from True, and 0.0 from -0.0.
        return type(self.value) is type(other.value) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((type(self.value).__name__, repr(self.value)))


@dataclass(frozen=True, slots=True)
class Signed:
    """Unary plus or minus of anything that is not a numeric literal."""

    negative: bool
    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """One of ``+ - * /``."""

    operator: Operator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two expressions compared; unknown if either is NULL or their types are unlike."""

    relation: Relation
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Between:
    """``operand >= low AND operand <= high``, three-valued."""

    operand: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class In:
    """``operand = v1 OR operand = v2 …``, three-valued."""

    operand: Expression
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """The whole string against a pattern with ``%`` and ``_``; ``escape`` is one character or None."""

    operand: Expression
    pattern: str
    escape: str | None


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether the expression has no value; never unknown."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Truth:
    """A bare boolean: true or false as the value is, unknown if it is no boolean."""

    operand: Attribute | Literal


@dataclass(frozen=True, slots=True)
class XPath:
    """Whether the path selects anything in the payload; unknown if the payload is no XML document."""

    path: Path


@dataclass(frozen=True, slots=True)
class Shard:
    """Whether the attribute's value falls into part ``index`` of ``count``; unknown if it is absent."""

    attribute: Attribute
    count: int
    index: int


@dataclass(frozen=True, slots=True)
class Not:
    """Three-valued negation."""

    operand: Condition


@dataclass(frozen=True, slots=True)
class And:
    """At least two operands, none of them an ``And``; build it with ``conjunction``."""

    operands: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least two operands, none of them an ``Or``; build it with ``disjunction``."""

    operands: tuple[Condition, ...]


Expression: TypeAlias = Attribute | Literal | Signed | Arithmetic
Condition: TypeAlias = Comparison | Between | In | Like | IsNull | Truth | XPath | Shard | Not | And | Or


@dataclass(frozen=True, slots=True)
class Filter:
    """A topic pattern and, perhaps, a condition. ``str()`` gives its canonical text."""

    pattern: TopicPattern
    condition: Condition | None = None

    def __str__(self) -> str:
        from holdfast.filters.text import filter_text  # the printer knows every node; a node, not the printer

        return filter_text(self)


def conjunction(operands: list[Condition]) -> Condition:
    """AND of one or more conditions, flattened."""
    assert operands
    flat: list[Condition] = []
    for operand in operands:
        flat.extend(operand.operands if isinstance(operand, And) else (operand,))
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def disjunction(operands: list[Condition]) -> Condition:
    """OR of one or more conditions, flattened."""
    assert operands
    flat: list[Condition] = []
    for operand in operands:
        flat.extend(operand.operands if isinstance(operand, Or) else (operand,))
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def attributes_of(node: Condition | Expression | None) -> Iterator[str]:
    """The names of the attributes a condition or expression reads, left to right, with repeats."""
    match node:
        case Attribute(name):
            yield name
        case Signed(_, operand) | In(operand, _) | Like(operand, _, _) | IsNull(operand) | Not(operand):
            yield from attributes_of(operand)
        case Truth(operand) | Shard(operand, _, _):
            yield from attributes_of(operand)
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            yield from attributes_of(left)
            yield from attributes_of(right)
        case Between(operand, low, high):
            for part in (operand, low, high):
                yield from attributes_of(part)
        case And(operands) | Or(operands):
            for condition in operands:
                yield from attributes_of(condition)
        case Literal() | XPath() | None:
            return
