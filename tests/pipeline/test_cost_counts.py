"""Counts are those of asking every filter about every event, however the history is divided [design.md §8]."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from costed import by_hand, drawn, put_lines
from hand_written import PUBEND, STREAM, HandWritten, event, events

from holdfast.errors import CallersFault
from holdfast.events.event import Event
from holdfast.filters.covering import covers
from holdfast.filters.parse import parse_filter
from holdfast.filters.text import filter_text
from holdfast.pipeline.cost.costs import costs_of
from holdfast.pipeline.cost.coverings import FILTERS_MAX, coverings
from holdfast.pipeline.cost.engine import choose, index_of, tally_history
from holdfast.pipeline.cost.history import stretches_of
from holdfast.pipeline.cost.stretches import BadLine, LocalTicks, line_stretches
from holdfast.pipeline.cost.tally import Count, Tally, added, tally


@pytest.mark.parametrize("seed", range(12))
def test_counts_are_those_of_naive_matching(tmp_path: Path, seed: int) -> None:
    filters, history = drawn(seed, 12, 150)
    texts = [filter_text(each) for each in filters]
    path = put_lines(tmp_path / "events.jsonl", history)
    assert tally_history(stretches_of([path], None), texts, 9, "local") == by_hand(filters, 9, history)


@pytest.mark.parametrize("size", [1, 7, 100, 4_096, 1 << 20])
def test_stretches_of_any_size_add_up(tmp_path: Path, size: int) -> None:
    filters, history = drawn(99, 6, 60)
    path = put_lines(tmp_path / "events.jsonl", history)
    index = index_of(tuple(filter_text(each) for each in filters))
    parts = [tally(index, 4, stretch.batches()) for stretch in line_stretches(path, size)]
    assert added(parts, 6) == by_hand(filters, 4, history)
    assert added(reversed(parts), 6) == by_hand(filters, 4, history), "in any order"


@pytest.mark.parametrize("seed", range(6))
def test_what_covers_what_is_what_the_covering_relation_says(seed: int) -> None:
    """The tallies rule out pairs, and never one that covers."""
    filters, history = drawn(seed + 500, 14, 80)
    filters += [parse_filter("#"), parse_filter("#")]
    found = coverings(filters, by_hand(filters, 15, history).counts, 15)
    assert found == [
        [j for j in range(15) if j != i and covers(filters[j], filters[i])] for i in range(len(filters))
    ]


def test_what_would_be_asked_too_often_is_not_asked() -> None:
    many = [parse_filter("a")] * (FILTERS_MAX + 1)
    assert coverings(many, [Count()] * len(many), len(many)) is None


def test_a_new_subscription_adds_what_no_held_one_brings() -> None:
    held = [(3, parse_filter("orders/# WHERE price > 100")), (5, parse_filter("orders/# WHERE price > 150"))]
    offered = [parse_filter(text) for text in ("orders/eu WHERE price > 120", "orders/eu WHERE price > 90")]
    history = [Event("orders/eu", {"price": price}) for price in range(81, 181)]
    filters = [*(each for _, each in held), *offered]
    counts = by_hand(filters, 2, history)
    costs = costs_of(held, offered, counts, coverings(filters, counts.counts, 2), seconds=10)
    inside, beyond = costs.offered
    assert (inside.matches, inside.added, inside.covered_by) == (60, 0, [3])
    assert (beyond.matches, beyond.added, beyond.covered_by) == (90, 10, [])
    assert (beyond.events_per_second, beyond.added_events_per_second) == (9.0, 1.0)
    assert beyond.added_bytes_per_second == beyond.added_bytes / 10 > 0
    wide, narrow = costs.held
    assert (wide.added, wide.covers, narrow.added, narrow.covered_by) == (50, [5], 0, [3])
    assert (costs.flowing, costs.seconds, wide.share) == (80, 10, 0.8)


def test_without_times_there_are_no_rates() -> None:
    costs = costs_of([(1, parse_filter("#"))], [], Tally([Count(2, 20, 2, 20)], 2, 20), None)
    assert (costs.seconds, costs.held[0].events_per_second, costs.held[0].covered_by) == (None, None, None)


def test_a_line_that_is_no_event_is_named_wherever_its_stretch_begins(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"topic": "a"}\n\n{"topic": "b"}\n{"topik": "c"}\n')
    with pytest.raises(BadLine, match=r"events\.jsonl, line 4: topik"):
        tally_history(line_stretches(path, 5), ["#"], 1, "local")
    path.write_bytes(b'{"topic": "a"}\n{"topic": "\xff"}\n')
    with pytest.raises(BadLine, match=r"line 2: not UTF-8"):
        tally_history(stretches_of([path], None), ["#"], 1, "local")


# Logs


@pytest.fixture
def written(tmp_path: Path) -> Iterator[HandWritten]:
    with HandWritten(tmp_path / "data" / "streams") as folder:
        yield folder


def test_the_log_of_a_broker_is_history_too(tmp_path: Path, written: HandWritten) -> None:
    published = events(range(1_000_000, 11_000_000, 1_000_000))
    written.publish(published)
    written.vouch(10_000_000)
    for folder in (tmp_path / "data", tmp_path / "data" / "streams"):
        found = tally_history(stretches_of([folder], STREAM), ["# WHERE i >= 6000000", "nowhere"], 2, "local")
        assert (found.events, found.seconds, found.gaps) == (10, 9.0, 0)
        assert [count.matches for count in found.counts] == [5, 0]
        assert found.event_bytes == by_hand([], 0, list(published.values())).event_bytes


def test_what_a_log_has_lost_is_said(written: HandWritten) -> None:
    written.publish({10: event(10), 20: event(20)})
    written.write([30], [b"no event"])
    written.vouch(30)
    written.release(10)
    stretch = LocalTicks(written.folder, PUBEND, 0, 30)
    found = tally(index_of(("#",)), 1, stretch.batches())
    assert (found.events, found.gaps) == (1, 2), "released, and damaged"


@pytest.mark.parametrize(
    ("name", "stream", "problem"),
    [
        ("nothing", None, "no such file or folder"),
        ("data", None, "expected --stream"),
        ("data", "other", "no log of a stream other"),
    ],
)
def test_what_is_no_history_is_named(
    tmp_path: Path, written: HandWritten, name: str, stream: str | None, problem: str
) -> None:
    with pytest.raises(CallersFault, match=problem):
        stretches_of([tmp_path / name], stream)


def test_small_histories_are_counted_here(tmp_path: Path, written: HandWritten) -> None:
    assert choose([tmp_path / "data", put_lines(tmp_path / "few.jsonl", [Event("a")])]) == "local"
