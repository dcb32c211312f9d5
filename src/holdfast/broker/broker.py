"""The broker: it takes inputs apart and hands them to those they concern.

It keeps the sessions itself, since they are where neighbours, clients and strangers are told apart. A peer that
breaks a rule of the protocol is told so and loses its connection; nobody else notices.
"""

from __future__ import annotations

from typing import Any, Final, assert_never

from holdfast.broker.admission import Entrance
from holdfast.broker.clients import Clients
from holdfast.broker.delivery import Delivery
from holdfast.broker.input import Input, Stop
from holdfast.broker.neighbours import Neighbours
from holdfast.broker.settings import Routing, Settings
from holdfast.broker.statistics import Counters
from holdfast.broker.status import status_of
from holdfast.clock import SECOND, Instant
from holdfast.errors import FilterError, MalformedEvent
from holdfast.events.packed import PackedEvent, unpack
from holdfast.identity import SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.publications import (
    Accepted,
    Batch,
    Publications,
    Publish,
)
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello, Kind, Welcome
from holdfast.messages.subscriptions import (
    Confirmed,
    Refused,
    Row,
    Subscribe,
    Table,
    Unsubscribe,
    Withdrawn,
)
from holdfast.overlay.session import Session, common_version
from holdfast.overlay.transport import (
    Close,
    Connected,
    ConnectFailed,
    Disconnected,
    Log,
    Received,
    Send,
    TransportEffect,
    Wake,
)
from holdfast.routing.advertisement import Advertisement
from holdfast.routing.port import ClientPort, NeighbourPort
from holdfast.routing.table import Table as RoutingTable

__all__ = ["Broker"]

#: A stranger must introduce itself within this time.
HELLO_WITHIN_NS: Final = 5 * SECOND

Effects = list[TransportEffect]


class _Breach(Exception):
    """A peer has broken a rule of the protocol."""


