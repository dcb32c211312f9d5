"""The control plane of a node: how subscriptions spread, are confirmed, end, and are told to who missed them [KJ §3].

A subscription spreads outward in a round; when the round ends it is confirmed to whoever it came from and installed,
in one step. What is installed is told to everybody a session begins with, before any publication; whoever learns
something so passes it on. So every publication finds, at each node it reaches, the subscriptions its sender knew:
that is Lemma 2 of the paper, and it holds hop by hop.

Departures from the paper (decision 0013): tuples are known by their ids, not by their vectors; a subscription that is
installed and was confirmed is confirmed again at once, without another round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from holdfast.filters.expression import Filter
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import Role
from holdfast.messages.subscriptions import (
    TABLE_ROWS_MAX,
    Cleared,
    Confirmed,
    Durable,
    Grave,
    Heal,
    Healed,
    Known,
    Lore,
    Partition,
    Subscribe,
    Unsubscribe,
    Withdrawn,
)
from holdfast.node.host import Host
from holdfast.node.interest import Interest, grave_of, is_for, known_of, named, pieces_of
from holdfast.node.interests import Interests
from holdfast.node.partitions import Crossing, Partitions
from holdfast.node.reach import Frontier, Reach
from holdfast.node.rounds import HealRound, Round, SubscribeRound, UnsubscribeRound
from holdfast.node.settings import NodeSettings
from holdfast.node.station import Station
from holdfast.node.topology import Path
from holdfast.node.trails import vector_length
from holdfast.node.upgrades import UPGRADE_REMINDERS, Upgrades
from holdfast.overlay.transport import Send, TransportEffect
from holdfast.routing.port import Port
from holdfast.routing.table import Table

__all__ = ["Spread"]

Effects = list[TransportEffect]


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
        self._reach = reach
        self._subscribers = subscribers
        self._retag = retag  #: tags what is queued, as it was accepted before
        self._rounds: dict[object, Round] = {}
        self._heals: dict[tuple[str, Partition], list[Known]] = {}  #: what has come of a Heal, by sender
        self._control_seq = 0
        self._renewal_in: int | None = None  #: so many reminders, then what is orphaned is renewed
        self.partitions = Partitions(settings.name, settings.incarnation)
        self.interests = Interests(settings, reach, table, self.partitions, self._on_forgotten, on_left)
        self.upgrades = Upgrades(settings, reach, self.partitions, self.interests, self._rounds, subscribers)

    def _on_forgotten(self, interest: Interest) -> None:
        self._rounds.pop(("sub", interest.subscription), None)
        self.upgrades.forget(interest.subscription)
        if interest.is_installed:
            self._subscribers.on_forgotten(interest)

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

    def subscribe(
        self,
        port: Port,
        subscription: SubscriptionId,
        filter: Filter,
        number: int | None,
        durable: Durable | None = None,
    ) -> Effects:
        """Somebody here subscribes, under a number of its own."""
        self.interests.add(Interest(subscription, filter, str(filter), (), port, number, durable=durable))
        return self._begin(("sub", subscription), SubscribeRound(None, subscription=subscription, vector=()))

    def unsubscribe(self, subscription: SubscriptionId) -> Effects:
        """Somebody here is not interested any more."""
        return self._withdraw(UnsubscribeRound(None, subscription=subscription))

    def _withdraw(self, under_way: UnsubscribeRound) -> Effects:
        """Begin a withdrawal; whoever is not asked, because it is only being met, hears of it all the same."""
        grave = grave_of(under_way.subscription)
        self.interests.bury(grave)
        effects = self._begin(("unsub", under_way.subscription), under_way)
        return effects + self._tell((), (grave,), [*under_way.asked, *under_way.senders])

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
            return self._on_abandoned(under_way)
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

    def _on_abandoned(self, under_way: HealRound) -> Effects:
        """It will not end here; what others said of it counts."""
        teller = None if under_way.cleared_by is None else self._reach.get(under_way.cleared_by)
        return [] if teller is None else self.upgrades.on_cleared(teller, Cleared(under_way.partition))

    def _frontier(self, under_way: Round) -> Frontier:
        if isinstance(under_way, HealRound) and under_way.is_lead:
            return Frontier(self.upgrades.in_fragment(under_way.partition))
        return self._reach.frontier(self._reach.directions(under_way.away)) if self._spreads else Frontier()

    def _asking(self, under_way: Round, endpoint: Station) -> list[Message] | None:
        """How an endpoint is asked; None if it cannot be now."""
        match under_way:
            case SubscribeRound(subscription=subscription, vector=vector):
                onward = self._stamped(vector, endpoint)
                if sum(each.counter is None for each in onward[-(2 * self._delta + 1) :]) > self._delta:
                    return None
                interest = self.interests[subscription]
                return [Subscribe(subscription, interest.text, onward, interest.durable)]
            case UnsubscribeRound(subscription=subscription):
                return [Unsubscribe(subscription)]
            case HealRound(partition=partition, rows=rows):
                pieces = list(pieces_of([self._retold(row) for row in rows])) or [()]
                return [Heal(partition, piece, piece is pieces[-1]) for piece in pieces]
        raise AssertionError(under_way)

    def _retold(self, row: Known) -> Known:
        """A row as we tell it; one that has ended meanwhile is told as it came."""
        interest = self.interests.get(row.subscription)
        return row if interest is None else known_of(interest)

    def _stamped(self, vector: tuple[Element, ...], endpoint: Station) -> tuple[Element, ...]:
        self._control_seq += 1
        me = Element(self._me, self._incarnation, self._control_seq)
        bypassed = (Element(name, 0, None) for name in endpoint.path[:-1])
        return (*vector, me, *bypassed)[-vector_length(self._delta) :]

    def _end(self, under_way: Round, fragments: list[Path]) -> Effects:
        match under_way:
            case SubscribeRound(subscription=subscription):
                interest = self.interests[subscription]
                before = tuple(interest.partial)
                over = self.partitions.is_over
                interest.partial.update({each: None for each in under_way.partial if not over(each)})
                for fragment in fragments:
                    interest.partial[self.partitions.lead(fragment)] = None
                self._drop_orphans(interest, under_way)
                effects = self._confirm(interest, under_way, before)
                interest.is_proven = not (under_way.is_outdated and interest.partial)
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

    def _confirm(
        self, interest: Interest, under_way: SubscribeRound, before: tuple[Partition, ...]
    ) -> Effects:
        partial = named(interest.partial)
        if interest.route:
            return self._answer(under_way, Confirmed(interest.subscription, partial))
        if not under_way.is_renewal:
            return self._subscribers.on_subscribed(interest.subscription, partial)
        cleared = tuple(each for each in before if each not in interest.partial)
        is_news = bool(cleared) or len(interest.partial) > len(before)
        return self._subscribers.on_upgraded(interest.subscription, cleared, partial) if is_news else []

    def _install(self, interest: Interest, known: Iterable[str]) -> Effects:
        """STEP-II and STEP-III: install, and tell whoever is in session and does not know [R0.25]."""
        for partition in interest.partial:
            self.partitions.add(partition, interest.subscription)
        if interest.is_installed:
            return []
        interest.is_installed = True
        self.interests.enter(interest)
        self._subscribers.on_installed(interest)
        return self._tell([interest], (), known)

    def _tell(self, learnt: Sequence[Interest], graves: Sequence[Grave], but: Iterable[str]) -> Effects:
        """Pass on what was learnt to everybody in session who was told all we knew before [R0.53]."""
        known = set(but)
        ours = [grave for grave in graves if self._may_tell(grave.subscriber)]
        effects: Effects = []
        for station in self._reach.stations.values() if self._spreads else ():
            if station.name in known or not station.is_told or station.connection is None:
                continue
            rows = [known_of(interest) for interest in learnt if is_for(station, interest)]
            messages: list[Message] = [Lore(piece) for piece in pieces_of(rows)]
            messages += [Lore((), tuple(ours))] if ours else []
            effects += [Send(station.connection, messages)] if messages else []
        return effects

    # After a lapse

    def on_lapse(self) -> None:
        """More have forgotten than δ: perhaps the lead of a partition, and everybody who could have ended it.

        Whoever has heard of the lapse does not answer for those beyond, as one does who has had their confirmation.
        """
        for under_way in self._rounds.values():
            if isinstance(under_way, SubscribeRound):
                under_way.is_outdated = True
        for interest in self.interests.values():
            if interest.partial:
                interest.is_proven = False
            if not interest.route:
                self.partitions.doubt(interest.partial)

    def remind(self) -> Effects:
        """From time to time: what was not heard is said again, what is orphaned is asked for again.

        The lead of a partition may have died when its fragment had been told, and the subscribers not yet. Unless
        somebody else ends it before, they ask for what they were confirmed without once more.
        """
        return self.upgrades.remind() + self._renew()

    def _renew(self) -> Effects:
        orphaned = [
            subscription
            for partition, state in self.partitions.open.items()
            if self._is_orphan(partition)
            for subscription in state.subscriptions
            if not self.interests[subscription].route
        ]
        if not orphaned:
            self._renewal_in = None
            return []
        self._renewal_in = UPGRADE_REMINDERS if self._renewal_in is None else self._renewal_in
        self._renewal_in = max(0, self._renewal_in - 1)
        if self._renewal_in or self._reach.frontier(self._reach.directions(None)).fragments:
            return []
        self._renewal_in = None
        effects: Effects = []
        for subscription in dict.fromkeys(orphaned):
            if ("sub", subscription) not in self._rounds:
                renewal = SubscribeRound(None, subscription=subscription, vector=(), is_renewal=True)
                effects += self._begin(("sub", subscription), renewal)
        return effects

    def _is_orphan(self, partition: Partition) -> bool:
        """Whether the life of its lead is over."""
        return partition.incarnation <= self.interests.graves.last_life(partition.lead)

    def _drop_orphans(self, interest: Interest, under_way: SubscribeRound) -> None:
        """Partitions whose lead is gone, and that nobody outward has named: nobody but we knows that they are over."""
        for partition in list(interest.partial):
            if partition not in under_way.partial and self._is_orphan(partition):
                del interest.partial[partition]
                self.partitions.drop(partition, interest.subscription)
                if partition not in self.partitions.open:
                    self.partitions.remember_over(partition)

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
        self.interests.check(subscription, route)
        assert sender.connection is not None
        if subscription in self.interests.graves:
            return self._tell_grave(sender, subscription) or [
                Send(sender.connection, [Confirmed(subscription)])
            ]
        interest = self.interests.get(subscription)
        if interest is None:
            row = Known(subscription, message.filter, route, durable=message.durable)
            (filter,) = self.interests.read([row]).values()
            interest = self.interests.learn(row, filter, route)
        elif interest.text != message.filter:
            raise ValueError(f"{subscription} is {interest.text}, and cannot become {message.filter}")
        elif interest.direction != route[0]:
            raise ValueError(f"{subscription} comes from {interest.direction}, not from {route[0]}")
        key = "sub", subscription
        under_way = self._rounds.get(key)
        if under_way is None:
            is_orphaned = any(map(self._is_orphan, interest.partial))
            if interest.is_installed and interest.is_proven and not is_orphaned:
                return [Send(sender.connection, [Confirmed(subscription, named(interest.partial))])]
            under_way = SubscribeRound(route[0], subscription=subscription, vector=message.vector)
        under_way.senders[sender.name] = None
        return self._begin(key, under_way)

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
            if not self.interests.is_news(grave_of(subscription)):
                return [Send(sender.connection, [Withdrawn(subscription)])]
            under_way = UnsubscribeRound(sender.direction, subscription=subscription)
            under_way.senders[sender.name] = None
            return self._withdraw(under_way)
        under_way.senders[sender.name] = None
        return self._begin(key, under_way)

    def _may_tell(self, subscriber: str) -> bool:
        """A client does not say of others that they are over."""
        return self._is_broker or subscriber == self._me

    def _tell_grave(self, station: Station, subscription: SubscriptionId) -> Effects:
        if station.connection is None or not self._may_tell(subscription.subscriber):
            return []
        return [Send(station.connection, [Lore((), (grave_of(subscription),))])]

    # What is told when a session begins, and passed on

    def lore_for(self, station: Station) -> list[Message]:
        """All we know, for a station, in pieces [KJ §4.2.1].

        What a partition that includes the station has stopped is not told so: it goes on as one when that ends.
        """
        if not self._spreads:
            return []
        rows = [
            known_of(interest)
            for interest in self.interests.values()
            if interest.is_installed and is_for(station, interest)
        ]
        messages: list[Message] = [Lore(piece) for piece in pieces_of(rows)]
        graves = [grave for grave in self.interests.graves if self._may_tell(grave.subscriber)]
        for start in range(0, len(graves), TABLE_ROWS_MAX):
            messages.append(Lore((), tuple(graves[start : start + TABLE_ROWS_MAX])))
        return messages

    def on_lore(self, sender: Station, message: Lore) -> Effects:
        """Take up what is new to us, and pass it on.

        :raises FilterError: if a filter is refused.
        """
        filters = self.interests.read_from(sender, message.rows)
        graves = [each for each in message.graves if self.interests.is_news(each)]
        for grave in graves:
            self.interests.bury(grave)
        effects = self._tell((), graves, (sender.name,)) if graves else []
        for row in message.rows:
            if row.subscription in self.interests.graves:
                effects += self._tell_grave(sender, row.subscription)
            elif self._is_lost(row):
                self.interests.bury(grave_of(row.subscription))
                effects += self._tell((), (grave_of(row.subscription),), ())
            else:
                effects += self._take(sender, row, filters)
            for partition in row.partial:
                if self.partitions.is_over(partition) and sender.connection is not None:
                    effects.append(Send(sender.connection, [Cleared(partition)]))
        return effects

    def _take(self, sender: Station, row: Known, filters: Mapping[SubscriptionId, Filter]) -> Effects:
        """Install what a row says; tell others if it is new, or speaks of partitions we had not heard of."""
        known = self.interests.get(row.subscription)
        before = set() if known is None else set(known.partial)
        learnt = self.interests.take_row(sender, row, filters)
        if learnt is not None:
            return self._install(learnt, (sender.name,))
        is_news = known is not None and not before.issuperset(known.partial)
        return self._tell([known], (), (sender.name,)) if known is not None and is_news else []

    def _is_lost(self, row: Known) -> bool:
        """Whether a subscription is known as ours and not to us: an earlier life made it, and it is over."""
        return row.subscription.subscriber == self._me and row.subscription not in self.interests

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

    def _heal(self, partition: Partition, subscriptions: list[SubscriptionId]) -> Effects:
        if not self.upgrades.in_fragment(partition):
            return []
        outward = [
            self.interests[each]
            for each in subscriptions
            if self._is_outward(partition, self.interests[each])
        ]
        if not outward:
            return []
        self.partitions.open[partition].is_ending = True
        rows = [known_of(interest) for interest in outward]
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
        filters = self.interests.read_from(sender, rows)
        crossing = self.partitions.crossings.setdefault(message.partition, Crossing(sender.direction))
        under_way = self._healing(message.partition)
        known = [] if under_way is None else list(under_way.rows)
        told = {row.subscription for row in known}
        for row in rows:
            if row.subscription not in self.interests.graves and row.subscription not in told:
                interest = self.interests.take_row(sender, row, filters) or self.interests.get(
                    row.subscription
                )
                if interest is not None and interest.route:
                    known.append(known_of(interest))
        # who was asked must be asked again, about all
        if under_way is None or len(known) > len(under_way.rows):
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

    def _cross(self, under_way: HealRound, fragments: list[Path]) -> Effects:
        """On the other side: install, tag what was accepted before, and confirm."""
        for fragment in fragments:
            under_way.partial[self.partitions.lead(fragment)] = None
        self._drop_over(under_way)
        effects: Effects = []
        for row in under_way.rows:
            interest = self.interests.get(row.subscription)
            if interest is not None:
                interest.partial.update(under_way.partial)
                effects += self._install(interest, [*under_way.senders, *under_way.asked])
                interest.is_proven = True
        self._retag(under_way.partition)
        self.partitions.crossings[under_way.partition].is_crossed = True
        return effects + self._answer(under_way, Healed(under_way.partition, named(under_way.partial)))

    def _drop_over(self, under_way: HealRound) -> None:
        """Some could not reach what they have reached since, while we waited for others."""
        for partition in [each for each in under_way.partial if self.partitions.is_over(each)]:
            del under_way.partial[partition]

    def _close(self, under_way: HealRound) -> Effects:
        """At the lead: the subscribers are told."""
        self._drop_over(under_way)
        effects: Effects = []
        for row in under_way.rows:
            interest = self.interests.get(row.subscription)
            if interest is None or under_way.partition not in interest.partial:
                continue
            effects += self.upgrades.upgrade(interest, (under_way.partition,), named(under_way.partial))
        return (
            effects
            if self.upgrades.is_heard(under_way.partition) is False
            else effects + self.upgrades.clear(under_way.partition)
        )
