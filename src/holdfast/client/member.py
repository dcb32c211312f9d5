"""The client as a node of the overlay: it survives the failure of its broker [KJ §13, R0.8].

It speaks with its own broker as long as that is there, and with the nodes around it when it is not. What it publishes
on reliable streams is accepted when enough others hold it; what it is sent arrives once and in order, whatever way it
takes. So a broken session is no gap there: what was on its way comes by another. Best-effort streams are as they are to
a plain client: their events are handed to a broker, and what a broken session loses is a gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from holdfast.client.backoff import Dials
from holdfast.client.effect import Acknowledged, Away, Ended, Ready
from holdfast.client.handing import Handing
from holdfast.client.inbox import Subscription
from holdfast.client.input import (
    AddSubscription,
    Commit,
    Consumed,
    EndSubscription,
    Leave,
    Open,
    SetHome,
    Submit,
)
from holdfast.client.ledger import Ledger
from holdfast.client.pausing import Pausing
from holdfast.client.settings import Settings
from holdfast.client.stream_map import StreamMap
from holdfast.clock import Instant
from holdfast.errors import FilterError
from holdfast.events.event import DEFAULT_LIMITS, Limits
from holdfast.filters.parse import parse_filter
from holdfast.identity import SubscriptionId
from holdfast.messages.overlay import Lapse, Relay, Role
from holdfast.messages.publications import Accepted, Batch, Copy, Deliveries, Publication, Rejected, Tag
from holdfast.messages.session import Farewell, Goodbye
from holdfast.messages.streams import Guarantee, Order, StreamOrder
from holdfast.messages.subscriptions import Partition
from holdfast.node.breach import Breach
from holdfast.node.host import Host
from holdfast.node.node import Node
from holdfast.node.segment import Share
from holdfast.node.settings import NodeSettings
from holdfast.node.station import Station
from holdfast.overlay.transport import Close, Connect, Connected, Send, Wake
from holdfast.routing.port import Port
from holdfast.routing.table import Table

__all__ = ["MemberCore"]

#: Why a durable subscription, or one that begins in the past, cannot be had.
NOT_LOGGED: Final = "no stream of this network is logged: subscriptions begin now, and end with their client"


class MemberCore(Host):
    """Driven by ``step`` and ``next_deadline``, as ``overlay.transport`` says.

    ``streams`` are those of the network; without, there is one, reliable, with all topics. A client that was a plain
    one until now gives its ``ledger`` and the connection that stands with its broker.
    """

    def __init__(
        self,
        settings: Settings,
        membership: NodeSettings,
        streams: Sequence[StreamOrder] | None = None,
        *,
        limits: Limits = DEFAULT_LIMITS,
        ledger: Ledger | None = None,
        last_number: int = 0,
        standing: int | None = None,
    ) -> None:
        self.name = settings.name
        self.node = Node(membership, Table(), self)
        self.ledger = ledger or Ledger(
            settings.name, membership.incarnation, settings.unacknowledged_max, settings.sent_bytes
        )
        everything = StreamOrder(settings.stream, Order.FIFO, Guarantee.RELIABLE, ("#",))
        self._streams = StreamMap(streams or [everything], limits)
        self.ledger.inbox.learn(self._streams.streams, self._streams.reliable)
        self._here = Port(settings.name)  #: where our own subscriptions are for
        #: numbers of events of reliable streams that are not known to be safe
        self._relayed: set[int] = set()
        #: on their streams, while nobody says who wants what
        self._unsent: list[tuple[str, list[Publication]]] = []
        self._published: int | None = None  #: the highest of them, ever
        self._lapses_marked = 0  #: how many lapses we had heard of when we last marked
        self._handing = Handing()
        self._accepted: list[int] = []  #: since the last report
        self._duplicates: list[int] = []  #: of what is accepted and not reported
        self._told: list[Any] = []  #: what the application hears at the end of this step
        self._last_number = last_number
        self._standing = standing
        self._dials = Dials(
            settings.name, settings.backoff_min_ns, settings.backoff_max_ns, membership.probe_every_ns
        )
        self._now: Instant = 0  #: of this step
        self._is_opened = False
        self._is_ready = False
        self._excused_until: Instant = 0  #: we are away by our own doing
        self._pausing = Pausing(self.ledger, self.node)
        self._over = False

    @property
    def unacknowledged(self) -> int:
        """How many submitted events wait for their acknowledgement."""
        return len(self.ledger.outbox)

    @property
    def turned_away(self) -> int:
        """How many deliveries had passed before."""
        return self.ledger.inbox.turned_away

    @property
    def is_ready(self) -> bool:
        """Whether somebody is there to speak with."""
        return self._is_ready and not self._over

    def next_deadline(self) -> Instant | None:
        """When to be woken."""
        if self._over or not self._is_opened:
            return None
        node_at, dial_at = self.node.next_deadline(), self._dials.next_deadline()
        return node_at if dial_at is None or node_at is None else min(node_at, dial_at)

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        """Take one input, and say what is to be done about it."""
        if self._over:
            return [Close(stimulus.connection, "over")] if isinstance(stimulus, Connected) else []
        self._now = now
        effects = [*self._dials.due(now), *self._dial(self._take(stimulus, now) + self._send_on(now), now)]
        effects += self._handing.hand_to(self._open_brokers())
        effects += self._report(now)
        effects += self._pausing.review(now)
        told, self._told = self._told, []
        return effects + told

    def _take(self, stimulus: Any, now: Instant) -> list[Any]:
        match stimulus:
            case Submit(publications):
                self.ledger.outbox.submit(publications)
                return self._publish(publications, now)
            case Consumed(number, count):
                self.ledger.inbox.consume(number, count)
                return []
            case Wake():
                return self._on_wake(now)
            case Open():
                self._is_opened = True
                return self._resume_ledger(now)
            case AddSubscription(number):
                return self._subscribe(number, self.ledger.add(stimulus))
            case EndSubscription(number):
                is_ending = self.ledger.end(number)
                return [*self.node.spread.unsubscribe(self.ledger.id(number))] if is_ending else []
            case Commit():
                return []  # of a subscription that has been refused meanwhile
            case SetHome(broker):
                self.ledger.home = broker  # nothing is logged where there are members
                return []
            case Leave():
                return self._leave()
            case _:
                return [*self.node.step(stimulus, now)]

    def _on_wake(self, now: Instant) -> list[Any]:
        self._pausing.excuse(now)
        return [*self.node.step(Wake(), now)]

    # Dialling

    def _dial(self, effects: list[Any], now: Instant) -> list[Any]:
        """The node dials as it sees fit; some of that is late, and the first of it may have been done already."""
        if not any(isinstance(effect, Connect) for effect in effects):
            return effects
        done: list[Any] = []
        for effect in effects:
            if not isinstance(effect, Connect):
                done.append(effect)
            elif effect.peer == self.node.settings.home and self._standing is not None:
                connection, self._standing = self._standing, None
                done += self.node.step(Connected(connection, effect.peer), now)
            else:
                done += self._dials.ask(effect, now)
        return done

    def _open_brokers(self) -> list[Station]:
        stations = self.node.reach.stations.values()
        found = [each for each in stations if each.is_open and each.place.role is Role.BROKER]
        return sorted(found, key=_distance) if len(found) > 1 else found

    # Publishing

    def _publish(self, publications: list[Publication], now: Instant) -> list[Any]:
        """Each goes the way of its stream; on one stream they stay in order."""
        found = self._streams.sort(publications)
        for n, problem, code in found.refused:
            self._told += self.ledger.on_rejected(n, problem, code)
        effects: list[Any] = []
        if found.reliable and self.node.settings.role is Role.SUBSCRIBER:
            self._excused_until = now + self.node.settings.detect_after_ns
            effects += self.node.become_publisher(now)
            self._dials.clear()
        self._unsent += found.reliable.items()
        return effects + self._send_on(now) + self._handing.add(found.best_effort)

    def _send_on(self, now: Instant) -> list[Any]:
        """Events of reliable streams begin once it is known who wants them: nobody else would miss them."""
        if not self._unsent or not self.node.is_informed(now):
            return []
        unsent, self._unsent = self._unsent, []
        numbers = [publication.n for _, some in unsent for publication in some]
        effects: list[Any] = []
        if self._lapses_marked != self.node.lapses.heard:
            effects += self._mark(min(numbers) - 1)
        self._published = max(numbers)
        self._relayed.update(numbers)
        for stream, some in unsent:
            effects += self.node.publish(stream, some)
        return effects

    # Subscribing

    def _subscribe(self, number: int, added: Subscription) -> list[Any]:
        subscription = self.ledger.id(number)
        if not added.reading.is_plain:
            self._told += self.ledger.on_refused(subscription, NOT_LOGGED)
            return []
        try:
            filter = parse_filter(added.filter)
        except FilterError as error:
            self._told += self.ledger.on_refused(subscription, str(error), "filter")
            return []
        return [*self.node.spread.subscribe(self._here, subscription, filter, number)]

    def _resume_ledger(self, now: Instant) -> list[Any]:
        """What was asked for before we were a member."""
        effects: list[Any] = []
        for number, subscription in list(self.ledger.inbox.subscriptions.items()):
            effects += self._subscribe(number, subscription)
        for number in list(self.ledger.ending):  # nobody has heard of them
            self._told += self.ledger.on_withdrawn(self.ledger.id(number))
        waiting = self.ledger.outbox.waiting()
        return effects + (self._publish(waiting, now) if waiting else [])

    def _leave(self) -> list[Any]:
        self._over = True
        effects: list[Any] = []
        for station in self.node.reach.stations.values():
            if station.connection is not None:
                goodbye = Goodbye(Farewell.LEAVING, "the client leaves")
                effects += [Send(station.connection, [goodbye]), Close(station.connection, "left")]
        if self._standing is not None:
            effects.append(Close(self._standing, "left"))
        self._told.append(Ended(Farewell.LEAVING, "left"))
        return effects

    # What the application hears

    def _report(self, now: Instant) -> list[Any]:
        """Whether we can be reached has changed; whether more is accepted."""
        effects: list[Any] = []
        is_ready = self.node.is_recovered and any(
            station.is_open for station in self.node.reach.stations.values()
        )
        if is_ready != self._is_ready and (is_ready or now >= self._excused_until):
            self._is_ready = is_ready
            ready = Ready(self.node.settings.home or "", self._last_number)
            effects.append(ready if is_ready else Away("nobody can be reached"))
        accepted, self._accepted = self._accepted, []
        upto = self.ledger.outbox.accept_each(accepted)
        if upto:
            duplicates = tuple(n for n in self._duplicates if n <= upto)
            self._duplicates = [n for n in self._duplicates if n > upto]
            effects.append(Acknowledged(upto, duplicates))
        if self.node.farewell is not None:
            self._over = True
            effects.append(Ended(*self.node.farewell))
        return effects

    # What the node says

    def on_relay(self, relay: Relay, new: list[int]) -> list[Any]:
        """Publications for our subscriptions."""
        subscriptions = relay.subscriptions or [()] * len(relay.at)
        self._deliver(
            relay.stream,
            relay.batch,
            [relay.at[place] for place in new],
            [subscriptions[place] for place in new],
            relay.tags,
            is_returned=relay.returned,
        )
        return []

    def on_deliveries(self, sender: Station, message: Deliveries) -> list[Any]:
        """Events of a best-effort stream."""
        _check_broker(sender, message)
        self._told += self.ledger.inbox.take(message)
        return []

    def on_local(
        self, port: Port, stream: str, batch: Batch, share: Share, tags: tuple[Tag, ...]
    ) -> list[Any]:
        """What we publish ourselves, and subscribe to."""
        self._deliver(stream, batch, share.at, share.subscriptions, tags)
        return []

    def _deliver(
        self,
        stream: str,
        batch: Batch,
        at: list[int],
        subscriptions: list[tuple[int, ...]],
        tags: tuple[Tag, ...],
        *,
        is_returned: bool = False,
    ) -> None:
        copies = [Copy(tags=tags)] * len(at) if tags else None
        message = Deliveries(stream, batch, at, subscriptions, copies)
        self._told += self.ledger.inbox.take(message, is_returned=is_returned)

    def on_safe(self, publications: list[Publication]) -> None:
        """Accepted: held by enough others, or wanted by nobody."""
        numbers = [each.n for each in publications if each.n in self._relayed]
        self._relayed.difference_update(numbers)
        self._accepted += numbers

    def on_lapse(self, lapse: Lapse) -> list[Any]:
        """Events may be missing: we say up to where we have published, and are told so by others."""
        self.ledger.inbox.begin_lapse(lapse.node, (lapse.incarnation, lapse.number))
        return [] if self._published is None else self._mark(self._published)

    def _mark(self, upto: int) -> list[Any]:
        self._lapses_marked = self.node.lapses.heard
        return [*self.node.mark(min(self._streams.reliable), self.name, upto)]

    def on_answer(self, sender: Station, message: Accepted | Rejected) -> list[Any]:
        """What became of best-effort events."""
        _check_broker(sender, message)
        if isinstance(message, Rejected):
            self._handing.reject(message.n)
            self._told += self.ledger.on_rejected(message.n, message.problem, message.code)
        else:
            self._accepted += self._handing.accept(message)
            self._duplicates += message.duplicates
        return []

    def on_subscribed(self, subscription: SubscriptionId, partial: tuple[Partition, ...]) -> list[Any]:
        """Confirmed."""
        self._told += self.ledger.on_confirmed(subscription, partial)
        return []

    def on_unsubscribed(self, subscription: SubscriptionId) -> list[Any]:
        """Forgotten."""
        self._told += self.ledger.on_withdrawn(subscription)
        return []

    def on_upgraded(
        self, subscription: SubscriptionId, cleared: tuple[Partition, ...], partial: tuple[Partition, ...]
    ) -> list[Any]:
        """Partitions are over."""
        self._told += self.ledger.on_upgraded(subscription, cleared, partial)
        return []

    def on_open(self, station: Station) -> list[Any]:
        """Somebody is there."""
        self._dials.answered(station.name)
        return []

    def on_gone(self, station: Station) -> None:
        """A session is over. What a broker was about to deliver of best-effort streams is lost with it."""
        self._handing.on_gone(station)
        if station.distance == 1:
            self._dials.lost(station.name, self._now)
        if station.is_open and station.place.role is Role.BROKER:
            self.ledger.inbox.begin_doubt(is_forgotten=False)


def _check_broker(sender: Station, message: Deliveries | Accepted | Rejected) -> None:
    """Another client may relay to us, and nothing else."""
    if sender.place.role is not Role.BROKER:
        raise Breach(f"{type(message).__name__} from a client")


def _distance(station: Station) -> int:
    return station.distance
