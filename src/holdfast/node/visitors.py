"""Nodes that come and go: clients, and leaves of the tree that join it later [B0.25].

Who is near hears of a newcomer from the broker it has come to, and tells whoever is near as well; who is away is told
when it is met. A life of a client that is over stays so, whatever else is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.clock import Instant
from holdfast.identity import SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import Join, Leave, Role
from holdfast.messages.session import Farewell, Hello, Kind
from holdfast.node.breach import Breach
from holdfast.node.graves import of_life
from holdfast.node.station import Station
from holdfast.node.topology import Place
from holdfast.overlay.transport import Send, TransportEffect

if TYPE_CHECKING:
    from holdfast.node.node import Node

__all__ = ["Visitors"]

Effects = list[TransportEffect]


class Visitors:
    """What a node knows of others' coming and going."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._left: Effects = []  #: what follows from somebody's leaving
        self._over: dict[str, int] = {}  #: clients in session that, we were told, have left; and their lives

    def take_left(self, now: Instant) -> Effects:
        """What follows from those who have left since."""
        effects: Effects = []
        while self._over:
            name, incarnation = self._over.popitem()
            station = self._node.reach.get(name)
            if station is not None and station.connection is not None and station.incarnation <= incarnation:
                reason = _refusal_of(name)
                effects += self._node.introductions.part(station.connection, Farewell.UNKNOWN, reason, now)
                self.on_left(name, incarnation)
        left, self._left = self._left, []
        return effects + left

    def enter(self, join: Join) -> Place | None:
        """Put a node into the map; None if it is too far, or its life is over."""
        if join.incarnation and self._is_over(join.node, join.incarnation):
            return None  # that life is over
        return self._node.topology.add(join.node, join.role, join.beside, join.address, join.incarnation)

    def _is_over(self, client: str, incarnation: int) -> bool:
        return self._node.spread.interests.graves.covers(of_life(client, incarnation))

    def on_join(self, sender: Station, join: Join, now: Instant) -> Effects:
        """Somebody tells of a newcomer."""
        before = self._node.topology.get(join.node)
        if before is not None and join.role is Role.BROKER:
            return []  # a broker stands where it stands
        effects = self.end_earlier_life(join.node, join.incarnation, sender, now)
        place = self.enter(join)
        if place is None or place == before:
            return effects
        self._node.reach.enter(place)
        return effects + self.pass_on(join, sender) + self._node.changed(now)

    def end_earlier_life(
        self, client: str, incarnation: int, sender: Station | None, now: Instant
    ) -> Effects:
        """A later life of a client has come, perhaps at another broker: the earlier one is over, place and all."""
        station = self._node.reach.get(client)
        if station is None or not 0 < station.place.incarnation < incarnation:
            return []
        if station.connection is not None and station.incarnation >= incarnation:
            return []  # it is the later one we speak with
        later = "a later client has this name"
        effects: Effects = []
        if station.connection is not None:
            effects += self._node.introductions.part(station.connection, Farewell.TAKEN_OVER, later, now)
        return effects + self.on_leave(sender, Leave(client, station.place.incarnation, later), now)

    def on_told(self, sender: Station, told: Iterable[SubscriptionId], now: Instant) -> Effects:
        """Somebody tells of subscriptions: whoever made one in a later life has ended the earlier one.

        A publisher may tell of them that comes before the news of their client. If the earlier life ended only then,
        it would take its station with it, and whatever is there for the later one.
        """
        lives: dict[str, int] = {}
        for each in told:
            if each.subscriber != sender.name:  # whose life is known by its session
                lives[each.subscriber] = max(each.incarnation, lives.get(each.subscriber, 0))
        effects: Effects = []
        for client, incarnation in lives.items():
            effects += self.end_earlier_life(client, incarnation, sender, now)
        return effects

    def pass_on(self, message: Join | Leave, sender: Station | None) -> Effects:
        """Tell everybody in session, but not back."""
        return [
            Send(station.connection, [message])
            for station in self._node.reach.stations.values()
            if station is not sender
            and station.connection is not None
            and station.is_told
            and station.name != message.node
            and (sender is None or station.direction != sender.direction)
        ]

    def expel(self, name: str, reason: str, now: Instant) -> Effects:
        """A client is gone for good: its subscriptions are over, and nobody waits for it [B0.25]."""
        station = self._node.reach.get(name)
        incarnation = station.place.incarnation if station is not None else 0
        # Who lost its memory may have learnt of its lives by their subscriptions, in any order.
        incarnation = max(incarnation, self._node.spread.interests.last_life(name))
        return self.on_leave(None, Leave(name, incarnation, reason), now)

    def on_leave(self, sender: Station | None, leave: Leave, now: Instant) -> Effects:
        """A client has left for good, or was expelled."""
        grave = of_life(leave.node, leave.incarnation)
        known = self._node.topology.get(leave.node)
        if leave.node == self._node.name or (known is not None and known.role is Role.BROKER):
            raise Breach(f"{leave.node} cannot leave so")
        if self._node.spread.interests.graves.covers(grave):
            return []
        station = self._node.reach.get(leave.node)
        effects = self.pass_on(leave, sender)
        is_of_life = station is not None and station.place.incarnation <= leave.incarnation
        if station is not None and is_of_life and station.connection is not None:
            effects += self._node.introductions.part(
                station.connection, Farewell.UNKNOWN, _final(leave.reason), now
            )
        self._node.spread.interests.bury(grave)
        return effects + self._node.changed(now)

    def refusal(self, hello: Hello) -> str:
        """What somebody is told who has no place here."""
        if hello.kind is Kind.CLIENT and self._is_over(hello.node, hello.incarnation):
            return _refusal_of(hello.node)
        return f"{hello.node} is no neighbour of {self._node.name}"

    def on_left(self, name: str, incarnation: int) -> None:
        """A life of a client is over for good: it is no node any more, unless a later one is."""
        self._node.absences.forget(name)
        station = self._node.reach.get(name)
        if station is None:
            self._node.plane.marks.forget(name)
            return
        if station.place.role is Role.BROKER or station.place.incarnation > incarnation:
            return
        if station.connection is not None:
            self._over[name] = incarnation
        else:
            self._left += self._node.plane.forget(station)
            self._node.spread.interests.forget_behind(station)
            self._node.reach.remove(name)
            self._left += self._node.spread.upgrades.on_left(name)

    def places_for(self, station: Station) -> list[Message]:
        """The nodes near us that are near it too; it leaves out what is too far for it. A client tells of nobody."""
        if self._node.settings.role is not Role.BROKER:
            return []
        return [
            Join(
                place.name,
                place.role,
                place.path[-2] if place.distance > 1 else self._node.name,
                place.address,
                place.incarnation,
            )
            for place in self._node.topology
            if place.name != station.name
            and (
                place.role is not Role.BROKER
                or place.distance + station.distance <= self._node.topology.reach
            )
        ]


def _refusal_of(client: str) -> str:
    return _final(f"{client} was away for too long, or expelled")


def _final(reason: str) -> str:
    """To whoever's life is over: another is not refused."""
    return f"{reason}; a new connection under the same name will work"
