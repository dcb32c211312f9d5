"""A node of the overlay: everything brokers and clients have in common [KJ §9, R0.7].

It meets the others within reach, tells them what it knows and is told, spreads subscriptions and relays publications,
around whoever has failed. What its users want, the applications of a client or the clients of a broker, is its host's
affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.clock import Instant
from holdfast.errors import FilterError, MalformedEvent
from holdfast.events.event import Content
from holdfast.events.packed import unpack
from holdfast.messages.durable import Letter
from holdfast.messages.marks import Mark, is_mark, new_mark
from holdfast.messages.message import Message
from holdfast.messages.overlay import (
    Confirmations,
    DepthAck,
    Join,
    Lapse,
    Leave,
    Missing,
    Need,
    Present,
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
    parts_of,
)
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello, Welcome
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
from holdfast.messages.ticks import Follow, Items, Nack, Start, Taken, Unfollow, Wants
from holdfast.node.absences import Absences
from holdfast.node.breach import Breach, brief
from holdfast.node.host import Host
from holdfast.node.introductions import Introductions
from holdfast.node.lapses import Lapses
from holdfast.node.plane import Plane
from holdfast.node.reach import Reach
from holdfast.node.settings import Acknowledge, NodeSettings
from holdfast.node.spread import Spread
from holdfast.node.station import Phase, Station
from holdfast.node.topology import Topology
from holdfast.node.visitors import Visitors
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


class Node:
    """Driven by ``step`` and ``next_deadline``, as ``overlay.transport`` says; the first input is a ``Wake``."""

    def __init__(self, settings: NodeSettings, table: Table, host: Host) -> None:
        self.name = settings.name
        self.settings = settings
        self.host = host
        self.table = table
        self.topology = Topology(settings.name, settings.delta + 1)
        self.reach = Reach(self.topology, settings.probe_every_ns, settings.detect_after_ns)
        self.introductions = Introductions(self)
        self.visitors = Visitors(self)
        self.absences = Absences(self)
        self.lapses = Lapses(settings, self.reach, self.brokers_beside)
        self.plane = Plane(
            settings,
            self.reach,
            self._gather,
            self._everybody,
            host.on_local,
            host.on_safe,
            lambda publisher, tags: self.spread.partitions.tags_at_edge(publisher, tags),
        )
        self.spread = Spread(
            settings,
            self.reach,
            table,
            host,
            self._retag,
            self.visitors.on_left,
        )
        for join in settings.places:
            if (place := self.visitors.enter(join)) is not None:
                self.reach.enter(place)
        self.refusals = 0  #: sessions ended because the peer broke a rule
        self._is_recovered = False
        self._is_echo_due = False  #: of a lapse, when we have told what we know
        #: Published before we knew who wants it.
        self._held: list[tuple[str, list[Publication], Sequence[Content] | None]] = []
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

    def _gather(self, events: Sequence[Content]) -> list[Port]:
        """Who wants which."""
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

    def _everybody(self, count: int) -> list[Port]:
        """Marks are for all: brokers, for those beyond them, and clients."""
        clients = (each for each in self.reach.stations.values() if each.place.role is not Role.BROKER)
        stations: list[Port] = [*self.reach.rim(), *clients]
        for station in stations:
            station.at = list(range(count))
        return stations

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
                return self.introductions.on_connected(connection, peer, now)
            case ConnectFailed(peer, _):
                station = self.reach.get(peer)
                if station is not None:
                    self.reach.on_dial_failed(station, now)
                return self.changed(now)
            case Disconnected(connection, reason):
                if not self.introductions.owns(connection):
                    return []
                name = self.introductions.name(connection)
                lost = Log("info", "connection lost", {"peer": name, "reason": reason})
                return [lost, *self.introductions.lose(connection, now)]

    def next_deadline(self) -> Instant:
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
            effects += self.introductions.tick(now)
            effects += self.absences.tick(now)
        if now >= self._dack_at:
            self._dack_at = now + self.settings.dack_every_ns
            if self.settings.acknowledge is Acknowledge.DACK:
                in_session = [each for each in self.reach.stations.values() if each.is_told]
                effects += self.plane.depth_acks(in_session)
            effects += self.spread.remind()
        return effects + self.changed(now)

    # Sessions

    def become_publisher(self, now: Instant) -> Effects:
        """A client that only subscribed begins to publish: it meets everybody anew, to be told who wants what."""
        self.settings = replace(self.settings, role=Role.PUBLISHER)
        self._is_recovered = False
        effects: Effects = []
        reason = "it begins to publish"
        for connection in self.introductions.connections():
            effects += [Send(connection, [Goodbye(Farewell.REPLACED, reason)]), Close(connection, reason)]
            station = self.introductions.lost(connection, now)
            if station is not None and not station.dialling:
                self.reach.try_at_once(station, now)
        return effects + self.plane.rewire() + self.changed(now)

    def _may_tell(self, station: Station) -> bool:
        """Whether we know all we can tell a station.

        Where both have lost their memory, each tells the other only once it has heard from everywhere else: else what
        one is given back, and tells later, would not reach the other. In a tree this waits for nobody twice.
        """
        if self._is_recovered or not station.is_restarted:
            return True
        others = (each for each in self.brokers_beside() if each.direction != station.direction)
        return all(map(self._is_heard, others))

    def _tell(self, station: Station) -> Effects:
        """All we know, to a station, before anything else [KJ §4.2]."""
        assert station.connection is not None
        content: list[Message] = [*self.visitors.places_for(station), *self.spread.lore_for(station)]
        if self.settings.role is Role.BROKER:
            content += self.lapses.all()
        effects: Effects = [Send(station.connection, content)] if content else []
        if self.settings.refill and station.is_restarted:
            effects += self.plane.refill_for(station)
        station.is_told = True
        effects += self.spread.heal()
        if self._is_echo_due:
            effects += self._echo()
        return [
            *effects,
            Send(station.connection, [*self.spread.upgrades.crossed(station), self._told(station)]),
        ]

    def _told(self, station: Station) -> Told:
        return Told(self.lapses.row_before(station), self.lapses.vouched())

    def _vouch_for(self, station: Station) -> Effects:
        """Somebody is open by now whom those who still count what was lost may not reach."""
        if station.place.role is not Role.BROKER:
            return []
        return [
            Send(each.connection, [self._told(each)])
            for each in self.reach.stations.values()
            if each.connection is not None and each.is_told and not each.is_open and self.lapses.counts(each)
        ]

    # Changes of the overlay

    def changed(self, now: Instant) -> Effects:
        """Somebody is in session who was not, or is not who was."""
        effects: Effects = []
        for station in self.reach.stations.values():
            if station.phase is Phase.MEETING and not station.is_told and self._may_tell(station):
                effects += self._tell(station)
            if station.phase is Phase.MEETING and station.is_told and station.has_told and station.is_ready:
                if station.is_bypassed and self.settings.delta:
                    effects.append(Trace("recovered", {"nodes": [self.name, station.name]}))
                station.open()
                effects += [*self.host.on_open(station), *self._vouch_for(station)]
        effects += [*self.visitors.take_left(now), *self.reach.review(now), *self._say_ready()]
        if self._is_recovered:  # until then more may be given back, to be sent first
            effects += self.plane.rewire()
        effects += self.spread.replan()
        for station in self.reach.needless():
            if station.connection is not None:
                effects += self.introductions.part(
                    station.connection, Farewell.NEEDLESS, "nobody needs it any more", now
                )
        return effects

    def _say_ready(self) -> Effects:
        """Tell those who have told us all they know that we accept publications, once we do."""
        effects: Effects = []
        if not self._is_recovered:
            self._is_recovered = self._tick_at is not None and self._has_heard()
            if not self._is_recovered:
                return []
            if (lapse := self.lapses.notice()) is not None:
                effects += self._on_lapse(None, lapse)
        effects += self._publish_held()
        for station in self.reach.stations.values():
            if station.has_told and not station.is_ready_said and station.connection is not None:
                station.is_ready_said = True
                effects.append(Send(station.connection, [Ready()]))
        return effects

    def _has_heard(self) -> bool:
        """Whether we know all there is to know. A client whom no broker has told anything knows nothing."""
        if self.settings.role is not Role.BROKER:
            stations = self.reach.stations.values()
            return any(station.has_told and station.place.role is Role.BROKER for station in stations)
        return all(map(self._is_heard, self.brokers_beside()))

    def is_informed(self, now: Instant) -> bool:
        """Whether a client knows who wants what: whoever can be reached has told it, and was heard of lately.

        A process that was frozen may find sessions that ended long ago on the other side, and what it has not been
        told since would be missing from its table.
        """
        told = [station for station in self.reach.stations.values() if station.has_told]
        if not told or not all(map(self._is_heard, self.brokers_beside())):
            return False
        return not any(self.introductions.is_silent(station, now) for station in told)

    def brokers_beside(self) -> list[Station]:
        """The neighbours that are brokers."""
        return self.brokers_beyond(self.name)

    def brokers_beyond(self, name: str) -> list[Station]:
        """The neighbours of a node that are brokers, and farther out."""
        beyond = self.topology.beyond(name)
        return [self.reach[place.name] for place in beyond if place.role is Role.BROKER]

    def _is_heard(self, station: Station) -> bool:
        """Whether in a direction the nearest that can be reached has told us what it knows, or nobody can be."""
        if station.has_told:
            return True
        if not station.is_bypassed:
            return False
        return all(map(self._is_heard, self.brokers_beyond(station.name)))

    # Messages

    def receive(self, connection: int, messages: Sequence[Message], now: Instant) -> Effects:
        """Messages have come on a connection of ours."""
        effects: Effects = []
        for message in messages:
            if not self.introductions.hear(connection, now):
                break  # it ended with an earlier message
            try:
                effects += self._on_message(connection, message, now)
            except (Breach, FilterError, MalformedEvent, ValueError) as breach:
                self.refusals += 1
                effects += self.introductions.part(connection, Farewell.PROTOCOL, str(breach), now)
        return effects

    def _on_message(self, connection: int, message: Message, now: Instant) -> Effects:
        station = self.introductions.station(connection)
        if isinstance(message, Goodbye):
            return self._on_goodbye(connection, station, message, now)
        if station is None or station.connection != connection:
            match message:
                case Hello() if station is None:
                    return self.introductions.on_hello(connection, message, now)
                case Welcome() if station is not None:
                    return self.introductions.on_welcome(connection, station, message, now)
                case Heartbeat():
                    return []
                case _:
                    raise Breach(f"{type(message).__name__} before Hello")
        if station.place.role is not Role.BROKER:
            _check_own(station.name, message)
        match message:
            case Publications() if station.is_ready_said:
                return self.host.on_publications(station, message)
            case Deliveries() if station.is_ready_said:
                return self.host.on_deliveries(station, message)
            case Relay() if station.is_ready_said or message.refill:
                return self._on_relay(station, message)
            case Heartbeat():
                return []
            case Publish() if station.is_ready_said and station.place.role is not Role.BROKER:
                return self.host.on_publish(station, message)
            case Accepted() | Rejected():
                return self.host.on_answer(station, message)
            case DepthAck():
                return self.plane.on_depth_ack(station, message)
            case Confirmations():
                return self.plane.on_confirmations(station, message)
            case Subscribe() | Heal() | Lore(rows=[_, *_]) if not self.settings.spreads:
                raise Breach(f"{type(message).__name__} where subscriptions do not spread")
            case Subscribe(subscription):
                effects = self.visitors.on_told(station, [subscription], now)
                return effects + self.spread.on_subscribe(station, message)
            case Confirmed():
                return self.spread.on_confirmed(station, message)
            case Unsubscribe():
                return self.spread.on_unsubscribe(station, message)
            case Withdrawn():
                return self.spread.on_withdrawn(station, message)
            case Lore(rows):
                effects = self.visitors.on_told(station, [row.subscription for row in rows], now)
                return effects + self.spread.on_lore(station, message)
            case Heal(rows=rows):
                effects = self.visitors.on_told(station, [row.subscription for row in rows], now)
                return effects + self.spread.on_heal(station, message)
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
            case Need(is_needed, is_echo):
                return self.reach.on_need(station, is_needed, is_echo=is_echo) + self.changed(now)
            case Told(row, vouched):
                station.has_told = True
                station.row, station.vouched = row, vouched
                return self.changed(now)
            case Ready():
                station.is_ready = True
                return self.changed(now)
            case Lapse():
                return self._on_lapse(station, message)
            case Join():
                return self.visitors.on_join(station, message, now)
            case Leave():
                return self.visitors.on_leave(station, message, now)
            case Missing() if self.settings.role is Role.BROKER:
                return self.absences.on_missing(station, message)
            case Present():
                return self.absences.on_present(message, now)
            case Wants() | Follow() | Unfollow() | Start() | Items() | Nack() | Taken() | Letter():
                if station.place.role is not Role.BROKER:
                    raise Breach(f"{type(message).__name__} from a client")
                return self.host.on_durable(station, message)
            case _:
                raise Breach(f"{type(message).__name__} from a neighbour at this point")

    def _on_goodbye(
        self, connection: int, station: Station | None, goodbye: Goodbye, now: Instant
    ) -> Effects:
        reason = brief(goodbye.reason)
        fields = {
            "peer": self.introductions.name(connection),
            "reason": reason,
            "farewell": str(goodbye.farewell),
        }
        # Who changes its part, or is needed no more, does so in the course of business.
        level = "debug" if goodbye.farewell in (Farewell.REPLACED, Farewell.NEEDLESS) else "info"
        effects: Effects = [Log(level, "goodbye from the peer", fields), Close(connection, reason)]
        is_expelled = (
            goodbye.farewell is Farewell.UNKNOWN and self.introductions.name(connection) == self.settings.home
        )
        if goodbye.farewell is Farewell.TAKEN_OVER or is_expelled:
            self.farewell = goodbye.farewell, reason
        effects += self.introductions.lose(
            connection, now, is_fault=goodbye.farewell is not Farewell.STOPPING
        )
        is_client = station is not None and station.place.role is not Role.BROKER
        if station is not None and is_client and goodbye.farewell is Farewell.LEAVING:
            effects += self.visitors.expel(station.name, "it has left", now)
        return effects

    # Publications

    def publish(self, stream: str, publications: list[Publication]) -> Effects:
        """Publications begin here.

        :raises MalformedEvent: if one cannot be read.
        """
        return self._originate(stream, publications, [unpack(each.event) for each in publications])

    def mark(self, stream: str, publisher: str, upto: int) -> Effects:
        """A publisher here has sent everything up to a number: where a lapse left doubt, that ends it."""
        return self._originate(
            stream, [new_mark(publisher, self.lapses.heard, Mark(upto, self.lapses.answers()))], None
        )

    def _originate(
        self, stream: str, publications: list[Publication], events: Sequence[Content] | None
    ) -> Effects:
        if not self._is_recovered:
            self._held.append((stream, publications, events))
            return []
        effects: Effects = []
        start = 0
        for part in parts_of(publications):
            contents = None if events is None else events[start : start + len(part)]
            start += len(part)
            tags = self.spread.partitions.tags_of_own()
            effects += self.plane.originate(stream, Batch(part), contents, tags)
        return effects

    def _on_lapse(self, sender: Station | None, lapse: Lapse) -> Effects:
        if not self.lapses.hear(lapse):
            return []
        fields = {"noticed by": lapse.node}
        level = "warning" if sender is None and not lapse.is_echo else "debug"  # once, by who has noticed
        effects: Effects = [Log(level, "more have failed together than delta", fields)]
        if self.settings.role is Role.BROKER or sender is None:
            effects += [
                Send(each.connection, [lapse])
                for each in self.reach.stations.values()
                if each is not sender and each.is_told and each.connection is not None
            ]
        self.spread.on_lapse()
        effects += self.host.on_lapse(lapse)
        if sender is None or not len(self.spread.interests) or not self.lapses.is_echoed(sender, lapse):
            return effects
        self._is_echo_due = not sender.is_told
        return effects if self._is_echo_due else effects + self._echo()

    def _echo(self) -> Effects:
        self._is_echo_due = False
        return self._on_lapse(None, self.lapses.new(is_echo=True))

    def _publish_held(self) -> Effects:
        held, self._held = self._held, []
        return [effect for each in held for effect in self._originate(*each)]

    def _on_relay(self, sender: Station, relay: Relay) -> Effects:
        if not relay.at:
            return []
        publications = relay.batch.publications
        if relay.refill and self._is_recovered:
            return []  # it is too late: what has come since has been numbered
        if relay.refill:
            self.plane.take_back(relay, _contents(publications, relay.at), sender)
            return []
        new = self.plane.new(sender, relay)
        effects: Effects = []
        if len(new) < len(relay.at):
            effects += self.plane.confirm_repeats(sender, relay, new)
        if self.settings.role is not Role.BROKER:
            effects += self._deliver(sender, relay, new)
        elif new:
            upstream = relay.trail.steps[-1].node
            tags = self.spread.partitions.tags_for(relay.trail, relay.tags, upstream)
            events = _contents(publications, [relay.at[place] for place in new])
            effects += self.plane.take(relay, new, events, tags, sender)
        return effects + self.plane.acknowledge_much(sender, relay)  # now that we hold it

    def _deliver(self, sender: Station, relay: Relay, new: list[int]) -> Effects:
        upstream = relay.trail.steps[-1].node
        tags = self.spread.partitions.tags_for(relay.trail, relay.tags, upstream)
        tags = self.spread.partitions.tags_at_edge(relay.batch.publications[relay.at[0]].publisher, tags)
        tagged = relay if tags == relay.tags else replace(relay, tags=tags)
        numbers = [relay.trail.numbers[-1][place] for place in new]
        return self.host.on_relay(tagged, new) + self.plane.confirm(sender, numbers)


def _contents(publications: list[Publication], at: Sequence[int]) -> list[Content] | None:
    """The events at some positions; None if they are marks, which travel alone.

    :raises MalformedEvent: if one is no event.
    """
    if not is_mark(publications[at[0]]):
        return [unpack(publications[i].event) for i in at]
    if not all(is_mark(publications[i]) for i in at):
        raise Breach("marks among events")
    return None


def _check_own(client: str, message: Message) -> None:
    """A client is a leaf: it speaks for itself only."""
    match message:
        case Subscribe(subscription) | Unsubscribe(subscription):
            is_own = subscription.subscriber == client
        case DepthAck(holdings):
            is_own = all(report.node == client for report in holdings)
        case Heal(_, rows):
            is_own = all(row.subscription.subscriber == client for row in rows)
        # a publisher tells the subscriptions of others: what it publishes may be for them
        case Lore(_, graves):
            is_own = all(grave.subscriber == client for grave in graves)
        case Relay(_, batch, at):
            is_own = all(batch.publications[i].publisher == client for i in at)
        case Lapse(node):
            is_own = node == client
        case Join() | Leave() | Missing() | Present():
            is_own = False
        case _:
            return
    if not is_own:
        raise Breach(f"{type(message).__name__} by {client} for somebody else")
