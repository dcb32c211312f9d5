"""What a client is told of the streams of a network: their topics, what is promised of them, and their order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["STREAMS_MAX", "Guarantee", "Order", "StreamOrder"]

#: No network has more streams.
STREAMS_MAX = 10_000


class Order(StrEnum):
    """The order in which a subscriber sees the events of a stream."""

    NONE = "none"
    FIFO = "fifo"
    TOTAL = "total"  #: only on streams that are logged


class Guarantee(StrEnum):
    """What is promised of the events of a stream [design.md §2]."""

    BEST_EFFORT = "best-effort"
    RELIABLE = "reliable"
    DURABLE = "durable"


@dataclass(frozen=True, slots=True)
class StreamOrder:
    """One stream, as clients must know it."""

    stream: str
    order: Order
    guarantee: Guarantee = Guarantee.BEST_EFFORT
    topics: tuple[str, ...] = ()  #: patterns; a topic belongs to the first stream that has one for it
