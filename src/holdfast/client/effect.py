"""What the client's core tells the application; what it wants of the network are ``overlay.transport`` effects."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.client.item import Gap
from holdfast.messages.publications import Copy, Publication
from holdfast.messages.session import Farewell
from holdfast.messages.subscriptions import Partition
from holdfast.overlay.transport import TransportEffect

__all__ = [
    "Acknowledged",
    "Away",
    "Delivered",
    "Effect",
    "Ended",
    "NotAccepted",
    "Ready",
    "Subscribed",
    "SubscriptionRefused",
    "Unsubscribed",
    "Upgraded",
]


@dataclass(frozen=True, slots=True)
class Ready:
    """In session with a broker, for the first time or again; what was waiting has been sent."""

    broker: str
    last_number: int  #: the highest number of this client's events the broker has seen


@dataclass(frozen=True, slots=True)
class Away:
    """The session is lost; the core keeps trying."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The core is done and does nothing any more: it left, or was told to (taken over, no common version …)."""

    farewell: Farewell
    reason: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Everything submitted up to this number is accepted, except what was ``NotAccepted`` before."""

    upto: int
    duplicates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NotAccepted:
    """The broker refused this event for good."""

    n: int
    problem: str


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Confirmed: what is published from now on is owed. ``partial``: except from behind these partitions."""

    number: int
    partial: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Upgraded:
    """Some partitions are over; ``partial`` are those that are left. Without any, everything is owed from now on."""

    number: int
    cleared: tuple[Partition, ...]
    partial: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class SubscriptionRefused:
    """The broker will not have this filter; the subscription is over."""

    number: int
    problem: str


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    """The network has forgotten the subscription."""

    number: int


@dataclass(frozen=True, slots=True)
class Delivered:
    """Items for one subscription, in order; publications are still packed, each beside its copy's marks."""

    number: int
    items: list[Publication | Gap]
    copies: list[Copy | None]  #: one per item


Effect = (
    TransportEffect
    | Ready
    | Away
    | Ended
    | Acknowledged
    | NotAccepted
    | Subscribed
    | Upgraded
    | SubscriptionRefused
    | Unsubscribed
    | Delivered
)
