"""Arithmetic, and comparisons of two values, in Spark SQL.

They name what they need (``i`` an int, ``f`` a float, ``d`` either as a double, ``s`` a string, ``b`` a boolean) in
``exists(array(struct(…)), v -> …)``, which is SQL's way of saying "let v be".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from holdfast.filters.expression import (
    Arithmetic,
    Attribute,
    Expression,
    Literal,
    Operator,
    Relation,
    Scalar,
    Signed,
    attributes_of,
)
from holdfast.filters.region import NUMBER, PRESENT, Region
from holdfast.filters.spark_intervals import among_doubles, among_ints, known_interval_test
from holdfast.filters.spark_text import (
    ATOM,
    FALSE_SQL,
    PRODUCT,
    SIGN,
    SUM,
    TRUE_SQL,
    Sql,
    all_of,
    any_of,
    cast_sql,
    literal_sql,
    type_test,
)

__all__ = ["comparison_test", "number_test"]


#: How attributes are read: the types of value that are taken, and the type that is given.
_READINGS: Final = {
    "i": (("BIGINT",), "BIGINT"),
    "f": (("DOUBLE",), "DOUBLE"),
    "d": (("BIGINT", "DOUBLE"), "DOUBLE"),
    "s": (("STRING",), "STRING"),
    "b": (("BOOLEAN",), "BOOLEAN"),
}
_INFINITY: Final = "double('infinity')"


class _Let:
    """Values that are worked out once, and named, for one condition."""

    def __init__(self, variable: str) -> None:
        self._variable = variable
        self._numbers: dict[Expression, int] = {}
        self._values: dict[tuple[int, str], str] = {}

    def name(self, kind: str, expression: Expression, value: str) -> str:
        """The name of the value, of one kind or another, of an expression."""
        number = self._numbers.setdefault(expression, len(self._numbers) + 1)
        self._values[number, kind] = value
        return f"{self._variable}.{kind}{number}"

    def condition(self, body: Sql) -> Sql:
        """The body where the names are known."""
        if not self._values or body in (TRUE_SQL, FALSE_SQL):
            return body
        fields = [f"{value} AS {kind}{number}" for (number, kind), value in sorted(self._values.items())]
        return Sql(f"exists(array(struct({', '.join(fields)})), {self._variable} -> {body.text})")


class _Values:
    """The values of expressions in one condition: attributes are named under ``v``, results under ``w``.

    A number is an int if everything in it is an int, and otherwise a float. So each expression is written twice:
    ``_whole`` is right if all its attributes are ints, ``_real`` if not all are.
    """

    def __init__(self) -> None:
        self._attributes, self._results = _Let("v"), _Let("w")

    def condition(self, parts: Iterable[Sql]) -> Sql:
        """Any of the parts, where the names in them are known."""
        return self._attributes.condition(self._results.condition(any_of(parts)))

    def read(self, reading: str, name: str) -> str:
        """The attribute in one of its readings, NULL if it is of another type."""
        types, sql_type = _READINGS[reading]
        value = f"CASE WHEN {type_test(name, *types).text} THEN {cast_sql(name, sql_type)} END"
        return self._attributes.name(reading, Attribute(name), value)

    def number(self, expression: Expression) -> tuple[str | None, str]:
        """The value as a BIGINT, if it may be one, and as a DOUBLE: at most one of them is not NULL."""
        if isinstance(expression, Attribute):
            return self.read("i", expression.name), self.read("f", expression.name)
        real = self._real(expression)
        value = (
            f"nanvl({real.within(PRODUCT)} % {_INFINITY}, NULL)" if _may_overflow(expression) else real.text
        )
        if not _may_be_whole(expression):
            return None, self._results.name("f", expression, value)
        value = f"CASE WHEN {self._is_real(expression)} THEN {value} END"
        whole = self._results.name("i", expression, self._whole(expression))
        return whole, self._results.name("f", expression, value)

    def _is_real(self, expression: Expression) -> str:
        """Whether not all its attributes are ints."""
        names = dict.fromkeys(attributes_of(expression))
        return " OR ".join(f"{self.read('i', name)} IS NULL" for name in names)

    def _whole(self, expression: Expression) -> str:
        match expression:
            case Attribute(name):
                return self.read("i", name)
            case Literal(value):
                return str(value)
            case Signed(negative, operand):
                return f"try_subtract(0, {self._whole(operand)})" if negative else self._whole(operand)
            case Arithmetic(Operator.DIVIDE, left, Literal(int() as constant)) if constant not in (0, -1):
                return f"{self._whole(left)} div {constant}"
            case Arithmetic(Operator.DIVIDE, left, right):
                # There is no try_div. The 19 decimals of this quotient do not round it up to an integer: it is at
                # least 2**-63 below the next one, and that is more than 10**-19 / 2. The cast truncates.
                dividend, divisor = (f"CAST({self._whole(e)} AS DECIMAL(19, 0))" for e in (left, right))
                return f"try_cast(try_divide({dividend}, {divisor}) AS BIGINT)"
            case Arithmetic(operator, left, right):
                return f"{_TRY[operator]}({self._whole(left)}, {self._whole(right)})"
            case _:
                assert_never(expression)

    def _real(self, expression: Expression) -> Sql:
        """A DOUBLE; infinite, NaN or NULL if there is no value."""
        match expression:
            case Attribute(name):
                return Sql(self.read("d", name))
            case Literal(value):
                text = literal_sql(float(value))
                return Sql(text, SIGN if text.startswith("-") else ATOM)
            case Signed(negative, operand):
                inner = self._real(operand)
                return Sql(f"-{inner.within(ATOM)}", SIGN) if negative else inner
            case Arithmetic(Operator.DIVIDE, left, right):
                # What is not finite stays so whatever is done to it, except that a finite number over it is 0.
                guard = f" % {_INFINITY}" if _may_overflow(right) else ""
                return Sql(
                    f"try_divide({self._either(left).text}, {self._either(right).within(PRODUCT)}{guard})"
                )
            case Arithmetic(operator, left, right):
                binding = PRODUCT if operator is Operator.MULTIPLY else SUM
                first, second = self._either(left).within(binding), self._either(right).within(binding + 1)
                return Sql(f"{first} {operator.value} {second}", binding)
            case _:
                assert_never(expression)

    def _either(self, expression: Expression) -> Sql:
        """The operand of a float: an int below it is still worked out as one."""
        real = self._real(expression)
        if isinstance(expression, Attribute | Literal) or not _may_be_whole(expression):
            return real
        whole = f"CAST({self._whole(expression)} AS DOUBLE)"
        return Sql(f"CASE WHEN {self._is_real(expression)} THEN {real.text} ELSE {whole} END")


_TRY: Final = {
    Operator.ADD: "try_add",
    Operator.SUBTRACT: "try_subtract",
    Operator.MULTIPLY: "try_multiply",
}


def number_test(expression: Signed | Arithmetic, region: Region) -> Sql:
    """Whether the value of an arithmetic expression, or its absence, lies in the region."""
    numbers = region.families[NUMBER]
    if not _is_number(expression) or (region.absent and numbers == PRESENT.families[NUMBER]):
        return TRUE_SQL if region.absent else FALSE_SQL
    values = _Values()
    whole, real = values.number(expression)
    parts = [known_interval_test(whole, among_ints(numbers))] if whole else []
    parts.append(known_interval_test(real, among_doubles(numbers)))
    if region.absent:
        parts.insert(0, all_of(Sql(f"{value} IS NULL") for value in (whole, real) if value))
    return values.condition(parts)


def comparison_test(relation: Relation, left: Expression, right: Expression) -> Sql:
    """Whether two values of like types stand in a relation."""
    values = _Values()
    parts: list[Sql] = []
    if _is_number(left) and _is_number(right):
        (whole, real), (other_whole, other_real) = values.number(left), values.number(right)
        if whole and other_whole:
            parts.append(Sql(f"{whole} {relation.value} {other_whole}"))
        parts.append(Sql(f"{real} {relation.value} {other_real}"))
        if whole:
            parts.append(_mixed_comparison(relation, whole, other_real))
        if other_whole:
            parts.append(_mixed_comparison(relation.flipped, other_whole, real))
    if isinstance(left, Attribute) and isinstance(right, Attribute):
        for reading in "sb":
            first, second = values.read(reading, left.name), values.read(reading, right.name)
            parts.append(Sql(f"{first} {relation.value} {second}"))
    return values.condition(parts)


def _mixed_comparison(relation: Relation, whole: str, real: str) -> Sql:
    """How an int compares with a float, by exact value.

    If the int as a double differs from the float, it does so in the same direction. If not, the float is a whole
    number from -2**63 to 2**63 and can be compared as an int; but 2**63, above every int, is cast to 2**63 - 1.
    """
    rounded, top = f"CAST({whole} AS DOUBLE)", literal_sql(2.0**63)
    same = Sql(f"{whole} {relation.value} try_cast({real} AS BIGINT)")
    match relation:
        case Relation.NE | Relation.LT:
            same = any_of([same, Sql(f"{real} >= {top}")])
        case Relation.EQ | Relation.GE:
            same = all_of([same, Sql(f"{real} < {top}")])
    tie = all_of([Sql(f"{rounded} = {real}"), same])
    apart = relation.value.rstrip("=")  # the strict part of the relation; of = there is none
    return any_of([Sql(f"{rounded} {apart} {real}"), tie]) if apart else tie


def _constants(expression: Expression) -> Iterator[Scalar]:
    match expression:
        case Literal(value):
            yield value
        case Signed(_, operand):
            yield from _constants(operand)
        case Arithmetic(_, left, right):
            yield from _constants(left)
            yield from _constants(right)


def _is_number(expression: Expression) -> bool:
    """Whether it can have a value, once its attributes are numbers."""
    return all(type(value) is int or type(value) is float for value in _constants(expression))


def _may_be_whole(expression: Expression) -> bool:
    """Whether it is an int, once its attributes are ints."""
    return all(type(value) is int for value in _constants(expression))


def _may_overflow(expression: Expression) -> bool:
    """Whether the SQL of its float can be infinite or NaN; attributes and constants never are."""
    match expression:
        case Signed(_, operand):
            return _may_overflow(operand)
        case _:
            return isinstance(expression, Arithmetic)
