"""The arithmetic the index rests on: floats that stand for integers and for the places between numbers."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from holdfast.filters.region import Cut, after_prefix
from holdfast.matching.interval import clamp, float_bound, floor_float, shared_prefix

INTEGERS = st.integers(-(2**63), 2**63 - 1)
EDGES = st.sampled_from(
    [s * (2**53 + d) for s in (1, -1) for d in range(-3, 4)] + [2**63 - 1, -(2**63), 0, 1]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.one_of(INTEGERS, EDGES, FLOATS)


@given(st.one_of(INTEGERS, EDGES), FLOATS)
def test_the_float_below_an_integer_compares_with_every_float_as_the_integer_does(
    integer: int, bound: float
) -> None:
    number = floor_float(integer)
    assert (bound <= number) == (bound <= integer)
    assert (number < bound) == (integer < bound)


@given(NUMBERS, st.integers(0, 1), NUMBERS)
def test_a_float_bound_separates_the_numbers_as_the_cut_does(value: float, side: int, number: float) -> None:
    cut: Cut = (value, side)
    bound = float_bound(cut)
    if math.isnan(bound):
        assert abs(value) >= 2**53
        return
    laid_out = floor_float(number) if isinstance(number, int) else number
    assert (bound <= laid_out) == (cut <= (number, 0))


@given(NUMBERS, NUMBERS)
def test_clamping_keeps_the_order(one: float, other: float) -> None:
    if one <= other:
        assert clamp(one) <= clamp(other)


@given(st.text(max_size=3), st.integers(0, 1), st.text(max_size=3), st.integers(0, 1), st.text(max_size=4))
def test_every_string_between_two_cuts_has_their_shared_prefix(
    a: str, i: int, b: str, j: int, string: str
) -> None:
    low, high = (a, i), (b, j)
    if low <= (string, 0) < high:
        assert string.startswith(shared_prefix(low, high))


@given(st.text(max_size=3), st.text(max_size=4))
def test_a_prefix_is_the_shared_prefix_of_its_own_interval(prefix: str, string: str) -> None:
    high = after_prefix(prefix)
    assert ((prefix, 0) <= (string, 0) < high) == string.startswith(prefix)
    assert shared_prefix((prefix, 0), high) == prefix
