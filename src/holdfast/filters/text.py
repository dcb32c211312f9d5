"""The canonical text of a filter: what parses back to the same tree, and nothing is said twice.

Keywords in capitals, one space between tokens, parentheses only where precedence needs them, names quoted only
where they must be.
"""

from __future__ import annotations

import re
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
    Operator,
    Or,
    Shard,
    Signed,
    Truth,
    XPath,
)
from holdfast.filters.lexer import KEYWORDS

__all__ = ["condition_text", "expression_text", "filter_text", "name_text", "string_text"]

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_OR, _AND, _NOT = range(3)  # how tightly a condition binds
_SUM, _PRODUCT, _SIGN, _ATOM = range(4)  # and an expression


def filter_text(filter: Filter) -> str:
    """The canonical text of a whole filter."""
    if filter.condition is None:
        return str(filter.pattern)
    return f"{filter.pattern} WHERE {condition_text(filter.condition)}"


def string_text(value: str) -> str:
    """A string literal."""
    return "'" + value.replace("'", "''") + "'"


def name_text(name: str) -> str:
    """An attribute's name, quoted if it must be."""
    if _PLAIN_NAME.match(name) and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def condition_text(condition: Condition, binding: int = _OR) -> str:
    """A condition as it stands below an operator that binds as tightly as ``binding``."""
    match condition:
        case Or(operands):
            return _grouped(" OR ".join(condition_text(c, _AND) for c in operands), binding > _OR)
        case And(operands):
            return _grouped(" AND ".join(condition_text(c, _NOT) for c in operands), binding > _AND)
        case Not(Between() | In() | Like() | IsNull() as operand):
            return _predicate_text(operand, negated=True)
        case Not(operand):
            return f"NOT {condition_text(operand, _NOT)}"
        case Comparison(relation, left, right):
            return f"{expression_text(left)} {relation.value} {expression_text(right)}"
        case Truth(operand):
            return expression_text(operand)
        case XPath(path):
            return f"XPATH {string_text(str(path))}"
        case Shard(attribute, count, index):
            return f"SHARD({name_text(attribute.name)}, {count}) = {index}"
        case Between() | In() | Like() | IsNull():
            return _predicate_text(condition, negated=False)
        case _:
            assert_never(condition)


def _predicate_text(condition: Between | In | Like | IsNull, *, negated: bool) -> str:
    no = "NOT " if negated else ""
    operand = expression_text(condition.operand)
    match condition:
        case Between(_, low, high):
            return f"{operand} {no}BETWEEN {expression_text(low)} AND {expression_text(high)}"
        case In(_, values):
            return f"{operand} {no}IN ({', '.join(map(expression_text, values))})"
        case Like(_, pattern, escape):
            suffix = "" if escape is None else f" ESCAPE {string_text(escape)}"
            return f"{operand} {no}LIKE {string_text(pattern)}{suffix}"
        case IsNull():
            return f"{operand} IS {no}NULL"
        case _:
            assert_never(condition)


def expression_text(expression: Expression, binding: int = _SUM) -> str:
    """An expression as it stands below an operator that binds as tightly as ``binding``."""
    match expression:
        case Attribute(name):
            return name_text(name)
        case Literal(bool() as value):
            return "TRUE" if value else "FALSE"
        case Literal(str() as value):
            return string_text(value)
        case Literal(value):
            # A negative number below a sign would be read as two signs and folded.
            return _grouped(repr(value), binding == _ATOM and repr(value).startswith("-"))
        case Signed(negative, operand):
            sign = "-" if negative else "+"
            return _grouped(sign + expression_text(operand, _ATOM), binding == _ATOM)
        case Arithmetic(operator, left, right):
            level = _SUM if operator in (Operator.ADD, Operator.SUBTRACT) else _PRODUCT
            body = f"{expression_text(left, level)} {operator.value} {expression_text(right, level + 1)}"
            return _grouped(body, binding > level)
        case _:
            assert_never(expression)


def _grouped(text: str, needed: bool) -> str:
    return f"({text})" if needed else text
