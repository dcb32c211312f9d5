"""Topic patterns: contracts §2, against a reference that tries everything."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given

from examples import examples
from holdfast.errors import InvalidEvent
from holdfast.events.event import make_event
from holdfast.events.topic import topic_levels
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.expression import Filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.filters.topic import ANYTHING, TopicPattern, parse_pattern
from strategies import topic_patterns, topics


def reference(pattern: list[str], levels: list[str]) -> bool:
    """Level by level, as the contract says it."""
    if pattern == ["#"]:
        return True
    if not pattern or not levels:
        return not pattern and not levels
    return pattern[0] in ("+", levels[0]) and reference(pattern[1:], levels[1:])


def matches(pattern: str, topic: str) -> bool:
    """By the whole way: the text of a filter, an event as it is published."""
    return compile_filter(parse_filter(pattern))(Subject(make_event(topic)))


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("a", ["a", "/a"], ["a/", "//a", "a/b", "A", "b", "/"]),
        ("/a", ["a", "/a"], ["//a", "a/"]),  # one leading slash is dropped
        ("//a", ["//a"], ["a", "/a", "///a"]),  # and only one: this begins with an empty level
        ("a/", ["a/", "/a/"], ["a", "a//", "a/b"]),  # nothing else is normalised
        ("a//b", ["a//b"], ["a/b", "a/x/b"]),
        ("/", ["/"], ["//", "a"]),  # one empty level
        ("//", ["//"], ["/", "///"]),
        ("+", ["a", "/a", "/", "$SYS"], ["a/b", "//", "a/"]),
        ("/+", ["a", "/a"], ["//a", "a/b"]),
        ("+/+", ["a/b", "//", "//a", "a/"], ["a", "a/b/c"]),
        ("a/+", ["a/b", "a/"], ["a", "a/b/c", "b/a"]),
        ("+/b", ["a/b", "//b"], ["b", "/b", "a/b/c"]),
        ("a/+/c", ["a/b/c", "a//c"], ["a/c", "a/b/b/c"]),
        ("#", ["a", "/", "//", "a/b/c", "$SYS/x", "/a"], []),
        ("/#", ["a", "/", "//", "a/b/c", "/a"], []),
        ("a/#", ["a", "/a", "a/", "a/b", "a/b/c"], ["ab", "b/a", "/", "//a"]),  # `a/#` matches `a` too
        ("a/b/#", ["a/b", "a/b/", "a/b/c/d"], ["a", "a/c"]),
        ("+/#", ["a", "/", "a/b", "a/b/c"], []),
        ("a/+/#", ["a/b", "a/", "a/b/c"], ["a"]),
        ("//#", ["/", "//", "//a", "//a/b"], ["a", "a/"]),
        ("a//#", ["a/", "a//", "a//b"], ["a", "a/b"]),
        ("$SYS/#", ["$SYS", "$SYS/x"], ["SYS", "a/$SYS"]),  # `$` is not special
        ("+/x", ["$SYS/x"], ["x"]),
        ("WHERE", ["WHERE"], ["where"]),
        ("'a'/\"b\"", ["'a'/\"b\""], ["a/b"]),
        ("ä/\xa0", ["ä/\xa0"], ["a/ "]),
    ],
)
def test_the_table_of_topics(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [topic for topic in yes if not matches(pattern, topic)] == []
    assert [topic for topic in no if matches(pattern, topic)] == []


@pytest.mark.parametrize("topic", ["a/+", "#", "a/b+", "+"])
def test_wildcards_in_the_topic_of_an_event_are_refused(topic: str) -> None:
    with pytest.raises(InvalidEvent, match="wildcard"):
        make_event(topic)


@examples(250)
@given(topic_patterns(), topics())
def test_a_pattern_matches_what_the_reference_matches(pattern: TopicPattern, topic: str) -> None:
    expected = reference([*pattern.levels, *["#"] * pattern.rest], topic_levels(topic))
    assert pattern.matches(topic_levels(topic)) == expected
    assert compile_filter(Filter(pattern))(Subject(make_event(topic))) == expected


@given(topic_patterns())
def test_a_printed_pattern_parses_to_the_same_pattern(pattern: TopicPattern) -> None:
    assert parse_pattern(str(pattern)) == pattern


@given(topic_patterns(), topics())
def test_a_literal_pattern_matches_its_own_topic_alone(pattern: TopicPattern, topic: str) -> None:
    if pattern.is_literal:
        assert pattern.matches(topic_levels(str(pattern)))
        assert pattern.matches(topic_levels(topic)) == (topic == str(pattern))


def test_covering_is_exact_but_for_the_pair_it_names() -> None:
    """Over every pattern of up to three levels of ``a``, ``b`` and ``+``, and every topic that can tell two apart."""
    words = [levels for n in range(4) for levels in itertools.product("ab+", repeat=n)]
    patterns = [TopicPattern(w, rest) for w in words for rest in (True, False) if w or rest]
    # "c" stands for all levels no pattern names; four levels are one more than any pattern has.
    topics = [list(levels) for n in range(1, 5) for levels in itertools.product("abc", repeat=n)]
    matched = {
        pattern: {i for i, levels in enumerate(topics) if pattern.matches(levels)} for pattern in patterns
    }
    missed = []
    for general, special in itertools.product(patterns, repeat=2):
        truly = matched[general] >= matched[special]
        assert truly or not general.covers(special)
        if truly and not general.covers(special):
            missed.append((str(general), str(special)))
    assert missed == [("+/#", "#")]


@given(topic_patterns())
def test_everything_is_covered_by_anything(pattern: TopicPattern) -> None:
    assert ANYTHING.covers(pattern)
    assert pattern.covers(pattern)
