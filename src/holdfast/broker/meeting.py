"""A broker and its neighbours: introductions, tables, then publications both ways."""

from __future__ import annotations

from typing import Final

from holdfast.broker.delivery import Delivery
from holdfast.broker.neighbours import Neighbours
from holdfast.broker.sessions import Breach, Effects, End, Sessions
from holdfast.broker.settings import Routing, Settings
from holdfast.broker.statistics import Counters
from holdfast.clock import SECOND, Instant
from holdfast.errors import FilterError, MalformedEvent
from holdfast.events.packed import unpack
from holdfast.messages.message import Message
from holdfast.messages.publications import Publications
from holdfast.messages.session import Farewell, Heartbeat, Hello, Kind, Welcome
from holdfast.messages.subscriptions import Confirmed, Row, Subscribe, Table, Unsubscribe, Withdrawn
from holdfast.overlay.session import HELLO_WITHIN_NS, Session, heartbeat_problem
from holdfast.overlay.transport import Log, Send, Trace
from holdfast.routing.advertisement import Advertisement, Reused
from holdfast.routing.port import NeighbourPort

__all__ = ["Meeting"]

#: A neighbour must tell its table within this time: clients and other neighbours may be waiting for it.
TABLE_WITHIN_NS: Final = 5 * SECOND


