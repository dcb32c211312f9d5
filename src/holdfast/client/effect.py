"""What the client's core tells the application; what it wants of the network are ``overlay.transport`` effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.client.item import Gap
from holdfast.messages.durable import Run
from holdfast.messages.publications import Copy, Publication
from holdfast.messages.session import Farewell
from holdfast.messages.subscriptions import Partition
from holdfast.messages.ticks import Tick
from holdfast.overlay.transport import TransportEffect
from holdfast.streams.checkpoint_token import Token

__all__ = [
    "Acknowledged",
    "Away",
    "Committed",
    "Delivered",
    "Effect",
    "Ended",
    "NotAccepted",
    "Ousted",
    "Placed",
    "Ready",
    "Stretch",
    "Subscribed",
    "SubscriptionRefused",
    "Unsubscribed",
    "Unsuited",
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
class Unsuited:
    """The core is done: it was to be a node of the network, and cannot be one of this network."""

    problem: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Everything submitted up to this number is accepted, except what was ``NotAccepted`` before."""

    upto: int
    duplicates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """Submitted events are on disk, and where; ``Acknowledged`` follows. ``repeats`` had been logged before."""

    pubend: str
    incarnation: int
    runs: tuple[Run, ...]
    repeats: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class NotAccepted:
    """An event was refused for good."""

    n: int
    problem: str
    code: str = ""  #: as in ``messages.publications.Rejected``


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Confirmed: what is published from now on is owed. ``partial``: except from behind these partitions."""

    number: int
    partial: tuple[Partition, ...]
    token: Token = field(default_factory=Token)  #: where it begins in the pubends of streams that are logged


@dataclass(frozen=True, slots=True)
class Upgraded:
    """Some partitions are over; ``partial`` are those that are left. Without any, everything is owed from now on."""

    number: int
    cleared: tuple[Partition, ...]
    partial: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class SubscriptionRefused:
    """The broker will not have it; the subscription is over."""

    number: int
    problem: str
    code: str = ""  #: as in ``messages.subscriptions.Refused``


@dataclass(frozen=True, slots=True)
class Ousted:
    """Somebody else reads this durable subscription now; here it is over."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Committed:
    """What a durable subscription committed up to this ticket is on its broker's disk."""

    number: int
    ticket: int


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    """The network has forgotten the subscription; or keeps it, and does not send anything any more."""

    number: int


@dataclass(frozen=True, slots=True)
class Delivered:
    """Items for one subscription, in order; publications are still packed, each beside its copy's marks."""

    number: int
    items: list[Publication | Gap]
    copies: list[Copy | None]  #: one per item


@dataclass(frozen=True, slots=True)
class Stretch:
    """How one subscription goes on in one pubend of a logged stream, from where it stood.

    It stood at ``after``; up to ``lost_through``, if that is above, something may have matched and is gone; then come
    these events, each at its tick; and up to ``upto`` nothing else matched [R1.7].
    """

    number: int
    pubend: str
    incarnation: int
    after: Tick
    lost_through: Tick
    reason: str
    publications: Sequence[Publication]
    ticks: Sequence[Tick]
    upto: Tick

    @property
    def gap(self) -> Gap | None:
        """What is lost at its beginning."""
        if self.lost_through <= self.after:
            return None
        return Gap(self.pubend, self.after, self.lost_through, self.reason)


Effect = (
    TransportEffect
    | Ready
    | Away
    | Ended
    | Acknowledged
    | Placed
    | NotAccepted
    | Subscribed
    | Upgraded
    | SubscriptionRefused
    | Unsubscribed
    | Unsuited
    | Ousted
    | Committed
    | Delivered
    | Stretch
)