class Broker:
    """Driven by ``step`` and ``next_deadline``, as ``overlay.transport`` says; the first input is a ``Wake``."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.name
        self.settings = settings
        self.counters = Counters()
        self.neighbours = Neighbours(settings)
        self.clients = Clients(settings.client_grace_ns)
        self.table = RoutingTable()
        spread_to = self.neighbours.ports if settings.routing is Routing.FILTER else ()
        self.advertisement = Advertisement(settings.name, settings.incarnation, self.table, spread_to)
        self._delivery = Delivery(settings, self.table, self.neighbours.ports, self.counters)
        self._entrance = Entrance(settings.streams, settings.limits)
        self._sessions: dict[int, Session] = {}
        self._peers: dict[int, NeighbourPort | ClientPort] = {}
        self._waiting_hellos: dict[int, Hello] = {}  #: clients that came before we were ready
        self._session_seq = 0
        self._tick_at: Instant | None = None
        self._is_stopped = False

    @property
    def is_ready(self) -> bool:
        """Whether every neighbour has been met or given up, so that clients are served."""
        return self.neighbours.is_ready

    @property
    def holds_undelivered(self) -> int:
        """Publications that wait until tables are exchanged."""
        return sum(port.held_count for port in self.neighbours.ports)

    def status(self) -> dict[str, Any]:
        """What an operator wants to see, as plain data."""
        return status_of(self)

    def step(self, stimulus: Input, now: Instant) -> Effects:
        """Take one input, and say what is to be done about it."""
        if self._is_stopped:
            return []
        match stimulus:
            case Received(connection, messages):
                return self._on_received(connection, messages, now)
            case Wake():
                return self._on_wake(now)
            case Connected(connection, peer):
                return self._on_connected(connection, peer, now)
            case ConnectFailed(peer, _):
                port = self.neighbours.get(peer)
                assert port is not None
                self.neighbours.on_dial_failed(port, now)
                return []
            case Disconnected(connection, reason):
                return self._on_disconnected(connection, reason, now)
            case Stop():
                return self._say_goodbye_to_all()
            case _:
                assert_never(stimulus)

    def next_deadline(self) -> Instant | None:
        """When to be woken."""
        if self._is_stopped:
            return None
        if self._tick_at is None:
            return 0
        dial_at = self.neighbours.next_deadline()
        return self._tick_at if dial_at is None else min(self._tick_at, dial_at)

    # Time

    def _on_wake(self, now: Instant) -> Effects:
        if self._tick_at is None:
            self._tick_at = now
            self.neighbours.start(now)
        effects = self.neighbours.on_wake(now)
        if now >= self._tick_at:
            self._tick_at = now + self.settings.heartbeat_ns
            effects += self._tick(now)
        return effects + self._settle(now)

    def _tick(self, now: Instant) -> Effects:
        """Heartbeats to those who are owed one; the silent, and those whose grace is over, are given up."""
        effects: Effects = []
        for session in list(self._sessions.values()):
            if session.is_silent(now):
                reason = f"nothing heard for {session.silent_after_ns / SECOND:g} s"
                effects += self._end(session.connection, Farewell.SILENT, reason, now)
            elif session.may_beat(now):
                session.heartbeat_at = now + session.heartbeat_every_ns
                effects.append(Send(session.connection, [Heartbeat()]))
        for port in self.clients.expired(now):
            effects += self._remove_client(port)
        return effects

    def _settle(self, now: Instant) -> Effects:
        """Whatever has become possible: tables told, publications released, clients welcomed."""
        effects: Effects = []
        for port in self.neighbours.ports:
            if self.neighbours.may_tell(port):
                effects += self.advertisement.tell(port)
                if port.is_active:
                    effects += self._delivery.release(port)
        if self._waiting_hellos and self.is_ready:
            waiting, self._waiting_hellos = self._waiting_hellos, {}
            for connection, hello in waiting.items():
                effects += self._welcome_client(connection, hello, now)
        return effects

    # Sessions

    def _on_connected(self, connection: int, peer: str | None, now: Instant) -> Effects:
        if peer is None:
            self._sessions[connection] = Session(connection, now, HELLO_WITHIN_NS)
            return []
        self._sessions[connection] = Session(connection, now, self.settings.detect_after_ns)
        port = self.neighbours.get(peer)
        assert port is not None
        self._peers[connection] = port
        self._session_seq += 1
        settings = self.settings
        hello = Hello(
            self.name,
            Kind.BROKER,
            settings.incarnation,
            self._session_seq,
            "broker",
            settings.heartbeat_ns,
        )
        return [Send(connection, [hello])]

    def _on_disconnected(self, connection: int, reason: str, now: Instant) -> Effects:
        if connection not in self._sessions:
            return []
        port = self._peers.get(connection)
        known = port.name if port is not None else "a stranger"
        gone = Log("info", f"lost {known}: {reason}", {"peer": known, "reason": reason})
        return [gone, *self._lose(connection, now)]

    def _lose(self, connection: int, now: Instant) -> Effects:
        del self._sessions[connection]
        self._waiting_hellos.pop(connection, None)
        port = self._peers.pop(connection, None)
        if port is None:
            return []
        if isinstance(port, ClientPort):
            if port.connection == connection:
                self.clients.become_gone(port, now)
            return []
        if port.connection is None:  # it was dialled and had not answered yet
            self.neighbours.on_dial_failed(port, now)
        if port.connection != connection:
            return []
        self.neighbours.become_absent(port, now)
        return self.advertisement.on_absent(port) + self._settle(now)

    def _end(self, connection: int, farewell: Farewell, reason: str, now: Instant) -> Effects:
        """End a session from this side."""
        port = self._peers.get(connection)
        known = port.name if port is not None else "a stranger"
        level = "info" if farewell in (Farewell.SILENT, Farewell.REPLACED) else "warning"
        return [
            Log(level, f"ending {known}: {reason}", {"peer": known, "reason": reason}),
            Send(connection, [Goodbye(farewell, reason)]),
            Close(connection, reason),
            *self._lose(connection, now),
        ]

    def _say_goodbye_to_all(self) -> Effects:
        self._is_stopped = True
        effects: Effects = []
        for connection in self._sessions:
            effects.append(Send(connection, [Goodbye(Farewell.STOPPING, f"{self.name} is stopping")]))
            effects.append(Close(connection, "stopping"))
        return effects

    # Messages

    def _on_received(self, connection: int, messages: list[Message], now: Instant) -> Effects:
        effects: Effects = []
        for message in messages:
            session = self._sessions.get(connection)
            if session is None:
                break  # it ended with an earlier message
            session.heard_at = now
            try:
                effects += self._on_message(connection, message, now)
            except _Breach as breach:
                self.counters.refusals += 1
                effects += self._end(connection, Farewell.PROTOCOL, str(breach), now)
        return effects

    def _on_message(self, connection: int, message: Message, now: Instant) -> Effects:
        port = self._peers.get(connection)
        match message:
            case Goodbye(farewell, reason):
                return self._on_goodbye(connection, farewell, reason, now)
            case Hello() if port is None and connection not in self._waiting_hellos:
                return self._on_hello(connection, message, now)
            case Welcome() if isinstance(port, NeighbourPort) and port.connection is None:
                return self._on_welcome(connection, port, message, now)
        if isinstance(port, ClientPort):
            return self._on_client_message(port, message)
        if isinstance(port, NeighbourPort) and port.connection == connection:
            return self._on_neighbour_message(port, message, now)
        if isinstance(message, Heartbeat):
            return []  # it may overtake the Hello
        raise _Breach(f"{type(message).__name__} before Hello")

    def _on_goodbye(self, connection: int, farewell: Farewell, reason: str, now: Instant) -> Effects:
        port = self._peers.get(connection)
        known = port.name if port is not None else "a stranger"
        said = f"{known} says goodbye: {reason}"
        effects: Effects = [
            Log("info", said, {"peer": known, "reason": reason, "farewell": str(farewell)}),
            Close(connection, reason),
            *self._lose(connection, now),
        ]
        if isinstance(port, ClientPort) and farewell is Farewell.LEAVING and port.connection is None:
            effects += self._remove_client(port)
        return effects

    def _on_client_message(self, port: ClientPort, message: Message) -> Effects:
        match message:
            case Publish(batch):
                return self._on_publish(port, batch)
            case Heartbeat():
                return []
            case Subscribe():
                return self._on_client_subscribe(port, message)
            case Unsubscribe(subscription):
                if (subscription.subscriber, subscription.incarnation) != (port.name, port.incarnation):
                    raise _Breach("Unsubscribe for somebody else's subscription")
                port.numbers.pop(subscription.number, None)
                return self.advertisement.on_unsubscribe(port, subscription)
            case _:
                raise _Breach(f"{type(message).__name__} from a client")

    def _on_neighbour_message(self, port: NeighbourPort, message: Message, now: Instant) -> Effects:
        match message:
            case Publications():
                return self._on_publications(port, message)
            case Heartbeat():
                return []
            case Confirmed():
                return self.advertisement.on_confirmed(port, message)
            case Withdrawn():
                return self.advertisement.on_withdrawn(port, message)
            case Table(rows, last):
                return self._on_table(port, rows, last, now)
            case Subscribe() if port.has_told:
                try:
                    return self.advertisement.on_subscribe(port, message)
                except FilterError as error:
                    raise _Breach(f"a filter that cannot be read: {error}") from error
            case Unsubscribe(subscription) if port.has_told:
                return self.advertisement.on_unsubscribe(port, subscription)
            case _:
                raise _Breach(f"{type(message).__name__} from a neighbour at this point")

    # Meeting neighbours

    def _on_hello(self, connection: int, hello: Hello, now: Instant) -> Effects:
        if common_version(hello) is None:
            offered = f"versions {hello.version_min} to {hello.version_max}"
            return self._end(connection, Farewell.VERSION, f"{offered} are not spoken here", now)
        if hello.kind is Kind.CLIENT:
            return self._on_client_hello(connection, hello, now)
        port = self.neighbours.get(hello.node)
        if port is None:
            return self._end(
                connection, Farewell.UNKNOWN, f"{hello.node} is no neighbour of {self.name}", now
            )
        effects: Effects = []
        if port.connection is not None:
            # A new session with an old acquaintance is a failure and a recovery [B0.18].
            effects += self._end(port.connection, Farewell.REPLACED, "a new session has begun", now)
        self._peers[connection] = port
        effects.append(Send(connection, [self._welcome(hello, self.settings.heartbeat_ns)]))
        return effects + self._begin(connection, port, hello.incarnation, hello.heartbeat_ns, now)

    def _on_welcome(self, connection: int, port: NeighbourPort, welcome: Welcome, now: Instant) -> Effects:
        if welcome.node != port.name or welcome.kind is not Kind.BROKER:
            raise _Breach(f"{port.name} was dialled, {welcome.node} answered")
        return self._begin(connection, port, welcome.incarnation, welcome.heartbeat_ns, now)

    def _begin(
        self, connection: int, port: NeighbourPort, incarnation: int, heartbeat_ns: int, now: Instant
    ) -> Effects:
        self.counters.sessions += 1
        session = self._sessions[connection]
        session.begin(now, self.settings.heartbeat_ns, heartbeat_ns, self.settings.detect_after_ns)
        effects: Effects = []
        if incarnation < port.incarnation:
            text = f"{port.name} came as incarnation {incarnation} after {port.incarnation}: has it lost its disk?"
            effects.append(Log("warning", text, {"peer": port.name}))
        port.become_greeted(connection, incarnation)
        effects.append(Log("info", f"in session with {port.name}", {"peer": port.name}))
        return effects + self._settle(now)

    def _welcome(self, hello: Hello, heartbeat_ns: int, last_number: int = 0) -> Welcome:
        return Welcome(
            self.name,
            Kind.BROKER,
            self.settings.incarnation,
            hello.session,
            heartbeat_ns,
            last_number=last_number,
        )

    def _on_table(self, port: NeighbourPort, rows: tuple[Row, ...], last: bool, now: Instant) -> Effects:
        if port.has_told:
            raise _Breach("a second table")
        port.rows += rows
        if len(port.rows) > self.settings.subscriptions_max:
            raise _Breach(f"a table of more than {self.settings.subscriptions_max} subscriptions")
        if not last:
            return []
        whole, port.rows = port.rows, []
        try:
            effects = self.advertisement.on_table(port, whole)
        except FilterError as error:
            raise _Breach(f"a filter that cannot be read: {error}") from error
        port.has_told = True
        if port.is_active:
            effects += self._delivery.release(port)
        return effects + self._settle(now)

    # Clients

    def _on_client_hello(self, connection: int, hello: Hello, now: Instant) -> Effects:
        known = self.clients.get(hello.node)
        if known is not None and hello.incarnation < known.incarnation:
            return self._end(connection, Farewell.TAKEN_OVER, "a later client has this name", now)
        if known is None and len(self.clients) + len(self._waiting_hellos) >= self.settings.clients_max:
            full = f"{self.name} has its {self.settings.clients_max} clients"
            return self._end(connection, Farewell.STOPPING, full, now)
        if not self.is_ready:
            self._waiting_hellos[connection] = hello
            return []
        return self._welcome_client(connection, hello, now)

    def _welcome_client(self, connection: int, hello: Hello, now: Instant) -> Effects:
        effects: Effects = []
        port = self.clients.get(hello.node)
        if port is not None and port.incarnation > hello.incarnation:
            return self._end(connection, Farewell.TAKEN_OVER, "a later client has this name", now)
        if port is not None and port.incarnation < hello.incarnation:
            if port.connection is not None:
                effects += self._end(
                    port.connection, Farewell.TAKEN_OVER, "a later client has this name", now
                )
            last_number = port.last_number
            effects += self._remove_client(port)
            port = self.clients.admit(hello.node, hello.incarnation)
            port.last_number = last_number
        elif port is not None and port.connection is not None:
            effects += self._end(port.connection, Farewell.REPLACED, "the client came again", now)
        if port is None:
            port = self.clients.admit(hello.node, hello.incarnation)
        port.connection = connection
        port.gone_at = None
        self._peers[connection] = port
        self.counters.sessions += 1
        heartbeat_ns = self.settings.client_heartbeat_ns
        session = self._sessions[connection]
        session.begin(now, heartbeat_ns, hello.heartbeat_ns, self.settings.detect_after_ns)
        effects.append(Send(connection, [self._welcome(hello, heartbeat_ns, port.last_number)]))
        return effects

    def _remove_client(self, port: ClientPort) -> Effects:
        effects: Effects = []
        for number in port.numbers:
            subscription = SubscriptionId(port.name, port.incarnation, number)
            effects += self.advertisement.on_unsubscribe(port, subscription, is_asked=False)
        self.clients.remove(port)
        return effects

    def _on_client_subscribe(self, port: ClientPort, message: Subscribe) -> Effects:
        subscription = message.subscription
        if (subscription.subscriber, subscription.incarnation) != (port.name, port.incarnation):
            raise _Breach("Subscribe under somebody else's name")
        assert port.connection is not None
        if len(self.table) + self.advertisement.pending >= self.settings.subscriptions_max:
            full = f"{self.name} has its {self.settings.subscriptions_max} subscriptions"
            return [Send(port.connection, [Refused(subscription, full)])]
        try:
            effects = self.advertisement.on_subscribe(port, message)
        except FilterError as error:
            return [Send(port.connection, [Refused(subscription, str(error))])]
        port.numbers[subscription.number] = None
        return effects

    # Publications

    def _on_publish(self, port: ClientPort, batch: Batch) -> Effects:
        publications = batch.publications
        if not publications:
            return []
        for publication in publications:
            if publication.publisher != port.name:
                raise _Breach(f"an event under the name of {publication.publisher!r}")
        admission = self._entrance.admit(port, publications)
        effects: Effects = []
        for admitted in admission.admitted:
            self.counters.published += len(admitted.events)
            effects += self._delivery.route(admitted.stream, admitted.batch, admitted.events, None)
        self.counters.duplicates += len(admission.duplicates)
        self.counters.rejected += len(admission.rejected)
        answers: list[Message] = [*admission.rejected]
        answers.append(Accepted(publications[-1].n, tuple(admission.duplicates)))
        assert port.connection is not None
        effects.append(Send(port.connection, answers))
        return effects

    def _on_publications(self, port: NeighbourPort, message: Publications) -> Effects:
        if not port.has_told:
            raise _Breach("Publications before the table")
        batch = _picked(message)
        self.counters.received += len(batch)
        if not self._delivery.looks_inside:
            return self._delivery.flood_unread(message.stream, batch, port)
        events: list[PackedEvent] = []
        try:
            for publication in batch.publications:
                events.append(unpack(publication.event))
        except MalformedEvent as error:
            raise _Breach(f"an event that cannot be read: {error}") from error
        return self._delivery.route(message.stream, batch, events, port)


def _picked(message: Publications) -> Batch:
    batch = message.batch
    if len(message.at) == len(batch.publications):
        return batch
    return Batch([batch.publications[i] for i in message.at])
