"""Pruning never changes an answer: where an event matches, its zone may match [issue 6, history]."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

from drawn_events import an_event
from drawn_filters import NAMES, Seeded, a_filter
from holdfast.events.event import Event
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.filters.text import filter_text
from holdfast.pipeline.lake.files import Zone
from holdfast.pipeline.lake.pruning import Pruner

TYPES: dict[str, type] = {"x": int, "y": float, "s": str, "in": str}


def zones_of(events: Sequence[Event]) -> dict[str, Zone]:
    """As a file has them: of attributes whose values all have the type of the column."""
    topics = [each.topic for each in events]
    zones = {"kind": Zone("event", "event", 0), "topic": Zone(min(topics), max(topics), 0)}
    for name, kind in TYPES.items():
        values: list[Any] = [each.attributes[name] for each in events if name in each.attributes]
        if all(type(value) is kind for value in values):
            least, greatest = (min(values), max(values)) if values else (None, None)
            zones[f"a.{name}"] = Zone(least, greatest, len(events) - len(values))

    return zones


@pytest.mark.parametrize("seed", range(20))
def test_what_matches_is_never_passed_over(seed: int) -> None:
    source = Seeded(random.Random(seed))
    passed_over = 0
    for _ in range(60):
        wanted = a_filter(source)
        pruner = Pruner(wanted)
        matches = compile_filter(wanted)
        for _ in range(8):
            events = [an_event(source, [wanted]) for _ in range(source.random.choice([1, 1, 2, 3]))]
            may = pruner.may_match(zones_of(events))
            passed_over += not may
            if not may:
                assert not any(matches(Subject(each)) for each in events), filter_text(wanted)
    assert passed_over > 20, "and it is of some use"
    assert set(TYPES) < set(NAMES)


@pytest.mark.parametrize(
    ("text", "zone", "answer"),
    [
        ("# WHERE x >= 5", Zone(1, 5, 0), True),
        ("# WHERE x > 5", Zone(1, 5, 0), False),
        ("# WHERE x <= 1", Zone(1, 5, 0), True),
        ("# WHERE x < 1", Zone(1, 5, 0), False),
        ("# WHERE x = 3", Zone(1, 5, 0), True),
        ("# WHERE x = 5", Zone(1, 5, 0), True),
        ("# WHERE NOT x = 5", Zone(5, 5, 0), False),
        ("# WHERE x IN (7, 9)", Zone(1, 5, 0), False),
        ("# WHERE x IS NULL", Zone(1, 5, 1), True),
        ("# WHERE x IS NULL", Zone(1, 5, 0), False),
        ("# WHERE x IS NOT NULL", Zone(None, None, 9), False),
        ("# WHERE x = 'a'", Zone(1, 5, 0), False),
        ("# WHERE x LIKE 'ab%'", Zone("abc", "abd", 0), True),
        ("# WHERE x LIKE 'ac%'", Zone("abc", "abd", 0), False),
        ("# WHERE x = 9 OR y = 1", Zone(1, 5, 0), True),
        ("# WHERE x + 1 = 100", Zone(1, 5, 0), True),
    ],
)
def test_regions_and_zones_have_something_in_common_or_not(text: str, zone: Zone, answer: bool) -> None:
    zones = {"kind": Zone("event", "event", 0), "a.x": zone}
    assert Pruner(parse_filter(text)).may_match(zones) == answer
    assert Pruner(parse_filter(text)).may_match({**zones, "kind": Zone("event", "gap", 0)}), "gaps are wanted"
    assert Pruner(parse_filter(text)).may_match({"kind": zones["kind"]}), "what is not known may match"


@pytest.mark.parametrize(
    ("pattern", "least", "greatest", "answer"),
    [
        ("a/b", "a/a", "a/c", True),
        ("a/b", "a/c", "a/d", False),
        ("a/b/#", "a/b", "a/b", True),
        ("a/b/#", "a/b/c", "a/b/d", True),
        ("a/b/#", "a/c", "b", False),
        ("a/+/c", "a/x/c", "a/y/c", True),
        ("a/+/c", "b", "c", False),
        ("+/x", "b", "c", True),
        ("//a", "//a", "//a", True),
    ],
)
def test_topics_begin_with_what_a_pattern_begins_with(
    pattern: str, least: str, greatest: str, answer: bool
) -> None:
    zones = {"kind": Zone("event", "event", 0), "topic": Zone(least, greatest, 0)}
    assert Pruner(parse_filter(pattern)).may_match(zones) == answer
