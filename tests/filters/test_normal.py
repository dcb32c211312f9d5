"""The normal form is true exactly when the condition is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn_events import an_event
from drawn_filters import Parts, Source, a_condition
from examples import examples
from formulas import truth
from holdfast.events.event import Event
from holdfast.filters.evaluate import compile_condition
from holdfast.filters.expression import Attribute, Condition, Filter, Like, Relation
from holdfast.filters.normal import ALWAYS, NEVER, All, Any, Formula, Member, normalise
from holdfast.filters.parse import parse_filter
from holdfast.filters.region import TRUE_ONLY, Region, comparison_region, points_region, prefix_region
from holdfast.filters.subject import Subject
from holdfast.filters.topic import ANYTHING
from strategies import conditions, drawn

EVENTS_EACH = 5


def condition_of(text: str) -> Condition:
    condition = parse_filter(f"# WHERE {text}").condition
    assert condition is not None
    return condition


def a_case(source: Source, parts: Parts) -> tuple[Condition, list[Event]]:
    condition = a_condition(source, parts)
    return condition, [an_event(source, [Filter(ANYTHING, condition)]) for _ in range(EVENTS_EACH)]


@pytest.mark.parametrize("parts", [Parts(), Parts(xpath=False, depth=1), Parts(xpath=False, depth=5)])
@examples(100)
@given(data=st.data())
def test_the_formula_is_true_exactly_when_the_condition_is(parts: Parts, data: st.DataObject) -> None:
    condition, events = data.draw(drawn(lambda source: a_case(source, parts)))
    formula, evaluated = normalise(condition), compile_condition(condition)
    for event in events:
        subject = Subject(event)
        assert truth(formula, subject) == (evaluated(subject) is True), event


@examples(100)
@given(condition=conditions(depth=4))
def test_formulas_are_flat_and_say_nothing_twice(condition: Condition) -> None:
    formula = normalise(condition)
    if formula not in (ALWAYS, NEVER):
        assert_flat(formula)


def assert_flat(formula: Formula) -> None:
    if isinstance(formula, Member):
        assert not formula.region.is_empty
        assert not formula.region.is_everything
        return
    assert len(formula.parts) > 1
    columns = [part.column for part in formula.parts if isinstance(part, Member)]
    assert len(columns) == len(set(columns))
    for part in formula.parts:
        assert type(part) is not type(formula)
        assert_flat(part)


def test_no_condition_is_always_true() -> None:
    assert normalise(None) == ALWAYS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 < 2", ALWAYS),
        ("x = 1 AND x = 2", NEVER),
        ("x = 'a' AND x > 1", NEVER),
        ("x IS NULL OR x IS NOT NULL", ALWAYS),
        ("x NOT IN (1, 'a')", NEVER),
        ("NOT (x IN (1, 'a'))", NEVER),
        ("1 / 0 = 1", NEVER),
        ("1 / 0 IS NULL", ALWAYS),
        ("x + 9223372036854775807 * 2 IS NULL", ALWAYS),
        ("NOT FALSE", ALWAYS),
        ("'abc' LIKE 'a_c'", ALWAYS),
        ("NOT 1 LIKE 'a_c'", NEVER),
        ("flag < FALSE", NEVER),
    ],
)
def test_constants_are_worked_out(text: str, expected: Formula) -> None:
    assert normalise(condition_of(text)) == expected


X = Attribute("x")


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("x > 1 AND x < 5", comparison_region(Relation.GT, 1) & comparison_region(Relation.LT, 5)),
        ("x BETWEEN 1 AND 5", comparison_region(Relation.GE, 1) & comparison_region(Relation.LE, 5)),
        ("NOT x BETWEEN 1 AND 5", comparison_region(Relation.LT, 1) | comparison_region(Relation.GT, 5)),
        ("5 > x", comparison_region(Relation.LT, 5)),
        ("NOT x > 1", comparison_region(Relation.LE, 1)),
        ("x = 1 OR x = 2 OR x = 1.0", points_region([1, 2], inside=True)),
        ("NOT (x = 1 OR x = 2)", points_region([1, 2], inside=False)),
        ("x LIKE 'ab%'", prefix_region("ab", inside=True)),
        ("x NOT LIKE 'ab%'", prefix_region("ab", inside=False)),
        ("x LIKE 'ab'", comparison_region(Relation.EQ, "ab")),
        ("x", TRUE_ONLY),
        ("x = 1 + 2 * 3", comparison_region(Relation.EQ, 7)),
    ],
)
def test_tests_of_one_value_meet_in_one_region(text: str, region: Region) -> None:
    assert normalise(condition_of(text)) == Member(X, region)


def test_a_like_says_its_prefix_too() -> None:
    formula = normalise(condition_of("x LIKE 'ab%c'"))
    exact = Member(Like(X, "ab%c", None), TRUE_ONLY)
    assert formula == All((Member(X, prefix_region("ab", inside=True)), exact))


def test_the_six_relations_of_two_values_share_columns() -> None:
    columns = set[object]()
    for relation in Relation:
        for text in (f"x {relation.value} y", f"NOT x {relation.value} y"):
            formula = normalise(condition_of(text))
            assert isinstance(formula, Member)
            columns.add(formula.column)
    assert len(columns) == 3


def test_a_thousand_terms_meet_in_one_member() -> None:
    terms = [f"x = {n * 7 % 991}" for n in range(990)]
    anywhere = normalise(condition_of(" OR ".join(terms)))
    assert anywhere == Member(X, points_region(range(991), inside=True) & ~points_region([984], inside=True))
    nowhere = normalise(condition_of("NOT (" + " OR ".join(terms) + ")"))
    assert isinstance(nowhere, Member)
    assert not nowhere.region.contains(3)
    assert nowhere.region.contains(984)


def test_alternatives_over_different_values_stay_apart() -> None:
    formula = normalise(condition_of("x = 1 OR y = 2 AND (x = 3 OR x = 4)"))
    assert isinstance(formula, Any)
    assert len(formula.parts) == 2
