"""The broker: a node of the overlay, and a host to clients that only speak with it.

Other nodes, brokers and clients that are members of the overlay, are the business of ``node``; plain clients that of
``hosting``. Here is what both have in common, that strangers come and say who they are, and what passes between them: a
subscription of a client's is spread by the node, a publication is routed to both.
"""

from __future__ import annotations

from typing import Any

from holdfast.broker.clients import Clients
from holdfast.broker.coalescing import merged
from holdfast.broker.delivery import Delivery
from holdfast.broker.durable.disk import on_disk
from holdfast.broker.durable.plane import DurablePlane
from holdfast.broker.durable.recovery import check
from holdfast.broker.hosting import Hosting
from holdfast.broker.input import ClockSet, Expel, Input, Operate, Stop
from holdfast.broker.members import Members
from holdfast.broker.sessions import Effects, Sessions
from holdfast.broker.settings import Settings
from holdfast.broker.statistics import Counters
from holdfast.broker.status import status_of
from holdfast.clock import SECOND, Instant
from holdfast.identity import SubscriptionId
from holdfast.matching.index import MatchingIndex
from holdfast.messages.message import Message
from holdfast.messages.overlay import Lapse
from holdfast.messages.publications import Batch, Publication, Publications, Publish, Tag
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello
from holdfast.messages.subscriptions import Partition
from holdfast.node.breach import Breach, brief, problem_with
from holdfast.node.host import Host
from holdfast.node.interest import Interest
from holdfast.node.node import Node
from holdfast.node.segment import Share
from holdfast.node.station import Station
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
from holdfast.routing.port import ClientPort, Port
from holdfast.routing.table import Table
from holdfast.streams.storing import Recovered

__all__ = ["Broker"]


