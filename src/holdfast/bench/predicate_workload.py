"""The workload for predicates and topics.

Conjunctions of one to four predicates over twenty attributes, drawn with the skew of a Zipf distribution: eight *keys*
(symbol, account, …: equality with one of very many values), four *kinds* (side, region, …: equality with one of a
few values, Zipf), eight *measures* (price, volume, …: an interval, or a half-line). Events carry ten to twenty of them.

Every subscription has one selective predicate, as people's do: a key, or a narrow interval where it names no key. How
selective follows from the number of subscriptions, so that about the same number match an event at every size and
what is measured is the cost of all the others. The further predicates are true rather more often than not. The
constants were tuned by hand until about ``matches`` subscriptions match at every size.
"""

from __future__ import annotations

import itertools
import random
from bisect import bisect_right
from collections.abc import Callable

from holdfast.events.event import Event
from holdfast.filters.expression import (
    Attribute,
    Between,
    Comparison,
    Condition,
    Filter,
    Literal,
    Relation,
    conjunction,
)
from holdfast.filters.topic import ANYTHING, TopicPattern

__all__ = ["PredicateWorkload", "TopicWorkload", "zipf"]

_KEYS = [f"key{i}" for i in range(8)]
_KINDS = [f"kind{i}" for i in range(4)]
_MEASURES = [f"measure{i}" for i in range(8)]
_HIGH = 1_000.0  # measures are uniform below it
_KIND_VALUES = 2


def zipf(rng: random.Random, count: int, theta: float) -> Callable[[], int]:
    """Draws from 0 … count-1, the k-th with a weight of 1/(k+1)**theta."""
    cumulative = list(itertools.accumulate(1.0 / (k + 1) ** theta for k in range(count)))
    total = cumulative[-1]
    return lambda: min(bisect_right(cumulative, rng.random() * total), count - 1)


class PredicateWorkload:
    """Filters and events of which about ``matches`` subscriptions match one event."""

    def __init__(self, rng: random.Random, *, subscriptions: int, matches: float, theta: float = 1.0) -> None:
        self._rng = rng
        # Keys, kinds and measures take turns, so that the skew of attributes favours none of them.
        order = itertools.zip_longest(_KEYS, _MEASURES, _KINDS)
        self._names = [name for names in order for name in names if name is not None]
        self._next_name = zipf(rng, len(self._names), theta)
        self._next_kind = zipf(rng, _KIND_VALUES, theta)
        # 0.30 was found by trying.
        self._keys = max(4, round(0.30 * subscriptions / matches))
        self._next_key = zipf(rng, self._keys, theta / 2)

    def filter(self) -> Filter:
        """One subscription."""
        names = {self._next_name() for _ in range(self._rng.randint(1, 4))}
        chosen = [self._names[i] for i in sorted(names)]
        selective = next((name for name in chosen if name in _KEYS), chosen[0])
        if selective in _KINDS:
            selective = self._rng.choice(_KEYS)
            chosen.append(selective)
        self._rng.shuffle(chosen)
        return Filter(ANYTHING, conjunction([self._predicate(name, name == selective) for name in chosen]))

    def _predicate(self, name: str, selective: bool) -> Condition:
        attribute = Attribute(name)
        if name in _KEYS:
            return Comparison(Relation.EQ, attribute, Literal(f"v{self._next_key()}"))
        if name in _KINDS:
            return Comparison(Relation.EQ, attribute, Literal(f"k{self._next_kind()}"))
        at = self._rng.random() * _HIGH
        if selective:
            return Between(attribute, Literal(at), Literal(at + _HIGH / self._keys))
        if self._rng.random() < 0.5:
            return Comparison(self._rng.choice([Relation.GT, Relation.LE]), attribute, Literal(at))
        width = 0.7 * _HIGH
        return Between(attribute, Literal(at - width / 2), Literal(at + width / 2))

    def event(self) -> Event:
        """One event."""
        names = self._rng.sample(self._names, self._rng.randint(10, len(self._names)))
        return Event("bench", {name: self._value(name) for name in names})

    def _value(self, name: str) -> str | float:
        if name in _KEYS:
            return f"v{self._rng.randrange(self._keys)}"
        if name in _KINDS:
            return f"k{self._next_kind()}"
        return self._rng.random() * _HIGH


class TopicWorkload:
    """Topic patterns of three to six levels, a third of them with wildcards, and topics; no conditions."""

    def __init__(self, rng: random.Random, *, subscriptions: int, matches: float) -> None:
        self._rng = rng
        # The third level grows with the subscriptions, so that the number of matches stays about the same.
        self._sizes = [8, 6, max(1, round(subscriptions / matches / 115))]
        self._next_tail = zipf(rng, 8, 1.0)

    def _levels(self) -> list[str]:
        levels = [f"l{i}-{self._rng.randrange(size)}" for i, size in enumerate(self._sizes)]
        return levels + [f"t{self._next_tail()}" for _ in range(self._rng.randrange(3))]

    def filter(self) -> Filter:
        """One subscription."""
        levels = self._levels()
        if self._rng.random() < 1 / 3:
            if self._rng.random() < 0.5:
                levels[self._rng.randrange(2)] = "+"
            else:
                return Filter(TopicPattern(tuple(levels[:3]), rest=True))
        return Filter(TopicPattern(tuple(levels)))

    def event(self) -> Event:
        """One event."""
        return Event("/".join(self._levels()))
