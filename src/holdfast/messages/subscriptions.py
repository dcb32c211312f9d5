"""How interest spreads [KJ §3]: a subscription travels outward to all brokers and its confirmation inward.

When the confirmation reaches the subscriber, everything published from then on is owed to it. A withdrawal travels
the same way. Two brokers that meet, or meet again, tell each other every subscription beyond them first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from holdfast.identity import Element, SubscriptionId

__all__ = [
    "PARTITIONS_MAX",
    "TABLE_ROWS_MAX",
    "TABLE_TEXT_MAX",
    "VECTOR_MAX",
    "Confirmed",
    "Partition",
    "Refused",
    "Row",
    "Subscribe",
    "Table",
    "Unsubscribe",
    "Withdrawn",
]

#: A table travels in pieces of at most about this many rows and characters, so that no frame is large.
TABLE_ROWS_MAX = 500
TABLE_TEXT_MAX = 256 * 1024

#: No sequence vector is longer, whatever δ; no message names more partitions.
VECTOR_MAX = 100
PARTITIONS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Partition:
    """parInfo [KJ §3.5]: ``lead`` could not reach the brokers of ``fragment`` when a subscription passed it."""

    lead: str
    incarnation: int
    number: int  #: the lead's own
    fragment: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """SUB: somebody in the sender's direction wants what matches the filter (its canonical text)."""

    subscription: SubscriptionId
    filter: str
    vector: Annotated[tuple[Element, ...], Meta(max_length=VECTOR_MAX)]


@dataclass(frozen=True, slots=True)
class Confirmed:
    """CONF: every broker beyond the sender knows the subscription, except those named in ``partial``."""

    subscription: SubscriptionId
    partial: Annotated[tuple[Partition, ...], Meta(max_length=PARTITIONS_MAX)] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """To a subscriber: the filter is outside the language or over a cap."""

    subscription: SubscriptionId
    problem: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """UNSUB: the subscription is over."""

    subscription: SubscriptionId


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Every reachable broker beyond the sender has forgotten the subscription."""

    subscription: SubscriptionId


@dataclass(frozen=True, slots=True)
class Row:
    """One subscription of a table."""

    subscription: SubscriptionId
    filter: str
    vector: Annotated[tuple[Element, ...], Meta(max_length=VECTOR_MAX)]


@dataclass(frozen=True, slots=True)
class Table:
    """A piece of the sender's routing table: the subscriptions in its direction; the last piece completes it.

    What the receiver knew from this direction and is not in the whole table is over.
    """

    rows: Annotated[tuple[Row, ...], Meta(max_length=TABLE_ROWS_MAX)]
    last: bool
