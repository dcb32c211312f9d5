"""A subscription as a node knows it, and how it is told to others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from holdfast.filters.expression import Filter
from holdfast.identity import SubscriptionId
from holdfast.messages.overlay import Role
from holdfast.messages.subscriptions import (
    PARTITIONS_MAX,
    TABLE_ROWS_MAX,
    TABLE_TEXT_MAX,
    Durable,
    Grave,
    Known,
    Partition,
)
from holdfast.node.station import Station
from holdfast.node.topology import Path
from holdfast.routing.port import Port

__all__ = ["Interest", "grave_of", "is_for", "known_of", "named", "pieces_of"]


@dataclass(slots=True, eq=False)
class Interest:
    """A subscription known here; the tuple ⟨pred, from, seqVect⟩ of the paper."""

    subscription: SubscriptionId
    filter: Filter
    text: str
    route: Path  #: to the subscriber, the nearest node first, as far as a vector goes; empty: it is here
    port: Port  #: *from*: where publications for it are sent, a station δ+1 hops away at most [R0.6]
    number: int | None  #: what the subscriber itself calls it, where the port is the subscriber's
    is_installed: bool = False
    is_proven: bool = False  #: everybody outward has confirmed it
    partial: dict[Partition, None] = field(default_factory=dict)
    durable: Durable | None = None  #: it outlives its subscriber's absence, at the broker it is of

    @property
    def direction(self) -> str | None:
        """The neighbour it came from; None: it is ours."""
        return self.route[0] if self.route else None


def grave_of(subscription: SubscriptionId) -> Grave:
    """The grave of one subscription."""
    return Grave(subscription.subscriber, subscription.incarnation, subscription.number, subscription.number)


def named(partial: Iterable[Partition]) -> tuple[Partition, ...]:
    """As many partitions as a message may name; the others are named when these are over."""
    return tuple(islice(partial, PARTITIONS_MAX))


def known_of(interest: Interest) -> Known:
    """As it is told."""
    return Known(
        interest.subscription, interest.text, interest.route, named(interest.partial), interest.durable
    )


def is_for(station: Station, interest: Interest) -> bool:
    """Whether a station is to be told of an interest as it is.

    A client that does not publish needs nobody's subscriptions but its own. What a partition that includes the station
    has stopped is told as one when the partition ends.
    """
    is_own = station.name == interest.subscription.subscriber
    is_wanted = is_own or station.place.role is not Role.SUBSCRIBER
    return is_wanted and not any(station.name in partition.fragment for partition in interest.partial)


def pieces_of(rows: Sequence[Known]) -> Iterator[tuple[Known, ...]]:
    """Rows as messages carry them: none is large."""
    piece: list[Known] = []
    text = 0
    for row in rows:
        if piece and (len(piece) == TABLE_ROWS_MAX or text > TABLE_TEXT_MAX):
            yield tuple(piece)
            piece, text = [], 0
        piece.append(row)
        text += len(row.filter) + sum(map(len, row.route)) + sum(_text(each) for each in row.partial)
    if piece:
        yield tuple(piece)


def _text(partition: Partition) -> int:
    return len(partition.lead) + sum(map(len, partition.fragment))
