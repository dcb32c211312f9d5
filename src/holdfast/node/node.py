"""A node of the overlay: everything brokers and clients have in common [KJ §9, R0.7].

It meets the others within reach, tells them what it knows and is told, spreads subscriptions and relays publications,
around whoever has failed. What its users want, the applications of a client or the clients of a broker, is its host's
affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from holdfast.clock import SECOND, Instant
from holdfast.errors import FilterError, MalformedEvent
from holdfast.events.event import Content
from holdfast.events.packed import unpack
from holdfast.messages.message import Message
from holdfast.messages.overlay import (
    Confirmations,
    DepthAck,
    Join,
    Leave,
    Need,
    Ready,
    Relay,
    Role,
    Told,
)
from holdfast.messages.publications import (
    Accepted,
    Batch,
    Deliveries,
    Publication,
    Publications,
    Publish,
    Rejected,
)
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello, Kind, Overlay, Welcome
from holdfast.messages.subscriptions import (
    Cleared,
    Confirmed,
    Crossed,
    Heal,
    Healed,
    Lore,
    Partition,
    Subscribe,
    Unsubscribe,
    Upgraded,
    UpgradeTaken,
    Withdrawn,
)
from holdfast.node.breach import Breach, brief, problem_with
from holdfast.node.graves import of_life
from holdfast.node.host import Host
from holdfast.node.plane import Plane
from holdfast.node.reach import Reach
from holdfast.node.settings import Acknowledge, NodeSettings
from holdfast.node.spread import Spread
from holdfast.node.station import Phase, Station
from holdfast.node.topology import Place, Topology
from holdfast.overlay.session import HELLO_WITHIN_NS, Session, common_version, heartbeat_problem
from holdfast.overlay.transport import (
    Close,
    Connected,
    ConnectFailed,
    Disconnected,
    Log,
    Received,
    Send,
    Trace,
    TransportEffect,
    TransportInput,
    Wake,
)
from holdfast.routing import filtering
from holdfast.routing.port import Port
from holdfast.routing.table import Table

__all__ = ["Node"]

Effects = list[TransportEffect]

#: What is published at once is cut into batches of so many.
BATCH_MAX: Final = 1_000

#: A node must have told what it knows within this time of a session's beginning.
TOLD_WITHIN_NS: Final = 5 * SECOND

#: One that is recovering waits for others itself.
RECOVERED_WITHIN_NS: Final = 60 * SECOND


class Node:
    """Driven by ``step`` and ``next_deadline``, as ``overlay.transport`` says; the first input is a ``Wake``."""

    def __init__(self, settings: NodeSettings, table: Table, host: Host) -> None:
        self.name = settings.name
        self.settings = settings
        self._host = host
        self.table = table
        self.topology = Topology(settings.name, settings.delta + 1)
        self.reach = Reach(self.topology, settings.probe_every_ns, settings.detect_after_ns)
        self.plane = Plane(settings, self.reach, self._gather, host.on_local, host.on_safe)
        self.spread = Spread(
            settings,
            self.reach,
            table,
            host,
            self._retag,
            self._on_left,
        )
        for join in settings.places:
            if (place := self._enter(join)) is not None:
                self.reach.enter(place)
        self._sessions: dict[int, Session] = {}
        self._stations: dict[int, Station] = {}  #: by connection; also of those we are calling
        self._session_seq = 0
        self.refusals = 0  #: sessions ended because the peer broke a rule
        self._is_recovered = False
        self._left: Effects = []  #: what follows from somebody's leaving
        self._held: list[tuple[str, list[Publication]]] = []  #: published before we knew who wants it
        self.farewell: tuple[Farewell, str] | None = None  #: why there is no coming back
        self._tick_at: Instant | None = None
        self._dack_at: Instant = 0

    @property
    def is_recovered(self) -> bool:
        """Whether the node knows what the network knows, and accepts publications."""
        return self._is_recovered

    @property
    def is_connected_to_all(self) -> bool:
        """Whether every neighbour is open."""
        return all(self.reach[place.name].is_open for place in self.topology.beyond(self.name))

    def _enter(self, join: Join) -> Place | None:
        if join.incarnation and self.spread.interests.graves.covers(of_life(join.node, join.incarnation)):
            return None  # that life is over
        return self.topology.add(join.node, join.role, join.beside, join.address, join.incarnation)

    def _gather(self, events: Sequence[Content]) -> list[Port]:
        ports = filtering.gather(self.table, events, None)
        if not self.settings.floods:
            return ports
        for port in ports:
            if isinstance(port, Station) and port.place.role is Role.BROKER:
                port.take_share()
        rim = self.reach.rim()
        for station in rim:
            station.at = list(range(len(events)))
        clients = [port for port in ports if not isinstance(port, Station) or port not in rim]
        return [*rim, *(port for port in clients if port.at)]

    def _retag(self, partition: Partition) -> None:
        for segment in self.plane.queue.values():
            segment.tags = self.spread.partitions.tags_before(partition, segment.tags, segment.upstream)

    # Driving

    def step(self, stimulus: TransportInput, now: Instant) -> Effects:
        """Take one input, and say what is to be done about it."""
        match stimulus:
            case Received(connection, messages):
                return self.receive(connection, messages, now)
            case Wake():
                return self._on_wake(now)
            case Connected(connection, peer):
                return self._on_connected(connection, peer, now)
            case ConnectFailed(peer, _):
                station = self.reach.get(peer)
                if station is not None:
                    self.reach.on_dial_failed(station, now)
                return self._changed(now)
            case Disconnected(connection, reason):
                if connection not in self._sessions:
                    return []
                name = self._name(connection)
                lost = Log("info", "connection lost", {"peer": name, "reason": reason})
                return [lost, *self._lose(connection, now)]

    def next_deadline(self) -> Instant | None:
        """When to be woken."""
        if self._tick_at is None:
            return 0
        times = [self._tick_at]
        if self.settings.acknowledge is Acknowledge.DACK:
            times.append(self._dack_at)
        if (dial_at := self.reach.next_deadline()) is not None:
            times.append(dial_at)
        return min(times)

    def _on_wake(self, now: Instant) -> Effects:
        effects: Effects = []
        if self._tick_at is None:
            self._tick_at = now
            self._dack_at = now + self.settings.dack_every_ns
            effects += self.reach.review(now)
        effects += self.reach.on_wake(now)
        if now >= self._tick_at:
            self._tick_at = now + self.settings.heartbeat_ns
            effects += self._tick(now)
        if now >= self._dack_at:
            self._dack_at = now + self.settings.dack_every_ns
            if self.settings.acknowledge is Acknowledge.DACK:
                in_session = [each for each in self.reach.stations.values() if each.is_told]
                effects += self.plane.depth_acks(in_session)
            effects += self.spread.upgrades.remind()
        return effects + self._changed(now)

    def _tick(self, now: Instant) -> Effects:
        effects: Effects = []
        for session in list(self._sessions.values()):
            connection = session.connection
            if connection not in self._sessions:
                continue
            if session.is_silent(now):
                reason = f"nothing heard for {session.silent_after_ns / SECOND:g} s"
                effects += self._part(connection, Farewell.SILENT, reason, now)
            elif self._owes_word(session, now):
                effects += self._part(connection, Farewell.SILENT, "it did not tell what it knows", now)
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

    # Sessions

    def _name(self, connection: int) -> str:
        station = self._stations.get(connection)
        return "a stranger" if station is None else station.name

    def _on_connected(self, connection: int, peer: str | None, now: Instant) -> Effects:
        patience = self.settings.detect_after_ns
        if peer is None:
            self._sessions[connection] = Session(connection, now, max(patience, HELLO_WITHIN_NS))
            return []
        station = self.reach.get(peer)
        if station is None or station.connection is not None:
            if station is not None:
                station.dialling = False
            return [Close(connection, "not needed any more")]
        # A neighbour may be a long round trip away; who is to stand in for one is wanted soon, or not at all.
        patience = max(patience, HELLO_WITHIN_NS) if station.distance == 1 else patience
        self._sessions[connection] = Session(connection, now, patience)
        self._stations[connection] = station
        self._session_seq += 1
        settings = self.settings
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
        return [Send(connection, [hello])]

    def _overlay(self) -> Overlay:
        settings = self.settings
        return Overlay(settings.role, settings.delta, not self._is_recovered, settings.home, settings.address)

    def _is_calling(self, station: Station) -> bool:
        """Whether we have said Hello to it and wait for its Welcome."""
        return station.connection is None and station in self._stations.values()

    def connections(self) -> list[int]:
        """Every connection of the node's."""
        return list(self._sessions)

    def excuse(self, connections: Iterable[int], now: Instant) -> None:
        """Our host has not read from these: whoever is there is not silent for that."""
        for connection in connections:
            if connection in self._sessions:
                self._sessions[connection].hear(now)

    def become_publisher(self, now: Instant) -> Effects:
        """A client that only subscribed begins to publish: it meets everybody anew, to be told who wants what."""
        self.settings = replace(self.settings, role=Role.PUBLISHER)
        self._is_recovered = False
        effects: Effects = []
        reason = "it begins to publish"
        for connection in self.connections():
            effects += [Send(connection, [Goodbye(Farewell.REPLACED, reason)]), Close(connection, reason)]
            station = self._lost(connection, now)
            if station is not None and not station.dialling:
                self.reach.try_at_once(station, now)
        return effects + self.plane.rewire() + self._changed(now)

    def owns(self, connection: int) -> bool:
        """Whether a connection is the node's."""
        return connection in self._sessions

    def adopt(self, session: Session, hello: Hello, now: Instant) -> Effects:
        """A stranger of our host's turned out to be a node."""
        self._sessions[session.connection] = session
        try:
            return self._on_hello(session.connection, hello, now)
        except Breach as breach:
            return self._part(session.connection, Farewell.PROTOCOL, str(breach), now)

    def _on_hello(self, connection: int, hello: Hello, now: Instant) -> Effects:
        """A node has dialled us."""
        overlay = hello.overlay
        if common_version(hello) is None:
            offered = f"versions {hello.version_min} to {hello.version_max}"
            return self._part(connection, Farewell.VERSION, f"{offered} are not spoken here", now)
        if (problem := problem_with(hello, self.settings.name_bytes_max)) is not None:
            raise Breach(problem)
        if overlay is None:
            raise Breach(f"{hello.node} is no node of the overlay")
        if (problem := self._mismatch(overlay, hello.features)) is not None:
            return self._part(connection, Farewell.MISMATCH, problem, now)
        effects: Effects = []
        if hello.kind is Kind.CLIENT:
            effects += self._end_earlier_life(hello.node, hello.incarnation, None, now)
        station, joined = self._station_of(hello, overlay)
        if station is None:
            return self._part(
                connection, Farewell.UNKNOWN, f"{hello.node} is no neighbour of {self.name}", now
            )
        if hello.kind is Kind.CLIENT and hello.incarnation < station.place.incarnation:
            return self._part(connection, Farewell.TAKEN_OVER, "a later client has this name", now)
        if self._is_calling(station):
            if self.name < hello.node:
                return self._part(connection, Farewell.REPLACED, "our own call is under way", now)
            for other in [each for each, whose in self._stations.items() if whose is station]:
                effects += self._drop(other)
        if station.connection is not None:
            effects += self._part(station.connection, Farewell.REPLACED, "a new session has begun", now)
        self._stations[connection] = station
        settings = self.settings
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
            effects += self._pass_on(joined, None)
        return effects + self._begin(connection, station, hello, overlay, now, is_dialler=False)

    def _mismatch(self, overlay: Overlay, features: tuple[str, ...]) -> str | None:
        """How the other side is configured differently, if it is. What a later version can do besides is its affair."""
        settings = self.settings
        if overlay.delta != settings.delta:
            return f"{self.name} has delta {settings.delta}, the other side {overlay.delta}"
        if (
            overlay.role is Role.BROKER
            and settings.role is Role.BROKER
            and not {*settings.features} <= {*features}
        ):
            ours, theirs = ", ".join(settings.features), ", ".join(features) or "nothing"
            return f"{self.name} has {ours}, the other side {theirs}"
        return None

    def _drop(self, connection: int) -> Effects:
        """Give up a call of our own: they have reached us."""
        del self._sessions[connection]
        station = self._stations.pop(connection)
        station.dialling = False
        return [Close(connection, "they have reached us")]

    def _station_of(self, hello: Hello, overlay: Overlay) -> tuple[Station | None, Join | None]:
        """Whose Hello it is; a client or a leaf broker may be new, a client may have become a publisher."""
        if overlay.home is None:
            return self.reach.get(hello.node), None
        incarnation = 0 if overlay.role is Role.BROKER else hello.incarnation
        join = Join(hello.node, overlay.role, overlay.home, overlay.address, incarnation)
        before = self.topology.get(hello.node)
        place = self._enter(join)
        if place is None:
            return None, None
        return self.reach.enter(place), join if place != before else None

    def _on_welcome(self, connection: int, station: Station, welcome: Welcome, now: Instant) -> Effects:
        if welcome.node != station.name or welcome.overlay is None:
            raise Breach(f"{station.name} was dialled, {welcome.node} answered")
        if (problem := heartbeat_problem(welcome.heartbeat_ns)) is not None:
            raise Breach(problem)
        overlay = welcome.overlay
        if (problem := self._mismatch(overlay, welcome.features)) is not None:
            return self._part(connection, Farewell.MISMATCH, problem, now)
        effects: Effects = []
        if welcome.kind is Kind.CLIENT and overlay.home is not None:
            effects += self._end_earlier_life(station.name, welcome.incarnation, None, now)
            join = Join(station.name, overlay.role, overlay.home, overlay.address, welcome.incarnation)
            place = self._enter(join)
            if place is None:
                return effects + self._part(connection, Farewell.UNKNOWN, "it has moved away", now)
            if place != station.place:
                effects += self._pass_on(join, None)
            self._stations[connection] = station = self.reach.enter(place)
        return effects + self._begin(connection, station, welcome, overlay, now, is_dialler=True)

    def _line(self, kind: str, station: Station) -> Effects:
        """That two neighbouring brokers have lost each other, or met again, stands in the trace."""
        is_broker = station.place.role is Role.BROKER and self.settings.role is Role.BROKER
        return (
            [Trace(kind, {"nodes": [self.name, station.name]})] if is_broker and station.distance == 1 else []
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
        settings = self.settings
        session = self._sessions[connection]
        session.begin(now, settings.heartbeat_ns, peer.heartbeat_ns, settings.detect_after_ns)
        is_restarted = overlay.is_recovering
        effects: Effects = self._line("reconnect", station) if station.incarnation else []
        if peer.incarnation < station.incarnation:
            fields = {"peer": station.name, "incarnation": peer.incarnation, "known": station.incarnation}
            effects.append(Log("warning", "an incarnation went back: has it lost its disk?", fields))
        station.meet(connection, peer.incarnation, is_dialler=is_dialler, is_restarted=is_restarted)
        self.plane.holdings.begin(station)
        effects.append(Log("info", "in session", {"peer": station.name}))
        return effects + self._changed(now)

    def _may_tell(self, station: Station) -> bool:
        """Whether we know all we can tell a station.

        Where both have lost their memory, each tells the other only once it has heard from everywhere else: else what
        one is given back, and tells later, would not reach the other. In a tree this waits for nobody twice.
        """
        if self._is_recovered or not station.is_restarted:
            return True
        others = (each for each in self._brokers_beside() if each.direction != station.direction)
        return all(map(self._is_heard, others))

    def _tell(self, station: Station) -> Effects:
        """All we know, to a station, before anything else [KJ §4.2]."""
        assert station.connection is not None
        content: list[Message] = [*self._places_for(station), *self.spread.lore_for(station)]
        effects: Effects = [Send(station.connection, content)] if content else []
        if self.settings.refill and station.is_restarted:
            effects += self.plane.refill_for(station)
        station.is_told = True
        effects += self.spread.heal()
        return [*effects, Send(station.connection, [*self.spread.upgrades.crossed(station), Told()])]

    def _places_for(self, station: Station) -> list[Message]:
        """The nodes near us that are near it too; it leaves out what is too far for it. A client tells of nobody."""
        if self.settings.role is not Role.BROKER:
            return []
        return [
            Join(
                place.name,
                place.role,
                place.path[-2] if place.distance > 1 else self.name,
                place.address,
                place.incarnation,
            )
            for place in self.topology
            if place.name != station.name
            and (place.role is not Role.BROKER or place.distance + station.distance <= self.topology.reach)
        ]

    def _part(self, connection: int, farewell: Farewell, reason: str, now: Instant) -> Effects:
        """End a session from this side."""
        reason = brief(reason)
        fields = {"peer": self._name(connection), "farewell": str(farewell), "reason": reason}
        level = "info" if farewell in (Farewell.SILENT, Farewell.REPLACED, Farewell.NEEDLESS) else "warning"
        parting: Effects = [
            Log(level, "session ended", fields),
            Send(connection, [Goodbye(farewell, reason)]),
            Close(connection, reason),
        ]
        return parting + self._lose(connection, now)

    def _lose(self, connection: int, now: Instant, *, is_fault: bool = True) -> Effects:
        station = self._stations.get(connection)
        was_met = station is not None and station.connection == connection
        if self._lost(connection, now) is None:
            return []
        assert station is not None
        lines = self._line("disconnect", station) if was_met and is_fault else []
        return lines + self._changed(now)

    def _lost(self, connection: int, now: Instant) -> Station | None:
        """A connection is gone; whose it was."""
        del self._sessions[connection]
        station = self._stations.pop(connection, None)
        if station is not None and station.connection is None:
            self.reach.on_dial_failed(station, now)
        elif station is not None and station.connection == connection:
            self._host.on_gone(station)
            self.reach.on_lost(station, now)
            self.plane.on_lost(station)
            self.spread.on_lost(station)
        return station

    # Changes of the overlay

    def _changed(self, now: Instant) -> Effects:
        """Somebody is in session who was not, or is not who was."""
        effects: Effects = []
        for station in self.reach.stations.values():
            if station.phase is Phase.MEETING and not station.is_told and self._may_tell(station):
                effects += self._tell(station)
            if station.phase is Phase.MEETING and station.is_told and station.has_told and station.is_ready:
                if station.is_bypassed and self.settings.delta:
                    effects.append(Trace("recovered", {"nodes": [self.name, station.name]}))
                station.open()
                effects += self._host.on_open(station)
        left, self._left = self._left, []
        effects += [*left, *self.reach.review(now), *self._say_ready()]
        if self._is_recovered:  # until then more may be given back, to be sent first
            effects += self.plane.rewire()
        effects += self.spread.replan()
        for station in self.reach.needless():
            if station.connection is not None:
                effects += self._part(station.connection, Farewell.NEEDLESS, "nobody needs it any more", now)
        return effects

    def _say_ready(self) -> Effects:
        """Tell those who have told us all they know that we accept publications, once we do."""
        if not self._is_recovered:
            self._is_recovered = self._tick_at is not None and self._has_heard()
        if not self._is_recovered:
            return []
        effects = self._publish_held()
        for station in self.reach.stations.values():
            if station.has_told and not station.is_ready_said and station.connection is not None:
                station.is_ready_said = True
                effects.append(Send(station.connection, [Ready()]))
        return effects

    def _has_heard(self) -> bool:
        """Whether we know all there is to know. A client without anybody to tell it knows nothing."""
        if self.settings.role is not Role.BROKER:
            return any(station.has_told for station in self.reach.stations.values())
        return all(map(self._is_heard, self._brokers_beside()))

    def _brokers_beside(self) -> list[Station]:
        beside = self.topology.beyond(self.name)
        return [self.reach[place.name] for place in beside if place.role is Role.BROKER]

    def _is_heard(self, station: Station) -> bool:
        """Whether in a direction the nearest that can be reached has told us what it knows, or nobody can be."""
        if station.has_told:
            return True
        if not station.is_bypassed:
            return False
        beyond = [
            self.reach[place.name]
            for place in self.topology.beyond(station.name)
            if place.role is Role.BROKER
        ]
        return all(map(self._is_heard, beyond))

    # Messages

    def receive(self, connection: int, messages: Sequence[Message], now: Instant) -> Effects:
        """Messages have come on a connection of ours."""
        effects: Effects = []
        for message in messages:
            session = self._sessions.get(connection)
            if session is None:
                break  # it ended with an earlier message
            session.hear(now)
            try:
                effects += self._on_message(connection, message, now)
            except (Breach, FilterError, MalformedEvent, ValueError) as breach:
                self.refusals += 1
                effects += self._part(connection, Farewell.PROTOCOL, str(breach), now)
        return effects

    def _on_message(self, connection: int, message: Message, now: Instant) -> Effects:
        station = self._stations.get(connection)
        if isinstance(message, Goodbye):
            return self._on_goodbye(connection, station, message, now)
        if station is None or station.connection != connection:
            match message:
                case Hello() if station is None:
                    return self._on_hello(connection, message, now)
                case Welcome() if station is not None:
                    return self._on_welcome(connection, station, message, now)
                case Heartbeat():
                    return []
                case _:
                    raise Breach(f"{type(message).__name__} before Hello")
        if station.place.role is not Role.BROKER:
            _check_own(station.name, message)
        match message:
            case Publications() if station.is_ready_said:
                return self._host.on_publications(station, message)
            case Deliveries() if station.is_ready_said:
                return self._host.on_deliveries(station, message)
            case Relay() if station.is_ready_said or message.refill:
                return self._on_relay(station, message)
            case Heartbeat():
                return []
            case Publish() if station.is_ready_said and station.place.role is not Role.BROKER:
                return self._host.on_publish(station, message)
            case Accepted() | Rejected():
                return self._host.on_answer(station, message)
            case DepthAck():
                return self.plane.on_depth_ack(station, message)
            case Confirmations():
                return self.plane.on_confirmations(station, message)
            case Subscribe() | Heal() | Lore(rows=[_, *_]) if not self.settings.spreads:
                raise Breach(f"{type(message).__name__} where subscriptions do not spread")
            case Subscribe():
                return self.spread.on_subscribe(station, message)
            case Confirmed():
                return self.spread.on_confirmed(station, message)
            case Unsubscribe():
                return self.spread.on_unsubscribe(station, message)
            case Withdrawn():
                return self.spread.on_withdrawn(station, message)
            case Lore():
                return self.spread.on_lore(station, message)
            case Heal():
                return self.spread.on_heal(station, message)
            case Healed():
                return self.spread.on_healed(station, message)
            case Crossed():
                return self.spread.upgrades.on_crossed(station, message)
            case Upgraded():
                return self.spread.upgrades.on_upgraded(station, message)
            case UpgradeTaken():
                return self.spread.upgrades.on_upgrade_taken(station, message)
            case Cleared():
                return self.spread.upgrades.on_cleared(station, message)
            case Need(is_needed):
                station.needs_us = is_needed
                return self._changed(now)
            case Told():
                station.has_told = True
                return self._changed(now)
            case Ready():
                station.is_ready = True
                return self._changed(now)
            case Join():
                return self._on_join(station, message, now)
            case Leave():
                return self._on_leave(station, message, now)
            case _:
                raise Breach(f"{type(message).__name__} from a neighbour at this point")

    def _on_goodbye(
        self, connection: int, station: Station | None, goodbye: Goodbye, now: Instant
    ) -> Effects:
        reason = brief(goodbye.reason)
        fields = {"peer": self._name(connection), "reason": reason, "farewell": str(goodbye.farewell)}
        effects: Effects = [Log("info", "goodbye from the peer", fields), Close(connection, reason)]
        is_expelled = goodbye.farewell is Farewell.UNKNOWN and self._name(connection) == self.settings.home
        if goodbye.farewell is Farewell.TAKEN_OVER or is_expelled:
            self.farewell = goodbye.farewell, reason
        effects += self._lose(connection, now, is_fault=goodbye.farewell is not Farewell.STOPPING)
        is_client = station is not None and station.place.role is not Role.BROKER
        if station is not None and is_client and goodbye.farewell is Farewell.LEAVING:
            effects += self.expel(station.name, "it has left", now)
        return effects

    # Publications

    def publish(self, stream: str, publications: list[Publication]) -> Effects:
        """Publications begin here.

        :raises MalformedEvent: if one cannot be read.
        """
        events = [unpack(publication.event) for publication in publications]
        if not self._is_recovered:
            self._held.append((stream, publications))
            return []
        effects: Effects = []
        for start in range(0, len(events), BATCH_MAX):
            batch = Batch(publications[start : start + BATCH_MAX])
            effects += self.plane.originate(stream, batch, events[start : start + BATCH_MAX])
        return effects

    def _publish_held(self) -> Effects:
        held, self._held = self._held, []
        return [effect for stream, publications in held for effect in self.publish(stream, publications)]

    def _on_relay(self, sender: Station, relay: Relay) -> Effects:
        if not relay.at:
            return []
        publications = relay.batch.publications
        if relay.refill and self._is_recovered:
            return []  # it is too late: what has come since has been numbered
        if relay.refill:
            self.plane.take_back(relay, [unpack(publications[i].event) for i in relay.at], sender)
            return []
        new = self.plane.new(sender, relay)
        effects: Effects = []
        if len(new) < len(relay.at):
            effects += self.plane.confirm_repeats(sender, relay, new)
        if self.settings.role is not Role.BROKER:
            return effects + self._deliver(sender, relay, new)
        if not new:
            return effects
        upstream = relay.trail.steps[-1].node
        tags = self.spread.partitions.tags_for(relay.trail, relay.tags, upstream)
        events = [unpack(publications[relay.at[place]].event) for place in new]
        return effects + self.plane.take(relay, new, events, tags, sender)

    def _deliver(self, sender: Station, relay: Relay, new: list[int]) -> Effects:
        upstream = relay.trail.steps[-1].node
        tags = self.spread.partitions.tags_for(relay.trail, relay.tags, upstream)
        tags = self.spread.partitions.tags_at_edge(relay.batch.publications[relay.at[0]].publisher, tags)
        tagged = Relay(
            relay.stream, relay.batch, relay.at, relay.trail, tags, relay.subscriptions, relay.again
        )
        numbers = [relay.trail.numbers[-1][place] for place in new]
        return self._host.on_relay(tagged, new) + self.plane.confirm(sender, numbers)

    # Clients that come and go

    def _on_join(self, sender: Station, join: Join, now: Instant) -> Effects:
        before = self.topology.get(join.node)
        if before is not None and join.role is Role.BROKER:
            return []  # a broker stands where it stands
        effects = self._end_earlier_life(join.node, join.incarnation, sender, now)
        place = self._enter(join)
        if place is None or place == before:
            return effects
        self.reach.enter(place)
        return effects + self._pass_on(join, sender) + self._changed(now)

    def _end_earlier_life(
        self, client: str, incarnation: int, sender: Station | None, now: Instant
    ) -> Effects:
        """A later life of a client has come, perhaps at another broker: the earlier one is over, place and all."""
        station = self.reach.get(client)
        if station is None or not 0 < station.place.incarnation < incarnation:
            return []
        if station.connection is not None and station.incarnation >= incarnation:
            return []  # it is the later one we speak with
        later = "a later client has this name"
        effects: Effects = []
        if station.connection is not None:
            effects += self._part(station.connection, Farewell.TAKEN_OVER, later, now)
        return effects + self._on_leave(sender, Leave(client, station.place.incarnation, later), now)

    def _pass_on(self, message: Join | Leave, sender: Station | None) -> Effects:
        return [
            Send(station.connection, [message])
            for station in self.reach.stations.values()
            if station is not sender
            and station.connection is not None
            and station.is_told
            and station.name != message.node
            and (sender is None or station.direction != sender.direction)
        ]

    def expel(self, name: str, reason: str, now: Instant) -> Effects:
        """A client is gone for good: its subscriptions are over, and nobody waits for it [B0.25]."""
        station = self.reach.get(name)
        incarnation = station.place.incarnation if station is not None else 0
        return self._on_leave(None, Leave(name, incarnation, reason), now)

    def _on_leave(self, sender: Station | None, leave: Leave, now: Instant) -> Effects:
        grave = of_life(leave.node, leave.incarnation)
        known = self.topology.get(leave.node)
        if leave.node == self.name or (known is not None and known.role is Role.BROKER):
            raise Breach(f"{leave.node} cannot leave so")
        if self.spread.interests.graves.covers(grave):
            return []
        station = self.reach.get(leave.node)
        effects = self._pass_on(leave, sender)
        is_of_life = station is not None and station.place.incarnation <= leave.incarnation
        if station is not None and is_of_life and station.connection is not None:
            effects += self._part(station.connection, Farewell.UNKNOWN, leave.reason, now)
        self.spread.interests.bury(grave)
        return effects + self._changed(now)

    def _on_left(self, name: str, incarnation: int) -> None:
        """A life of a client is over for good: it is no node any more, unless a later one is."""
        station = self.reach.get(name)
        if station is None:
            self.plane.marks.forget(name)
            return
        is_client = station.place.role is not Role.BROKER
        if is_client and station.place.incarnation <= incarnation and station.connection is None:
            self._left += self.plane.forget(station)
            self.spread.interests.forget_behind(station)
            self.reach.remove(name)


def _check_own(client: str, message: Message) -> None:
    """A client is a leaf: it speaks for itself only."""
    match message:
        case Subscribe(subscription) | Unsubscribe(subscription):
            is_own = subscription.subscriber == client
        case DepthAck(holdings):
            is_own = all(report.node == client for report in holdings)
        case Heal(_, rows):
            is_own = all(row.subscription.subscriber == client for row in rows)
        case Lore(
            _, graves
        ):  # a publisher tells the subscriptions of others: what it publishes may be for them
            is_own = all(grave.subscriber == client for grave in graves)
        case Join() | Leave():
            is_own = False
        case _:
            return
    if not is_own:
        raise Breach(f"{type(message).__name__} by {client} for somebody else")
