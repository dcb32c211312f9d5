"""The cost of a filter can be predicted from its text."""

from __future__ import annotations

import pytest
from hypothesis import given

from examples import examples
from holdfast.errors import FilterError
from holdfast.filters.cost import filter_cost
from holdfast.filters.expression import Filter, Not, conjunction, disjunction
from holdfast.filters.limits import DEFAULT_LIMITS, FilterLimits
from holdfast.filters.parse import parse_filter
from holdfast.filters.topic import ANYTHING, TopicPattern
from strategies import filters


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("#", 1),
        ("a", 1),
        ("a/b/c", 3),
        ("a/+/#", 2),
        ("/", 1),
        ("# WHERE a", 2),
        ("# WHERE a = 1", 2),
        ("a/b WHERE a = 1", 3),
        ("# WHERE NOT a = 1", 2),
        ("# WHERE NOT NOT NOT a", 2),
        ("# WHERE a = 1 AND b = 2", 3),
        ("# WHERE a = 1 OR b = 2 AND c", 4),
        ("# WHERE a + 1 = b * 2 - c", 5),
        ("# WHERE a = -b", 3),
        ("# WHERE a = -1", 2),
        ("# WHERE a BETWEEN 1 AND 2", 3),
        ("# WHERE a + 1 BETWEEN b AND c - 1", 5),
        ("# WHERE a IS NULL", 2),
        ("# WHERE a / b IS NULL", 3),
        ("# WHERE a IN (1, 2, 3)", 2),
        ("# WHERE a IN (1, 2, 3, 4)", 3),
        ("# WHERE a NOT IN (1, 2, 3, 4)", 3),
        ("# WHERE a LIKE 'abc%'", 2),
        ("# WHERE a LIKE '" + "x" * 15 + "'", 2),
        ("# WHERE a LIKE '" + "x" * 16 + "'", 3),
        ("# WHERE SHARD(a, 8) = 1", 3),
        ("# WHERE XPATH '/a'", 5),
        ("# WHERE XPATH '//a'", 9),
        ("# WHERE XPATH '/a/b//@c'", 17),
        ("# WHERE XPATH '/a[b]'", 9),
        ("# WHERE XPATH '/a[b = 1]'", 10),
        ("# WHERE XPATH '/a[. = 1][. < 2]'", 7),
        ("# WHERE XPATH '/a[.//b[c != 2]]'", 18),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_cost_is_counted_from_the_text(text: str, cost: int) -> None:
    assert filter_cost(parse_filter(text)) == cost


@examples(100)
@given(filters(), filters())
def test_the_costs_of_parts_add_up(one: Filter, other: Filter) -> None:
    parts = [f.condition for f in (one, other) if f.condition is not None]
    alone = [filter_cost(Filter(ANYTHING, part)) - 1 for part in parts]
    assert all(cost >= 1 for cost in alone)
    if parts:
        assert filter_cost(Filter(ANYTHING, conjunction(parts))) == 1 + sum(alone)
        assert filter_cost(Filter(ANYTHING, disjunction(parts))) == 1 + sum(alone)
        assert filter_cost(Filter(ANYTHING, Not(parts[0]))) == 1 + alone[0]


@given(filters())
def test_a_pattern_costs_its_levels(filter: Filter) -> None:
    levels = max(1, len(filter.pattern.levels))
    assert filter_cost(filter) - filter_cost(Filter(TopicPattern(("t",)), filter.condition)) == levels - 1


@given(filters())
def test_the_cap_is_the_highest_cost_that_is_accepted(filter: Filter) -> None:
    cost = filter_cost(filter)
    assert parse_filter(str(filter), FilterLimits(cost=cost)) == filter
    with pytest.raises(FilterError, match=f"the filter costs {cost}; expected at most {cost - 1}$"):
        parse_filter(str(filter), FilterLimits(cost=cost - 1))


def test_the_cap_is_a_thousand_by_default() -> None:
    assert FilterLimits().cost == DEFAULT_LIMITS.cost == 1_000
    assert filter_cost(parse_filter("# WHERE a" + " OR a" * 998)) == 1_000
