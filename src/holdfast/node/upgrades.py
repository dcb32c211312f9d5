"""The end of a partition: subscribers are upgraded, say that they know, and it is cleared [B0.32].

An upgrade goes inward to the subscriber and is repeated until it is heard; the answer comes back the way it went. Then
whoever crossed the partition hears that it is over and tags nothing with it any more; those who have not heard ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.identity import SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import Role
from holdfast.messages.subscriptions import Cleared, Crossed, Partition, Upgraded, UpgradeTaken
from holdfast.node.host import Host
from holdfast.node.interest import Interest, named
from holdfast.node.interests import Interests
from holdfast.node.partitions import Partitions
from holdfast.node.reach import Reach
from holdfast.node.rounds import HealRound, Round
from holdfast.node.settings import NodeSettings
from holdfast.node.station import Station
from holdfast.overlay.transport import Send, TransportEffect

__all__ = ["UPGRADE_REMINDERS", "Upgrades"]

Effects = list[TransportEffect]

#: An upgrade is repeated until heard; that its partition is over may be heard first, and is believed after so many.
UPGRADE_REMINDERS: Final = 3


class Upgrades:
    """Of the subscriptions a node knows."""

    def __init__(
        self,
        settings: NodeSettings,
        reach: Reach,
        partitions: Partitions,
        interests: Interests,
        rounds: Mapping[object, Round],
        subscribers: Host,
    ) -> None:
        self._me = settings.name
        self._incarnation = settings.incarnation
        self._reach = reach
        self.partitions = partitions
        self.interests = interests
        self._rounds = rounds
        self._subscribers = subscribers
        #: Not known to have been heard; with each the station that told us, if one did.
        self._upgrades: dict[SubscriptionId, dict[Partition, str | None]] = {}
        self._cleared: dict[Partition, int] = {}  #: of our own subscriptions; and for how many reminders
        self._asked: dict[Partition, int] = {}  #: how often we were asked whether one that is over is over
        self._asked_for: dict[Partition, str] = {}  #: who asked us about one we do not know

    def forget(self, subscription: SubscriptionId) -> None:
        """A subscription is over, and nobody needs to be told anything of it."""
        self._upgrades.pop(subscription, None)

    def in_fragment(self, partition: Partition) -> list[Station]:
        """Those of its fragment who can be told that it is over: they have been told all else."""
        stations = (self._reach.get(name) for name in partition.fragment)
        return [each for each in stations if each is not None and each.is_told]

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
        return not known and ("heal", partition) not in self._rounds and self.is_heard(partition)

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

    def upgrade(
        self, interest: Interest, cleared: tuple[Partition, ...], added: tuple[Partition, ...]
    ) -> Effects:
        """Some partitions are over for a subscription, and others have been found behind them."""
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
            is_confirmed = under_way is None or under_way.is_renewal
            if not is_confirmed or not (had or added):
                return []  # it is not confirmed yet, or was told so before
            return self._subscribers.on_upgraded(subscription, had, named(interest.partial))
        waiting = self._upgrades.setdefault(subscription, {})
        for partition in cleared:
            waiting.setdefault(partition)
        effects = self._tell_upgrade(interest)
        return effects + [
            effect for each in cleared for effect in self._end_partition(each, interest.direction)
        ]

    def on_left(self, client: str) -> Effects:
        """A client is gone for good: it is a partition to nobody any more. Who leads that one says so."""
        over = [each for each in self.partitions.open if (each.lead, each.fragment) == (self._me, (client,))]
        return [
            effect
            for partition in over
            for subscription in list(self.partitions.open[partition].subscriptions)
            for effect in self.upgrade(self.interests[subscription], (partition,), ())
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
        return [Send(hop.connection, [Upgraded(interest.subscription, cleared, named(interest.partial))])]

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
                    effects += self.upgrade(interest, (partition,), ())
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
        cleared = (*message.cleared, *_superseded(interest, (*message.cleared, *message.partial)))
        if interest.direction is None:
            effects = self.upgrade(interest, cleared, added)
            return [*effects, Send(sender.connection, [taken])]
        told = dict.fromkeys(message.cleared, sender.name)
        self._upgrades.setdefault(message.subscription, {}).update(told)
        return self.upgrade(interest, cleared, added)

    def on_upgrade_taken(self, sender: Station, message: UpgradeTaken) -> Effects:
        """The subscriber knows; whoever told us hears so, each what it told."""
        waiting = self._upgrades.get(message.subscription)
        if waiting is None:
            return []
        heard: dict[str, list[Partition]] = {}
        for partition in message.cleared:
            if (teller := waiting.pop(partition, None)) is not None:
                heard.setdefault(teller, []).append(partition)
        if not waiting:
            del self._upgrades[message.subscription]
        effects: Effects = []
        for name, partitions in heard.items():
            station = self._reach.get(name)
            if station is not None and station.connection is not None:
                taken = UpgradeTaken(message.subscription, tuple(partitions))
                effects.append(Send(station.connection, [taken]))
        for partition in message.cleared:
            if self.is_heard(partition):
                effects += self.clear(partition)
        return effects

    def is_heard(self, partition: Partition) -> bool:
        """Whether every subscriber we had to tell knows that it is over."""
        return not any(partition in waiting for waiting in self._upgrades.values())

    def clear(self, partition: Partition) -> Effects:
        """Nobody needs its tags any more; whoever crossed it hears so."""
        return [
            Send(station.connection, [Cleared(partition)])
            for station in self.in_fragment(partition)
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
        under_way = self._rounds.get(("heal", message.partition))
        if isinstance(under_way, HealRound) and under_way.is_lead:
            under_way.cleared_by = sender.name
        if under_way is not None:
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


def _superseded(interest: Interest, news: tuple[Partition, ...]) -> tuple[Partition, ...]:
    """Partitions whose lead has found the same in another life: it has forgotten these, and will not end them."""
    return tuple(
        old
        for old in interest.partial
        if old not in news and any(_is_in_next_life(old, each) for each in news)
    )


def _is_in_next_life(old: Partition, new: Partition) -> bool:
    is_later = new.lead == old.lead and new.incarnation > old.incarnation
    return is_later and set(old.fragment) <= set(new.fragment)
