"""How interest spreads [KJ §3]: a subscription travels outward to all brokers and its confirmation inward.

When the confirmation reaches the subscriber, everything published from then on is owed to it. A withdrawal travels
the same way. Two brokers that meet, or meet again, tell each other every subscription beyond them first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from holdfast.identity import Element, SubscriptionId

__all__ = [
    "NO_SEAT",
    "PARTITIONS_MAX",
    "TABLE_ROWS_MAX",
    "TABLE_TEXT_MAX",
    "TOKEN_PLACES_MAX",
    "VECTOR_MAX",
    "Cleared",
    "Confirmed",
    "Crossed",
    "Durable",
    "Grave",
    "Heal",
    "Healed",
    "Known",
    "Lore",
    "Name",
    "Number",
    "Partition",
    "Refused",
    "Resume",
    "Seat",
    "Subscribe",
    "Unsubscribe",
    "UpgradeTaken",
    "Upgraded",
    "Withdrawn",
]

#: A table travels in pieces of at most about this many rows and characters, so that no frame is large.
TABLE_ROWS_MAX = 500
TABLE_TEXT_MAX = 256 * 1024

#: No sequence vector is longer, whatever δ; no message names more partitions.
VECTOR_MAX = 100
PARTITIONS_MAX = 10_000


#: No token names more pubends.
TOKEN_PLACES_MAX = 100_000

#: What is counted, or is a time in microseconds: far from where it could not be counted on.
Number = Annotated[int, Meta(ge=0, le=2**62)]

#: Of a broker or a client, as it is handed back to us: names are limited elsewhere, to less.
Name = Annotated[str, Meta(max_length=65_536)]


@dataclass(frozen=True, slots=True)
class Partition:
    """parInfo [KJ §3.5]: ``lead`` could not reach the brokers of ``fragment`` when a subscription passed it."""

    lead: str
    incarnation: int
    number: int  #: the lead's own
    fragment: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Durable:
    """A durable subscription: its name, and how often it has moved from one broker to another."""

    name: str
    epoch: Number


class Seat(NamedTuple):
    """Which client came last to read a durable subscription, in which of its lives, and was not only interrupted."""

    taken_on: Number  #: by its broker's clock, and above the one before; 0: it has none
    client: Name
    incarnation: Number = 0

    def is_after(self, other: Seat) -> bool:
        """Whether another client, or that one in a later life, has come since who had the other one went away."""
        if self.client == other.client:
            return self.incarnation > other.incarnation and other.taken_on > 0
        return 0 < other.taken_on < self.taken_on


NO_SEAT: Final = Seat(0, "")


@dataclass(frozen=True, slots=True)
class Resume:
    """How a client's subscription reads the streams that are logged."""

    credit: int  #: so many events may be sent before the client says that there is room for more
    durable: str | None = None  #: the name under which its place is kept; None: it ends with the session
    start: int | None = None  #: the tick where it begins if that is not known otherwise; None: now
    #: By pubend incarnation and tick: everything up to there was received.
    token: Annotated[dict[str, tuple[Number, Number]], Meta(max_length=TOKEN_PLACES_MAX)] | None = None
    #: By pubend, up to where that was consumed, too: from there whoever comes next goes on. None: all of it was.
    consumed: Annotated[dict[str, Number], Meta(max_length=TOKEN_PLACES_MAX)] | None = None
    #: When and at which broker what it goes on with began, as it was told. None: it has not begun, or its
    #: application keeps the token.
    born: tuple[Number, Name] | None = None
    seat: Seat = NO_SEAT  #: as it was told; if another client has come since, it goes on no more

    @property
    def has_own_token(self) -> bool:
        """Whether its application says where it stands; else it has begun to read what brokers keep, or begins."""
        return self.token is not None and self.born is None


@dataclass(frozen=True, slots=True)
class Subscribe:
    """SUB: somebody in the sender's direction wants what matches the filter (its canonical text).

    ``durable`` tells other brokers where a durable subscription is; ``resume`` tells a client's own broker where it
    stands.
    """

    subscription: SubscriptionId
    filter: str
    vector: Annotated[tuple[Element, ...], Meta(max_length=VECTOR_MAX)]
    durable: Durable | None = None
    resume: Resume | None = None


