"""A broker as an operator sees it: plain data, for the status page and the trace."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from holdfast.broker.durable.inspection import durable_status
from holdfast.messages.overlay import Role
from holdfast.messages.subscriptions import Partition
from holdfast.node.node import Node
from holdfast.node.station import Station

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker

__all__ = ["status_of"]


def status_of(broker: Broker) -> dict[str, Any]:
    """Names and numbers only."""
    clients = broker.clients.all()
    stations = broker.node.reach.stations.values()
    neighbours = [each for each in stations if each.distance == 1 and each.place.role is Role.BROKER]
    return {
        "name": broker.name,
        "incarnation": broker.settings.incarnation,
        "ready": broker.is_ready,
        "routing": str(broker.settings.routing),
        "neighbours": [_neighbour(broker, each) for each in neighbours],
        "clients": {
            "connected": sum(port.connection is not None for port in clients),
            "away": sum(port.connection is None for port in clients),
        },
        "subscriptions": {
            "installed": len(broker.table) - (0 if broker.durable is None else broker.durable.announcements),
            "pending": broker.node.spread.pending,
            "own": sum(len(port.numbers) for port in clients),
        },
        "overlay": _overlay(broker),
        "durable": None if broker.durable is None else durable_status(broker.durable),
        "counters": asdict(broker.counters),
    }


def _neighbour(broker: Broker, station: Station) -> dict[str, Any]:
    if station.connection is None:
        state = "absent" if station.incarnation else "never met"
    else:
        state = "active" if station.is_open else "exchanging tables"
    held = broker.delivery.held_for(station)
    return {"name": station.name, "state": state, "incarnation": station.incarnation, "held": held}


def _overlay(broker: Broker) -> dict[str, Any]:
    """The node: whom it speaks with past whom, what it keeps for whom, and which partitions it knows."""
    node, settings = broker.node, broker.settings
    stations = list(node.reach.stations.values())
    down = [each.name for each in stations if each.is_bypassed and each.connection is None]
    failed = [name for name in down if node.reach[name].place.role is Role.BROKER]
    return {
        "delta": settings.delta,
        "budget": settings.delta
        - len(failed),  #: how many more may fail near here; a failed link looks like a broker
        "acknowledge": str(settings.acknowledge),
        "connections": [_connection(each) for each in stations if each.connection is not None],
        "down": down,
        "bypassing": [
            {"past": list(each.path[:-1]), "to": each.name}
            for each in stations
            if each.is_open and each.distance > 1
        ],
        "fragments": [list(path) for path in node.reach.frontier(node.reach.directions()).fragments],
        "members": [
            each.name for each in node.topology if each.role is not Role.BROKER and each.distance == 1
        ],
        "queued": node.plane.held,
        "waiting": _waiting(node),
        "stalled": dict(node.plane.stalled),
        "stalled_subscriptions": [
            {"subscription": str(subscription), "at": name} for subscription, name in node.spread.stalled()
        ],
        "partitions": [
            {**_partition(partition), "subscriptions": len(state.subscriptions)}
            for partition, state in node.spread.partitions.open.items()
        ],
        "crossings": [
            {**_partition(partition), "crossed": state.is_crossed}
            for partition, state in node.spread.partitions.crossings.items()
        ],
        "lapses": [
            {"by": each.node, "life": each.incarnation, "seq": each.number, "at": broker.lapsed_at[each.node]}
            for each in node.lapses.all()
        ],
        "counters": asdict(node.plane.counters),
    }


def _connection(station: Station) -> dict[str, Any]:
    return {
        "to": station.name,
        "role": str(station.place.role),
        "past": list(station.path[:-1]),
        "state": "open" if station.is_open else "exchanging tables",
    }


def _waiting(node: Node) -> dict[str, int]:
    """How many events of the queue are kept for whom: somebody who wants them, or stands for all beyond it."""
    waiting: dict[str, int] = {}
    for segment in node.plane.queue.values():
        for target, share in segment.shares.items():
            waiting[target.name] = waiting.get(target.name, 0) + len(share.at)
    return waiting


def _partition(partition: Partition) -> dict[str, Any]:
    return {"lead": partition.lead, "seq": partition.number, "fragment": list(partition.fragment)}
