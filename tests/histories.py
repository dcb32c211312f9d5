"""Histories of an index: subscriptions come and go, events are matched in between; every engine must answer alike."""

from __future__ import annotations

from dataclasses import dataclass

from drawn_events import an_event
from drawn_filters import ALL, Parts, Source, a_filter, some
from holdfast.events.event import Event
from holdfast.filters.expression import Filter
from holdfast.matching.index import MatchingIndex


@dataclass(frozen=True)
class Add:
    filter: Filter


@dataclass(frozen=True)
class Remove:
    position: int  #: among those there are, oldest first, counted round


@dataclass(frozen=True)
class Match:
    events: list[Event]


History = list[Add | Remove | Match]


def a_history(source: Source, parts: Parts = ALL) -> History:
    """Some filters, then a mixture of adding, removing and matching, then everything removed but one."""
    filters = some(source, 8, lambda: a_filter(source, parts), least=1)
    history: History = [Add(filter) for filter in filters]

    def step() -> Add | Remove | Match:
        kind = source.pick(("match", "match", "add", "remove"))
        if kind == "add":
            # The same filter again is a subscription of its own.
            added = source.pick(filters) if source.pick((False, False, True)) else a_filter(source, parts)
            filters.append(added)
            return Add(added)
        if kind == "remove":
            return Remove(source.pick(range(16)))
        return Match(some(source, 3, lambda: an_event(source, filters), least=1))

    history += some(source, 8, step)
    last = Match(some(source, 3, lambda: an_event(source, filters), least=1))
    return [*history, last, *[Remove(i) for i in range(3)], last]


def answers(index: MatchingIndex, history: History) -> list[list[list[int]]]:
    """What an index answers, with each subscription named by its place in the history, not by its id."""
    alive: list[tuple[int, int]] = []  # (place in the history, id)
    given: list[list[list[int]]] = []
    for place, step in enumerate(history):
        match step:
            case Add(filter):
                alive.append((place, index.add(filter)))
            case Remove(position):
                if alive:
                    _, subscription = alive.pop(position % len(alive))
                    index.remove(subscription)
            case Match(events):
                names = {subscription: name for name, subscription in alive}
                given.append([sorted(names[i] for i in ids) for ids in index.match(events)])
        assert len(index) == len(alive)
    for _, subscription in alive:
        index.remove(subscription)
    assert len(index) == 0
    return given
