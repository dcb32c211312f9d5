"""The strategies draw what they promise: legal filters, and events about which filters disagree."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given

from drawn_events import a_document, an_event, simple_conditions
from drawn_filters import ALL, Parts, Seeded, a_condition, a_filter, a_path
from examples import examples
from holdfast.events.document import parse_document
from holdfast.filters.evaluate import compile_condition
from holdfast.filters.expression import Condition, Filter, Like, Shard, XPath
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.filters.topic import ANYTHING
from holdfast.filters.tree_pattern import selects
from holdfast.filters.xpath import parse_xpath
from strategies import conditions, documents, filters


@examples(200)
@given(filter=filters())
def test_every_filter_is_one_the_parser_returns(filter: Filter) -> None:
    assert parse_filter(str(filter)) == filter


@examples(100)
@given(condition=conditions(xpath=False, shard=False, like=False))
def test_parts_can_be_left_out(condition: Condition) -> None:
    assert not any(isinstance(test, XPath | Shard | Like) for test in simple_conditions(condition))


@examples(100)
@given(payload=documents())
def test_every_document_can_be_read(payload: bytes) -> None:
    assert len(parse_document(payload)) >= 1


def test_every_kind_of_test_is_drawn_and_is_true_false_and_unknown_of_some_events() -> None:
    source = Seeded(Random(5))
    seen: dict[str, Counter[bool | None]] = {}
    for _ in range(4000):
        test = a_condition(source, Parts(depth=0))
        verdict = compile_condition(test)(Subject(an_event(source, [Filter(ANYTHING, test)])))
        seen.setdefault(type(test).__name__, Counter())[verdict] += 1
    kinds = {"Comparison", "Between", "In", "Like", "IsNull", "Truth", "XPath", "Shard"}
    assert set(seen) == kinds
    for kind, verdicts in seen.items():
        expected = {True, False} if kind == "IsNull" else {True, False, None}
        assert all(verdicts[verdict] >= 20 for verdict in expected), (kind, verdicts)


def test_events_near_a_filter_match_it_often_and_miss_it_often() -> None:
    source = Seeded(Random(6))
    verdicts: Counter[bool | None] = Counter()
    for _ in range(1000):
        condition = a_condition(source, ALL)
        for _ in range(3):
            subject = Subject(an_event(source, [Filter(ANYTHING, condition)]))
            verdicts[compile_condition(condition)(subject)] += 1
    assert min(verdicts.values()) > 500
    assert len(verdicts) == 3


def test_documents_near_a_path_are_often_selected_by_it() -> None:
    source, selected = Seeded(Random(7)), 0
    for _ in range(500):
        path = a_path(source)
        assert parse_xpath(str(path)) == path
        selected += selects(path, parse_document(a_document(source, [path])))
    assert 100 < selected < 450


def test_the_same_seed_draws_the_same() -> None:
    one, other = Seeded(Random(8)), Seeded(Random(8))
    assert [a_filter(one) for _ in range(20)] == [a_filter(other) for _ in range(20)]
    assert [an_event(one) for _ in range(20)] == [an_event(other) for _ in range(20)]
