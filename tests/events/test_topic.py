from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.events.topic import canonical_topic, topic_levels

TOPICS = st.text(st.sampled_from("/ab$ ü"), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("topic", "canonical", "levels"),
    [
        ("a", "a", ["a"]),
        ("/a", "a", ["a"]),
        ("a/b", "a/b", ["a", "b"]),
        ("/a/b", "a/b", ["a", "b"]),
        ("a/", "a/", ["a", ""]),
        ("/a/", "a/", ["a", ""]),
        ("a//b", "a//b", ["a", "", "b"]),
        ("//a", "//a", ["", "a"]),
        ("///a", "///a", ["", "", "a"]),
        ("/", "/", [""]),
        ("//", "//", ["", ""]),
        ("$SYS/x", "$SYS/x", ["$SYS", "x"]),
        (" a / b ", " a / b ", [" a ", " b "]),
    ],
)
def test_one_leading_slash_is_dropped_and_nothing_else_changes(
    topic: str, canonical: str, levels: list[str]
) -> None:
    assert canonical_topic(topic) == canonical
    assert topic_levels(topic) == levels


@given(TOPICS)
def test_the_canonical_topic_has_the_same_levels_and_is_its_own_canonical_topic(topic: str) -> None:
    canonical = canonical_topic(topic)
    assert topic_levels(canonical) == topic_levels(topic)
    assert canonical_topic(canonical) == canonical


@given(TOPICS, TOPICS)
def test_two_topics_have_the_same_levels_exactly_when_they_have_the_same_canonical_topic(
    a: str, b: str
) -> None:
    assert (topic_levels(a) == topic_levels(b)) == (canonical_topic(a) == canonical_topic(b))


@given(st.lists(st.text(st.sampled_from("ab "), max_size=3), min_size=1, max_size=5))
def test_every_list_of_levels_can_be_written_as_a_topic(levels: list[str]) -> None:
    assert topic_levels("/" + "/".join(levels)) == levels
