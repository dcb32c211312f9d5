"""The control plane of a node: how subscriptions spread, are confirmed, end, and are told to who missed them [KJ §3].

A subscription spreads outward in a round; when the round ends it is confirmed to whoever it came from and installed,
in one step. What is installed is told to everybody a session begins with, before any publication; whoever learns
something so passes it on. So every publication finds, at each node it reaches, the subscriptions its sender knew:
that is Lemma 2 of the paper, and it holds hop by hop.

Departures from the paper (decision 0013): tuples are known by their ids, not by their vectors; a subscription that is
installed and was confirmed is confirmed again at once, without another round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from holdfast.filters.expression import Filter
from holdfast.filters.parse import parse_filter
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import Role
from holdfast.messages.subscriptions import (
    PARTITIONS_MAX,
    TABLE_ROWS_MAX,
    TABLE_TEXT_MAX,
    Cleared,
    Confirmed,
    Crossed,
    Grave,
    Heal,
    Healed,
    Known,
    Lore,
    Partition,
    Subscribe,
    Unsubscribe,
    Upgraded,
    UpgradeTaken,
    Withdrawn,
)
from holdfast.node.graves import Graves, is_of_life, of_life
from holdfast.node.host import Host
from holdfast.node.partitions import Crossing, Partitions
from holdfast.node.reach import Frontier, Reach
from holdfast.node.rounds import HealRound, Round, SubscribeRound, UnsubscribeRound
from holdfast.node.settings import NodeSettings
from holdfast.node.station import Station
from holdfast.node.topology import Path, seen_from
from holdfast.node.trails import vector_length
from holdfast.overlay.transport import Send, TransportEffect
from holdfast.routing.port import Port
from holdfast.routing.table import Entry, Table

__all__ = ["Interest", "Spread"]

Effects = list[TransportEffect]

#: An upgrade is repeated until heard; that its partition is over may be heard first, and is believed after so many.
UPGRADE_REMINDERS: Final = 3


@dataclass(slots=True, eq=False)
class Interest:
    """A subscription known here; the tuple ⟨pred, from, seqVect⟩ of the paper."""

    subscription: SubscriptionId
    filter: Filter
    text: str
    route: Path  #: to the subscriber, the nearest node first, as far as a vector goes; empty: it is here
    port: Port  #: *from*: where publications for it are sent, a station δ+1 hops away at most [R0.6]
    number: int | None  #: what the subscriber itself calls it, where the port is the subscriber's
    is_installed: bool = False
    is_proven: bool = False  #: everybody outward has confirmed it
    partial: dict[Partition, None] = field(default_factory=dict)

    @property
    def direction(self) -> str | None:
        """The neighbour it came from; None: it is ours."""
        return self.route[0] if self.route else None


class Spread:
    """All subscriptions a node knows of, and those under way."""

    def __init__(
        self,
        settings: NodeSettings,
        reach: Reach,
        table: Table,
        subscribers: Host,
        retag: Callable[[Partition], None],
        on_left: Callable[[str, int], None],
    ) -> None:
        self._me = settings.name
        self._incarnation = settings.incarnation
        self._delta = settings.delta
        self._spreads = settings.spreads
        self._is_broker = settings.role is Role.BROKER
        self._subscriptions_max = settings.subscriptions_max
        self._reach = reach
        self._table = table
        self._subscribers = subscribers
        self._retag = retag  #: tags what is queued, as it was accepted before
        self._on_left = on_left  #: a client has left for good
        self.interests: dict[SubscriptionId, Interest] = {}
        self._by_subscriber: dict[str, dict[SubscriptionId, None]] = {}
        self.graves = Graves()
        if settings.incarnation > 1:
            self.graves.add(of_life(settings.name, settings.incarnation - 1))
        self.partitions = Partitions(settings.name, settings.incarnation)
        self._rounds: dict[object, Round] = {}
        self._heals: dict[tuple[str, Partition], list[Known]] = {}  #: what has come of a Heal, by sender
        self._upgrades: dict[SubscriptionId, dict[Partition, None]] = {}  #: not known to have been heard
        self._asked: dict[Partition, int] = {}  #: how often we were asked whether one that is over is over
        self._asked_for: dict[
            Partition, str
        ] = {}  #: stations that asked whether a partition we do not know is over
        self._cleared: dict[Partition, int] = {}  #: of our own subscriptions; and for how many reminders
        self._upgrade_from: dict[SubscriptionId, str] = {}
        self._control_seq = 0

    @property
    def pending(self) -> int:
        """How many subscriptions wait for confirmations."""
        return sum(isinstance(each, SubscribeRound) for each in self._rounds.values())

    def stalled(self) -> list[tuple[SubscriptionId, str]]:
        """Subscriptions that cannot be sent on legitimately, and to whom [B0.34]."""
        return [
            (each.subscription, each.stalled_at)
            for each in self._rounds.values()
            if isinstance(each, SubscribeRound) and each.stalled_at is not None
        ]

    # Our own

    def subscribe(self, port: Port, subscription: SubscriptionId, filter: Filter, number: int) -> Effects:
        """Somebody here subscribes, under a number of its own."""
        self._add(Interest(subscription, filter, str(filter), (), port, number))
        return self._begin(("sub", subscription), SubscribeRound(None, subscription=subscription, vector=()))

    def unsubscribe(self, subscription: SubscriptionId) -> Effects:
        """Somebody here is not interested any more."""
        return self._withdraw(UnsubscribeRound(None, subscription=subscription))

    def _withdraw(self, under_way: UnsubscribeRound) -> Effects:
        """Begin a withdrawal; whoever is not asked, because it is only being met, hears of it all the same."""
        grave = _grave(under_way.subscription)
        self.bury(grave)
        effects = self._begin(("unsub", under_way.subscription), under_way)
        return effects + self._tell((), (grave,), [*under_way.asked, *under_way.senders])

    def is_withdrawing(self, subscription: SubscriptionId) -> bool:
        """Whether a withdrawal waits for confirmations."""
        return ("unsub", subscription) in self._rounds

    # Rounds

    def _begin(self, key: object, begun: Round) -> Effects:
        self._rounds[key] = begun
        return self._advance(key, begun)

    def _advance(self, key: object, under_way: Round) -> Effects:
        """Ask whoever is to be asked; end the round if nobody is waited for."""
        frontier = self._frontier(under_way)
        effects: Effects = []
        if isinstance(under_way, HealRound) and under_way.is_lead and not frontier.endpoints:
            del self._rounds[key]  # the fragment is lost again: it is begun anew when somebody there is met
            return effects
        under_way.stalled_at = None
        for endpoint in frontier.endpoints:
            if endpoint.name in under_way.asked:
                continue
            messages = self._asking(under_way, endpoint)
            if messages is None:
                under_way.stalled_at = endpoint.name
                continue
            under_way.asked[endpoint.name] = None
            assert endpoint.connection is not None
            effects.append(Send(endpoint.connection, messages))
        is_waiting = any(endpoint.name not in under_way.confirmed for endpoint in frontier.endpoints)
        if is_waiting or not frontier.is_decided:
            return effects
        del self._rounds[key]
        return effects + self._end(under_way, frontier.fragments)

    def _frontier(self, under_way: Round) -> Frontier:
        if isinstance(under_way, HealRound) and under_way.is_lead:
            return Frontier(self._in_fragment(under_way.partition))
        return self._reach.frontier(self._reach.directions(under_way.away)) if self._spreads else Frontier()

    def _asking(self, under_way: Round, endpoint: Station) -> list[Message] | None:
        """How an endpoint is asked; None if it cannot be now."""
        match under_way:
            case SubscribeRound(subscription=subscription, vector=vector):
                onward = self._stamped(vector, endpoint)
                if sum(each.counter is None for each in onward[-(2 * self._delta + 1) :]) > self._delta:
                    return None
                return [Subscribe(subscription, self.interests[subscription].text, onward)]
            case UnsubscribeRound(subscription=subscription):
                return [Unsubscribe(subscription)]
            case HealRound(partition=partition, rows=rows):
                pieces = list(_pieces([self._retold(row) for row in rows])) or [()]
                return [Heal(partition, piece, piece is pieces[-1]) for piece in pieces]
        raise AssertionError(under_way)

    def _retold(self, row: Known) -> Known:
        """A row as we tell it; one that has ended meanwhile is told as it came."""
        interest = self.interests.get(row.subscription)
        return row if interest is None else _known(interest)

    def _stamped(self, vector: tuple[Element, ...], endpoint: Station) -> tuple[Element, ...]:
        self._control_seq += 1
        me = Element(self._me, self._incarnation, self._control_seq)
        bypassed = (Element(name, 0, None) for name in endpoint.path[:-1])
        return (*vector, me, *bypassed)[-vector_length(self._delta) :]

    def _end(self, under_way: Round, fragments: list[Path]) -> Effects:
        match under_way:
            case SubscribeRound(subscription=subscription):
                interest = self.interests[subscription]
                over = self.partitions.is_over
                interest.partial.update({each: None for each in under_way.partial if not over(each)})
                for fragment in fragments:
                    interest.partial[self.partitions.lead(fragment)] = None
                effects = self._confirm(interest, under_way)
                interest.is_proven = True
                return effects + self._install(interest, [*under_way.senders, *under_way.asked])
            case UnsubscribeRound(subscription=subscription):
                answers = self._answer(under_way, Withdrawn(subscription))
                if under_way.away is None:
                    return answers + self._subscribers.on_unsubscribed(subscription)
                return answers
            case HealRound(is_lead=True):
                return self._close(under_way)
            case HealRound():
                return self._cross(under_way, fragments)
        raise AssertionError(under_way)

    def _answer(self, under_way: Round, message: Message) -> Effects:
        stations = (self._reach.get(name) for name in under_way.senders)
        return [
            Send(station.connection, [message])
            for station in stations
            if station is not None and station.connection is not None
        ]

    def _confirm(self, interest: Interest, under_way: Round) -> Effects:
        partial = _named(interest.partial)
        if interest.direction is None:
            return self._subscribers.on_subscribed(interest.subscription, partial)
        return self._answer(under_way, Confirmed(interest.subscription, partial))

    def _install(self, interest: Interest, known: Iterable[str]) -> Effects:
        """STEP-II and STEP-III: install, and tell whoever is in session and does not know [R0.25]."""
        for partition in interest.partial:
            self.partitions.add(partition, interest.subscription)
        if interest.is_installed:
            return []
        interest.is_installed = True
        self._enter(interest)
        return self._tell([interest], (), known)

    def _enter(self, interest: Interest) -> None:
        numbers = () if interest.number is None else (interest.number,)
        self._table.add(Entry(interest.subscription, interest.filter, interest.port, numbers))

    def _tell(self, learnt: Sequence[Interest], graves: Sequence[Grave], but: Iterable[str]) -> Effects:
        """Pass on what was learnt to everybody in session who was told all we knew before [R0.53]."""
        known = set(but)
        ours = [grave for grave in graves if self._may_tell(grave.subscriber)]
        effects: Effects = []
        for station in self._reach.stations.values() if self._spreads else ():
            if station.name in known or not station.is_told or station.connection is None:
                continue
            rows = [_known(interest) for interest in learnt if _is_for(station, interest)]
            messages: list[Message] = [Lore(piece) for piece in _pieces(rows)]
            messages += [Lore((), tuple(ours))] if ours else []
            effects += [Send(station.connection, messages)] if messages else []
        return effects

    # What others say of subscriptions

    def on_subscribe(self, sender: Station, message: Subscribe) -> Effects:
        """SUB.

        :raises FilterError: if the filter is refused.
        :raises ValueError: if it cannot have come this way.
        """
        subscription = message.subscription
        route = tuple(element.node for element in reversed(message.vector))
        if route[: sender.distance] != sender.path:
            raise ValueError(f"a subscription that did not come from {sender.name}")
        assert sender.connection is not None
        if subscription in self.graves:
            return self._tell_grave(sender, subscription) or [
                Send(sender.connection, [Confirmed(subscription)])
            ]
        interest = self.interests.get(subscription)
        if interest is None:
            if len(self.interests) >= self._subscriptions_max:
                raise ValueError(f"more than {self._subscriptions_max} subscriptions")
            interest = self._learn(subscription, parse_filter(message.filter), message.filter, route)
        elif interest.text != message.filter:
            raise ValueError(f"{subscription} is {interest.text}, and cannot become {message.filter}")
        elif interest.direction != route[0]:
            raise ValueError(f"{subscription} comes from {interest.direction}, not from {route[0]}")
        key = "sub", subscription
        under_way = self._rounds.get(key)
        if under_way is None:
            if interest.is_installed and interest.is_proven:
                return [Send(sender.connection, [Confirmed(subscription, _named(interest.partial))])]
            under_way = SubscribeRound(route[0], subscription=subscription, vector=message.vector)
        under_way.senders[sender.name] = None
        return self._begin(key, under_way)

    def _learn(self, subscription: SubscriptionId, filter: Filter, text: str, route: Path) -> Interest:
        port, number = self._target(subscription, route)
        return self._add(Interest(subscription, filter, text, route, port, number))

    def _target(self, subscription: SubscriptionId, route: Path) -> tuple[Station, int | None]:
        """*from* [R0.6]: the subscriber, or the node δ+1 hops towards it; and its own number if it is the former."""
        topology = self._reach.topology
        topology.learn(route, subscription.subscriber)
        for name in route[: topology.reach]:
            self._reach.enter(topology[name])
        port = self._reach[route[min(self._delta, len(route) - 1)]]
        return port, subscription.number if port.name == subscription.subscriber else None

    def _add(self, interest: Interest) -> Interest:
        subscription = interest.subscription
        self.interests[subscription] = interest
        self._by_subscriber.setdefault(subscription.subscriber, {})[subscription] = None
        return interest

    def on_confirmed(self, sender: Station, message: Confirmed) -> Effects:
        """CONF."""
        key = "sub", message.subscription
        return self._on_answer(key, sender, message.partial)

    def on_withdrawn(self, sender: Station, message: Withdrawn) -> Effects:
        """The confirmation of UNSUB."""
        return self._on_answer(("unsub", message.subscription), sender, ())

    def _on_answer(self, key: object, sender: Station, partial: Iterable[Partition]) -> Effects:
        under_way = self._rounds.get(key)
        if under_way is None or sender.name not in under_way.asked:
            return []
        under_way.confirmed[sender.name] = None
        under_way.partial.update({each: None for each in partial if each not in under_way.cleared})
        return self._advance(key, under_way)

    def on_unsubscribe(self, sender: Station, message: Unsubscribe) -> Effects:
        """UNSUB."""
        subscription = message.subscription
        assert sender.connection is not None
        key = "unsub", subscription
        under_way = self._rounds.get(key)
        if under_way is None:
            if subscription in self.graves or self._is_ours(_grave(subscription)):
                return [Send(sender.connection, [Withdrawn(subscription)])]
            under_way = UnsubscribeRound(sender.direction, subscription=subscription)
            under_way.senders[sender.name] = None
            return self._withdraw(under_way)
        under_way.senders[sender.name] = None
        return self._begin(key, under_way)

    def bury(self, grave: Grave) -> None:
        """These are over, here and now; if they are all of a subscriber's life, so is that."""
        self.graves.add(grave)
        for subscription in list(self._by_subscriber.get(grave.subscriber, ())):
            if subscription in self.graves:
                self._forget(subscription)
        if is_of_life(grave):
            self._on_left(grave.subscriber, grave.incarnation)

    def _forget(self, subscription: SubscriptionId) -> None:
        interest = self.interests.pop(subscription, None)
        if interest is None:
            return
        of_subscriber = self._by_subscriber[subscription.subscriber]
        del of_subscriber[subscription]
        if not of_subscriber:
            del self._by_subscriber[subscription.subscriber]
        self._rounds.pop(("sub", subscription), None)
        self._upgrades.pop(subscription, None)
        self._upgrade_from.pop(subscription, None)
        if interest.is_installed:
            self._table.remove(subscription)
        for partition in interest.partial:
            self.partitions.drop(partition, subscription)

    def _may_tell(self, subscriber: str) -> bool:
        """A client does not say of others that they are over."""
        return self._is_broker or subscriber == self._me

    def _tell_grave(self, station: Station, subscription: SubscriptionId) -> Effects:
        if station.connection is None or not self._may_tell(subscription.subscriber):
            return []
        return [Send(station.connection, [Lore((), (_grave(subscription),))])]

    # What is told when a session begins, and passed on

    def lore_for(self, station: Station) -> list[Message]:
        """All we know, for a station, in pieces [KJ §4.2.1].

        What a partition that includes the station has stopped is not told so: it goes on as one when that ends.
        """
        if not self._spreads:
            return []
        rows = [
            _known(interest)
            for interest in self.interests.values()
            if interest.is_installed and _is_for(station, interest)
        ]
        messages: list[Message] = [Lore(piece) for piece in _pieces(rows)]
        graves = [grave for grave in self.graves if self._may_tell(grave.subscriber)]
        for start in range(0, len(graves), TABLE_ROWS_MAX):
            messages.append(Lore((), tuple(graves[start : start + TABLE_ROWS_MAX])))
        return messages

    def on_lore(self, sender: Station, message: Lore) -> Effects:
        """Take up what is new to us, and pass it on.

        :raises FilterError: if a filter is refused.
        """
        filters = self._read(message.rows)
        graves = [each for each in message.graves if not self.graves.covers(each) and not self._is_ours(each)]
        for grave in graves:
            self.bury(grave)
        effects = self._tell((), graves, (sender.name,)) if graves else []
        for row in message.rows:
            if row.subscription in self.graves:
                effects += self._tell_grave(sender, row.subscription)
            elif self._is_lost(row):
                self.bury(_grave(row.subscription))
                effects += self._tell((), (_grave(row.subscription),), ())
            else:
                effects += self._take(sender, row, filters)
            for partition in row.partial:
                if self.partitions.is_over(partition) and sender.connection is not None:
                    effects.append(Send(sender.connection, [Cleared(partition)]))
        return effects

    def _read(self, rows: Sequence[Known]) -> dict[SubscriptionId, Filter]:
        """The filters of what is new among rows: nothing is taken up before all of it is known to be right.

        :raises FilterError: if one is refused.
        :raises ValueError: if there is no room for them.
        """
        new = [row for row in rows if row.subscription not in self.interests]
        filters = {row.subscription: parse_filter(row.filter) for row in new}
        if len(self.interests) + len(filters) > self._subscriptions_max:
            raise ValueError(f"more than {self._subscriptions_max} subscriptions")
        return filters

    def _is_ours(self, grave: Grave) -> bool:
        """Whether it buries what this life of ours subscribes to: nobody but we can say that."""
        return grave.subscriber == self._me and grave.incarnation >= self._incarnation

    def _take(self, sender: Station, row: Known, filters: Mapping[SubscriptionId, Filter]) -> Effects:
        """Install what a row says; tell others if it is new, or speaks of partitions we had not heard of."""
        known = self.interests.get(row.subscription)
        before = set() if known is None else set(known.partial)
        learnt = self._take_row(sender, row, filters)
        if learnt is not None:
            return self._install(learnt, (sender.name,))
        is_news = known is not None and not before.issuperset(known.partial)
        return self._tell([known], (), (sender.name,)) if known is not None and is_news else []

    def _is_lost(self, row: Known) -> bool:
        """Whether a subscription is known as ours and not to us: an earlier life made it, and it is over."""
        return row.subscription.subscriber == self._me and row.subscription not in self.interests

    def _take_row(
        self, sender: Station, row: Known, filters: Mapping[SubscriptionId, Filter]
    ) -> Interest | None:
        """One subscription that is installed where it comes from; the interest if it is not installed here.

        It may be under way here; but what its teller sends next may be for it.
        """
        route = seen_from(self._me, row.route, sender.path, vector_length(self._delta))
        interest = self.interests.get(row.subscription)
        if not route:
            return None
        if interest is None:
            interest = self._learn(row.subscription, filters[row.subscription], row.filter, route)
        elif interest.route and len(route) > len(interest.route):
            self._reroute(interest, route)
        is_outward = sender.direction != route[0]
        for partition in row.partial:
            concerns_us = is_outward or self._lies_outward(partition.lead, interest)
            if concerns_us and not self.partitions.is_over(partition):
                interest.partial[partition] = None
                if interest.is_installed:
                    self.partitions.add(partition, row.subscription)
        return None if interest.is_installed else interest

    def _reroute(self, interest: Interest, route: Path) -> None:
        """More is known of the way to a subscriber; publications may be addressed to a node nearer to it."""
        interest.route = route
        port, number = self._target(interest.subscription, route)
        if port is interest.port:
            return
        interest.port, interest.number = port, number
        if interest.is_installed:
            self._table.remove(interest.subscription)
            self._enter(interest)

    def _lies_outward(self, lead: str, interest: Interest) -> bool:
        """Whether the lead of a partition is here, or near and not towards the subscriber."""
        place = self._reach.topology.get(lead)
        return lead == self._me or (place is not None and place.direction != interest.direction)

    def forget_behind(self, station: Station) -> None:
        """A leaf is gone, and whatever was for it."""
        for interest in [each for each in self.interests.values() if station.name in each.route]:
            self._forget(interest.subscription)

    # Changes of the overlay

    def on_lost(self, station: Station) -> None:
        """A session is over: nobody waits for its answers, nor answers it."""
        for under_way in self._rounds.values():
            under_way.lose(station.name)
        for key in [key for key in self._heals if key[0] == station.name]:
            del self._heals[key]

    def replan(self) -> Effects:
        """Who can be reached has changed."""
        effects: Effects = []
        for key, under_way in list(self._rounds.items()):
            if key in self._rounds:
                effects += self._advance(key, under_way)
        return effects + self.heal()

    # Partitions

    def heal(self) -> Effects:
        """Whoever knows of a partition and reaches a node of it, ends it [KJ §4.2.2, B0.33]."""
        effects: Effects = []
        for partition, state in list(self.partitions.open.items()):
            if ("heal", partition) not in self._rounds:
                effects += self._heal(partition, list(state.subscriptions))
        return effects

    def _in_fragment(self, partition: Partition) -> list[Station]:
        """Those of its fragment who can be told that it is over: they have been told all else."""
        stations = (self._reach.get(name) for name in partition.fragment)
        return [each for each in stations if each is not None and each.is_told]

    def _heal(self, partition: Partition, subscriptions: list[SubscriptionId]) -> Effects:
        if not self._in_fragment(partition):
            return []
        outward = [
            self.interests[each]
            for each in subscriptions
            if self._is_outward(partition, self.interests[each])
        ]
        if not outward:
            return []
        rows = [_known(interest) for interest in outward]
        under_way = HealRound(None, partition=partition, rows=rows, is_lead=True)
        return self._begin(("heal", partition), under_way)

    def _is_outward(self, partition: Partition, interest: Interest) -> bool:
        fragment = self._reach.get(partition.fragment[0])
        return fragment is not None and fragment.direction != interest.direction

    def on_heal(self, sender: Station, message: Heal) -> Effects:
        """A partition we were cut off by ends.

        :raises FilterError: if a filter is refused.
        """
        key = sender.name, message.partition
        rows = self._heals.setdefault(key, [])
        rows += message.rows
        if not message.last:
            return []
        del self._heals[key]
        filters = self._read(rows)
        crossing = self.partitions.crossings.setdefault(message.partition, Crossing(sender.direction))
        under_way = self._healing(message.partition)
        known = [] if under_way is None else list(under_way.rows)
        told = {row.subscription for row in known}
        for row in rows:
            if row.subscription not in self.graves and row.subscription not in told:
                interest = self._take_row(sender, row, filters) or self.interests.get(row.subscription)
                if interest is not None and interest.route:
                    known.append(_known(interest))
        if under_way is None or len(known) > len(
            under_way.rows
        ):  # who was asked must be asked again, about all
            senders = {} if under_way is None else under_way.senders
            if under_way is None and crossing.is_crossed and self._are_proven(known):
                assert sender.connection is not None
                return [Send(sender.connection, [Healed(message.partition)])]
            under_way = HealRound(sender.direction, partition=message.partition, rows=known, is_lead=False)
            under_way.senders.update(senders)
        under_way.senders[sender.name] = None
        return self._begin(("heal", message.partition), under_way)

    def _healing(self, partition: Partition) -> HealRound | None:
        under_way = self._rounds.get(("heal", partition))
        return under_way if isinstance(under_way, HealRound) else None

    def _are_proven(self, rows: Sequence[Known]) -> bool:
        return all(self.interests[row.subscription].is_proven for row in rows)

    def on_healed(self, sender: Station, message: Healed) -> Effects:
        """Everybody beyond a station knows what a partition had stopped."""
        return self._on_answer(("heal", message.partition), sender, message.partial)

    def on_crossed(self, sender: Station, message: Crossed) -> Effects:
        """Somebody asks whether a partition it has crossed is over."""
        if not self._is_over(message.partition):
            return []
        if message.partition.lead == self._me:
            return self._answer_crossed(sender, message.partition)
        return self._ask_lead(sender, message)

    def _answer_crossed(self, sender: Station, partition: Partition) -> Effects:
        """A partition we led is over; if an earlier life of ours led it, upgrades may still be on their way."""
        asked = self._asked[partition] = self._asked.get(partition, 0) + 1
        if sender.connection is None or (
            partition.incarnation != self._incarnation and asked <= UPGRADE_REMINDERS
        ):
            return []
        del self._asked[partition]
        return [Send(sender.connection, [Cleared(partition)])]

    def _is_over(self, partition: Partition) -> bool:
        """Whether nothing here, or towards the subscribers, still waits for the end of a partition."""
        known = partition in self.partitions.open or partition in self.partitions.crossings
        return not known and ("heal", partition) not in self._rounds and self._is_heard(partition)

    def _ask_lead(self, sender: Station, message: Crossed) -> Effects:
        """Only the lead knows whether its partition is over: we have lost our memory, or never knew.

        Where it is out of reach, everybody in other directions is asked.
        """
        self._asked_for[message.partition] = sender.name
        place = self._reach.topology.get(message.partition.lead)
        if place is not None:
            hop = self._reach.next_hop(place.path)
            hops = [] if hop is None else [hop]
        else:
            others = self._reach.frontier(self._reach.directions(sender.direction))
            hops = [each for each in others.endpoints if each.place.role is Role.BROKER]
        return [Send(hop.connection, [message]) for hop in hops if hop.connection is not None]

    def crossed(self, station: Station) -> list[Message]:
        """For a station towards the leads of partitions we have crossed: that we have. It tells when they are over."""
        return [
            Crossed(partition)
            for partition, crossing in self.partitions.crossings.items()
            if crossing.is_crossed and crossing.lead_direction == station.direction
        ]

    def _cross(self, under_way: HealRound, fragments: list[Path]) -> Effects:
        """On the other side: install, tag what was accepted before, and confirm."""
        for fragment in fragments:
            under_way.partial[self.partitions.lead(fragment)] = None
        effects: Effects = []
        for row in under_way.rows:
            interest = self.interests.get(row.subscription)
            if interest is not None:
                interest.partial.update(under_way.partial)
                effects += self._install(interest, [*under_way.senders, *under_way.asked])
                interest.is_proven = True
        self._retag(under_way.partition)
        self.partitions.crossings[under_way.partition].is_crossed = True
        return effects + self._answer(under_way, Healed(under_way.partition, _named(under_way.partial)))

    def _close(self, under_way: HealRound) -> Effects:
        """At the lead: the subscribers are told."""
        effects: Effects = []
        for row in under_way.rows:
            interest = self.interests.get(row.subscription)
            if interest is None or under_way.partition not in interest.partial:
                continue
            effects += self._upgrade(interest, (under_way.partition,), _named(under_way.partial))
        return (
            effects
            if self._is_heard(under_way.partition) is False
            else effects + self._clear(under_way.partition)
        )

    def _upgrade(
        self, interest: Interest, cleared: tuple[Partition, ...], added: tuple[Partition, ...]
    ) -> Effects:
        subscription = interest.subscription
        under_way = self._rounds.get(("sub", subscription))
        had = tuple(each for each in cleared if each in interest.partial)
        for partition in cleared:
            interest.partial.pop(partition, None)
            self.partitions.drop(partition, subscription)
            if under_way is not None:  # one side has confirmed, and is whole again, before the others have
                under_way.partial.pop(partition, None)
                under_way.cleared[partition] = None
        for partition in added:
            interest.partial[partition] = None
            self.partitions.add(partition, subscription)
        if interest.direction is None:
            for partition in cleared:
                self.partitions.remember_over(partition)
            if under_way is not None or not (had or added):
                return []  # it is not confirmed yet, or was told so before
            return self._subscribers.on_upgraded(subscription, had, _named(interest.partial))
        self._upgrades.setdefault(subscription, {}).update(dict.fromkeys(cleared))
        effects = self._tell_upgrade(interest)
        return effects + [
            effect for each in cleared for effect in self._end_partition(each, interest.direction)
        ]

    def _end_partition(self, partition: Partition, inward: str | None) -> Effects:
        """A partition concerns nobody here any more; those inward whom the upgrade passes by hear so."""
        if partition in self.partitions.open or self.partitions.is_over(partition):
            return []
        self.partitions.remember_over(partition)
        return [
            Send(station.connection, [Cleared(partition)])
            for station in self._reach.stations.values()
            if station.is_told
            and station.connection is not None
            and station.direction == inward
            and station.place.role is Role.BROKER
        ]

    def _tell_upgrade(self, interest: Interest) -> Effects:
        port = interest.port
        hop = self._reach.next_hop(port.path) if isinstance(port, Station) else None
        if hop is None or hop.connection is None:
            return []
        cleared = tuple(self._upgrades[interest.subscription])
        return [Send(hop.connection, [Upgraded(interest.subscription, cleared, _named(interest.partial))])]

    def remind(self) -> Effects:
        """From time to time: repeat what subscribers were not heard to know; ask if partitions we crossed are over."""
        effects = self._upgrade_cleared()
        if self.partitions.crossings:
            for station in self._reach.endpoints():
                crossed = self.crossed(station)
                if crossed and station.connection is not None:
                    effects.append(Send(station.connection, crossed))
        for subscription in list(self._upgrades):
            effects += self._tell_upgrade(self.interests[subscription])
        return effects

    def _upgrade_cleared(self) -> Effects:
        """Partitions of our own subscriptions that are over, and whose upgrade has had its time: it was lost."""
        effects: Effects = []
        for partition, reminded in list(self._cleared.items()):
            self._cleared[partition] = reminded + 1
            if reminded < UPGRADE_REMINDERS and partition in self.partitions.open:
                continue
            del self._cleared[partition]
            state = self.partitions.open.get(partition)
            for subscription in [] if state is None else list(state.subscriptions):
                if (interest := self.interests[subscription]).direction is None:
                    effects += self._upgrade(interest, (partition,), ())
        return effects

    def on_upgraded(self, sender: Station, message: Upgraded) -> Effects:
        """CONF_UPGRADE, on its way to the subscriber."""
        interest = self.interests.get(message.subscription)
        taken = UpgradeTaken(message.subscription, message.cleared)
        assert sender.connection is not None
        if interest is None:
            return [Send(sender.connection, [taken])]  # it is over, which is as good
        over = self.partitions.is_over
        added = tuple(each for each in message.partial if each not in interest.partial and not over(each))
        if interest.direction is None:
            told = self._upgrade(interest, message.cleared, added)
            return [*told, Send(sender.connection, [taken])]
        self._upgrade_from[message.subscription] = sender.name
        for partition in message.cleared:
            self._upgrades.setdefault(message.subscription, {})[partition] = None
        return self._upgrade(interest, message.cleared, added)

    def on_upgrade_taken(self, sender: Station, message: UpgradeTaken) -> Effects:
        """The subscriber knows."""
        waiting = self._upgrades.get(message.subscription)
        if waiting is None:
            return []
        for partition in message.cleared:
            waiting.pop(partition, None)
        if not waiting:
            del self._upgrades[message.subscription]
        teller = self._reach.get(self._upgrade_from.pop(message.subscription, ""))
        effects: Effects = []
        if teller is not None and teller.connection is not None:
            effects.append(Send(teller.connection, [message]))
        for partition in message.cleared:
            if self._is_heard(partition):
                effects += self._clear(partition)
        return effects

    def _is_heard(self, partition: Partition) -> bool:
        return not any(partition in waiting for waiting in self._upgrades.values())

    def _clear(self, partition: Partition) -> Effects:
        """Nobody needs its tags any more; whoever crossed it hears so."""
        return [
            Send(station.connection, [Cleared(partition)])
            for station in self._in_fragment(partition)
            if station.connection is not None
        ]

    def _on_over(self, sender: Station, partition: Partition) -> Effects:
        """A partition that stopped subscriptions known here is over, and we were passed by."""
        effects: Effects = []
        for subscription in list(self.partitions.open[partition].subscriptions):
            interest = self.interests[subscription]
            if interest.direction is None:  # our own is told so by its upgrade, with whatever is left
                self._cleared.setdefault(partition, 0)
                continue
            interest.partial.pop(partition, None)
            self.partitions.drop(partition, subscription)
            if interest.direction != sender.direction:
                effects += self._end_partition(partition, interest.direction)
        if partition not in self.partitions.open:
            self.partitions.remember_over(partition)
        return effects

    def on_cleared(self, sender: Station, message: Cleared) -> Effects:
        """Every subscriber knows that a partition is over."""
        if ("heal", message.partition) in self._rounds:
            return []  # it is being told anew, and will be over again
        if message.partition in self.partitions.open:
            return self._on_over(sender, message.partition)
        was_crossed = self.partitions.crossings.pop(message.partition, None) is not None
        asker = self._reach.get(self._asked_for.pop(message.partition, ""))
        if not was_crossed and self._me not in message.partition.fragment:
            if asker is None or asker.connection is None:
                return []
            return [Send(asker.connection, [message])]
        frontier = self._reach.frontier(self._reach.directions(sender.direction))
        return [
            Send(endpoint.connection, [message])
            for endpoint in frontier.endpoints
            if endpoint.connection is not None
        ]