class Meeting:
    """What neighbours say, and what is said to them."""

    def __init__(
        self,
        settings: Settings,
        sessions: Sessions,
        neighbours: Neighbours,
        advertisement: Advertisement,
        delivery: Delivery,
        counters: Counters,
        end: End,
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._neighbours = neighbours
        self._advertisement = advertisement
        self._delivery = delivery
        self._counters = counters
        self._end = end
        self._session_seq = 0
        self._features = (f"routing={settings.routing}",)
        self._spreads = settings.routing is Routing.FILTER

    # Introductions

    def on_dialled(self, connection: int, port: NeighbourPort, now: Instant) -> Effects:
        """A neighbour we dialled has picked up."""
        settings = self._settings
        self._sessions.open(connection, now, max(settings.detect_after_ns, HELLO_WITHIN_NS))
        self._sessions.assign(connection, port)
        self._session_seq += 1
        hello = Hello(
            settings.name,
            Kind.BROKER,
            settings.incarnation,
            self._session_seq,
            "broker",
            settings.heartbeat_ns,
            features=self._features,
        )
        return [Send(connection, [hello])]

    def on_hello(self, connection: int, hello: Hello, now: Instant) -> Effects:
        """A broker has dialled us."""
        settings = self._settings
        port = self._neighbours.get(hello.node)
        if port is None:
            stranger = f"{hello.node} is no neighbour of {settings.name}"
            return self._end(connection, Farewell.UNKNOWN, stranger, now)
        if not self._is_alike(hello.features):
            return self._end(connection, Farewell.MISMATCH, self._mismatch(hello.features), now)
        effects: Effects = []
        if port.connection is not None:
            # A new session with an old acquaintance is a failure and a recovery [B0.18].
            effects += self._end(port.connection, Farewell.REPLACED, "a new session has begun", now)
        self._sessions.assign(connection, port)
        welcome = Welcome(
            settings.name,
            Kind.BROKER,
            settings.incarnation,
            hello.session,
            settings.heartbeat_ns,
            features=self._features,
        )
        effects.append(Send(connection, [welcome]))
        return effects + self._begin(connection, port, hello.incarnation, hello.heartbeat_ns, now)

    def on_welcome(self, connection: int, port: NeighbourPort, welcome: Welcome, now: Instant) -> Effects:
        """A neighbour we dialled has answered."""
        if welcome.node != port.name or welcome.kind is not Kind.BROKER:
            raise Breach(f"{port.name} was dialled, {welcome.node} answered")
        if (problem := heartbeat_problem(welcome.heartbeat_ns)) is not None:
            raise Breach(problem)
        if not self._is_alike(welcome.features):
            return self._end(connection, Farewell.MISMATCH, self._mismatch(welcome.features), now)
        return self._begin(connection, port, welcome.incarnation, welcome.heartbeat_ns, now)

    def _begin(
        self, connection: int, port: NeighbourPort, incarnation: int, heartbeat_ns: int, now: Instant
    ) -> Effects:
        settings = self._settings
        self._counters.sessions += 1
        session = self._sessions[connection]
        session.begin(now, settings.heartbeat_ns, heartbeat_ns, settings.detect_after_ns)
        effects: Effects = []
        if incarnation < port.incarnation:
            fields = {"peer": port.name, "incarnation": incarnation, "known": port.incarnation}
            effects.append(
                Log("warning", "a neighbour's incarnation went back: has it lost its disk?", fields)
            )
        if port.has_met:
            effects.append(self._line("reconnect", port))
        port.become_greeted(connection, incarnation)
        effects.append(Log("info", "in session", {"peer": port.name}))
        return effects

    def _is_alike(self, features: tuple[str, ...]) -> bool:
        """Whether the other side is configured as we are; what a later version can do besides is its own affair."""
        return set(self._features) <= set(features)

    def _mismatch(self, features: tuple[str, ...]) -> str:
        ours, theirs = ", ".join(self._features), ", ".join(features) or "nothing"
        return f"{self._settings.name} has {ours}, the other side {theirs}"

    # Messages

    def on_message(self, port: NeighbourPort, message: Message) -> Effects:
        """A neighbour in session says something."""
        match message:
            case Publications() if port.has_told:
                return self._on_publications(port, message)
            case Heartbeat():
                return []
            case Confirmed():
                return self._advertisement.on_confirmed(port, message)
            case Withdrawn():
                return self._advertisement.on_withdrawn(port, message)
            case Table(rows, last) if not port.has_told and (self._spreads or not rows):
                return self._on_table(port, rows, last)
            case Subscribe() if port.has_told and self._spreads:
                try:
                    return self._advertisement.on_subscribe(port, message)
                except (FilterError, Reused) as error:
                    raise Breach(f"a subscription that cannot be: {error}") from error
            case Unsubscribe(subscription) if port.has_told:
                return self._advertisement.on_unsubscribe(port, subscription)
            case _:
                raise Breach(f"{type(message).__name__} from a neighbour at this point")

    def _on_publications(self, port: NeighbourPort, message: Publications) -> Effects:
        batch = message.batch.picked(message.at)
        self._counters.received += len(batch)
        if not self._delivery.looks_inside:
            return self._delivery.flood_unread(message.stream, batch, port)
        try:
            events = [unpack(publication.event) for publication in batch.publications]
        except MalformedEvent as error:
            raise Breach(f"an event that cannot be read: {error}") from error
        return self._delivery.route(message.stream, batch, events, port)

    # Tables

    def _on_table(self, port: NeighbourPort, rows: tuple[Row, ...], last: bool) -> Effects:
        if len(port.listed) + len(rows) > self._settings.subscriptions_max:
            raise Breach(f"a table of more than {self._settings.subscriptions_max} subscriptions")
        try:
            effects = self._advertisement.on_table(port, rows, last=last)
        except (FilterError, Reused) as error:
            raise Breach(f"a table that cannot be: {error}") from error
        port.has_told = last
        return effects + (self._delivery.release(port) if port.is_active else [])

    def tell(self) -> Effects:
        """Our table, to whoever may have it by now."""
        effects: Effects = []
        for port in self._neighbours.ports:
            if self._neighbours.may_tell(port):
                effects += self._advertisement.tell(port)
                effects += self._delivery.release(port) if port.is_active else []
        return effects

    def owes_table(self, session: Session, now: Instant) -> bool:
        """Whether a neighbour has had its time to tell us its own."""
        port = self._sessions.port(session.connection)
        if not isinstance(port, NeighbourPort) or port.has_told or session.begun_at is None:
            return False
        return now >= session.begun_at + TABLE_WITHIN_NS

    def on_lost(self, connection: int, port: NeighbourPort, now: Instant, *, is_fault: bool) -> Effects:
        """A connection with a neighbour is gone: the session's, or one that had not become one."""
        if port.connection is None:
            self._neighbours.on_dial_failed(port, now)
        if port.connection != connection:
            return []
        self._counters.dropped += port.held_count
        self._neighbours.become_absent(port, now)
        effects: Effects = [self._line("disconnect", port)] if is_fault else []
        return effects + self._advertisement.on_absent(port)

    def _line(self, kind: str, port: NeighbourPort) -> Trace:
        return Trace(kind, {"nodes": [self._settings.name, port.name]})
