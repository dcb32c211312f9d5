"""A client's core whose broker is nothing but what a test says for it."""

from __future__ import annotations

from typing import Any, TypeVar

from holdfast.client.effect import Delivered
from holdfast.client.input import AddSubscription, Open, Submit
from holdfast.client.item import Gap
from holdfast.client.protocol import ClientCore
from holdfast.client.settings import Settings
from holdfast.clock import SECOND, Instant
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.identity import SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.publications import Batch, Deliveries, Publication, Publish
from holdfast.messages.session import Hello, Kind, Welcome
from holdfast.messages.streams import Order, StreamOrder
from holdfast.messages.subscriptions import Confirmed
from holdfast.overlay.transport import Close, Connect, Connected, Disconnected, Received, Send, Wake

__all__ = ["Answered", "deliveries", "numbered"]

E = TypeVar("E")

EVENT = pack(make_event("a"))


def numbered(*numbers: int, publisher: str = "peer", event: bytes = EVENT) -> list[Publication]:
    return [Publication(publisher, n, event) for n in numbers]


def deliveries(publisher: str, *numbers: int, to: tuple[int, ...] = (1,)) -> Deliveries:
    batch = Batch(numbered(*numbers, publisher=publisher))
    return Deliveries("default", batch, range(len(batch)), [to] * len(batch))


class Answered:
    """One client, called ``peer`` unless told otherwise; the test speaks for its broker, ``b`` unless told so."""

    def __init__(self, *, name: str = "peer", order: Order = Order.FIFO, **settings: Any) -> None:
        self.order = order
        self.core = ClientCore(Settings(name, 1, "b:1", **settings))
        self.now: Instant = 0
        self.connection = 0
        self.effects: list[Any] = []
        self.said: list[Message] = []  #: what the client said on this connection
        self._last = 0

    def step(self, stimulus: Any) -> list[Any]:
        effects = self.core.step(stimulus, self.now)
        self.effects += effects
        for effect in effects:
            if isinstance(effect, Send):
                assert effect.connection == self.connection != 0, (
                    "the client talks on a connection it has not"
                )
                self.said += effect.messages
            elif isinstance(effect, Close):
                assert effect.connection == self.connection
                self.connection = 0
        return effects

    # The session

    def connected(self) -> list[Any]:
        """The dialled connection is there."""
        self._last += 1
        self.connection = self._last
        self.said = []
        return self.step(Connected(self.connection, ""))

    def welcome(self, last_number: int = 0, node: str = "b", **fields: Any) -> list[Any]:
        """The broker answers the Hello."""
        [hello] = [message for message in self.said if isinstance(message, Hello)]
        chosen: dict[str, Any] = {
            "kind": Kind.BROKER,
            "session": hello.session,
            "heartbeat_ns": SECOND,
            "streams": (StreamOrder("default", self.order),),
            **fields,
        }
        return self.say(Welcome(node, incarnation=1, last_number=last_number, **chosen))

    def open(self, **fields: Any) -> None:
        """From nothing to a session."""
        self.step(Open())
        self.connected()
        self.welcome(**fields)

    def say(self, *messages: Message) -> list[Any]:
        """The broker says something."""
        return self.step(Received(self.connection, list(messages)))

    def lose(self) -> list[Any]:
        connection, self.connection = self.connection, 0
        return self.step(Disconnected(connection, "lost"))

    def reconnect(self, **fields: Any) -> list[Any]:
        """Wait until the client dials again, and welcome it."""
        self.wait_for(Connect)
        self.connected()
        return self.welcome(**fields)

    # Asking

    def subscribe(self, number: int = 1, buffer: int = 100, filter: str = "#") -> None:
        """A confirmed subscription."""
        self.step(AddSubscription(number, filter, buffer))
        self.say(Confirmed(self.id(number)))

    def submit(self, *numbers: int) -> list[Any]:
        return self.step(Submit(numbered(*numbers)))

    def id(self, number: int) -> SubscriptionId:
        return SubscriptionId("peer", 1, number)

    # Time

    def wait_for(self, kind: type[E]) -> E:
        """Wake the client until it wants this; the effect it wanted."""
        for _ in range(1_000):
            due = self.core.next_deadline()
            assert due is not None, f"no {kind.__name__} will ever come"
            assert due >= self.now, "a deadline in the past"
            self.now = due
            for effect in self.step(Wake()):
                if isinstance(effect, kind):
                    return effect
        raise AssertionError(f"no {kind.__name__} came")

    # What came of it

    def sent_numbers(self) -> list[int]:
        """The numbers of the events the client published on this connection."""
        return [
            each.n
            for message in self.said
            if isinstance(message, Publish)
            for each in message.batch.publications
        ]

    def told(self, kind: type[E]) -> list[E]:
        """What the application was told of a kind."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def items(self, number: int = 1) -> list[tuple[str, int] | Gap]:
        """What a subscription got."""
        return [
            item if isinstance(item, Gap) else (item.publisher, item.n)
            for delivered in self.told(Delivered)
            if delivered.number == number
            for item in delivered.items
        ]
