"""Which filters match which events, worked out again from the language alone [contracts.md §2].

A trace has topics and attributes and no payloads. So of a filter with XPATH it is never certain that it matches, and
only possible while its other conditions are true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.events.event import Event
from holdfast.events.topic import canonical_topic
from holdfast.filters.expression import And, Condition, Filter, Not, Or, XPath, conjunction
from holdfast.filters.parse import parse_filter
from holdfast.matching.engine import new_index

__all__ = ["Rematch"]


class Rematch:
    """Filters, by their places in a list; asked about many events at once."""

    def __init__(self, filters: Sequence[str]) -> None:
        self._index = new_index()
        self._certain: list[bool] = []
        for text in filters:
            filter = parse_filter(text)
            asked = _without_payload(filter)
            place = self._index.add(asked)
            assert place == len(self._certain)
            self._certain.append(asked is filter)

    def matches(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> list[tuple[list[int], list[int]]]:
        """For each event, a topic with attributes: the filters that certainly match, and those that possibly do."""
        contents = [
            Event(
                canonical_topic(topic),
                {name: value for name, value in attributes.items() if value is not None},
            )
            for topic, attributes in events
        ]
        return [
            ([place for place in possible if self._certain[place]], list(possible))
            for possible in self._index.match(contents)
        ]


def _without_payload(filter: Filter) -> Filter:
    """The filter itself, if it does not ask about payloads; else what must be true besides."""
    condition = filter.condition
    if condition is None or not _asks_payload(condition):
        return filter
    needed = condition.operands if isinstance(condition, And) else (condition,)
    askable = [each for each in needed if not _asks_payload(each)]
    return Filter(filter.pattern, conjunction(askable) if askable else None)


def _asks_payload(condition: Condition) -> bool:
    match condition:
        case XPath():
            return True
        case And(operands) | Or(operands):
            return any(map(_asks_payload, operands))
        case Not(operand):
            return _asks_payload(operand)
        case _:
            return False
