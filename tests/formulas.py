"""The truth of a formula of the normal form, read literally: the plain twin of whatever reasons about formulas."""

from __future__ import annotations

from holdfast.events.value import Value
from holdfast.filters.evaluate import compile_condition, compile_expression, shard_of
from holdfast.filters.expression import Arithmetic, Attribute, Comparison, Like, Literal, Signed, XPath
from holdfast.filters.normal import All, Column, Formula, Member, ShardOf
from holdfast.filters.subject import Subject


def column_value(column: Column | Literal, subject: Subject) -> Value | None:
    """What an event has in a column."""
    match column:
        case ShardOf(attribute, count):
            return shard_of(subject.attributes.get(attribute.name), count)
        case Comparison() | Like() | XPath():
            return compile_condition(column)(subject)
        case Attribute() | Literal() | Signed() | Arithmetic():
            return compile_expression(column)(subject)


def truth(formula: Formula, subject: Subject) -> bool:
    """Whether the formula is true of an event."""
    if isinstance(formula, Member):
        return formula.region.contains(column_value(formula.column, subject))
    parts = [truth(part, subject) for part in formula.parts]
    return all(parts) if isinstance(formula, All) else any(parts)
