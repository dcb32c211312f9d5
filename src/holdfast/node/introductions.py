"""How a node meets others and parts from them: calls, Hello and Welcome, heartbeats, silence, farewells.

Two nodes may call each other at once; then the call of the one whose name is smaller stands. A new session with an old
acquaintance is a failure and a recovery [B0.18].
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from holdfast.clock import SECOND, Instant
from holdfast.messages.overlay import Join, Role
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello, Kind, Overlay, Welcome
from holdfast.node.breach import Breach, brief, problem_with
from holdfast.node.station import Station
from holdfast.overlay.session import HELLO_WITHIN_NS, Session, common_version, heartbeat_problem
from holdfast.overlay.transport import Close, Log, Send, Trace, TransportEffect

if TYPE_CHECKING:
    from holdfast.node.node import Node

__all__ = ["Introductions"]

Effects = list[TransportEffect]

#: A node must have told what it knows within this time of a session's beginning.
TOLD_WITHIN_NS: Final = 5 * SECOND

#: One that is recovering waits for others itself.
RECOVERED_WITHIN_NS: Final = 60 * SECOND


class Introductions:
    """The sessions of a node, and whose they are."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._sessions: dict[int, Session] = {}
        self._stations: dict[int, Station] = {}  #: by connection; also of those we are calling
        self._session_seq = 0

    def station(self, connection: int) -> Station | None:
        """Whose connection it is, or whom we are calling on it."""
        return self._stations.get(connection)

    def hear(self, connection: int, now: Instant) -> bool:
        """Something has come on a connection; False if it is not one of ours any more."""
        session = self._sessions.get(connection)
        if session is None:
            return False
        session.hear(now)
        return True

    def is_silent(self, station: Station, now: Instant) -> bool:
        """Whether somebody in session is about to be given up."""
        session = None if station.connection is None else self._sessions.get(station.connection)
        return session is None or session.is_silent(now)

    def tick(self, now: Instant) -> Effects:
        """Heartbeats to those who are owed one; the silent are given up."""
        effects: Effects = []
        for session in list(self._sessions.values()):
            connection = session.connection
            if connection not in self._sessions:
                continue
            if session.is_silent(now):
                reason = f"nothing heard for {session.silent_after_ns / SECOND:g} s"
                effects += self.part(connection, Farewell.SILENT, reason, now)
            elif self._owes_word(session, now):
                effects += self.part(connection, Farewell.SILENT, "it did not tell what it knows", now)
            elif session.may_beat(now):
                session.heartbeat_at = now + session.heartbeat_every_ns
                effects.append(Send(connection, [Heartbeat()]))
        return effects

    def _owes_word(self, session: Session, now: Instant) -> bool:
        """Whether a node has had its time to tell us what it knows: others may be waiting for that."""
        station = self._stations.get(session.connection)
        if station is None or station.has_told or session.begun_at is None:
            return False
        within = RECOVERED_WITHIN_NS if station.is_restarted else TOLD_WITHIN_NS
        return now >= session.begun_at + within

    def name(self, connection: int) -> str:
        """The peer as a log should call it."""
        station = self._stations.get(connection)
        return "a stranger" if station is None else station.name

    def on_connected(self, connection: int, peer: str | None, now: Instant) -> Effects:
        """A connection stands: one we asked for, or a stranger's."""
        patience = self._node.settings.detect_after_ns
        if peer is None:
            self._sessions[connection] = Session(connection, now, max(patience, HELLO_WITHIN_NS))
            return []
        station = self._node.reach.get(peer)
        if station is None or station.connection is not None:
            if station is not None:
                station.dialling = False
            return [Close(connection, "not needed any more")]
        calls = self._calls(peer)
        if any(self._stations[each] is station for each in calls):
            return [Close(connection, "a call is under way")]
        given_up = [effect for each in calls for effect in self._drop(each, "they are called anew")]
        # A neighbour may be a long round trip away; who is to stand in for one is wanted soon, or not at all.
        patience = max(patience, HELLO_WITHIN_NS) if station.distance == 1 else patience
        self._sessions[connection] = Session(connection, now, patience)
        self._stations[connection] = station
        self._session_seq += 1
        settings = self._node.settings
        hello = Hello(
            settings.name,
            Kind.BROKER if settings.role is Role.BROKER else Kind.CLIENT,
            settings.incarnation,
            self._session_seq,
            "broker" if settings.role is Role.BROKER else "anonymous",
            settings.heartbeat_ns,
            features=settings.features,
            overlay=self._overlay(),
        )
        return [*given_up, Send(connection, [hello])]

    def _overlay(self) -> Overlay:
        settings = self._node.settings
        return Overlay(
            settings.role, settings.delta, not self._node.is_recovered, settings.home, settings.address
        )

    def _calls(self, name: str) -> list[int]:
        """Where we have said Hello to a node, perhaps to an earlier life of it, and wait for its Welcome."""
        return [
            connection
            for connection, station in self._stations.items()
            if station.name == name and station.connection != connection
        ]

    def connections(self) -> list[int]:
        """Every connection of the node's."""
        return list(self._sessions)

    def excuse(self, connections: Iterable[int], now: Instant) -> None:
        """Our host has not read from these: whoever is there is not silent for that."""
        for connection in connections:
            if connection in self._sessions:
                self._sessions[connection].hear(now)

    def owns(self, connection: int) -> bool:
        """Whether a connection is the node's."""
        return connection in self._sessions

    def adopt(self, session: Session, hello: Hello, now: Instant) -> Effects:
        """A stranger of our host's turned out to be a node."""
        self._sessions[session.connection] = session
        try:
            return self.on_hello(session.connection, hello, now)
        except Breach as breach:
            return self.part(session.connection, Farewell.PROTOCOL, str(breach), now)

    def on_hello(self, connection: int, hello: Hello, now: Instant) -> Effects:
        """A node has dialled us."""
        overlay = hello.overlay
        if common_version(hello) is None:
            offered = f"versions {hello.version_min} to {hello.version_max}"
            return self.part(connection, Farewell.VERSION, f"{offered} are not spoken here", now)
        if (problem := problem_with(hello, self._node.settings.name_bytes_max)) is not None:
            raise Breach(problem)
        if overlay is None:
            raise Breach(f"{hello.node} is no node of the overlay")
        if (problem := self._mismatch(overlay, hello.features)) is not None:
            return self.part(connection, Farewell.MISMATCH, problem, now)
        effects: Effects = []
        if hello.kind is Kind.CLIENT:
            effects += self._node.visitors.end_earlier_life(hello.node, hello.incarnation, None, now)
        station, joined = self._station_of(hello, overlay)
        if station is None:
            return self.part(connection, Farewell.UNKNOWN, self._node.visitors.refusal(hello), now)
        if hello.kind is Kind.CLIENT and hello.incarnation < station.place.incarnation:
            return self.part(connection, Farewell.TAKEN_OVER, "a later client has this name", now)
        if calls := self._calls(hello.node):
            if self._node.name < hello.node:
                return effects + self.part(connection, Farewell.REPLACED, "our own call is under way", now)
            for other in calls:
                effects += self._drop(other, "they have reached us")
        if station.connection is not None:
            effects += self.part(station.connection, Farewell.REPLACED, "a new session has begun", now)
        self._stations[connection] = station
        settings = self._node.settings
        welcome = Welcome(
            settings.name,
            Kind.BROKER if settings.role is Role.BROKER else Kind.CLIENT,
            settings.incarnation,
            hello.session,
            settings.heartbeat_ns,
            features=settings.features,
            overlay=self._overlay(),
        )
        effects.append(Send(connection, [welcome]))
        if joined is not None:
            effects += self._node.visitors.pass_on(joined, None)
        return effects + self._begin(connection, station, hello, overlay, now, is_dialler=False)

    def _mismatch(self, overlay: Overlay, features: tuple[str, ...]) -> str | None:
        """How the other side is configured differently, if it is. What a later version can do besides is its affair."""
        settings = self._node.settings
        if overlay.delta != settings.delta:
            return f"{self._node.name} has delta {settings.delta}, the other side {overlay.delta}"
        if (
            overlay.role is Role.BROKER
            and settings.role is Role.BROKER
            and not {*settings.features} <= {*features}
        ):
            ours, theirs = ", ".join(settings.features), ", ".join(features) or "nothing"
            return f"{self._node.name} has {ours}, the other side {theirs}"
        return None

    def _drop(self, connection: int, reason: str) -> Effects:
        """Give up a call of our own."""
        del self._sessions[connection]
        station = self._stations.pop(connection)
        station.dialling = False
        return [Close(connection, reason)]

    def _station_of(self, hello: Hello, overlay: Overlay) -> tuple[Station | None, Join | None]:
        """Whose Hello it is; a client or a leaf broker may be new, a client may have become a publisher."""
        if overlay.home is None:
            return self._node.reach.get(hello.node), None
        incarnation = 0 if overlay.role is Role.BROKER else hello.incarnation
        join = Join(hello.node, overlay.role, overlay.home, overlay.address, incarnation)
        before = self._node.topology.get(hello.node)
        place = self._node.visitors.enter(join)
        if place is None:
            return None, None
        return self._node.reach.enter(place), join if place != before else None

    def on_welcome(self, connection: int, station: Station, welcome: Welcome, now: Instant) -> Effects:
        """Somebody we called has answered."""
        if welcome.node != station.name or welcome.overlay is None:
            raise Breach(f"{station.name} was dialled, {welcome.node} answered")
        if (problem := heartbeat_problem(welcome.heartbeat_ns)) is not None:
            raise Breach(problem)
        overlay = welcome.overlay
        if (problem := self._mismatch(overlay, welcome.features)) is not None:
            return self.part(connection, Farewell.MISMATCH, problem, now)
        effects: Effects = []
        if welcome.kind is Kind.CLIENT and overlay.home is not None:
            effects += self._node.visitors.end_earlier_life(station.name, welcome.incarnation, None, now)
            join = Join(station.name, overlay.role, overlay.home, overlay.address, welcome.incarnation)
            place = self._node.visitors.enter(join)
            if place is None:
                return effects + self.part(connection, Farewell.UNKNOWN, "it has moved away", now)
            if place != station.place:
                effects += self._node.visitors.pass_on(join, None)
            self._stations[connection] = station = self._node.reach.enter(place)
        return effects + self._begin(connection, station, welcome, overlay, now, is_dialler=True)

    def _line(self, kind: str, station: Station) -> Effects:
        """That two neighbouring brokers have lost each other, or met again, stands in the trace."""
        is_broker = station.place.role is Role.BROKER and self._node.settings.role is Role.BROKER
        return (
            [Trace(kind, {"nodes": [self._node.name, station.name]})]
            if is_broker and station.distance == 1
            else []
        )

    def _begin(
        self,
        connection: int,
        station: Station,
        peer: Hello | Welcome,
        overlay: Overlay,
        now: Instant,
        *,
        is_dialler: bool,
    ) -> Effects:
        settings = self._node.settings
        session = self._sessions[connection]
        session.begin(now, settings.heartbeat_ns, peer.heartbeat_ns, settings.detect_after_ns)
        is_restarted = overlay.is_recovering
        effects: Effects = self._line("reconnect", station) if station.incarnation else []
        if peer.incarnation < station.incarnation:
            fields = {"peer": station.name, "incarnation": peer.incarnation, "known": station.incarnation}
            effects.append(Log("warning", "an incarnation went back: has it lost its disk?", fields))
        station.meet(connection, peer.incarnation, is_dialler=is_dialler, is_restarted=is_restarted)
        self._node.reach.on_met(station)
        self._node.plane.holdings.begin(station)
        effects.append(Log("info", "in session", {"peer": station.name}))
        return effects + self._node.changed(now)

    def part(self, connection: int, farewell: Farewell, reason: str, now: Instant) -> Effects:
        """End a session from this side."""
        reason = brief(reason)
        fields = {"peer": self.name(connection), "farewell": str(farewell), "reason": reason}
        level = "info" if farewell in (Farewell.SILENT, Farewell.REPLACED, Farewell.NEEDLESS) else "warning"
        parting: Effects = [
            Log(level, "session ended", fields),
            Send(connection, [Goodbye(farewell, reason)]),
            Close(connection, reason),
        ]
        return parting + self.lose(connection, now)

    def lose(self, connection: int, now: Instant, *, is_fault: bool = True) -> Effects:
        """A connection is gone."""
        station = self._stations.get(connection)
        was_met = station is not None and station.connection == connection
        if self.lost(connection, now) is None:
            return []
        assert station is not None
        lines = self._line("disconnect", station) if was_met and is_fault else []
        return lines + self._node.changed(now)

    def lost(self, connection: int, now: Instant) -> Station | None:
        """A connection is gone; whose it was."""
        del self._sessions[connection]
        station = self._stations.pop(connection, None)
        if station is not None and station.connection is None:
            self._node.reach.on_dial_failed(station, now)
        elif station is not None and station.connection == connection:
            self._node.host.on_gone(station)
            self._node.reach.on_lost(station, now)
            self._node.plane.on_lost(station)
            self._node.spread.on_lost(station)
        return station
