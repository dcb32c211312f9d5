"""The trie of topic patterns against patterns asked one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.events.topic import topic_levels
from holdfast.filters.topic import TopicPattern, parse_pattern
from holdfast.matching.trie import TopicTrie
from strategies import topic_patterns, topics


@given(st.lists(topic_patterns(), max_size=12), st.lists(topics(), min_size=1, max_size=4), st.data())
def test_trie_agrees_with_patterns_asked_one_by_one(
    patterns: list[TopicPattern], asked: list[str], data: st.DataObject
) -> None:
    trie = TopicTrie()
    held = [(pattern, trie.acquire(pattern)) for pattern in patterns]
    while True:
        for stamp, topic in enumerate(asked, start=1):
            levels = topic_levels(topic)
            met = trie.walk(levels, stamp)
            expected = {pattern for pattern, _ in held if pattern.matches(levels)}
            assert len(met) == len(expected), "each pattern once"
            assert {pattern for pattern, bucket in held if bucket in met} == expected
            assert all(bucket.stamp == stamp for bucket in met)
        assert len(trie) == len({pattern for pattern, _ in held})
        if not held:
            break
        _, bucket = held.pop(data.draw(st.integers(0, len(held) - 1)))
        trie.release(bucket)
    assert trie._root.is_idle(), "no node is left behind"


def test_equal_patterns_share_a_bucket_and_are_found_again() -> None:
    trie = TopicTrie()
    first = trie.acquire(parse_pattern("a/+/#"))
    assert trie.acquire(parse_pattern("a/+/#")) is first
    assert trie.find(parse_pattern("a/+/#")) is first
    assert trie.find(parse_pattern("a/+")) is None
    assert trie.find(parse_pattern("b/#")) is None
    trie.release(first)
    assert trie.find(parse_pattern("a/+/#")) is first
    trie.release(first)
    assert trie.find(parse_pattern("a/+/#")) is None
