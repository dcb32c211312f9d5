"""Histories and filters for the tests of `holdfast cost`, and the plain way to count them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from drawn_events import an_event
from drawn_filters import Seeded, a_filter
from holdfast.events.event import Event
from holdfast.events.json_form import event_to_json
from holdfast.events.packed import pack
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.expression import Filter
from holdfast.filters.subject import Subject
from holdfast.pipeline.cost.tally import Count, Tally


def drawn(seed: int, filters: int, events: int) -> tuple[list[Filter], list[Event]]:
    """Filters of all kinds, and events that come close to them; every second event has a time."""
    source = Seeded(Random(seed))
    wanted = [a_filter(source) for _ in range(filters)]
    found = [an_event(source, wanted) for _ in range(events)]
    timed = [
        Event(e.topic, e.attributes, e.payload, e.content_type, time=(1_700_000_000 + i) * 10**9)
        if i % 2
        else e
        for i, e in enumerate(found)
    ]
    return wanted, timed


def put_lines(path: Path, events: Sequence[Event]) -> Path:
    """The events as JSON Lines, with an empty line here and there."""
    path.write_text(
        "".join(event_to_json(e) + ("\n\n" if i % 7 == 0 else "\n") for i, e in enumerate(events))
    )
    return path


def by_hand(filters: Sequence[Filter], held: int, events: Sequence[Event]) -> Tally:
    """Everybody asked about everything, one by one."""
    matchers = [compile_filter(each) for each in filters]
    tally = Tally([Count() for _ in filters])
    for event in events:
        size = len(pack(event))
        wanted = [matches(Subject(event)) for matches in matchers]
        tally.events += 1
        tally.event_bytes += size
        tally.flowing += any(wanted[:held])
        tally.flowing_bytes += size * any(wanted[:held])
        if event.time is not None:
            tally.see(event.time)
        for i, is_wanted in enumerate(wanted):
            others = any(w for j, w in enumerate(wanted[:held]) if j != i)
            if is_wanted:
                tally.counts[i].add(Count(1, size, int(not others), 0 if others else size))
    return tally
