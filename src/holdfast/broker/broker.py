"""The broker: it takes inputs apart and hands them to those they concern.

Neighbours are the business of ``meeting``, clients that of ``hosting``; here is what both have in common, that sessions
begin and end. A peer that breaks a rule of the protocol is told so and loses its connection; nobody else notices.
"""

from __future__ import annotations

from typing import Any, assert_never

from holdfast.broker.clients import Clients
from holdfast.broker.coalescing import merged
from holdfast.broker.delivery import Delivery
from holdfast.broker.hosting import Hosting
from holdfast.broker.input import Input, Stop
from holdfast.broker.meeting import Meeting
from holdfast.broker.neighbours import Neighbours
from holdfast.broker.sessions import Breach, Effects, Sessions, brief, problem_with
from holdfast.broker.settings import Routing, Settings
from holdfast.broker.statistics import Counters
from holdfast.broker.status import status_of
from holdfast.clock import SECOND, Instant
from holdfast.matching.index import MatchingIndex
from holdfast.messages.message import Message
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello, Kind, Welcome
from holdfast.overlay.session import HELLO_WITHIN_NS, common_version
from holdfast.overlay.transport import (
    Close,
    Connected,
    ConnectFailed,
    Disconnected,
    Log,
    Received,
    Send,
    Wake,
)
from holdfast.routing.advertisement import Advertisement
from holdfast.routing.port import ClientPort, NeighbourPort
from holdfast.routing.table import Table

__all__ = ["Broker"]


