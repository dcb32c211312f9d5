"""The data plane: from a batch of events to one message per way out.

Best-effort keeps nothing for anybody: what cannot be sent is counted and gone. Only while two brokers exchange
their tables are publications held for a moment, up to a limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.broker.settings import Routing, Settings
from holdfast.broker.statistics import Counters
from holdfast.events.event import Content
from holdfast.messages.publications import Batch, Deliveries, Publications
from holdfast.overlay.transport import Send, Trace, TransportEffect
from holdfast.routing import filtering, flooding
from holdfast.routing.port import NeighbourPort, Port
from holdfast.routing.table import Table

__all__ = ["Delivery"]


class Delivery:
    """Routes batches, by filter or by flooding."""

    def __init__(
        self, settings: Settings, table: Table, neighbours: Sequence[NeighbourPort], counters: Counters
    ) -> None:
        self._node = settings.name
        self._is_flooding = settings.routing is Routing.FLOODING
        self._trace_forwards = settings.trace_forwards
        self._held_max = settings.held_max
        self._held_bytes_max = settings.held_bytes_max
        self._table = table
        self._neighbours = neighbours
        self._counters = counters

    @property
    def looks_inside(self) -> bool:
        """Whether events must be read to be routed; a broker that only floods need not."""
        return len(self._table) > 0

    def route(
        self, stream: str, batch: Batch, events: Sequence[Content], arrival: Port | None
    ) -> list[TransportEffect]:
        """Send a batch on its ways. ``arrival`` is the neighbour it came from, None if it came from a client."""
        if self._is_flooding:
            ports = flooding.gather(self._table, events, arrival, self._neighbours)
        else:
            ports = filtering.gather(self._table, events, arrival)
        effects: list[TransportEffect] = []
        for port in ports:
            at, subscriptions = port.take_share()
            if isinstance(port, NeighbourPort):
                effects += self._to_neighbour(port, stream, batch, at)
            elif port.connection is None:
                self._counters.dropped += len(at)
            else:
                self._counters.delivered += len(at)
                if self._trace_forwards:
                    effects += [self._forward_line(port, batch, i) for i in at]
                effects.append(Send(port.connection, [Deliveries(stream, batch, at, subscriptions)]))
        return effects

    def flood_unread(self, stream: str, batch: Batch, arrival: Port) -> list[TransportEffect]:
        """Pass a batch on to every neighbour but one, without a look at it."""
        at = list(range(len(batch)))
        effects: list[TransportEffect] = []
        for port in self._neighbours:
            if self._is_flooding and port is not arrival:
                effects += self._to_neighbour(port, stream, batch, at)
        return effects

    def release(self, port: NeighbourPort) -> list[TransportEffect]:
        """The tables are exchanged: what was held goes out."""
        assert port.is_active
        effects: list[TransportEffect] = []
        for stream, batch, at in port.take_held():
            effects += self._to_neighbour(port, stream, batch, at)
        return effects

    def _to_neighbour(
        self, port: NeighbourPort, stream: str, batch: Batch, at: list[int]
    ) -> list[TransportEffect]:
        if port.is_active:
            assert port.connection is not None
            self._counters.forwarded += len(at)
            lines = [self._forward_line(port, batch, i) for i in at] if self._trace_forwards else []
            return [*lines, Send(port.connection, [Publications(stream, batch, at)])]
        held = 0
        if port.connection is not None:
            held = port.hold(stream, batch, at, self._held_max, self._held_bytes_max)
        self._counters.dropped += len(at) - held
        return []

    def _forward_line(self, port: Port, batch: Batch, i: int) -> Trace:
        publication = batch.publications[i]
        fields = {
            "from": self._node,
            "to": port.name,
            "publisher": publication.publisher,
            "n": publication.n,
            "again": False,
        }
        return Trace("forward", fields)
