"""Numbers against exact arithmetic: what fits is exact or correctly rounded, what does not has no value."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.events.value import INT_MAX, INT_MIN, Value
from holdfast.filters.arithmetic import calculate, negate, plus
from holdfast.filters.expression import Operator

ADD, SUBTRACT, MULTIPLY, DIVIDE = Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY, Operator.DIVIDE

EDGES = [0, 1, -1, 2, 3, 7, INT_MAX, INT_MIN, INT_MAX - 1, INT_MIN + 1, 2**32, -(2**32), 3_037_000_500]
INTS = st.one_of(st.sampled_from(EDGES), st.integers(INT_MIN, INT_MAX))
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, 1e308, -1e308, 0.1, 2.0**53]),
    st.floats(allow_nan=False, allow_infinity=False),
)
NO_NUMBERS: list[Value | None] = [None, True, False, "1", "", b"1"]


def exact(operator: Operator, left: Fraction, right: Fraction) -> Fraction:
    """The result as mathematics has it."""
    match operator:
        case Operator.ADD:
            return left + right
        case Operator.SUBTRACT:
            return left - right
        case Operator.MULTIPLY:
            return left * right
        case Operator.DIVIDE:
            return left / right


def same(one: object, other: object) -> bool:
    """Equal, of one type and, if zero, of one sign."""
    return type(one) is type(other) and repr(one) == repr(other)


@examples(250)
@given(st.sampled_from(Operator), INTS, INTS)
def test_integers_are_exact_truncate_and_have_no_value_beyond_64_bits(
    operator: Operator, left: int, right: int
) -> None:
    found = calculate(operator, left, right)
    if operator is DIVIDE and right == 0:
        assert found is None
        return
    result = math.trunc(exact(operator, Fraction(left), Fraction(right)))
    assert same(found, result if INT_MIN <= result <= INT_MAX else None)


@examples(250)
@given(st.sampled_from(Operator), FLOATS, FLOATS)
def test_floats_are_correctly_rounded_and_finite_or_nothing(
    operator: Operator, left: float, right: float
) -> None:
    found = calculate(operator, left, right)
    if operator is DIVIDE and right == 0:
        assert found is None
        return
    try:
        # A Fraction becomes the nearest float, as IEEE 754 asks of every operation.
        result: float | None = float(exact(operator, Fraction(left), Fraction(right)))
    except OverflowError:
        result = None
    assert found == result
    assert found is None or type(found) is float


@examples(150)
@given(st.sampled_from(Operator), INTS, FLOATS)
def test_an_int_beside_a_float_becomes_a_float_first(operator: Operator, whole: int, real: float) -> None:
    assert same(calculate(operator, whole, real), calculate(operator, float(whole), real))
    assert same(calculate(operator, real, whole), calculate(operator, real, float(whole)))


@pytest.mark.parametrize(
    ("left", "right", "quotient"),
    [
        (7, 2, 3),
        (-7, 2, -3),
        (7, -2, -3),
        (-7, -2, 3),
        (1, 2, 0),
        (-1, 2, 0),
        (6, 3, 2),
        (0, 5, 0),
        (INT_MAX, -1, -INT_MAX),
    ],
)
def test_division_of_integers_truncates_toward_zero(left: int, right: int, quotient: int) -> None:
    assert same(calculate(DIVIDE, left, right), quotient)


@pytest.mark.parametrize(
    ("left", "operator", "right"),
    [
        (INT_MAX, ADD, 1),
        (INT_MIN, ADD, -1),
        (INT_MIN, SUBTRACT, 1),
        (0, SUBTRACT, INT_MIN),
        (INT_MAX, MULTIPLY, 2),
        (INT_MIN, MULTIPLY, -1),
        (3_037_000_500, MULTIPLY, 3_037_000_500),
        (INT_MIN, DIVIDE, -1),
        (1, DIVIDE, 0),
        (0, DIVIDE, 0),
        (1.0, DIVIDE, 0.0),
        (0.0, DIVIDE, -0.0),
        (1, DIVIDE, 0.0),
        (1.0, DIVIDE, 0),
        (1e308, ADD, 1e308),
        (-1e308, SUBTRACT, 1e308),
        (1e200, MULTIPLY, 1e200),
        (1e308, DIVIDE, 5e-324),
        (1, DIVIDE, 5e-324),
    ],
)
def test_overflow_and_division_by_zero_have_no_value(
    left: int | float, operator: Operator, right: int | float
) -> None:
    assert calculate(operator, left, right) is None


@pytest.mark.parametrize(
    ("left", "operator", "right", "result"),
    [
        (INT_MAX, ADD, 0, INT_MAX),
        (INT_MAX, ADD, INT_MIN, -1),
        (INT_MIN, SUBTRACT, INT_MIN, 0),
        (INT_MIN, DIVIDE, 1, INT_MIN),
        (2**53, ADD, 1, 2**53 + 1),
        (2**53, ADD, 1.0, float(2**53)),
        (INT_MAX, ADD, 0.0, float(2**63)),
        (7, DIVIDE, 2.0, 3.5),
        (1, ADD, 1.0, 2.0),
        (0.1, ADD, 0.2, 0.30000000000000004),
        (5e-324, DIVIDE, 2, 0.0),
        (0.0, MULTIPLY, -1, -0.0),
    ],
)
def test_results_at_the_edges(
    left: int | float, operator: Operator, right: int | float, result: int | float
) -> None:
    assert same(calculate(operator, left, right), result)


@pytest.mark.parametrize("operator", Operator)
@pytest.mark.parametrize("other", NO_NUMBERS, ids=repr)
def test_what_is_no_number_gives_no_value(operator: Operator, other: Value | None) -> None:
    for number in (2, 2.0):
        assert calculate(operator, other, number) is None
        assert calculate(operator, number, other) is None
    assert calculate(operator, other, other) is None
    assert negate(other) is None
    assert plus(other) is None


@given(INTS)
def test_signs_of_integers(number: int) -> None:
    assert same(plus(number), number)
    assert same(negate(number), None if number == INT_MIN else -number)


@given(FLOATS)
def test_signs_of_floats(number: float) -> None:
    assert same(plus(number), number)
    assert same(negate(number), -number)
