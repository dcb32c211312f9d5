"""A broker's core whose peers are nothing but what a test says for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from holdfast.broker.broker import Broker
from holdfast.broker.settings import Neighbour, Settings
from holdfast.clock import SECOND, Instant
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.identity import SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import Ready, Role, Told
from holdfast.messages.publications import Batch, Deliveries, Publication, Publications, Publish
from holdfast.messages.session import Hello, Kind, Overlay, Welcome
from holdfast.messages.subscriptions import Grave, Known, Lore, Subscribe
from holdfast.overlay.transport import Close, Connect, Connected, Disconnected, Log, Received, Send, Wake

__all__ = ["ByHand", "a_publication", "hello", "own", "publications", "publish", "subscribe"]

M = TypeVar("M")

#: So often a broker may be woken at one moment.
WAKES_MAX = 5


def hello(node: str, kind: Kind = Kind.CLIENT, incarnation: int = 1, **fields: Any) -> Hello:
    chosen: dict[str, Any] = {"session": 1, "principal": "anonymous", "heartbeat_ns": SECOND, **fields}
    if kind is Kind.BROKER:
        chosen.setdefault("features", ("routing=filter",))
        chosen.setdefault("overlay", Overlay(Role.BROKER, 0, is_recovering=False))
    return Hello(node, kind, incarnation, **chosen)


def a_publication(publisher: str, n: int, topic: str = "a", **attributes: Any) -> Publication:
    return Publication(publisher, n, pack(make_event(topic, attributes)))


def publish(publisher: str, *numbers: int, topic: str = "a", home: str = "", heard: int = 0) -> Publish:
    return Publish(Batch([a_publication(publisher, n, topic) for n in numbers]), home, heard)


def publications(publisher: str, *numbers: int, topic: str = "a") -> Publications:
    batch = Batch([a_publication(publisher, n, topic) for n in numbers])
    return Publications("default", batch, range(len(batch)))


def subscribe(subscriber: str, number: int, filter: str = "#", incarnation: int = 1) -> Subscribe:
    return Subscribe(SubscriptionId(subscriber, incarnation, number), filter, ())


def own(number: int) -> SubscriptionId:
    """The id under which the network knows the broker's ``number``th subscription of a plain client."""
    return SubscriptionId("b", 1, number)


class ByHand:
    """One broker, woken at time 0; ``children`` dial it, and it dials ``parent``; others lie ``beyond`` these."""

    def __init__(
        self,
        children: Sequence[str] = (),
        parent: str | None = None,
        beyond: Sequence[tuple[str, str]] = (),
        *,
        incarnation: int = 1,
        **settings: Any,
    ) -> None:
        neighbours = [Neighbour(name, None) for name in children]
        if parent is not None:
            neighbours.append(Neighbour(parent, f"{parent}:1"))
        neighbours += [Neighbour(name, f"{name}:1", beside) for name, beside in beyond]
        self.broker = Broker(Settings("b", incarnation, tuple(neighbours), **settings))
        self.now: Instant = 0
        self.heard: dict[int, list[Message]] = {}  #: by connection: what the broker said
        self.closed: dict[int, str] = {}  #: by connection: why the broker closed it
        self.dialled: list[str] = []
        self.logs: list[Log] = []
        self._last = 0
        self.step(Wake())

    def step(self, stimulus: Any) -> list[Any]:
        effects = self.broker.step(stimulus, self.now)
        for effect in effects:
            match effect:
                case Send(connection, messages):
                    assert connection in self.heard, f"the broker talks to nobody on {connection}"
                    assert connection not in self.closed, f"the broker talks on {connection} after its Close"
                    self.heard[connection] += messages
                case Close(connection, reason):
                    assert connection not in self.closed, f"the broker closes {connection} twice"
                    self.closed[connection] = reason
                case Connect(peer):
                    self.dialled.append(peer)
                case Log():
                    self.logs.append(effect)
        return effects

    # Peers

    def connect(self, peer: str | None = None) -> int:
        """A connection; ``peer`` if it is one the broker dialled."""
        self._last += 1
        self.heard[self._last] = []
        self.step(Connected(self._last, peer))
        return self._last

    def say(self, connection: int, *messages: Message) -> list[Message]:
        """Say something, and hear what the broker says to this peer in that step."""
        before = len(self.heard[connection])
        self.step_of(connection, *messages)
        return self.heard[connection][before:]

    def step_of(self, connection: int, *messages: Message) -> list[Any]:
        """Say something; every effect of that step."""
        return self.step(Received(connection, list(messages)))

    def client(self, name: str, incarnation: int = 1, **fields: Any) -> int:
        """A client that has been welcomed."""
        connection = self.connect()
        answer = self.say(connection, hello(name, incarnation=incarnation, **fields))
        assert [type(message) for message in answer] == [Welcome], answer
        return connection

    def neighbour(
        self,
        name: str,
        rows: Sequence[Known] | None = (),
        graves: Sequence[Grave] = (),
        incarnation: int = 1,
        *,
        is_recovering: bool = False,
    ) -> int:
        """A child in session that accepts publications; ``rows`` is its table, None if it has told nothing yet."""
        connection = self.connect()
        settings = self.broker.settings
        features = (f"routing={settings.routing}",)
        overlay = Overlay(Role.BROKER, settings.delta, is_recovering)
        self.say(connection, hello(name, Kind.BROKER, incarnation, features=features, overlay=overlay))
        if rows is not None:
            self.say(connection, Lore(tuple(rows), tuple(graves)), Told(), Ready())
        return connection

    def lose(self, connection: int) -> None:
        self.step(Disconnected(connection, "lost"))

    # Time

    def wait(self, duration_ns: int) -> None:
        """Time passes; the broker is woken whenever it wants to be."""
        end = self.now + duration_ns
        wakes = 0  #: at one moment: what one begins, such as dialling, may be due at once
        while (due := self.broker.next_deadline()) is not None and due <= end:
            wakes = wakes + 1 if due <= self.now else 1
            assert wakes < WAKES_MAX, "the broker would be woken for ever"
            self.now = max(due, self.now)
            self.step(Wake())
        self.now = end

    # What was heard

    def said(self, connection: int, kind: type[M]) -> list[M]:
        """The messages of a kind that the broker said to a peer."""
        return [message for message in self.heard[connection] if isinstance(message, kind)]

    def delivered(self, connection: int) -> list[tuple[str, int, tuple[int, ...]]]:
        """The events a client got: publisher, number, and its subscriptions."""
        return [
            (message.batch.publications[i].publisher, message.batch.publications[i].n, numbers)
            for message in self.said(connection, Deliveries)
            for i, numbers in zip(message.at, message.subscriptions, strict=True)
        ]

    def forwarded(self, connection: int) -> list[tuple[str, int]]:
        """The events a neighbour got: publisher and number."""
        return [
            (message.batch.publications[i].publisher, message.batch.publications[i].n)
            for message in self.said(connection, Publications)
            for i in message.at
        ]
