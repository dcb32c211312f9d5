"""The best-effort data plane: from a batch of events to one message per way out.

Best-effort keeps nothing for anybody: what cannot be sent is counted and gone. Only while two brokers tell each other
what they know are publications held for a moment, up to a limit. A broker that has failed is bypassed here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.broker.settings import Routing, Settings
from holdfast.broker.statistics import Counters
from holdfast.errors import MalformedEvent
from holdfast.events.event import Content
from holdfast.events.packed import unpack
from holdfast.messages.overlay import Role
from holdfast.messages.publications import Batch, Copy, Deliveries, Publications, Tag
from holdfast.node.breach import Breach
from holdfast.node.reach import Reach
from holdfast.node.station import Phase, Station
from holdfast.overlay.transport import Send, Trace, TransportEffect
from holdfast.routing import filtering
from holdfast.routing.port import Port
from holdfast.routing.table import Table

__all__ = ["Delivery"]

Effects = list[TransportEffect]


@dataclass(slots=True)
class _Held:
    """Publications that wait for one station."""

    batches: list[tuple[str, Batch, list[int]]] = field(default_factory=list)
    count: int = 0
    size: int = 0


class Delivery:
    """Routes batches, by filter or by flooding."""

    def __init__(self, settings: Settings, table: Table, reach: Reach, counters: Counters) -> None:
        self._node = settings.name
        self._is_flooding = settings.routing is Routing.FLOODING
        self._trace_forwards = settings.trace_forwards
        self._held_max = settings.held_max
        self._held_bytes_max = settings.held_bytes_max
        self._table = table
        self._reach = reach
        self._counters = counters
        self._held: dict[str, _Held] = {}  #: by station

    @property
    def held(self) -> int:
        """How many publications wait."""
        return sum(held.count for held in self._held.values())

    def held_for(self, station: Station) -> int:
        """How many wait for one station."""
        held = self._held.get(station.name)
        return 0 if held is None else held.count

    # In

    def on_publications(self, sender: Station, message: Publications) -> Effects:
        """A batch from another broker. A broker that only floods need not look into it."""
        batch = message.batch.picked(message.at)
        self._counters.received += len(batch)
        if not self._table:
            everything = list(range(len(batch)))
            onward = self._flooded(sender, everything) if self._is_flooding else {}
            return self._onward(message.stream, batch, onward)
        try:
            events = [unpack(publication.event) for publication in batch.publications]
        except MalformedEvent as error:
            raise Breach(f"an event that cannot be read: {error}") from error
        return self.route(message.stream, batch, events, sender)

    def route(self, stream: str, batch: Batch, events: Sequence[Content], arrival: Station | None) -> Effects:
        """Send a batch on its ways. ``arrival`` is the station it came from, None if it came from a client."""
        onward = self._flooded(arrival, list(range(len(batch)))) if self._is_flooding else {}
        effects: Effects = []
        for port in filtering.gather(self._table, events, arrival):
            at, subscriptions = port.take_share()
            if not isinstance(port, Station):
                effects += self.deliver(port, stream, batch, at, subscriptions)
            elif arrival is not None and port.direction == arrival.direction:
                continue  # who lies there has been served from there
            elif port.place.role is not Role.BROKER and self._reach.next_hop(port.path) is port:
                effects += self.deliver(port, stream, batch, at, subscriptions)
            elif not self._is_flooding:
                self._add(onward, port, at)
        return effects + self._onward(stream, batch, onward)

    # Ways

    def _flooded(self, arrival: Station | None, at: list[int]) -> dict[Station, list[int]]:
        """Every broker that is next on some way, but not back [SESDAD Alg. 1]."""
        onward: dict[Station, list[int]] = {}
        for direction in self._reach.directions(None if arrival is None else arrival.direction):
            for station in self._reach.nearest(direction):
                if station.place.role is Role.BROKER:
                    onward[station] = at
        return onward

    def _add(self, onward: dict[Station, list[int]], target: Station, at: list[int]) -> None:
        hop = self._reach.next_hop(target.path) or self._meeting(target)
        if hop is None or hop.place.role is not Role.BROKER:
            self._counters.dropped += len(at)
        elif hop in onward:
            onward[hop] = sorted({*onward[hop], *at})
        else:
            onward[hop] = at

    def _meeting(self, target: Station) -> Station | None:
        return next((each for each in self._reach.on_way(target.path) if each.connection is not None), None)

    # Out

    def _onward(self, stream: str, batch: Batch, onward: dict[Station, list[int]]) -> Effects:
        effects: Effects = []
        for station, at in onward.items():
            if station.phase is Phase.OPEN:
                assert station.connection is not None
                self._counters.forwarded += len(at)
                if self._trace_forwards:
                    effects += [self._line(station, batch, i) for i in at]
                effects.append(Send(station.connection, [Publications(stream, batch, at)]))
            else:
                self._counters.dropped += len(at) - self._hold(station, stream, batch, at)
        return effects

    def deliver(
        self,
        port: Port,
        stream: str,
        batch: Batch,
        at: list[int],
        subscriptions: list[tuple[int, ...]],
        tags: tuple[Tag, ...] = (),
    ) -> Effects:
        """Events for a client, if it is there."""
        if port.connection is None:
            self._counters.dropped += len(at)
            return []
        self._counters.delivered += len(at)
        copies = [Copy(tags=tags)] * len(at) if tags else None
        lines = [self._line(port, batch, i) for i in at] if self._trace_forwards else []
        return [*lines, Send(port.connection, [Deliveries(stream, batch, at, subscriptions, copies)])]

    def _line(self, port: Port, batch: Batch, i: int) -> Trace:
        publisher, n = batch.publications[i].id
        return Trace(
            "forward", {"from": self._node, "to": port.name, "publisher": publisher, "n": n, "again": False}
        )

    # Holding

    def _hold(self, station: Station, stream: str, batch: Batch, at: list[int]) -> int:
        """Keep publications until two brokers have told each other all, the first that there is room for; how many."""
        if station.connection is None:
            return 0
        held = self._held.setdefault(station.name, _Held())
        kept: list[int] = []
        for i in at:
            size = len(batch.publications[i].event)
            if held.count == self._held_max or held.size + size > self._held_bytes_max:
                break
            kept.append(i)
            held.count += 1
            held.size += size
        if kept:
            held.batches.append((stream, batch, kept))
        return len(kept)

    def release(self, station: Station) -> Effects:
        """A station is open: what was held for it goes out."""
        held = self._held.pop(station.name, _Held())
        return [
            effect
            for stream, batch, at in held.batches
            for effect in self._onward(stream, batch, {station: at})
        ]

    def drop(self, station: Station) -> None:
        """The session is over before it was open."""
        self._counters.dropped += self._held.pop(station.name, _Held()).count
