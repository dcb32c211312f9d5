"""What a client is told of the streams of a network: their names and their order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["STREAMS_MAX", "Order", "StreamOrder"]

#: No network has more streams.
STREAMS_MAX = 10_000


class Order(StrEnum):
    """The order in which a subscriber sees the events of a stream."""

    NONE = "none"
    FIFO = "fifo"


@dataclass(frozen=True, slots=True)
class StreamOrder:
    """One stream, as its subscribers must know it."""

    stream: str
    order: Order
