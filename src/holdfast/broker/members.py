"""Clients that are nodes of the overlay: how they are invited, and what they publish on best-effort streams.

Everything else they say is the node's business. A client that can be a member says so in its first Hello; where a
stream is reliable it is answered with what it must know, and says Hello again, as a node [R0.7, R0.8].

Where a stream is durable there are no members: what is logged is published and read in a session with one broker, and a
client is one thing to all streams (decision 0015).
"""

from __future__ import annotations

from typing import Final

from holdfast.broker.admission import Entrance
from holdfast.broker.clients import Clients
from holdfast.broker.delivery import Delivery
from holdfast.broker.settings import Settings
from holdfast.broker.statistics import Counters
from holdfast.messages.message import Message
from holdfast.messages.overlay import Join, Role
from holdfast.messages.publications import Accepted, Publish
from holdfast.messages.session import MEMBER, Hello, Invitation, Kind, Welcome
from holdfast.messages.streams import Guarantee, StreamOrder
from holdfast.node.breach import Breach
from holdfast.node.node import Node
from holdfast.node.station import Station
from holdfast.overlay.transport import Send, TransportEffect
from holdfast.routing.port import ClientPort

__all__ = ["Members"]

_FEATURES: Final = (MEMBER,)


class Members:
    """Those a broker hosts, as far as they are not nodes like any other."""

    def __init__(
        self, settings: Settings, clients: Clients, node: Node, delivery: Delivery, counters: Counters
    ) -> None:
        self._settings = settings
        self._clients = clients
        self._node = node
        self._delivery = delivery
        self._counters = counters
        self._reliable = {each.name for each in settings.streams if each.guarantee is Guarantee.RELIABLE}
        self._entrance = Entrance(settings.streams, settings.limits)
        self._ports: dict[str, ClientPort] = {}  #: of those in session who published so
        self._places = tuple(_places(settings))
        self.streams = tuple(
            StreamOrder(each.name, each.order, each.guarantee, each.topics) for each in settings.streams
        )

    def invites(self, hello: Hello) -> bool:
        """Whether a client is to be a member."""
        return bool(self._reliable) and MEMBER in hello.features and self.refusal(hello) is None

    def refusal(self, hello: Hello) -> str | None:
        """Why a client cannot be a node of this network, if it cannot."""
        durable = [each.name for each in self._settings.streams if each.guarantee is Guarantee.DURABLE]
        is_broker = hello.kind is Kind.BROKER and (hello.overlay is None or hello.overlay.role is Role.BROKER)
        if not durable or is_broker:
            return None
        return f"the stream {durable[0]} is durable, and where one is no client is a node of the network"

    def is_ours(self, name: str) -> bool:
        """Whether a member hangs on this broker, in session or away."""
        place = self._node.topology.get(name)
        return place is not None and place.distance == 1 and place.role is not Role.BROKER

    def invitation(self, hello: Hello) -> Welcome:
        """What it is told."""
        settings, node = self._settings, self._node.settings
        invitation = Invitation(
            node.delta,
            self._places,
            self._last_life(hello.node),
            str(node.acknowledge),
            node.refill,
            node.floods,
            node.heartbeat_ns,
            node.detect_after_ns,
            node.probe_every_ns,
            node.dack_every_ns,
            settings.limits,
        )
        return Welcome(
            settings.name,
            Kind.BROKER,
            settings.incarnation,
            hello.session,
            node.heartbeat_ns,
            features=_FEATURES,
            last_number=self._clients.last_number(hello.node),
            streams=self.streams,
            invitation=invitation,
        )

    def _last_life(self, name: str) -> int:
        """The highest incarnation known under a name: of a member that is here, or whose life is over."""
        place = self._node.topology.get(name)
        over = self._node.spread.interests.graves.last_life(name)
        return over if place is None else max(over, place.incarnation)

    def on_publish(self, station: Station, message: Publish) -> list[TransportEffect]:
        """Best-effort events of a member's; those of reliable streams it relays itself."""
        publications = message.batch.publications
        if not publications:
            return []
        if any(publication.publisher != station.name for publication in publications):
            raise Breach("an event under somebody else's name")
        admission = self._entrance.admit(self._port(station), publications)
        effects: list[TransportEffect] = []
        for admitted in admission.admitted:
            if admitted.stream in self._reliable:
                raise Breach(f"an event of {admitted.stream}, which a member relays itself")
            self._counters.published += len(admitted.events)
            effects += self._delivery.route(admitted.stream, admitted.batch, admitted.events, None)
        self._counters.duplicates += len(admission.duplicates)
        self._counters.rejected += len(admission.rejected)
        assert station.connection is not None
        accepted = Accepted(publications[-1].n, tuple(admission.duplicates))
        answers: list[Message] = [*admission.rejected, accepted]
        return [*effects, Send(station.connection, answers)]

    def _port(self, station: Station) -> ClientPort:
        port = self._ports.get(station.name)
        if port is None:
            port = self._ports[station.name] = ClientPort(station.name, station.incarnation)
            port.last_number = self._clients.last_number(station.name)
        return port

    def on_gone(self, station: Station) -> None:
        """A session with a node is over; of a member only its last number is remembered."""
        port = self._ports.pop(station.name, None)
        if port is not None:
            self._clients.remember(port.name, port.last_number)


def _places(settings: Settings) -> list[Join]:
    """The brokers within reach of a client here, that is one hop nearer than what is within our own."""
    distance: dict[str, int] = {settings.name: 0}
    places: list[Join] = []
    for each in settings.neighbours:
        beside = each.beside or settings.name
        distance[each.name] = distance[beside] + 1
        if distance[each.name] <= settings.delta:
            places.append(Join(each.name, Role.BROKER, beside, each.address or each.answers_at, 0))
    return places
