"""A broker as an operator sees it: plain data, for the status page and the trace."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from holdfast.routing.port import NeighbourPort

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker

__all__ = ["status_of"]


def status_of(broker: Broker) -> dict[str, Any]:
    """Names and numbers only."""
    clients = broker.clients.all()
    return {
        "name": broker.name,
        "incarnation": broker.settings.incarnation,
        "ready": broker.is_ready,
        "routing": str(broker.settings.routing),
        "neighbours": [_neighbour(port) for port in broker.neighbours.ports],
        "clients": {
            "connected": sum(port.connection is not None for port in clients),
            "away": sum(port.connection is None for port in clients),
        },
        "subscriptions": {
            "installed": len(broker.table),
            "pending": broker.advertisement.pending,
            "own": sum(len(port.numbers) for port in clients),
        },
        "counters": asdict(broker.counters),
    }


def _neighbour(port: NeighbourPort) -> dict[str, Any]:
    if port.connection is None:
        state = "absent" if port.has_met else "never met"
    else:
        state = "active" if port.is_active else "exchanging tables"
    return {"name": port.name, "state": state, "incarnation": port.incarnation, "held": port.held_count}
