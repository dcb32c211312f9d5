"""A random tree of brokers with clients on it, and everything that may happen to it, in any order, from one seed.

Wires are FIFO and nothing else is certain: any wire that has news may be next. What clients ask for and are told is
written down as it happens; ``tree_claims`` reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from holdfast.broker.broker import Broker
from holdfast.broker.settings import Neighbour, Routing, Settings, Stream
from holdfast.client.effect import Delivered, Ended, Subscribed, Unsubscribed
from holdfast.client.input import AddSubscription, Consumed, EndSubscription, Open, Submit
from holdfast.client.protocol import ClientCore
from holdfast.client.settings import Settings as ClientSettings
from holdfast.clock import MILLISECOND, SECOND
from holdfast.events.event import Event, make_event
from holdfast.events.packed import pack
from holdfast.identity import EventId, SubscriptionId
from holdfast.messages.publications import Publication
from holdfast.messages.streams import Order
from holdfast.overlay.transport import Wake
from wires import Wires

__all__ = ["Interest", "Tree"]

FILTERS = ["a", "b", "#", "+ WHERE x > 2", "a WHERE x = 1 OR x = 3", "c/#"]
TOPICS = ["a", "b", "c", "c/d"]

#: Slow hearts keep the histories short; patience is that of the defaults, relative to them.
BROKER_PACE: dict[str, Any] = {
    "heartbeat_ns": SECOND,
    "detect_after_ns": 3 * SECOND,
    "client_grace_ns": 5 * SECOND,
}
HEALED_AFTER_NS = 40 * SECOND


@dataclass(slots=True)
class Interest:
    """A subscription as its subscriber sees it; moments are positions in the history."""

    subscription: SubscriptionId
    filter: str
    subscribed_at: int | None = None
    partial: tuple[Any, ...] = ()
    ended_at: int | None = None
    unsubscribed_at: int | None = None
    is_lost: bool = False  #: the subscriber died with it
    delivered: list[tuple[int, Any]] = field(default_factory=list)  #: when, and what

    @property
    def is_live(self) -> bool:
        return self.ended_at is None and not self.is_lost


class Tree:
    """Brokers b0 (the root) to bn, clients c0 to cm."""

    def __init__(self, seed: int, *, routing: Routing, order: Order) -> None:
        self.random = Random(seed)
        self.wires = Wires(self.random.randrange)
        self.wires.on_told = self._on_told
        self.routing = routing
        self.order = order
        self.moment = 0
        self.published: dict[EventId, tuple[int, Event]] = {}
        self.interests: dict[SubscriptionId, Interest] = {}
        self.incarnations: dict[str, int] = {}
        self._next_n: dict[str, int] = {}
        self._next_number: dict[str, int] = {}
        size = self.random.randint(2, 6)
        self.parents = {f"b{i}": f"b{self.random.randrange(i)}" for i in range(1, size)}
        self.brokers = [f"b{i}" for i in range(size)]
        self.homes = {f"c{i}": self.random.choice(self.brokers) for i in range(self.random.randint(2, 4))}
        for name in self.brokers:
            self._start_broker(name)
        for name in self.homes:
            self._start_client(name)
        self.wires.until(lambda: all(self.client(name).is_ready for name in self.homes))

    # Who is there

    def broker(self, name: str) -> Broker:
        core = self.wires.cores[name]
        assert isinstance(core, Broker)
        return core

    def client(self, name: str) -> ClientCore:
        core = self.wires.cores[name]
        assert isinstance(core, ClientCore)
        return core

    def neighbours(self, name: str) -> list[str]:
        children = [child for child, parent in self.parents.items() if parent == name]
        return [*children, self.parents[name]] if name in self.parents else children

    def next_hop(self, at: str, client: str) -> str:
        """The port of ``at`` that a client lies behind."""
        home = self.homes[client]
        if at == home:
            return client
        came_from = {home: home}
        edge = [home]
        while edge:
            broker = edge.pop()
            for each in self.neighbours(broker):
                if each not in came_from:
                    came_from[each] = broker
                    edge.append(each)
        return came_from[at]

    def _start_broker(self, name: str) -> None:
        life = self.incarnations[name] = self.incarnations.get(name, 0) + 1
        neighbours = tuple(
            Neighbour(each, each if each == self.parents.get(name) else None)
            for each in self.neighbours(name)
        )
        streams = (Stream("default", ("#",), self.order),)
        settings = Settings(name, life, neighbours, streams, routing=self.routing, **BROKER_PACE)
        self.wires.add(Broker(settings))
        self.wires.step(name, Wake())

    def _start_client(self, name: str) -> None:
        life = self.incarnations[name] = self.incarnations.get(name, 0) + 1
        self._next_number[name] = 1
        self.wires.add(ClientCore(ClientSettings(name, life, self.homes[name])))
        self.wires.step(name, Open())

    # What happens

    def live(self, name: str) -> list[Interest]:
        return [
            each for each in self.interests.values() if each.is_live and each.subscription.subscriber == name
        ]

    def a_client(self) -> str:
        return self.random.choice(list(self.homes))

    def subscribe(self) -> None:
        name = self.a_client()
        number = self._next_number[name]
        self._next_number[name] += 1
        filter = self.random.choice(FILTERS)
        subscription = SubscriptionId(name, self.incarnations[name], number)
        self.interests[subscription] = Interest(subscription, filter)
        self.wires.step(name, AddSubscription(number, filter, 10_000))

    def unsubscribe(self) -> None:
        name = self.a_client()
        if live := self.live(name):
            interest = self.random.choice(live)
            self.moment += 1
            interest.ended_at = self.moment
            self.wires.step(name, EndSubscription(interest.subscription.number))

    def publish(self, topics: Sequence[str] | None = None, name: str | None = None) -> None:
        name = name or self.a_client()
        batch = []
        for topic in topics or self.random.choices(TOPICS, k=self.random.randint(1, 3)):
            n = self._next_n[name] = self._next_n.get(name, 0) + self.random.randint(1, 3)
            event = make_event(topic, {"x": self.random.randint(0, 4)})
            self.moment += 1
            self.published[EventId(name, n)] = self.moment, event
            batch.append(Publication(name, n, pack(event)))
        self.wires.step(name, Submit(batch))

    def arrive(self) -> None:
        for _ in range(self.random.randint(1, 20)):
            self.wires.arrive()

    def cut_brokers(self) -> None:
        child, parent = self.random.choice(list(self.parents.items()))
        self.wires.cut(child, parent)

    def cut_client(self) -> None:
        name = self.a_client()
        self.wires.cut(name, self.homes[name])

    def crash_broker(self) -> None:
        up = [name for name in self.brokers if name in self.wires.cores]
        if up:
            self.wires.crash(self.random.choice(up))

    def crash_while_publishing(self) -> None:
        """A broker dies after it has accepted events and, now and then, before its publisher knows."""
        name = self.a_client()
        self.publish(name=name)
        for _ in range(self.random.randint(1, 8)):
            self.wires.arrive()
        if self.homes[name] in self.wires.cores:
            self.wires.crash(self.homes[name])
            self._start_broker(self.homes[name])

    def restart_broker(self) -> None:
        down = [name for name in self.brokers if name not in self.wires.cores]
        if down:
            self._start_broker(self.random.choice(down))

    def restart_client(self) -> None:
        """A client dies and comes back without a memory; its old connection may or may not be seen to break."""
        name = self.a_client()
        for interest in self.interests.values():
            if interest.subscription.subscriber == name and interest.unsubscribed_at is None:
                interest.is_lost = True
        self.wires.crash(name)
        self._start_client(name)

    def pass_time(self) -> None:
        self.wires.advance(self.random.choice([1, 60, 250, 1_100]) * MILLISECOND)

    def heal(self) -> None:
        """Everybody is up and every link whole; time passes until the network is at rest."""
        while any(name not in self.wires.cores for name in self.brokers):
            self.restart_broker()
        self.wires.pass_time(HEALED_AFTER_NS)

    # What clients are told

    def _on_told(self, name: str, effect: Any) -> None:
        self.moment += 1
        life = self.incarnations[name]
        match effect:
            case Subscribed(number, partial):
                interest = self.interests[SubscriptionId(name, life, number)]
                assert interest.subscribed_at is None, "confirmed twice"
                interest.subscribed_at, interest.partial = self.moment, partial
            case Unsubscribed(number):
                self.interests[SubscriptionId(name, life, number)].unsubscribed_at = self.moment
            case Delivered(number, items):
                interest = self.interests[SubscriptionId(name, life, number)]
                interest.delivered += [(self.moment, item) for item in items]
                self.wires.step(name, Consumed(number, len(items)))
            case Ended():
                raise AssertionError(f"{name} was sent away: {effect}")
