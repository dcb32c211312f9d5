"""Hypothesis strategies for filters and events, from vocabularies so small that they meet.

Two conditions drawn here speak of the same five attributes, an event has those attributes more often than not, and
its values are the literals of the filters, their neighbours, and the places where arithmetic breaks (2**53 and what
lies beside it, the ends of 64 bits, ``-0.0``). So matches, near misses, NULLs and clashes of types are all common,
which values drawn at large would hardly ever give.

``filters(xpath=False)`` and the like leave parts of the language out; see ``Parts``. ``events(near=[f])`` draws events
that come close to matching the filters given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from drawn_events import a_document, an_event
from drawn_filters import (
    VALUES,
    Drawn,
    Parts,
    Source,
    a_condition,
    a_filter,
    a_path,
    a_topic,
    a_topic_pattern,
    an_expression,
    topic_text,
)
from holdfast.events.event import Event
from holdfast.events.value import Value
from holdfast.filters.expression import Condition, Expression, Filter
from holdfast.filters.topic import TopicPattern
from holdfast.filters.xpath import Path

T = TypeVar("T")


def drawn(make: Callable[[Source], T]) -> st.SearchStrategy[T]:
    """What ``make`` makes, from choices that Hypothesis draws."""

    @st.composite
    def strategy(draw: st.DrawFn) -> T:
        return make(Drawn(draw))

    return strategy()


def filters(**parts: Any) -> st.SearchStrategy[Filter]:
    """Filters; ``parts`` are those of ``Parts``."""
    return drawn(lambda source: a_filter(source, Parts(**parts)))


def conditions(**parts: Any) -> st.SearchStrategy[Condition]:
    """Conditions; ``parts`` are those of ``Parts``."""
    return drawn(lambda source: a_condition(source, Parts(**parts)))


def expressions() -> st.SearchStrategy[Expression]:
    """Attributes, literals, signs and arithmetic."""
    return drawn(an_expression)


def topic_patterns() -> st.SearchStrategy[TopicPattern]:
    """Topic patterns with and without wildcards."""
    return drawn(a_topic_pattern)


def topics() -> st.SearchStrategy[str]:
    """Topics of events, in canonical form."""
    return drawn(lambda source: topic_text(a_topic(source)))


def paths() -> st.SearchStrategy[Path]:
    """XPaths."""
    return drawn(a_path)


def documents(near: Sequence[Path] = ()) -> st.SearchStrategy[bytes]:
    """Well-formed XML."""
    return drawn(lambda source: a_document(source, near))


def events(near: Sequence[Filter] = ()) -> st.SearchStrategy[Event]:
    """Events, with documents, payloads that are none, and payloads that only claim to be."""
    return drawn(lambda source: an_event(source, near))


def values() -> st.SearchStrategy[Value]:
    """Values of attributes."""
    return st.sampled_from(VALUES)