@dataclass(frozen=True, slots=True)
class Confirmed:
    """CONF: every broker beyond the sender knows the subscription, except those named in ``partial``.

    To a client ``token`` says where it begins in each pubend, as (incarnation, tick). For when it comes back after an
    interruption, ``born`` says when and where its durable subscription began (None: its application says where it
    stands), and ``seat`` is what it has.
    """

    subscription: SubscriptionId
    partial: Annotated[tuple[Partition, ...], Meta(max_length=PARTITIONS_MAX)] = ()
    token: Annotated[dict[str, tuple[int, int]], Meta(max_length=TOKEN_PLACES_MAX)] | None = None
    born: tuple[Number, Name] | None = None
    seat: Seat = NO_SEAT


@dataclass(frozen=True, slots=True)
class Refused:
    """To a subscriber: its subscription cannot be had; ``code`` is for programs, ``problem`` for people."""

    subscription: SubscriptionId
    problem: str
    code: str = ""  #: "filter", "durable" (another filter has the name), "token-ahead"; else empty


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """UNSUB: the subscription is over."""

    subscription: SubscriptionId


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Every reachable broker beyond the sender has forgotten the subscription."""

    subscription: SubscriptionId


@dataclass(frozen=True, slots=True)
class Known:
    """One installed subscription, as its teller knows it: a tuple of the paper's table [KJ §2.2]."""

    subscription: SubscriptionId
    filter: str
    #: from the teller to the subscriber, nearest first
    route: Annotated[tuple[str, ...], Meta(max_length=VECTOR_MAX)]
    partial: Annotated[tuple[Partition, ...], Meta(max_length=PARTITIONS_MAX)] = ()
    durable: Durable | None = None


@dataclass(frozen=True, slots=True)
class Grave:
    """Subscriptions that are over, and stay so whatever else is told of them [B0.24]: the numbers of one range."""

    subscriber: str
    incarnation: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Lore:
    """What the sender knows of subscriptions, and the receiver may not: rows to install, graves to keep to.

    A table is told so in pieces when a session begins, and whatever is learnt later is passed on so [KJ §4.2.1].
    """

    rows: Annotated[tuple[Known, ...], Meta(max_length=TABLE_ROWS_MAX)] = ()
    graves: Annotated[tuple[Grave, ...], Meta(max_length=TABLE_ROWS_MAX)] = ()


@dataclass(frozen=True, slots=True)
class Heal:
    """A partition is over: these subscriptions, which it had stopped, go on as one [KJ §4.2.2]."""

    partition: Partition
    rows: Annotated[tuple[Known, ...], Meta(max_length=TABLE_ROWS_MAX)]
    last: bool


@dataclass(frozen=True, slots=True)
class Healed:
    """Everybody beyond the sender knows what a ``Heal`` told, except behind these further partitions."""

    partition: Partition
    partial: Annotated[tuple[Partition, ...], Meta(max_length=PARTITIONS_MAX)] = ()


@dataclass(frozen=True, slots=True)
class Upgraded:
    """CONF_UPGRADE: some partitions are over for a subscription; ``partial`` are those that are left [B0.32]."""

    subscription: SubscriptionId
    cleared: Annotated[tuple[Partition, ...], Meta(max_length=PARTITIONS_MAX)]
    partial: Annotated[tuple[Partition, ...], Meta(max_length=PARTITIONS_MAX)]


@dataclass(frozen=True, slots=True)
class UpgradeTaken:
    """The subscriber has heard of it."""

    subscription: SubscriptionId
    cleared: Annotated[tuple[Partition, ...], Meta(max_length=PARTITIONS_MAX)]


@dataclass(frozen=True, slots=True)
class Crossed:
    """What a partition had stopped is installed here and beyond; the sender asks whether it is over."""

    partition: Partition


@dataclass(frozen=True, slots=True)
class Cleared:
    """Every subscriber a partition had concerned knows that it is over: nothing is tagged with it any more."""

    partition: Partition
