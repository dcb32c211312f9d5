"""A node and an owner who writes down what happens: the overlay without a broker or a client around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast.clock import Instant
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.filters.parse import parse_filter
from holdfast.identity import EventId, SubscriptionId
from holdfast.messages.overlay import Relay, Role
from holdfast.messages.publications import Batch, Publication, Tag
from holdfast.messages.subscriptions import Partition
from holdfast.node.host import Host
from holdfast.node.node import Node
from holdfast.node.segment import Share
from holdfast.node.settings import NodeSettings
from holdfast.ordering.fifo import Fifo
from holdfast.overlay.transport import Trace
from holdfast.routing.port import Port
from holdfast.routing.table import Table

__all__ = ["Bare", "Delivery", "Do", "Memory", "role_of"]

Effects = list[Any]


def role_of(name: str) -> Role:
    if name[0] in "PQ":
        return Role.PUBLISHER
    return Role.SUBSCRIBER if name[0] in "ST" else Role.BROKER


@dataclass(frozen=True)
class Do:
    """Have something done to a node, in its turn."""

    what: Any


@dataclass
class Delivery:
    at: Instant
    subscription: int
    event: EventId
    tags: tuple[Tag, ...]


@dataclass
class Memory:
    """What outlives a node's crashes: its owner saw it."""

    deliveries: list[Delivery] = field(default_factory=list)
    confirmed: dict[int, tuple[Instant, tuple[Partition, ...]]] = field(default_factory=dict)
    upgraded: list[tuple[Instant, int, tuple[Partition, ...], tuple[Partition, ...]]] = field(
        default_factory=list
    )
    withdrawn: list[int] = field(default_factory=list)
    accepted: set[EventId] = field(default_factory=set)
    published: list[EventId] = field(default_factory=list)
    published_at: dict[EventId, Instant] = field(default_factory=dict)
    ks: list[tuple[int, int]] = field(default_factory=list)
    suppressed: int = 0
    wishes: dict[int, str] = field(default_factory=dict)
    numbers: int = 0
    traces: list[tuple[Instant, str, Any]] = field(default_factory=list)
    edge: Fifo = field(default_factory=Fifo)


class Bare(Host):
    """A core: a node and an owner who writes down what happens."""

    def __init__(self, settings: NodeSettings, memory: Memory) -> None:
        self.name = settings.name
        self.memory = memory
        self.node = Node(settings, Table(), self)
        self.now: Instant = 0
        self._begun = False

    def step(self, stimulus: Any, now: Instant) -> Effects:
        self.now = now
        effects: Effects = stimulus.what(self) if isinstance(stimulus, Do) else self.node.step(stimulus, now)
        if not self._begun:
            self._begun = True
            for number, text in self.memory.wishes.items():
                effects += self.subscribe(number, text)
        for effect in effects:
            if isinstance(effect, Trace):
                self.memory.traces.append((now, effect.kind, effect.fields))
        return effects

    def next_deadline(self) -> Instant | None:
        return self.node.next_deadline()

    # What its owner does

    def subscribe(self, number: int, text: str) -> Effects:
        self.memory.wishes[number] = text
        subscription = SubscriptionId(self.name, self.node.settings.incarnation, number)
        return self.node.spread.subscribe(Port(self.name), subscription, parse_filter(text), number)

    def unsubscribe(self, number: int) -> Effects:
        self.memory.wishes.pop(number, None)
        return self.node.spread.unsubscribe(SubscriptionId(self.name, self.node.settings.incarnation, number))

    def publish(self, count: int = 1, topic: str = "t", **attributes: Any) -> Effects:
        publications = []
        for _ in range(count):
            self.memory.numbers += 1
            event = make_event(topic, {"n": self.memory.numbers, **attributes}, b"")
            publications.append(Publication(self.name, self.memory.numbers, pack(event)))
            self.memory.published.append(EventId(self.name, self.memory.numbers))
            self.memory.published_at[self.memory.published[-1]] = self.now
            self.memory.ks.append((self.memory.numbers, attributes.get("k", 0)))
        return self.node.publish("default", publications)

    # What the node says

    def on_relay(self, relay: Relay, new: list[int]) -> Effects:
        assert relay.subscriptions is not None
        for place in new:
            publication = relay.batch.publications[relay.at[place]]
            if not self.memory.edge.admits(*publication.id):
                self.memory.suppressed += 1
                continue
            for number in relay.subscriptions[place]:
                if number in self.memory.wishes:
                    self.memory.deliveries.append(Delivery(self.now, number, publication.id, relay.tags))
        return []

    def on_local(self, port: Port, stream: str, batch: Batch, share: Share, tags: tuple[Tag, ...]) -> Effects:
        return []

    def on_safe(self, publications: list[Publication]) -> None:
        self.memory.accepted.update(publication.id for publication in publications)

    def on_subscribed(self, subscription: SubscriptionId, partial: tuple[Partition, ...]) -> Effects:
        self.memory.confirmed[subscription.number] = self.now, partial
        return []

    def on_unsubscribed(self, subscription: SubscriptionId) -> Effects:
        self.memory.withdrawn.append(subscription.number)
        return []

    def on_upgraded(
        self, subscription: SubscriptionId, cleared: tuple[Partition, ...], partial: tuple[Partition, ...]
    ) -> Effects:
        self.memory.upgraded.append((self.now, subscription.number, cleared, partial))
        return []
