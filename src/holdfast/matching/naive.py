"""The plain twin: every filter as a compiled closure, every closure called on every event.

This is what the index must agree with, and what it must beat. The closures are as fast as we can make them, and what
filters share (the split topic, the parsed document) is worked out once per event here too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.events.event import Content
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.expression import Filter
from holdfast.filters.subject import Subject

__all__ = ["NaiveIndex"]


class NaiveIndex:
    """A ``MatchingIndex`` that asks everyone."""

    def __init__(self) -> None:
        self._matchers: dict[int, Callable[[Subject], bool]] = {}
        self._free: list[int] = []

    def add(self, filter: Filter) -> int:
        """Add a subscription and return its id."""
        subscription = self._free.pop() if self._free else len(self._matchers)
        self._matchers[subscription] = compile_filter(filter)
        return subscription

    def remove(self, subscription: int) -> None:
        """Remove a subscription; KeyError if there is none with this id."""
        del self._matchers[subscription]
        self._free.append(subscription)

    def match(self, events: Sequence[Content]) -> list[list[int]]:
        """For each event the ids of the matching subscriptions, ascending."""
        matchers = list(self._matchers.items())
        results: list[list[int]] = []
        for event in events:
            subject = Subject(event)
            results.append(sorted([i for i, matches in matchers if matches(subject)]))
        return results

    def __len__(self) -> int:
        return len(self._matchers)
