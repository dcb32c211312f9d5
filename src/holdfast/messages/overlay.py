"""What nodes of the overlay say to each other so that δ of them may fail [KJ].

Nodes are brokers and clients alike. Two nodes that begin a session tell each other what they know (``Places``, the
table in ``subscriptions``), give back what a restarted one has lost (``Relay.refill``), and say ``Ready``;
publications follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast.messages.publications import PUBLICATIONS_MAX, Batch, Tag
from holdfast.messages.subscriptions import PARTITIONS_MAX, VECTOR_MAX

__all__ = [
    "PLACES_MAX",
    "Confirmations",
    "DepthAck",
    "Holding",
    "Join",
    "Lapse",
    "Leave",
    "Missing",
    "Need",
    "Present",
    "Ready",
    "Relay",
    "Role",
    "Step",
    "Told",
    "Trail",
]

#: No message names more places, or more pairs of nodes.
PLACES_MAX = 100_000


class Role(StrEnum):
    """What a node is in the tree [KJ §1]; clients are its leaves."""

    BROKER = "broker"
    PUBLISHER = "publisher"  #: a client that publishes, and may subscribe
    SUBSCRIBER = "subscriber"  #: a client that only subscribes


class Step(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A node on the way a message came; ``incarnation`` is None where it was bypassed (⊥)."""

    node: str
    incarnation: int | None


class Trail(msgspec.Struct, frozen=True, array_like=True):
    """The sequence vectors of publications that came the same way [KJ §3.1], as columns.

    ``steps`` are the last nodes of the way, the oldest first. ``numbers`` has a column for each step that was not
    bypassed: the numbers that node gave to these publications.
    """

    steps: Annotated[tuple[Step, ...], Meta(max_length=VECTOR_MAX)]
    numbers: Annotated[list[list[int]], Meta(max_length=VECTOR_MAX)]


@dataclass(frozen=True, slots=True, eq=False)
class Relay:
    """Publications of a reliable stream on their way: those of the batch at the positions ``at``.

    They came one way and have the same tags. To a client ``subscriptions`` tells for which of its own each is.
    """

    stream: str
    batch: Batch
    at: Sequence[int]
    trail: Trail
    tags: Annotated[tuple[Tag, ...], Meta(max_length=PARTITIONS_MAX)] = ()
    subscriptions: Sequence[tuple[int, ...]] | None = None
    again: bool = False  #: may have been sent before, by this node or another
    refill: bool = False  #: given back to a node that lost it: to be kept, not sent on [B0.16]
    returned: bool = False  #: once given back to the client that published it, which sends it all again


class Holding(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """⟨A, B:seq⟩ [KJ §8]: how far A has received, and how far it has discarded, what B numbered."""

    node: str
    incarnation: int
    numbered_by: str
    life: int  #: the incarnation of ``numbered_by``
    arrived: int  #: the highest number that came; 0: none, or it is not known whether A lives
    discarded: int  #: everything that came up to this number has been discarded


@dataclass(frozen=True, slots=True)
class DepthAck:
    """DACK: what has changed since the last one on this session."""

    holdings: Annotated[tuple[Holding, ...], Meta(max_length=PLACES_MAX)]


@dataclass(frozen=True, slots=True)
class Confirmations:
    """PCONF: every subscriber beyond has these, by the receiver's own numbers [KJ §2.2]."""

    numbers: Annotated[list[int], Meta(max_length=PUBLICATIONS_MAX)]


@dataclass(frozen=True, slots=True)
class Join:
    """A node stands beside another; a client's incarnation tells its lives apart."""

    node: str
    role: Role
    beside: str
    address: str | None
    incarnation: int


@dataclass(frozen=True, slots=True)
class Leave:
    """A client has left, or was expelled: its subscriptions are over, and nobody waits for it."""

    node: str
    incarnation: int
    reason: str


@dataclass(frozen=True, slots=True)
class Missing:
    """The home of a client has had no session with it for long, and asks whether anybody has.

    ``life`` is the home's incarnation; ``number`` that of the question in it, so that each is passed on once.
    """

    client: str
    incarnation: int
    life: int
    number: int


@dataclass(frozen=True, slots=True)
class Present:
    """Somebody is in session with a client that was missing."""

    client: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class Lapse:
    """More brokers next to each other than δ had lost their memory when this one began a life: events may be lost.

    ``is_echo``: of another one; nobody knew of subscriptions that the node has told since.
    """

    node: str
    incarnation: int
    number: int
    is_echo: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """The sender has told all it knows on this session; said again when it can vouch for more.

    ``row``: if it begins a life, how many brokers in a row have lost their memory, it and those beyond it. ``vouched``:
    the brokers it is in session with that have not.
    """

    row: int = 0
    vouched: Annotated[tuple[str, ...], Meta(max_length=PLACES_MAX)] = ()


@dataclass(frozen=True, slots=True)
class Ready:
    """The sender has taken up what it was told on this session and accepts publications."""


@dataclass(frozen=True, slots=True)
class Need:
    """ACTIVATE: the sender reaches nobody nearer on the way to the receiver; or, ``is_needed`` false, it does again.

    That it does again is answered with the same, ``is_echo``: whatever was sent before that has arrived.
    """

    is_needed: bool
    is_echo: bool = False
