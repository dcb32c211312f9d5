"""A sieve never changes an answer: what matches passes it, whatever the filter [issue 6, source]."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from drawn_events import an_event
from drawn_filters import Seeded, a_filter
from holdfast.events.event import Event
from holdfast.events.packed import pack
from holdfast.events.value import Value
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.expression import Filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.filters.text import filter_text
from holdfast.messages.publications import Publication
from holdfast.pipeline import dividing, sieve
from holdfast.pipeline.sieve import Sieve
from holdfast.storage.records import Records
from holdfast.streams.records import record_of

ENGINES = dividing.engines()
BIG = 2**53


def passed(engine: str, wanted: Filter, events: Sequence[Event]) -> list[int]:
    records = [record_of(Publication("p", n, pack(event))) for n, event in enumerate(events, 1)]
    found = Sieve(wanted).passed(ENGINES[engine]([Records.of(records)]))
    assert set(found.sure) <= set(matched(wanted, events)), "what is sure matches"
    assert found.sure == sorted(found.sure)
    assert found.maybe == sorted(found.maybe)
    return sorted([*found.sure, *found.maybe])


def matched(wanted: Filter, events: Sequence[Event]) -> list[int]:
    matches = compile_filter(wanted)
    return [i for i, event in enumerate(events) if matches(Subject(event))]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("engine", ENGINES)
def test_what_matches_passes(engine: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dividing, "EVENTS_MIN", 1)
    source = Seeded(random.Random(f"sieve {seed}"))
    held_back = looked_at = 0
    for _ in range(60):
        wanted = a_filter(source)
        kinds = [an_event(source, [wanted]) for _ in range(3)]
        events = [*kinds, *(_like(source, source.pick(kinds), wanted) for _ in range(20))]
        found = passed(engine, wanted, events)
        assert found == sorted(set(found))
        assert set(matched(wanted, events)) <= set(found), filter_text(wanted)
        held_back += len(events) - len(found)
        looked_at += len(events)
    assert held_back > looked_at // 10, "and it is of some use"


def _like(source: Seeded, event: Event, wanted: Filter) -> Event:
    """An event with the names and types of another, as far as values of another one allow."""
    other = an_event(source, [wanted])
    values = {
        name: other.attributes[name] if type(other.attributes.get(name)) is type(value) else value
        for name, value in event.attributes.items()
    }
    return Event(other.topic, values, event.payload, event.content_type)


def of(values: Sequence[Value]) -> list[Event]:
    return [Event("orders/eu" if i % 2 else "orders/us", {"x": value}) for i, value in enumerate(values)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("# WHERE x > 5", [4, 5, 6, -7, BIG]),
        ("# WHERE x >= 5 AND x < 7", [4, 5, 6, 7, 8]),
        ("# WHERE x = 9007199254740993", [BIG, BIG + 1, BIG + 2, BIG - 1]),
        ("# WHERE x < 9223372036854775807", [2**63 - 1, 2**63 - 2, 0]),
        ("# WHERE x > 5.5", [5, 6, 5, 6]),
        ("# WHERE x > 0.1", [0.1, 0.2, 0.0, -0.1]),
        ("# WHERE x = 0", [0.0, -0.0, 1.0]),
        ("# WHERE x IN (1, 3, 'a')", [1, 2, 3, 4]),
        ("# WHERE x IN ('a', 'é', '\U0001f600')", ["a", "b", "é", "\U0001f600", "\uffff"]),
        ("# WHERE x > 'b'", ["a", "b", "ba", "é", "\U0001f600", ""]),
        ("# WHERE x BETWEEN 'b' AND 'é'", ["a", "b", "c", "é", "éa", "\U0001f600"]),
        ("# WHERE x LIKE 'a%'", ["a", "ab", "b", "", "A"]),
        ("# WHERE x LIKE '%a'", ["a", "ab", "b", "ba"]),
        ("# WHERE NOT x LIKE 'a%'", ["a", "ab", "b", ""]),
        ("# WHERE x", [True, False, True]),
        ("# WHERE NOT x", [True, False, True]),
        ("# WHERE x IS NULL", [1, 2]),
        ("# WHERE x IS NOT NULL", [b"1", b"2"]),
        ("# WHERE x = 1", [b"1", b"2"]),
        ("# WHERE x + 1 = 3", [1, 2, 3]),
        ("# WHERE y IS NULL", [1, 2]),
        ("# WHERE y = 1 OR x = 2", [1, 2, 3]),
        ("orders/eu", [1, 2, 3]),
        ("orders/+ WHERE x = 1", [1, 2, 3]),
        ("other/#", [1, 2, 3]),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_bounds_rounding_order_and_absence(engine: str, text: str, values: list[Value]) -> None:
    wanted = parse_filter(text)
    events = of(values)
    assert set(matched(wanted, events)) <= set(passed(engine, wanted, events))


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("# WHERE x > 5", [4, 6, 3, 7], [1, 3]),
        ("# WHERE x = 'a' OR x > 'y'", ["a", "b", "z", "y"], [0, 2, 3]),
        ("# WHERE x = 'a' AND y = 1", ["a", "b"], []),
        ("# WHERE x", [True, False], [0]),
        ("orders/eu WHERE x < 3", [1, 1, 9, 9], [1]),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_what_surely_does_not_match_is_held_back(
    engine: str, text: str, values: list[Value], expected: list[int]
) -> None:
    assert passed(engine, parse_filter(text), of(values)) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_a_region_may_end_with_what_is_no_text(engine: str) -> None:
    """Behind all that begins with the last character before the surrogates stands the first of these."""
    events = of(["a", "\ud7ff", "\ud7ffa", "\ue000"])
    wanted = parse_filter("# WHERE x LIKE '\ud7ff%'")
    assert matched(wanted, events) == [1, 2]
    assert set(passed(engine, wanted, events)) >= {1, 2}


@pytest.mark.parametrize("engine", ENGINES)
def test_events_of_no_kind_pass(engine: str) -> None:
    """Whatever is packed in its own way, or is no event, is for others to judge."""
    records = [b"?", record_of(Publication("p", 1, b"\xff")), *([b"\x93\xa1p\x01\xc4\x01\xff"] * 3)]
    sieve = Sieve(parse_filter("# WHERE x = 1"))
    assert sieve.passed(ENGINES[engine]([Records.of(records)])) == ([], list(range(5)))


def test_a_sieve_that_rounds_the_wrong_way_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the tests above would not show anything."""

    def strict(intervals: Any, column: Any) -> Any:
        return sound(intervals, column) & (column.to_numpy() != 5)

    sound = sieve._number_lies
    monkeypatch.setattr(sieve, "_number_lies", strict)
    events = of([4, 5, 6])
    wanted = parse_filter("# WHERE x >= 5")
    assert not set(matched(wanted, events)) <= set(passed("pure", wanted, events))
