"""How pubends are called (``streams.pubend_names``), and the topics under which they and brokers make themselves known.

Pubends and brokers spread as subscriptions to topics no event has, so that everything that holds for subscriptions,
confirming, recovering, going around failed brokers, holds for the way to a pubend or a broker as well (decision 0015).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, unquote

from holdfast.filters.expression import Filter
from holdfast.filters.topic import TopicPattern
from holdfast.streams.pubend_names import owner_in, pubend_name, stream_in

__all__ = [
    "broker_filter",
    "broker_in",
    "is_reserved",
    "owner_in",
    "pubend_filter",
    "pubend_in",
    "pubend_name",
    "stream_in",
]

_PUBENDS: Final = "$pubend"
_BROKERS: Final = "$broker"


def is_reserved(levels: Sequence[str]) -> bool:
    """Whether a topic, or a pattern, is kept for what brokers make known: nobody else publishes or subscribes there."""
    return bool(levels) and levels[0] in (_PUBENDS, _BROKERS)


def pubend_filter(pubend: str) -> Filter:
    """What spreads the way to a pubend."""
    return Filter(TopicPattern((_PUBENDS, *pubend.split("/"))))


def broker_filter(broker: str) -> Filter:
    """What spreads the way to a broker."""
    return Filter(TopicPattern((_BROKERS, quote(broker, safe=""))))


def pubend_in(filter: Filter) -> str | None:
    """The pubend a subscription makes known, if it does."""
    levels = filter.pattern.levels
    is_one = len(levels) > 1 and levels[0] == _PUBENDS and filter.pattern.is_literal
    return "/".join(levels[1:]) if is_one else None


def broker_in(filter: Filter) -> str | None:
    """The broker a subscription makes known, if it does."""
    levels = filter.pattern.levels
    is_one = len(levels) == 2 and levels[0] == _BROKERS and filter.pattern.is_literal
    return unquote(levels[1]) if is_one else None
