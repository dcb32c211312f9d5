"""What a filter may cost to evaluate once, in units of about one comparison.

The figure is computed from the tree alone, so that whoever writes a filter can predict it, and it bounds from
above the work of any evaluation that does not share with other filters.
"""

from __future__ import annotations

from typing import Final, assert_never

from holdfast.filters.expression import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Expression,
    Filter,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Shard,
    Signed,
    Truth,
    XPath,
)
from holdfast.filters.xpath import Path, walk

__all__ = ["filter_cost"]


_VALUES_PER_UNIT: Final = 4  # IN is one hash lookup; what grows is the memory
_CHARACTERS_PER_UNIT: Final = 16  # of a LIKE pattern
_STEP: Final = 4  # a step of an XPath looks at several children
_DESCENDANT_STEP: Final = 8  # and `//` at a whole subtree


def filter_cost(filter: Filter) -> int:
    """The cost of a filter; at least 1."""
    topic = max(1, len(filter.pattern.levels))
    return topic + (0 if filter.condition is None else _condition_cost(filter.condition))


def _condition_cost(condition: Condition) -> int:
    match condition:
        case And(operands) | Or(operands):
            return sum(map(_condition_cost, operands))
        case Not(operand):
            return _condition_cost(operand)
        case Comparison(_, left, right):
            return 1 + _expression_cost(left) + _expression_cost(right)
        case Between(operand, low, high):
            return 2 + _expression_cost(operand) + _expression_cost(low) + _expression_cost(high)
        case In(operand, values):
            return 1 + len(values) // _VALUES_PER_UNIT + _expression_cost(operand)
        case Like(operand, pattern, _):
            return 1 + len(pattern) // _CHARACTERS_PER_UNIT + _expression_cost(operand)
        case IsNull(operand):
            return 1 + _expression_cost(operand)
        case Truth():
            return 1
        case Shard():
            return 2
        case XPath(path):
            return _path_cost(path)
        case _:
            assert_never(condition)


def _expression_cost(expression: Expression) -> int:
    match expression:
        case Attribute() | Literal():
            return 0
        case Signed(_, operand):
            return 1 + _expression_cost(operand)
        case Arithmetic(_, left, right):
            return 1 + _expression_cost(left) + _expression_cost(right)
        case _:
            assert_never(expression)


def _path_cost(path: Path) -> int:
    steps = list(walk(path.steps))
    tests = sum(predicate.relation is not None for step in steps for predicate in step.predicates)
    return tests + sum(_DESCENDANT_STEP if step.descendant else _STEP for step in steps)
