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

from holdfast.messages.streams import STREAMS_MAX, StreamOrder

__all__ = ["VERSION", "Farewell", "Goodbye", "Heartbeat", "Hello", "Kind", "Welcome"]

#: The protocol this code speaks; a Hello offers a range, so that adjacent versions can be mixed.
VERSION = 1


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
    STOPPING = "stopping"  #: this node is shutting down; come back later
    FULL = "full"  #: there is no room for another client; come back later
    OTHER = "other"  #: something a later version says

    @classmethod
    def _missing_(cls, value: object) -> Farewell:
        return cls.OTHER


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
    features: tuple[
        str, ...
    ] = ()  #: what the dialler can do beyond the version; used where both ends name it


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


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """I am alive. The only message without a number of its own; its frame carries that of the last one sent."""


@dataclass(frozen=True, slots=True)
class Goodbye:
    """The last message of a session."""

    farewell: Farewell
    reason: str
