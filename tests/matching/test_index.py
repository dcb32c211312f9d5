"""Every engine against the same rules, and the index against its naive twin."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given

from drawn_filters import ALL, Parts, Seeded
from examples import examples
from histories import History, a_history, answers
from holdfast.events.document import Document, parse_document
from holdfast.events.event import Event
from holdfast.filters.parse import parse_filter
from holdfast.matching.engine import engines, new_index
from holdfast.matching.hashed import HashedIndex
from holdfast.matching.index import MatchingIndex
from holdfast.matching.naive import NaiveIndex
from holdfast.matching.posting import Extra
from strategies import drawn

INDEXES = engines()
EVERY_ENGINE = {"naive": NaiveIndex, **INDEXES}
KINDS = {
    "everything": ALL,
    "plain predicates": Parts(xpath=False, shard=False, like=False, arithmetic=False),
    "deep": Parts(xpath=False, depth=5, width=4),
}


@pytest.fixture(params=list(EVERY_ENGINE))
def index(request: pytest.FixtureRequest) -> MatchingIndex:
    return EVERY_ENGINE[request.param]()


def matches(index: MatchingIndex, event: Event) -> list[int]:
    return index.match([event])[0]


# Conformance


def test_an_empty_index_matches_nothing(index: MatchingIndex) -> None:
    assert index.match([Event("a"), Event("b")]) == [[], []]
    assert index.match([]) == []
    assert len(index) == 0


def test_equal_filters_are_separate_subscriptions(index: MatchingIndex) -> None:
    one, other = index.add(parse_filter("a WHERE x = 1")), index.add(parse_filter("a WHERE x = 1"))
    assert one != other
    assert matches(index, Event("a", {"x": 1})) == sorted([one, other])
    index.remove(one)
    assert matches(index, Event("a", {"x": 1})) == [other]


def test_ids_are_dense_and_taken_again(index: MatchingIndex) -> None:
    ids = [index.add(parse_filter(f"a WHERE x = {i}")) for i in range(5)]
    assert sorted(ids) == list(range(5))
    index.remove(ids[2])
    assert index.add(parse_filter("b")) == ids[2]
    assert matches(index, Event("b")) == [ids[2]]


@pytest.mark.parametrize("unknown", [-1, 0, 7])
def test_removing_what_is_not_there_is_a_key_error(index: MatchingIndex, unknown: int) -> None:
    added = index.add(parse_filter("a"))
    index.remove(added)
    with pytest.raises(KeyError):
        index.remove(unknown)
    with pytest.raises(KeyError):
        index.remove(added)


def test_results_ascend(index: MatchingIndex) -> None:
    texts = ["#", "a WHERE x > 0", "a", "+", "# WHERE x IN (1, 2)", "# WHERE NOT y = 1", "a WHERE x < 9 OR z"]
    for text in texts:
        index.add(parse_filter(text))
    assert matches(index, Event("a", {"x": 1, "y": 2})) == list(range(7))


def test_a_batch_is_its_events_one_by_one(index: MatchingIndex) -> None:
    for text in ("a WHERE x = 1", "a/#", "# WHERE y IS NULL", "# WHERE XPATH '/d'"):
        index.add(parse_filter(text))
    events = [
        Event("a", {"x": 1}),
        Event("a/b", {"y": 1}),
        Event("c", {}, b"<d/>", "text/xml"),
        Event("a", {"x": 1.0}),
    ]
    assert index.match(events) == [matches(index, event) for event in events]


def test_a_filter_that_can_never_be_true_is_kept_and_can_be_removed(index: MatchingIndex) -> None:
    never = index.add(parse_filter("a WHERE x = 1 AND x = 2"))
    assert matches(index, Event("a", {"x": 1})) == []
    assert len(index) == 1
    index.remove(never)
    assert len(index) == 0


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        ("# WHERE x > 9007199254740992", {"x": 9007199254740993}, True),
        ("# WHERE x >= 9007199254740993", {"x": 9007199254740992}, False),
        ("# WHERE x >= 9007199254740993", {"x": 9007199254740992.0}, False),
        ("# WHERE x < 9007199254740993", {"x": 9007199254740992.0}, True),
        ("# WHERE x = 9007199254740993", {"x": 9007199254740993}, True),
        ("# WHERE x = 9007199254740993", {"x": 9007199254740992.0}, False),
        ("# WHERE x BETWEEN 9007199254740991 AND 9007199254740993", {"x": 9007199254740993}, True),
        ("# WHERE x BETWEEN 9223372036854775806 AND 9223372036854775807", {"x": 9223372036854775806}, True),
        ("# WHERE x BETWEEN 1 AND 2 AND y = 1", {"x": 2, "y": True}, False),
        ("# WHERE x BETWEEN -1e308 AND 1e308", {"x": 5e-324}, True),
        ("# WHERE x BETWEEN 1e300 AND 1.5e300", {"x": 1.2e300}, True),
        ("# WHERE x BETWEEN 1e300 AND 1.5e300", {"x": 1.6e300}, False),
        ("# WHERE x BETWEEN 1e-320 AND 2e-320", {"x": 1.5e-320}, True),
        ("# WHERE x = 1", {"x": True}, False),
        ("# WHERE x = 0", {"x": -0.0}, True),
        ("# WHERE x = TRUE", {"x": 1}, False),
        ("# WHERE s BETWEEN 'apple' AND 'apricot'", {"s": "apricot"}, True),
        ("# WHERE s BETWEEN 'apple' AND 'apricot'", {"s": "april"}, False),
        ("# WHERE s > 'a' AND s < 'b'", {"s": "a\U0010ffff"}, True),
        ("# WHERE s LIKE '\U0010ffff%'", {"s": "\U0010ffffz"}, True),
        ("# WHERE s LIKE '%'", {"s": ""}, True),
        ("# WHERE s NOT LIKE 'ab%'", {"s": "ac"}, True),
        ("# WHERE s IS NOT NULL", {"s": b"\x00"}, True),
        ("# WHERE NOT s = 'a'", {"s": b"\x00"}, False),
        ("# WHERE x NOT IN (1, 'a')", {"x": 2}, False),
        ("# WHERE x * 2 > y OR s IS NULL", {"x": 1, "y": 1, "s": ""}, True),
    ],
)
def test_places_where_an_index_goes_wrong(
    index: MatchingIndex, text: str, event: dict[str, Any], expected: bool
) -> None:
    index.add(parse_filter(text))
    # Company, so that the filter is also found beside others and among other structures.
    for other in ("# WHERE x = 7", "# WHERE x BETWEEN 5 AND 6", "# WHERE s = 'zz'", "# WHERE y > 100000"):
        index.add(parse_filter(other))
    assert (0 in matches(index, Event("t", event))) is expected


# Agreement


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_engine_agrees_with_the_naive_twin(kind: str) -> None:
    @examples(150)
    @given(drawn(lambda source: a_history(source, KINDS[kind])))
    def agrees(history: History) -> None:
        expected = answers(NaiveIndex(), history)
        for engine, new in INDEXES.items():
            index = new()
            assert answers(index, history) == expected, engine
            if isinstance(index, HashedIndex):
                assert_empty(index)

    agrees()


def assert_empty(index: HashedIndex) -> None:
    """After everything was removed nothing is left behind: an index that lives for a year must not grow."""
    assert not index._catalogue.attributes
    assert not index._catalogue.computed
    assert not index._catalogue.paths
    assert not index._catalogue.path_of
    assert not index._catalogue.inside
    assert not index._catalogue.outside
    assert not index._catalogue.absent_access
    assert not index._catalogue.computed_access
    assert not len(index._catalogue.trie)
    assert not index._catalogue.trie._root.children
    assert not len(index._catalogue.automaton)
    assert not index._catalogue.topics.strings
    assert not index._catalogue.topics.uses
    assert not index._catalogue.always.entries


def forgets_the_topic(index: HashedIndex, extra: Extra) -> bool:
    return all(index._holds(branch) for branch in extra.branches)


def forgets_branches(index: HashedIndex, extra: Extra) -> bool:
    return True


class KeepsTheDead(HashedIndex):
    def remove(self, subscription: int) -> None:
        entry = self._entries[subscription]
        assert entry is not None
        lane, lo, hi, bucket = entry.lane, entry.lo, entry.hi, entry.bucket
        super().remove(subscription)
        entry.lane, entry.lo, entry.hi, entry.bucket = lane, lo, hi, bucket


@pytest.mark.parametrize("fault", [forgets_the_topic, forgets_branches])
def test_a_planted_fault_in_verification_is_caught(fault: Callable[..., bool]) -> None:
    faulty = type("Faulty", (HashedIndex,), {"_holds_extra": fault})
    assert caught(faulty)


def test_a_planted_fault_in_removal_is_caught() -> None:
    assert caught(KeepsTheDead)


def test_no_fault_is_seen_where_none_was_planted() -> None:
    assert not caught(HashedIndex, histories=50)


def caught(engine: Callable[[], MatchingIndex], histories: int = 500) -> bool:
    for seed in range(histories):
        history = a_history(Seeded(Random(seed)), KINDS["everything"])
        try:
            if answers(engine(), history) != answers(NaiveIndex(), history):
                return True
        except (KeyError, AssertionError):
            return True
    return False


# What the index may look at


def test_the_document_is_parsed_only_if_a_candidate_looks_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    def counted(payload: bytes) -> Document:
        parsed.append(payload)
        return parse_document(payload)

    monkeypatch.setattr("holdfast.filters.subject.parse_document", counted)
    index = new_index()
    looks = index.add(parse_filter("news/# WHERE XPATH '/d'"))
    picky = index.add(parse_filter("# WHERE sym = 'IBM' AND XPATH '/d'"))
    assert index.match([Event("orders", {"sym": "SAP"}, b"<d/>", "text/xml")]) == [[]]
    assert not parsed
    assert index.match([Event("orders", {"sym": "IBM"}, b"<d/>", "text/xml")]) == [[picky]]
    assert len(parsed) == 1
    assert index.match([Event("news/eu", {"sym": "IBM"}, b"<d/>", "text/xml")]) == [[looks, picky]]
    assert len(parsed) == 2, "once per event, however many ask"


@pytest.mark.parametrize("literals", [[str(i) for i in range(3_000)], [f"'s{i}'" for i in range(3_000)]])
def test_what_a_long_not_in_leaves_is_not_filed_in_thousands_of_pieces(literals: list[str]) -> None:
    index, naive = HashedIndex(), NaiveIndex()
    filter = parse_filter(f"# WHERE x NOT IN ({', '.join(literals)})")
    for engine in (index, naive):
        engine.add(filter)
    entry = index._entries[0]
    assert entry is not None
    assert len(entry.buckets()) == 1
    values: list[float | str] = [-1, 0, 0.5, 2_999, 2_999.5, 3_000, "s0", "s1x", "", "t"]
    events = [Event("t", {"x": value}) for value in values]
    assert index.match(events) == naive.match(events)
    index.remove(0)
    assert_empty(index)


def test_removed_subscriptions_leave_the_buckets_they_shared() -> None:
    index = HashedIndex()
    ids = [index.add(parse_filter("# WHERE k = 'same'")) for _ in range(1_000)]
    for subscription in ids[:-1]:
        index.remove(subscription)
    bucket = index._catalogue.attributes["k"].strings["same"]
    assert len(bucket.entries) <= 2 * len(bucket) + 1
    assert index.match([Event("t", {"k": "same"})]) == [[ids[-1]]]
