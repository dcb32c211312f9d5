"""SQLite as a second opinion on the truth of conditions, on the part of the language both speak.

A condition becomes an SQL expression over a table with one column per attribute; an absent attribute is NULL there.
Literals travel as parameters, so SQLite never reads our numbers. The answer is the full truth: 1, 0 or NULL.

The shared part, and why the rest is not shared:

- Every attribute has values of one type, that of its column, and is compared with its like: where types clash, SQLite
  converts or orders by type and Holdfast says unknown.
- A bool is 0 or 1 to SQLite, in a column of its own that meets no number.
- ``i j f g`` are computed with and hold small numbers; ``n r`` hold the extremes and are only compared: SQLite turns an
  integer that overflows into a float and a float into infinity, where Holdfast has no value. Division by zero is NULL,
  and integers are divided with truncation, in both.
- LIKE needs ``PRAGMA case_sensitive_like``. Text has no NUL, at which SQLite ends a string, and no U+FFFE and U+FFFF,
  which its LIKE takes for U+FFFD.
- Topics, XPATH and SHARD are unknown to SQLite.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, assert_never

from drawn_filters import Source, a_like, like_text, often, seldom, signed, some
from holdfast.events.value import INT_MAX, INT_MIN
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
    Operator,
    Or,
    Relation,
    Scalar,
    Shard,
    Signed,
    Truth,
    XPath,
    conjunction,
    disjunction,
)

Row: TypeAlias = dict[str, Scalar]  #: without the attributes that are absent

SMALL: Final[tuple[int | float, ...]] = (
    0,
    1,
    2,
    3,
    7,
    10,
    -1,
    -2,
    -7,
    100,
    1.0,
    0.5,
    2.5,
    -0.0,
    -1.5,
    0.1,
    1e10,
    3.0,
)
_BIG = (2**53, 2**53 + 1, 2**53 - 1, -(2**53) - 1, INT_MAX, INT_MAX - 1, INT_MIN, INT_MIN + 1, 0, 1)
_HUGE = (2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**63, -(2.0**63), 1e308, -1e308, 5e-324, 0.0, 1.5)
EXTREME: Final[tuple[int | float, ...]] = (*_BIG, *_HUGE)
TEXTS: Final = (
    "",
    "a",
    "ab",
    "abc",
    "A",
    "aB",
    "b",
    "ba",
    "a%b",
    "a_c",
    "it's",
    "ä",
    "a😀",
    "😀",
    "\ue000",
    "1",
    "\\",
)

#: Columns: the type SQLite gives them, and their values.
COLUMNS: Final[dict[str, tuple[str, Sequence[Scalar]]]] = {
    "i": ("INTEGER", [v for v in SMALL if isinstance(v, int)]),
    "j": ("INTEGER", [v for v in SMALL if isinstance(v, int)]),
    "f": ("REAL", [v for v in SMALL if isinstance(v, float)]),
    "g": ("REAL", [v for v in SMALL if isinstance(v, float)]),
    "n": ("INTEGER", _BIG),
    "r": ("REAL", _HUGE),
    "s": ("TEXT", TEXTS),
    "in": ("TEXT", TEXTS),  # a name both languages must quote
    "flag": ("INTEGER", (True, False)),
}


# Conditions of the shared part, and rows


def a_shared_condition(source: Source, depth: int = 3) -> Condition:
    """NOT, AND and OR over tests of one family of types each."""
    kind = source.pick(("test", "test", "and", "or", "not")) if depth else "test"
    if kind == "test":
        return source.pick(
            (_a_flag_test, _a_null_test, _a_comparison, _a_comparison, _a_range, _a_list, _a_like)
        )(source)
    if kind == "not":
        return Not(a_shared_condition(source, depth - 1))
    operands = some(source, 3, lambda: a_shared_condition(source, depth - 1), least=2)
    return conjunction(operands) if kind == "and" else disjunction(operands)


def a_row(source: Source) -> Row:
    """A value for most columns."""
    return {name: source.pick(values) for name, (_, values) in COLUMNS.items() if often(source)}


def _a_family(source: Source) -> Callable[[], Expression]:
    """Operands that compare with each other: numbers computed with, numbers at the extremes, or texts."""
    match source.pick(("small", "small", "extreme", "text")):
        case "small":
            return lambda: _a_small_number(source)
        case "extreme":
            return lambda: _a_leaf(source, "n", "r", EXTREME) if often(source) else _a_small_number(source)
        case _:
            return lambda: _a_leaf(source, "s", "in", TEXTS)


def _a_leaf(source: Source, one: str, other: str, values: Sequence[Scalar]) -> Expression:
    if source.pick((True, False)):
        return Attribute(source.pick((one, other)))
    return Literal(source.pick(values))


def _a_small_number(source: Source, depth: int = 2) -> Expression:
    match source.pick(("leaf", "leaf", "sign", "arithmetic")) if depth else "leaf":
        case "sign":
            return signed(source.pick((True, False)), _a_small_number(source, depth - 1))
        case "arithmetic":
            left, right = _a_small_number(source, depth - 1), _a_small_number(source, depth - 1)
            return Arithmetic(source.pick(tuple(Operator)), left, right)
        case _:
            return _a_leaf(source, *source.pick((("i", "j"), ("f", "g"))), SMALL)


def _a_comparison(source: Source) -> Condition:
    operand = _a_family(source)
    return Comparison(source.pick(tuple(Relation)), operand(), operand())


def _a_range(source: Source) -> Condition:
    operand = _a_family(source)
    return Between(operand(), operand(), operand())


def _a_list(source: Source) -> Condition:
    name = source.pick(tuple(COLUMNS))
    kind, values = COLUMNS[name]
    if kind != "TEXT" and name != "flag":
        values = EXTREME if name in "nr" else SMALL  # integers among floats and floats among integers
    operand = _a_small_number(source) if seldom(source) and name in "ijfg" else Attribute(name)
    return In(operand, tuple(some(source, 4, lambda: Literal(source.pick(values)), least=1)))


def _a_like(source: Source) -> Condition:
    escape = source.pick((None, None, "!", "\\", "%", "_", "a"))
    return Like(_a_leaf(source, "s", "in", TEXTS), like_text(a_like(source), escape), escape)


def _a_null_test(source: Source) -> Condition:
    return IsNull(Attribute(source.pick(tuple(COLUMNS))) if often(source) else _a_small_number(source))


def _a_flag_test(source: Source) -> Condition:
    if often(source):
        return Truth(Attribute("flag"))
    literal = Literal(source.pick((True, False)))
    if seldom(source):
        return Truth(literal)
    return Comparison(source.pick(tuple(Relation)), Attribute("flag"), literal)


# The same in SQL


class Translation:
    """SQL with its parameters, in the order of their question marks."""

    def __init__(self) -> None:
        self.parameters: list[Scalar] = []

    def condition(self, condition: Condition) -> str:
        """A condition, in parentheses."""
        match condition:
            case And(operands):
                return f"({' AND '.join(map(self.condition, operands))})"
            case Or(operands):
                return f"({' OR '.join(map(self.condition, operands))})"
            case Not(operand):
                return self.negation(self.condition(operand))
            case Comparison(relation, left, right):
                return f"({self.expression(left)} {relation.value} {self.expression(right)})"
            case Between(operand, low, high):
                texts = [self.expression(part) for part in (operand, low, high)]
                return "({} BETWEEN {} AND {})".format(*texts)
            case In(operand, values):
                return self.member(self.expression(operand), [self.expression(value) for value in values])
            case Like(operand, pattern, escape):
                tested = f"{self.expression(operand)} LIKE {self.parameter(pattern)}"
                return f"({tested})" if escape is None else f"({tested} ESCAPE {self.parameter(escape)})"
            case IsNull(operand):
                return f"({self.expression(operand)} IS NULL)"
            case Truth(operand):
                return self.expression(operand)
            case XPath() | Shard():
                raise AssertionError(f"{condition} is not in the shared part")
            case _:
                assert_never(condition)

    def expression(self, expression: Expression) -> str:
        """An expression, in parentheses if it has parts."""
        match expression:
            case Attribute(name):
                return f'"{name}"'
            case Literal(value):
                return self.parameter(value)
            case Signed(negative, operand):
                return f"({'-' if negative else '+'} {self.expression(operand)})"
            case Arithmetic(operator, left, right):
                return self.arithmetic(self.expression(left), operator, self.expression(right))
            case _:
                assert_never(expression)

    def parameter(self, value: Scalar) -> str:
        """A question mark that stands for the value."""
        self.parameters.append(value)
        return "?"

    # Apart, so that a test can plant a fault in one of them.

    def negation(self, operand: str) -> str:
        return f"(NOT {operand})"

    def member(self, operand: str, values: list[str]) -> str:
        return f"({operand} IN ({', '.join(values)}))"

    def arithmetic(self, left: str, operator: Operator, right: str) -> str:
        return f"({left} {operator.value} {right})"


class SqliteTwin:
    """A table to ask about; ``translation`` is how conditions are put into SQL."""

    def __init__(self, translation: type[Translation] = Translation, *, case_sensitive: bool = True) -> None:
        self._translation = translation
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.execute(f"PRAGMA case_sensitive_like = {'ON' if case_sensitive else 'OFF'}")
        columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in COLUMNS.items())
        self._connection.execute(f"CREATE TABLE event (place INTEGER PRIMARY KEY, {columns})")

    def truths(self, conditions: Sequence[Condition], rows: Sequence[Row]) -> list[list[bool | None]]:
        """For each row the truth of each condition."""
        self._connection.execute("DELETE FROM event")
        marks = ", ".join("?" * (len(COLUMNS) + 1))
        filled = [(place, *(row.get(name) for name in COLUMNS)) for place, row in enumerate(rows)]
        self._connection.executemany(f"INSERT INTO event VALUES ({marks})", filled)
        translation = self._translation()
        asked = ", ".join(translation.condition(condition) for condition in conditions)
        found = self._connection.execute(f"SELECT {asked} FROM event ORDER BY place", translation.parameters)
        return [[None if value is None else bool(value) for value in answers] for answers in found]

    def close(self) -> None:
        self._connection.close()