def _grave(subscription: SubscriptionId) -> Grave:
    return Grave(subscription.subscriber, subscription.incarnation, subscription.number, subscription.number)


def _named(partial: Iterable[Partition]) -> tuple[Partition, ...]:
    """As many partitions as a message may name; the others are named when these are over."""
    return tuple(islice(partial, PARTITIONS_MAX))


def _known(interest: Interest) -> Known:
    return Known(interest.subscription, interest.text, interest.route, _named(interest.partial))


def _is_for(station: Station, interest: Interest) -> bool:
    """Whether a station is to be told of an interest as it is.

    A client that does not publish needs nobody's subscriptions but its own. What a partition that includes the station
    has stopped is told as one when the partition ends.
    """
    is_own = station.name == interest.subscription.subscriber
    is_wanted = is_own or station.place.role is not Role.SUBSCRIBER
    return is_wanted and not any(station.name in partition.fragment for partition in interest.partial)


def _pieces(rows: Sequence[Known]) -> Iterator[tuple[Known, ...]]:
    """Rows as messages carry them: none is large."""
    piece: list[Known] = []
    text = 0
    for row in rows:
        if piece and (len(piece) == TABLE_ROWS_MAX or text > TABLE_TEXT_MAX):
            yield tuple(piece)
            piece, text = [], 0
        piece.append(row)
        text += len(row.filter) + sum(map(len, row.route)) + sum(_text(each) for each in row.partial)
    if piece:
        yield tuple(piece)


def _text(partition: Partition) -> int:
    return len(partition.lead) + sum(map(len, partition.fragment))
