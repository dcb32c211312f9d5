"""Whether an event of the trace matches a filter of the trace, worked out again from the language alone.

A trace has topics and attributes and no payloads, so a filter with XPATH is judged by its other conditions: False if
one of those it needs is not true, else None, which is "cannot be told from here".
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.errors import FilterError
from holdfast.events.event import Event
from holdfast.events.topic import canonical_topic
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.expression import And, Condition, Filter, Not, Or, XPath, conjunction
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.scenarios.trace import TraceLine

__all__ = ["Rematch"]


class Rematch:
    """Asks filters about published events; every filter is compiled once, every event read once."""

    def __init__(self) -> None:
        self._matchers: dict[str, Callable[[Subject], bool | None]] = {}
        self._subjects: dict[tuple[str, int], Subject] = {}

    def matches(self, text: str, published: TraceLine) -> bool | None:
        """Whether the event of a ``publish`` line matches; None: the trace does not say."""
        matcher = self._matchers.get(text)
        if matcher is None:
            matcher = self._matchers[text] = _matcher(text)
        key = (published["publisher"], published["n"])
        subject = self._subjects.get(key)
        if subject is None:
            event = Event(canonical_topic(published["topic"]), published["attributes"])
            subject = self._subjects[key] = Subject(event)
        return matcher(subject)


def _matcher(text: str) -> Callable[[Subject], bool | None]:
    try:
        filter = parse_filter(text)
    except FilterError:
        return lambda subject: None  # ``wellformed`` says so
    if filter.condition is None or not _asks_payload(filter.condition):
        return compile_filter(filter)
    condition = filter.condition
    needed = condition.operands if isinstance(condition, And) else (condition,)
    askable = [one for one in needed if not _asks_payload(one)]
    possible = compile_filter(Filter(filter.pattern, conjunction(askable) if askable else None))
    return lambda subject: None if possible(subject) else False


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
