"""I31: a network at rest has forgotten its troubles, in every node.

Tables hold exactly the live subscriptions, queues and partition tables nothing; everybody is in session with its
neighbours and with nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.identity import SubscriptionId
from holdfast.messages.overlay import Role
from holdfast.node.node import Node

__all__ = ["unrest"]


def unrest(nodes: Mapping[str, Node]) -> Iterator[str]:
    """What is left at the nodes of a network that should be at rest."""
    live = {
        interest.subscription: None
        for name, node in nodes.items()
        for interest in node.spread.interests.values()
        if not interest.route
    }
    for name, node in nodes.items():
        yield from _at(name, node, live)


def _at(name: str, node: Node, live: Mapping[SubscriptionId, None]) -> Iterator[str]:
    if node.plane.held:
        yield f"I31: {name} still holds {node.plane.held} publications"
    if node.plane.stalled:
        yield f"I31: {name} is stalled towards {', '.join(node.plane.stalled)}"
    partitions = node.spread.partitions
    if partitions.open or partitions.crossings:
        left = [*partitions.open, *partitions.crossings]
        yield f"I31: {name} still has the partition {left[0]}"
    if node.spread.pending:
        yield f"I34: {name} has {node.spread.pending} subscriptions under way"
    for station in node.reach.stations.values():
        if station.distance == 1 and not station.is_open:
            yield f"I31: at {name} its neighbour {station.name} is {station.phase.name}"
        if station.distance > 1 and station.connection is not None:
            yield f"I31: {name} is still connected to {station.name}"
    for interest in node.spread.interests.values():
        if interest.partial:
            yield f"I31: {name} has {interest.subscription} partially confirmed still"
    if node.settings.role is not Role.SUBSCRIBER:
        known = {key for key, interest in node.spread.interests.items() if interest.is_installed}
        yield from (f"I31: {name} knows {key}, which is over" for key in sorted(known - live.keys()))
        yield from (f"I31: {name} does not know {key}" for key in sorted(live.keys() - known))