class Broker(Host):
    """Driven by ``step`` and ``next_deadline``, as ``overlay.transport`` says; the first input is a ``Wake``.

    ``index`` is the matching engine to use, the fastest there is by default.
    """

    def __init__(
        self, settings: Settings, index: MatchingIndex | None = None, recovered: Recovered | None = None
    ) -> None:
        self.name = settings.name
        self.settings = settings
        self.counters = Counters()
        self.clients = Clients(settings.client_grace_ns)
        self.table = Table(index)
        self.node = Node(settings.node(), self.table, self)
        self.delivery = Delivery(settings, self.table, self.node.reach, self.counters)
        self._sessions = Sessions()
        self._members = Members(settings, self.clients, self.node, self.delivery, self.counters)
        self._hosting = Hosting(
            settings,
            self._sessions,
            self.clients,
            self.node,
            self.delivery,
            self._members,
            self.counters,
            self._end,
        )
        self.durable: DurablePlane | None = None
        if settings.is_durable:
            self.durable = DurablePlane(
                settings,
                self.node,
                self.clients,
                self.counters,
                self._hosting.new_id,
                self._hosting.on_logged,
                self._hosting.recall,
            )
            self._hosting.become_durable(self.durable)
        self._recovered = recovered or Recovered()
        check(self._recovered, settings)
        self.lapsed_at: dict[str, Instant] = {}  #: when we heard of the last lapse, by who noticed it
        self._now: Instant = 0  #: of the input that is being taken
        self._tick_at: Instant | None = None
        self._is_stopped = False

    @property
    def is_ready(self) -> bool:
        """Whether every neighbour has been met or given up, so that clients are served."""
        return self.node.is_recovered

    @property
    def holds_undelivered(self) -> int:
        """Publications that are not known to be safe, or wait until two brokers have told each other what they know."""
        logged = 0 if self.durable is None else self.durable.held
        return self.delivery.held + self.node.plane.held + logged

    def status(self) -> dict[str, Any]:
        """What an operator wants to see, as plain data."""
        return status_of(self)

    def step(self, stimulus: Input, now: Instant) -> Effects:
        """Take one input, and say what is to be done about it."""
        self._now = now
        if self._is_stopped:
            return [Close(stimulus.connection, "stopped")] if isinstance(stimulus, Connected) else []
        durable = self.durable
        if durable is None:
            return self._take(stimulus, now)
        durable.now = now
        effects = self._take(stimulus, now)
        effects += durable.settle(now)
        effects += self._hosting.accept()
        return _alive(effects) if any(isinstance(each, Close) for each in effects) else effects

    def _take(self, stimulus: Input, now: Instant) -> Effects:
        if isinstance(stimulus, Received):  # nearly always; a match of classes costs more than an isinstance
            return self._on_received(stimulus.connection, stimulus.messages, now)
        match stimulus:
            case Wake():
                return self._on_wake(now)
            case Connected(connection, None):
                self._sessions.open(connection, now, HELLO_WITHIN_NS)
                return []
            case Disconnected(connection, reason) if connection in self._sessions:
                fields = {"peer": self._sessions.name(connection), "reason": reason}
                return [Log("info", "connection lost", fields), *self._lose(connection, now)]
            case Connected() | ConnectFailed() | Disconnected():
                return self.node.step(stimulus, now) + self._settle(now)
            case ClockSet(offset_ns):
                if self.durable is not None:
                    self.durable.set_clock(offset_ns)
                return []
            case Expel(name):
                return self.node.visitors.expel(name, "expelled", now) + self._hosting.accept()
            case Operate():
                assert self.durable is not None, "no stream is durable"
                self.durable.operating.on_wish(stimulus)
                return []
            case Stop():
                return self._stop()
            case _:
                assert self.durable is not None, "nothing was asked of the disk"
                on_disk(self.durable, stimulus)
                return []

    def next_deadline(self) -> Instant | None:
        """When to be woken."""
        if self._is_stopped:
            return None
        if self._tick_at is None:
            return 0
        due = min(self._tick_at, self.node.next_deadline())
        return due if self.durable is None else self.durable.next_deadline(due)

    # Time

    def _on_wake(self, now: Instant) -> Effects:
        is_first = self._tick_at is None
        self._tick_at = now if self._tick_at is None else self._tick_at
        effects: Effects = self.node.step(Wake(), now)
        if is_first and self.durable is not None:
            self.durable.start(self._recovered)
            self._recovered = Recovered()
        if self.durable is not None:
            self.durable.on_wake()
        if now >= self._tick_at:
            self._tick_at = now + self.settings.heartbeat_ns
            effects += self._tick(now)
        return effects + self._hosting.accept() + self._settle(now)

    def _tick(self, now: Instant) -> Effects:
        """Heartbeats to those who are owed one; the silent, and those whose grace is over, are given up."""
        effects: Effects = []
        for connection in () if self.durable is None else self.durable.throttle.paused:
            self._sessions.hear(connection, now)
        for session in self._sessions.all():
            connection = session.connection
            if connection not in self._sessions:
                continue  # it ended with another one
            if session.is_silent(now):
                reason = f"nothing heard for {session.silent_after_ns / SECOND:g} s"
                effects += self._end(connection, Farewell.SILENT, reason, now)
            elif session.may_beat(now):
                session.heartbeat_at = now + session.heartbeat_every_ns
                effects.append(Send(connection, [Heartbeat()]))
        return effects + self._hosting.remove_expired(now)

    def _settle(self, now: Instant) -> Effects:
        """Whatever has become possible: clients are welcomed."""
        return self._hosting.welcome_waiting(now) if self.is_ready else []

    # Sessions

    def _lose(self, connection: int, now: Instant) -> Effects:
        self._hosting.on_lost(connection, self._sessions.forget(connection), now)
        if self.durable is not None:
            self.durable.throttle.on_gone(connection)
        return []

    def _end(self, connection: int, farewell: Farewell, reason: str, now: Instant) -> Effects:
        """End a session from this side."""
        return self._sessions.part(connection, farewell, reason) + self._lose(connection, now)

    def _stop(self) -> Effects:
        self._is_stopped = True
        effects: Effects = []
        for connection in [
            *self.node.introductions.connections(),
            *(each.connection for each in self._sessions.all()),
        ]:
            goodbye = Goodbye(Farewell.STOPPING, f"{self.name} is stopping")
            effects += [Send(connection, [goodbye]), Close(connection, "stopping")]
        return effects

    # Messages

    def _on_received(self, connection: int, messages: list[Message], now: Instant) -> Effects:
        if len(messages) > 1:
            messages = list(merged(messages))
        effects: Effects = []
        hear = self._sessions.hear
        for place, message in enumerate(messages):
            if not hear(connection, now):  # it ended with an earlier message, or is the node's
                return effects + self._to_node(connection, messages[place:], now)
            try:
                effects += self._on_message(connection, message, now)
            except Breach as breach:
                self.counters.refusals += 1
                effects += self._end(connection, Farewell.PROTOCOL, str(breach), now)
        return effects

    def _to_node(self, connection: int, messages: list[Message], now: Instant) -> Effects:
        was_ready, refusals = self.is_ready, self.node.refusals
        effects = self.node.receive(connection, messages, now)
        self.counters.refusals += self.node.refusals - refusals
        effects += self._hosting.accept()
        return effects if self.is_ready == was_ready else effects + self._settle(now)

    def _on_message(self, connection: int, message: Message, now: Instant) -> Effects:
        port = self._sessions.port(connection)
        if isinstance(message, Goodbye):
            return self._on_goodbye(connection, port, message, now)
        if port is not None:
            return self._hosting.on_message(port, message) + self._hosting.accept()
        match message:
            case Hello() if not self._hosting.is_waiting(connection):
                return self._on_hello(connection, message, now)
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
        if hello.overlay is None:
            return self._hosting.on_hello(connection, hello, self.is_ready, now)
        refusal = self._members.refusal(hello)
        if refusal is not None:
            return self._end(connection, Farewell.UNKNOWN, refusal, now)
        if not self._hosting.admits(connection, hello):
            return self._hosting.turn_away(connection, now)
        session = self._sessions[connection]
        self._sessions.forget(connection)
        was_ready = self.is_ready
        effects = self.node.introductions.adopt(session, hello, now)
        return effects if self.is_ready == was_ready else effects + self._settle(now)

    def _on_goodbye(
        self, connection: int, port: ClientPort | None, goodbye: Goodbye, now: Instant
    ) -> Effects:
        name, reason = self._sessions.name(connection), brief(goodbye.reason)
        fields = {"peer": name, "reason": reason, "farewell": str(goodbye.farewell)}
        effects: Effects = [
            Log("info", "goodbye from the peer", fields),
            Close(connection, reason),
            *self._lose(connection, now),
        ]
        if port is not None and goodbye.farewell is Farewell.LEAVING and port.connection is None:
            effects += self._hosting.remove(port)
        return effects

    # What the node says

    def on_publications(self, sender: Station, message: Publications) -> Effects:
        """Events of a best-effort stream from another broker."""
        return self.delivery.on_publications(sender, message)

    def on_publish(self, sender: Station, message: Publish) -> Effects:
        """A member publishes on a best-effort stream."""
        return self._members.on_publish(sender, message)

    def on_durable(self, sender: Station, message: Message) -> Effects:
        """What concerns streams that are logged, from another broker."""
        if self.durable is None:
            raise Breach(f"{type(message).__name__} where no stream is durable")
        self.durable.on_message(sender, message)
        return []

    def on_open(self, station: Station) -> Effects:
        """Events may be sent to a node."""
        if self.durable is not None:
            self.durable.on_open(station)
        return self.delivery.release(station)

    def on_gone(self, station: Station) -> None:
        """A session with a node is over."""
        self.delivery.drop(station)
        self._members.on_gone(station)
        if self.durable is not None:
            self.durable.on_gone(station)

    def on_installed(self, interest: Interest) -> None:
        """A subscription counts from now on."""
        if self.durable is not None:
            self.durable.on_installed(interest)

    def on_forgotten(self, interest: Interest) -> None:
        """A subscription is over."""
        if self.durable is not None:
            self.durable.on_forgotten(interest)

    def on_local(self, port: Port, stream: str, batch: Batch, share: Share, tags: tuple[Tag, ...]) -> Effects:
        """Events of a reliable stream for a plain client."""
        return self.delivery.deliver(port, stream, batch, share.at, share.subscriptions, tags)

    def on_safe(self, publications: list[Publication]) -> None:
        """Events of plain clients are accepted."""
        self._hosting.on_safe(publications)

    def on_lapse(self, lapse: Lapse) -> Effects:
        """Events may be missing, also to plain clients."""
        self.counters.lapses += 1
        self.lapsed_at[lapse.node] = self._now
        return self._hosting.on_lapse(lapse)

    def on_subscribed(self, subscription: SubscriptionId, partial: tuple[Partition, ...]) -> Effects:
        """A plain client's subscription is confirmed."""
        return self._hosting.on_subscribed(subscription, partial)

    def on_unsubscribed(self, subscription: SubscriptionId) -> Effects:
        """A plain client's subscription is forgotten."""
        return self._hosting.on_unsubscribed(subscription)

    def on_upgraded(
        self, subscription: SubscriptionId, cleared: tuple[Partition, ...], partial: tuple[Partition, ...]
    ) -> Effects:
        """Partitions are over for a plain client's subscription."""
        return self._hosting.on_upgraded(subscription, cleared, partial)


def _alive(effects: Effects) -> Effects:
    """Without what would be said on connections after they were closed: it was meant for those who were there."""
    closed: set[int] = set()
    found: Effects = []
    for effect in effects:
        if isinstance(effect, Close):
            closed.add(effect.connection)
        if not isinstance(effect, Send) or effect.connection not in closed:
            found.append(effect)
    return found