class Broker:
    """Driven by ``step`` and ``next_deadline``, as ``overlay.transport`` says; the first input is a ``Wake``.

    ``index`` is the matching engine to use, the fastest there is by default.
    """

    def __init__(self, settings: Settings, index: MatchingIndex | None = None) -> None:
        self.name = settings.name
        self.settings = settings
        self.counters = Counters()
        self.neighbours = Neighbours(settings)
        self.clients = Clients(settings.client_grace_ns)
        self.table = Table(index)
        ports = self.neighbours.ports
        spread_to = ports if settings.routing is Routing.FILTER else ()
        self.advertisement = Advertisement(settings.name, settings.incarnation, self.table, spread_to)
        delivery = Delivery(settings, self.table, ports, self.counters)
        self._sessions = Sessions()
        self._meeting = Meeting(
            settings,
            self._sessions,
            self.neighbours,
            self.advertisement,
            delivery,
            self.counters,
            self._end,
        )
        self._hosting = Hosting(
            settings,
            self._sessions,
            self.clients,
            self.table,
            self.advertisement,
            delivery,
            self.counters,
            self._end,
        )
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
            return [Close(stimulus.connection, "stopped")] if isinstance(stimulus, Connected) else []
        if isinstance(stimulus, Received):  # nearly always; a match of classes costs more than an isinstance
            return self._on_received(stimulus.connection, stimulus.messages, now)
        match stimulus:
            case Wake():
                return self._on_wake(now)
            case Connected(connection, peer):
                return self._on_connected(connection, peer, now)
            case ConnectFailed(peer, _):
                self.neighbours.on_dial_failed(self._dialled(peer), now)
                return []
            case Disconnected(connection, reason):
                return self._on_disconnected(connection, reason, now)
            case Stop():
                return self._stop()
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
        effects: Effects = self.neighbours.on_wake(now)
        if now >= self._tick_at:
            self._tick_at = now + self.settings.heartbeat_ns
            effects += self._tick(now)
        return effects + self._settle(now)

    def _tick(self, now: Instant) -> Effects:
        """Heartbeats to those who are owed one; the silent, and those whose grace is over, are given up."""
        effects: Effects = []
        for session in self._sessions.all():
            connection = session.connection
            if connection not in self._sessions:
                continue  # it ended with another one
            if session.is_silent(now):
                reason = f"nothing heard for {session.silent_after_ns / SECOND:g} s"
                effects += self._end(connection, Farewell.SILENT, reason, now)
            elif self._meeting.owes_table(session, now):
                effects += self._end(connection, Farewell.SILENT, "its table did not come", now)
            elif session.may_beat(now):
                session.heartbeat_at = now + session.heartbeat_every_ns
                effects.append(Send(connection, [Heartbeat()]))
        return effects + self._hosting.remove_expired(now)

    def _settle(self, now: Instant) -> Effects:
        """Whatever has become possible: tables told, clients welcomed."""
        effects = self._meeting.tell()
        return effects + self._hosting.welcome_waiting(now) if self.is_ready else effects

    # Sessions

    def _dialled(self, peer: str) -> NeighbourPort:
        port = self.neighbours.get(peer)
        assert port is not None, "only neighbours are dialled"
        return port

    def _on_connected(self, connection: int, peer: str | None, now: Instant) -> Effects:
        if peer is not None:
            return self._meeting.on_dialled(connection, self._dialled(peer), now)
        self._sessions.open(connection, now, HELLO_WITHIN_NS)
        return []

    def _on_disconnected(self, connection: int, reason: str, now: Instant) -> Effects:
        if connection not in self._sessions:
            return []
        name = self._sessions.name(connection)
        lost = Log("info", "connection lost", {"peer": name, "reason": reason})
        return [lost, *self._lose(connection, now)]

    def _lose(self, connection: int, now: Instant, *, is_fault: bool = True) -> Effects:
        port = self._sessions.forget(connection)
        if not isinstance(port, NeighbourPort):
            self._hosting.on_lost(connection, port, now)
            return []
        return self._meeting.on_lost(connection, port, now, is_fault=is_fault) + self._settle(now)

    def _end(self, connection: int, farewell: Farewell, reason: str, now: Instant) -> Effects:
        """End a session from this side."""
        return self._sessions.part(connection, farewell, reason) + self._lose(connection, now)

    def _stop(self) -> Effects:
        self._is_stopped = True
        effects: Effects = []
        for session in self._sessions.all():
            goodbye = Goodbye(Farewell.STOPPING, f"{self.name} is stopping")
            effects += [Send(session.connection, [goodbye]), Close(session.connection, "stopping")]
        return effects

    # Messages

    def _on_received(self, connection: int, messages: list[Message], now: Instant) -> Effects:
        effects: Effects = []
        for message in messages if len(messages) == 1 else merged(messages):
            if not self._sessions.hear(connection, now):
                break  # it ended with an earlier message
            try:
                effects += self._on_message(connection, message, now)
            except Breach as breach:
                self.counters.refusals += 1
                effects += self._end(connection, Farewell.PROTOCOL, str(breach), now)
        return effects

    def _on_message(self, connection: int, message: Message, now: Instant) -> Effects:
        port = self._sessions.port(connection)
        if isinstance(message, Goodbye):
            return self._on_goodbye(connection, port, message, now)
        if isinstance(port, ClientPort):
            return self._hosting.on_message(port, message)
        if isinstance(port, NeighbourPort) and port.connection == connection:
            had_told = port.has_told
            effects = self._meeting.on_message(port, message)
            return effects if port.has_told == had_told else effects + self._settle(now)
        match message:
            case Hello() if port is None and not self._hosting.is_waiting(connection):
                return self._on_hello(connection, message, now)
            case Welcome() if port is not None and port.connection is None:
                return self._meeting.on_welcome(connection, port, message, now) + self._settle(now)
            case Heartbeat():
                return []  # it may overtake the Hello
            case _:
                raise Breach(f"{type(message).__name__} before Hello")

    def _on_hello(self, connection: int, hello: Hello, now: Instant) -> Effects:
        if common_version(hello) is None:
            offered = f"versions {hello.version_min} to {hello.version_max}"
            return self._end(connection, Farewell.VERSION, f"{offered} are not spoken here", now)
        problem = problem_with(hello, self.settings.limits.publisher_bytes)
        if problem is not None:
            raise Breach(problem)
        if hello.kind is Kind.CLIENT:
            return self._hosting.on_hello(connection, hello, self.is_ready, now)
        return self._meeting.on_hello(connection, hello, now) + self._settle(now)

    def _on_goodbye(
        self, connection: int, port: NeighbourPort | ClientPort | None, goodbye: Goodbye, now: Instant
    ) -> Effects:
        name, reason = self._sessions.name(connection), brief(goodbye.reason)
        fields = {"peer": name, "reason": reason, "farewell": str(goodbye.farewell)}
        effects: Effects = [
            Log("info", "goodbye from the peer", fields),
            Close(connection, reason),
            *self._lose(connection, now, is_fault=goodbye.farewell is not Farewell.STOPPING),
        ]
        if isinstance(port, ClientPort) and goodbye.farewell is Farewell.LEAVING and port.connection is None:
            effects += self._hosting.remove(port)
        return effects
