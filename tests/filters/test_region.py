"""Regions are sets: every operation is held against membership, value by value."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn_filters import BYTES, NUMBERS, SCALARS, STRINGS, VALUES
from examples import examples
from holdfast.events.value import INT_MAX, INT_MIN, Value
from holdfast.filters.expression import Relation, Scalar
from holdfast.filters.region import (
    ABSENT,
    EMPTY,
    FALSE_ONLY,
    PRESENT,
    TRUE_ONLY,
    Region,
    comparison_region,
    points_region,
    prefix_region,
)

COMPARE: dict[Relation, Callable[[Any, Any], bool]] = {
    Relation.EQ: operator.eq,
    Relation.NE: operator.ne,
    Relation.LT: operator.lt,
    Relation.LE: operator.le,
    Relation.GT: operator.gt,
    Relation.GE: operator.ge,
}
EVERYTHING = PRESENT | ABSENT

#: types that compare with each other
FAMILIES = {int: "number", float: "number", str: "string", bool: "boolean", bytes: "bytes"}


def alike(one: Value | None, other: Value) -> bool:
    return one is not None and FAMILIES[type(one)] == FAMILIES[type(other)]


def beside(value: Scalar) -> list[Value]:
    """The values closest to one."""
    if isinstance(value, bool):
        return [value, not value]
    if isinstance(value, str):
        return [value, value + "\0", value + "\U0010ffff", value[:-1]]
    integers = [n for n in (int(value) - 1, int(value), int(value) + 1) if INT_MIN <= n <= INT_MAX]
    floats = [float(value), math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]
    return [*integers, *(f for f in floats if math.isfinite(f))]


PROBES: list[Value | None] = [None, *BYTES, *(near for value in SCALARS for near in beside(value))]

literals = (
    st.sampled_from(SCALARS)
    | st.integers(INT_MIN, INT_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
)
texts = st.sampled_from(STRINGS) | st.text(max_size=4)
values = st.sampled_from(PROBES) | literals | texts | st.binary(max_size=2)
simple_regions = (
    st.builds(comparison_region, st.sampled_from(Relation), literals | texts)
    | st.builds(points_region, st.lists(literals | texts, max_size=4), inside=st.booleans())
    | st.builds(prefix_region, texts, inside=st.booleans())
    | st.sampled_from((EMPTY, ABSENT, PRESENT, TRUE_ONLY, FALSE_ONLY))
)
regions = st.recursive(
    simple_regions,
    lambda inner: (
        st.builds(operator.and_, inner, inner)
        | st.builds(operator.or_, inner, inner)
        | st.builds(operator.invert, inner)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("relation", Relation)
@examples(100)
@given(value=values, literal=literals | texts)
def test_a_comparison_holds_of_what_compares_so_and_of_no_other_type(
    relation: Relation, value: Value | None, literal: Scalar
) -> None:
    expected = alike(value, literal) and COMPARE[relation](value, literal)
    assert comparison_region(relation, literal).contains(value) == expected


@examples(150)
@given(value=values, listed=st.lists(literals | texts, min_size=1, max_size=5))
def test_points_hold_of_what_equals_one_and_outside_of_what_is_known_to_equal_none(
    value: Value | None, listed: list[Scalar]
) -> None:
    equal = any(alike(value, literal) and value == literal for literal in listed)
    comparable = all(alike(value, literal) for literal in listed)
    assert points_region(listed, inside=True).contains(value) == equal
    assert points_region(listed, inside=False).contains(value) == (comparable and not equal)


@examples(150)
@given(value=values, prefix=texts, suffix=texts)
def test_a_prefix_holds_of_the_strings_that_begin_with_it(
    value: Value | None, prefix: str, suffix: str
) -> None:
    for candidate in (value, prefix + suffix, suffix):
        begins = isinstance(candidate, str) and candidate.startswith(prefix)
        assert prefix_region(prefix, inside=True).contains(candidate) == begins
        assert prefix_region(prefix, inside=False).contains(candidate) == (
            isinstance(candidate, str) and not begins
        )


def test_a_prefix_at_the_end_of_unicode_has_no_string_above_it() -> None:
    for prefix in ("\U0010ffff", "a\U0010ffff", "\ud7ff", "\uffff"):
        inside, outside = prefix_region(prefix, inside=True), prefix_region(prefix, inside=False)
        for text in (prefix, prefix + "\U0010ffff" * 3, prefix + "a"):
            assert inside.contains(text)
            assert not outside.contains(text)
        assert not inside.contains(prefix[:-1])


@examples(150)
@given(one=regions, other=regions, value=values)
def test_and_or_and_not_are_those_of_membership(one: Region, other: Region, value: Value | None) -> None:
    first, second = one.contains(value), other.contains(value)
    assert (one & other).contains(value) == (first and second)
    assert (one | other).contains(value) == (first or second)
    assert (~one).contains(value) == (not first)


@examples(150)
@given(one=regions, other=regions, value=values)
def test_a_part_of_a_region_holds_nothing_else(one: Region, other: Region, value: Value | None) -> None:
    assert one & other <= other <= one | other
    if one <= other and one.contains(value):
        assert other.contains(value)


@examples(150)
@given(one=regions, other=regions)
def test_a_region_has_one_form_so_that_equal_sets_are_equal(one: Region, other: Region) -> None:
    for region in (one, other, one & other, one | other, ~one):
        for intervals in region.families:
            cuts = [cut for interval in intervals for cut in interval]
            assert all(low < high for low, high in pairwise(cuts))
    assert one | other == other | one
    assert one & other == other & one
    assert ~~one == one
    assert ~(one | other) == ~one & ~other
    assert (one <= other) == (one | other == other) == (one & other == one) == (one & ~other).is_empty
    assert one | ~one == EVERYTHING
    assert (one & ~one).is_empty


@examples(200)
@given(region=regions)
def test_empty_and_everything_are_what_they_say(region: Region) -> None:
    assert region.is_empty == (region <= EMPTY)
    assert region.is_everything == (~region).is_empty
    if region.is_empty:
        assert not any(region.contains(value) for value in PROBES)
    if region.is_everything:
        assert all(region.contains(value) for value in PROBES)


#: Between two of these lies none of them, and what they bound holds some of them: so membership decides everything.
SMALL: list[Scalar] = [0, 1, 1.5, 2, 2.5, "", "a", "ab", "b", False, True]
SMALL_PROBES: list[Value | None] = [
    None,
    b"",
    -1,
    0.5,
    1.25,
    1.75,
    2.25,
    3,
    "\0",
    "a\0",
    "aa",
    "abc",
    "ba",
    *SMALL,
]
small_regions = st.recursive(
    st.builds(comparison_region, st.sampled_from(Relation), st.sampled_from(SMALL))
    | st.builds(points_region, st.lists(st.sampled_from(SMALL), max_size=4), inside=st.booleans())
    | st.sampled_from((ABSENT, PRESENT)),
    lambda inner: st.builds(operator.and_, inner, inner) | st.builds(operator.or_, inner, inner),
    max_leaves=5,
)


@examples(150)
@given(one=small_regions, other=small_regions)
def test_what_is_no_part_has_a_value_that_shows_it(one: Region, other: Region) -> None:
    strangers = [value for value in SMALL_PROBES if one.contains(value) and not other.contains(value)]
    assert (one <= other) == (not strangers)
    assert one.is_empty == (not any(one.contains(value) for value in SMALL_PROBES))


def test_int_and_float_are_told_apart_where_floats_skip_integers() -> None:
    even, odd = float(2**53), 2**53 + 1
    at_most = comparison_region(Relation.LE, even)
    assert at_most.contains(2**53)
    assert not at_most.contains(odd)
    above = comparison_region(Relation.GT, even)
    assert above.contains(odd)
    assert not above.contains(even)
    assert comparison_region(Relation.GE, odd) <= above
    assert not above <= comparison_region(Relation.GE, 2**53 + 2)
    assert points_region([2**53, even], inside=True) == points_region([even], inside=True)
    assert not points_region([odd], inside=True).contains(even)
    assert comparison_region(Relation.LE, INT_MAX).contains(INT_MAX)
    assert not comparison_region(Relation.GE, float(2**63)).contains(INT_MAX)


def test_true_is_not_one() -> None:
    assert not points_region([1], inside=True).contains(True)
    assert not points_region([True], inside=True).contains(1)
    assert (
        TRUE_ONLY | FALSE_ONLY
        == comparison_region(Relation.LE, True)
        == comparison_region(Relation.GE, False)
    )
    assert comparison_region(Relation.LT, False).is_empty


def test_every_value_is_present_and_no_value_is_absent() -> None:
    for value in VALUES:
        assert PRESENT.contains(value)
        assert not ABSENT.contains(value)
    assert ABSENT.contains(None)
    assert not PRESENT.contains(None)
    assert all(comparison_region(Relation.LE, 1e308).contains(n) for n in NUMBERS if n <= 1e308)
