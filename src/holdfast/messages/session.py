"""How two nodes meet, stay in touch and part.

The first message in each direction is a ``Hello`` or its answer, a ``Welcome``; the last one, where there is time
for it, a ``Goodbye`` that says why. A session is named by both nodes, their incarnations and a number of the
dialler's, so that a new session with an old acquaintance is seen for what it is: a failure and a recovery [KJ,
B0.18].
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from holdfast.events.event import Limits
from holdfast.messages.overlay import PLACES_MAX, Join, Role
from holdfast.messages.streams import STREAMS_MAX, StreamOrder

__all__ = [
    "MEMBER",
    "VERSION",
    "Farewell",
    "Goodbye",
    "Heartbeat",
    "Hello",
    "Invitation",
    "Kind",
    "Overlay",
    "Welcome",
]

#: The protocol this code speaks; a Hello offers a range, so that adjacent versions can be mixed.
VERSION = 1

#: A feature of a client that can be a node of the overlay, and does not know yet whether it is wanted as one.
MEMBER = "member"


class Kind(StrEnum):
    """What a node is."""

    BROKER = "broker"
    CLIENT = "client"


class Farewell(StrEnum):
    """Why a session ends."""

    LEAVING = "leaving"  #: a clean end; a client's subscriptions end with it
    TAKEN_OVER = "taken-over"  #: another client came under the same name
    REPLACED = "replaced"  #: the same node came again on another connection
    TOO_SLOW = "too-slow"  #: what the peer did not read has outgrown its buffer
    SILENT = "silent"  #: nothing was heard for too long
    PROTOCOL = "protocol"  #: the peer said something it must not say
    UNKNOWN = "unknown"  #: a broker that is no neighbour of ours
    VERSION = "version"  #: no protocol version in common
    MISMATCH = "mismatch"  #: two brokers whose networks are configured differently
    NEEDLESS = "needless"  #: neither side needs this way to the other any more
    STOPPING = "stopping"  #: this node is shutting down; come back later
    FULL = "full"  #: there is no room for another client, or was none for what it published; come back later
    OTHER = "other"  #: something a later version says

    @classmethod
    def _missing_(cls, value: object) -> Farewell:
        return cls.OTHER


@dataclass(frozen=True, slots=True)
class Overlay:
    """A node's standing in the overlay [KJ]; both ends must have the same δ."""

    role: Role
    delta: int
    is_recovering: bool  #: it has lost its memory and does not accept publications yet
    home: str | None = None  #: of a client: the broker it hangs on
    address: str | None = None  #: of a client: where it can be dialled itself


@dataclass(frozen=True, slots=True)
class Hello:
    """The dialler introduces itself and offers a range of protocol versions."""

    node: str
    kind: Kind
    incarnation: int
    session: int  #: the dialler's own number for this session, from 1
    principal: str  #: on whose behalf; "anonymous" until there are credentials
    heartbeat_ns: int  #: how often the dialler promises to be heard
    version_min: int = VERSION
    version_max: int = VERSION
    #: what the dialler can do beyond the version; used where both ends name it
    features: tuple[str, ...] = ()
    overlay: Overlay | None = None  #: of a node of the overlay; a plain client has none


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a client must know to be a node of the overlay [R0.4]; it comes in by a second Hello, as one.

    It is no client yet: nothing is kept for it.
    """

    delta: int
    #: brokers around ours, nearer ones first
    places: Annotated[tuple[Join, ...], Meta(max_length=PLACES_MAX)]
    incarnation: int  #: the highest known of the client; its own must be above
    acknowledge: str
    refill: bool
    floods: bool
    heartbeat_ns: int
    detect_after_ns: int
    probe_every_ns: int
    dack_every_ns: int
    limits: Limits  #: of events


@dataclass(frozen=True, slots=True)
class Welcome:
    """The answer: who is speaking, in which version, and what is known of the guest."""

    node: str
    kind: Kind
    incarnation: int
    session: int  #: the number of the Hello
    heartbeat_ns: int
    version: int = VERSION
    features: tuple[str, ...] = ()
    last_number: int = 0  #: to a client: the highest number of its events seen here
    streams: Annotated[tuple[StreamOrder, ...], Meta(max_length=STREAMS_MAX)] = ()  #: to a client
    overlay: Overlay | None = None  #: to a node of the overlay
    invitation: Invitation | None = (
        None  #: to a client that can be one, where events are kept through failures
    )


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """I am alive. The only message without a number of its own; its frame carries that of the last one sent."""


@dataclass(frozen=True, slots=True)
class Goodbye:
    """The last message of a session."""

    farewell: Farewell
    reason: str
