"""What crosses the simulated network: connections of two ends, between hosts.

A ``Host`` is a node as its operating system sees it: it is there even while the program on it is frozen, and
refuses or resets when the program is gone. What arrives while the program does not read, because it is frozen
or has paused that connection, lies unread at the end of the connection, up to the host's ``buffer_bytes_max``.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from holdfast.clock import Instant
from holdfast.messages.message import Message
from holdfast.messages.overlay import Relay
from holdfast.messages.publications import Deliveries, Publications, Publish
from holdfast.simulator.links import Link
from holdfast.wire.frame import HEADER_BYTES, FrameNumbers, FrameReader

__all__ = [
    "End",
    "Flight",
    "Host",
    "State",
    "bytes_of",
]

#: Roughly, for the buffer's account: what surrounds an event in a frame, and a message without events.
_AROUND_EVENT_BYTES: Final = 24
_CONTROL_BYTES: Final = HEADER_BYTES + 64


def bytes_of(message: Message) -> int:
    """About how long a message is on the wire; the same whether or not it is really encoded."""
    match message:
        case Publications(_, batch, at) | Deliveries(_, batch, at) | Relay(_, batch, at):
            return sum(len(batch.publications[i].event) + _AROUND_EVENT_BYTES for i in at)
        case Publish(batch):
            return sum(len(publication.event) + _AROUND_EVENT_BYTES for publication in batch.publications)
        case _:
            return _CONTROL_BYTES


class Host:
    """A node as the network sees it."""

    def __init__(self, name: str, buffer_bytes_max: int) -> None:
        self.name = name
        self.buffer_bytes_max = buffer_bytes_max
        self.is_up = False
        self.is_frozen = False
        self.life = 0  #: counts crashes, too: what was under way for an earlier life is nobody's
        self.ends: dict[int, End] = {}
        self.backlog: deque[End | Any] = deque()  #: while frozen: ends that have something unread, and inputs


class State(Enum):
    """Of one end of a connection."""

    OPENING = "opening"  #: dialled, and nothing heard yet
    OPEN = "open"
    LINGERING = "lingering"  #: given up, but the peer may still read why; what arrives is ignored
    CLOSED = "closed"  #: by either program, or broken; what still arrives is answered with a reset
    DEAD = "dead"  #: its program crashed; what it had sent is lost with it


class End:
    """One end of a connection: what its program sent and has not read.

    ``outward`` is the link what it sends crosses. ``last_arrival`` keeps a connection FIFO whatever the jitter.
    """

    __slots__ = (
        "behind_since",
        "flight",
        "frames_sent",
        "host",
        "id",
        "is_ending",
        "is_paused",
        "last_arrival",
        "numbers",
        "other",
        "outward",
        "reader",
        "sent",
        "state",
        "unread",
        "unread_bytes",
    )

    other: End

    def __init__(
        self, number: int, host: Host, outward: Link, state: State, reader: FrameReader | None
    ) -> None:
        self.id = number
        self.host = host
        self.outward = outward
        self.state = state
        self.reader = reader  #: when messages travel as bytes
        self.numbers = FrameNumbers()
        self.sent = 0  #: messages, each numbered as one frame
        self.frames_sent = 0  #: when messages travel as bytes
        self.last_arrival: Instant = 0
        self.flight: Flight | None = None  #: the last that took off, while more may board it
        self.is_paused = False
        self.is_ending: str | None = None  #: the peer closed; why. Nothing comes any more
        self.unread: list[Message] = []
        self.unread_bytes = 0
        self.behind_since: Instant | None = None  #: more than the host's buffer holds has waited ever since

    @property
    def is_unread(self) -> bool:
        """Whether something waits for the program to read it, the end of the connection included."""
        return bool(self.unread) or self.is_ending is not None


@dataclass(slots=True, eq=False)
class Flight:
    """Frames that arrive together, numbered from ``first``; ``cargo`` is messages, or the bytes of each."""

    to: End
    arrival: Instant
    first: int
    cargo: list[Any]
