"""Whose node it is: a broker, or a client. What a node tells its host."""

from __future__ import annotations

from abc import ABC, abstractmethod

from holdfast.identity import SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import Lapse, Relay
from holdfast.messages.publications import (
    Accepted,
    Batch,
    Deliveries,
    Publication,
    Publications,
    Publish,
    Rejected,
    Tag,
)
from holdfast.messages.subscriptions import Partition
from holdfast.node.breach import Breach
from holdfast.node.interest import Interest
from holdfast.node.segment import Share
from holdfast.node.station import Station
from holdfast.overlay.transport import TransportEffect
from holdfast.routing.port import Port

__all__ = ["Host"]

Effects = list[TransportEffect]


class Host(ABC):
    """What concerns only brokers, or only clients, has an answer here for the others."""

    # Subscriptions made at this node

    @abstractmethod
    def on_subscribed(self, subscription: SubscriptionId, partial: tuple[Partition, ...]) -> Effects:
        """Confirmed: what is published from now on is owed, except from behind the partitions."""

    @abstractmethod
    def on_unsubscribed(self, subscription: SubscriptionId) -> Effects:
        """Forgotten by everybody who can be reached."""

    @abstractmethod
    def on_upgraded(
        self, subscription: SubscriptionId, cleared: tuple[Partition, ...], partial: tuple[Partition, ...]
    ) -> Effects:
        """Some partitions are over."""

    # Subscriptions known at this node, wherever they were made

    def on_installed(self, interest: Interest) -> None:  # noqa: B027  a client does not mind
        """One counts from now on."""

    def on_forgotten(self, interest: Interest) -> None:  # noqa: B027
        """One that counted is over."""

    # Events

    @abstractmethod
    def on_local(self, port: Port, stream: str, batch: Batch, share: Share, tags: tuple[Tag, ...]) -> Effects:
        """Publications for somebody who subscribed at this node itself."""

    @abstractmethod
    def on_safe(self, publications: list[Publication]) -> None:
        """What was published here is accepted: held by enough others, or wanted by nobody."""

    def on_relay(self, relay: Relay, new: list[int]) -> Effects:
        """To a client: publications for its subscriptions; ``new`` are the places in ``relay.at`` not repeated."""
        raise Breach("a relay to nobody")

    def on_publications(self, sender: Station, message: Publications) -> Effects:
        """To a broker: events of a best-effort stream."""
        raise Breach("publications to a client")

    def on_deliveries(self, sender: Station, message: Deliveries) -> Effects:
        """To a client: events of a best-effort stream, or from a broker whose own it is not."""
        raise Breach("deliveries to a broker")

    def on_publish(self, sender: Station, message: Publish) -> Effects:
        """To a broker: a client publishes on a best-effort stream."""
        raise Breach("a client's events to a client")

    def on_answer(self, sender: Station, message: Accepted | Rejected) -> Effects:
        """To a client: what became of events it published so."""
        raise Breach("an answer to a broker")

    def on_lapse(self, lapse: Lapse) -> Effects:
        """More nodes have failed together than the network survives: events may be missing."""
        return []

    def on_durable(self, sender: Station, message: Message) -> Effects:
        """To a broker, from another: what concerns streams that are logged."""
        raise Breach(f"{type(message).__name__} to a client")

    # Sessions

    def on_open(self, station: Station) -> Effects:
        """Publications may be sent to a station."""
        return []

    def on_gone(self, station: Station) -> None:  # noqa: B027  a client keeps nothing for it
        """The session with a station is over."""
