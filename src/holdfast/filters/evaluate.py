"""The meaning of a filter, as closures: three-valued truth, compiled once, called per event.

True, False or None for unknown. An absent attribute is NULL; comparing unlike types is unknown, under NOT too; a
filter matches only when it is true. This is the reference: the index, the covering relation and the Spark
translation are all held against it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, TypeAlias, assert_never
from zlib import crc32

from holdfast.events.value import Value, canonical_text
from holdfast.filters.arithmetic import calculate, negate, plus
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
    Relation,
    Shard,
    Signed,
    Truth,
    XPath,
)
from holdfast.filters.like import LikePattern
from holdfast.filters.subject import Subject
from holdfast.filters.topic import TopicPattern
from holdfast.filters.tree_pattern import selects

__all__ = ["compile_condition", "compile_expression", "compile_filter", "shard_of"]

Truth3: TypeAlias = bool | None
Evaluated: TypeAlias = Callable[[Subject], Truth3]
Computed: TypeAlias = Callable[[Subject], Value | None]

_NUMBER, _STRING, _BOOLEAN = 1, 2, 3
#: Types that compare with each other; bytes compare with nothing.
_FAMILY: Final[dict[type, int]] = {int: _NUMBER, float: _NUMBER, str: _STRING, bool: _BOOLEAN}
_COMPARE: Final[dict[Relation, Callable[[Any, Any], bool]]] = {
    Relation.EQ: operator.eq,
    Relation.NE: operator.ne,
    Relation.LT: operator.lt,
    Relation.LE: operator.le,
    Relation.GT: operator.gt,
    Relation.GE: operator.ge,
}


def compile_filter(filter: Filter) -> Callable[[Subject], bool]:
    """Whether an event matches."""
    if filter.condition is None:
        return _compile_topic(filter.pattern)
    condition = compile_condition(filter.condition)
    if not filter.pattern.levels and filter.pattern.rest:
        return lambda subject: condition(subject) is True
    topic = _compile_topic(filter.pattern)
    return lambda subject: topic(subject) and condition(subject) is True


def _compile_topic(pattern: TopicPattern) -> Callable[[Subject], bool]:
    if pattern.is_literal:
        text = str(pattern)  # event topics are canonical too
        return lambda subject: subject.topic == text
    if not pattern.levels:
        return lambda subject: True
    return lambda subject: pattern.matches(subject.levels)


def compile_condition(condition: Condition) -> Evaluated:
    """The truth of a condition for an event."""
    match condition:
        case And(operands):
            return _all([compile_condition(c) for c in operands])
        case Or(operands):
            return _any([compile_condition(c) for c in operands])
        case Not(operand):
            return _not(compile_condition(operand))
        case Comparison(relation, Attribute(name), Literal(value)):
            return _compare_with_literal(name, relation, value)
        case Comparison(relation, left, right):
            return _compare(relation, compile_expression(left), compile_expression(right))
        case Between(operand, low, high):
            at_least = compile_condition(Comparison(Relation.GE, operand, low))
            return _all([at_least, compile_condition(Comparison(Relation.LE, operand, high))])
        case In(operand, values):
            return _in(compile_expression(operand), [literal.value for literal in values])
        case Like(operand, pattern, escape):
            return _like(compile_expression(operand), LikePattern(pattern, escape))
        case IsNull(operand):
            value_of = compile_expression(operand)
            return lambda subject: value_of(subject) is None
        case Truth(operand):
            return _truth(compile_expression(operand))
        case XPath(path):
            return lambda subject: None if subject.document is None else selects(path, subject.document)
        case Shard(Attribute(name), count, index):
            return _shard(name, count, index)
        case _:
            assert_never(condition)


def compile_expression(expression: Expression) -> Computed:
    """The value of an expression for an event, or None."""
    match expression:
        case Attribute(name):
            return lambda subject: subject.attributes.get(name)
        case Literal(value):
            return lambda subject: value
        case Signed(negative, operand):
            sign, value_of = negate if negative else plus, compile_expression(operand)
            return lambda subject: sign(value_of(subject))
        case Arithmetic(op, left, right):
            first, second = compile_expression(left), compile_expression(right)
            return lambda subject: calculate(op, first(subject), second(subject))
        case _:
            assert_never(expression)


def shard_of(value: Value | None, count: int) -> int | None:
    """Which of ``count`` parts a value falls into: CRC-32 of its canonical text; None for bytes and NULL."""
    if value is None or isinstance(value, bytes):
        return None
    return crc32(canonical_text(value).encode()) % count


def _all(parts: list[Evaluated]) -> Evaluated:
    def evaluated(subject: Subject) -> Truth3:
        truth: Truth3 = True
        for part in parts:
            value = part(subject)
            if value is False:
                return False
            if value is None:
                truth = None
        return truth

    return evaluated


def _any(parts: list[Evaluated]) -> Evaluated:
    def evaluated(subject: Subject) -> Truth3:
        truth: Truth3 = False
        for part in parts:
            value = part(subject)
            if value is True:
                return True
            if value is None:
                truth = None
        return truth

    return evaluated


def _not(part: Evaluated) -> Evaluated:
    def evaluated(subject: Subject) -> Truth3:
        value = part(subject)
        return None if value is None else not value

    return evaluated


def _compare_with_literal(name: str, relation: Relation, literal: Value) -> Evaluated:
    """The common case, without a call per operand."""
    family, compare = _FAMILY[type(literal)], _COMPARE[relation]

    def evaluated(subject: Subject) -> Truth3:
        value = subject.attributes.get(name)
        if value is None or _FAMILY.get(type(value)) != family:
            return None
        return compare(value, literal)

    return evaluated


def _compare(relation: Relation, left: Computed, right: Computed) -> Evaluated:
    compare = _COMPARE[relation]

    def evaluated(subject: Subject) -> Truth3:
        a, b = left(subject), right(subject)
        if a is None or b is None:
            return None
        family = _FAMILY.get(type(a))
        # Python compares int and float by exact value and strings by code point, as the language asks.
        return compare(a, b) if family is not None and family == _FAMILY.get(type(b)) else None

    return evaluated


def _in(value_of: Computed, values: list[Value]) -> Evaluated:
    """An OR of equalities: unknown beats false if any listed value is of another type."""
    by_family: dict[int, set[Value]] = {}
    for value in values:
        by_family.setdefault(_FAMILY[type(value)], set()).add(value)
    miss: Truth3 = False if len(by_family) == 1 else None

    def evaluated(subject: Subject) -> Truth3:
        value = value_of(subject)
        same = by_family.get(_FAMILY.get(type(value), 0))
        if same is None:
            return None
        return True if value in same else miss

    return evaluated


def _like(value_of: Computed, pattern: LikePattern) -> Evaluated:
    def evaluated(subject: Subject) -> Truth3:
        value = value_of(subject)
        return pattern.matches(value) if type(value) is str else None

    return evaluated


def _truth(value_of: Computed) -> Evaluated:
    def evaluated(subject: Subject) -> Truth3:
        value = value_of(subject)
        return value if type(value) is bool else None

    return evaluated


def _shard(name: str, count: int, index: int) -> Evaluated:
    def evaluated(subject: Subject) -> Truth3:
        shard = shard_of(subject.attributes.get(name), count)
        return None if shard is None else shard == index

    return evaluated
