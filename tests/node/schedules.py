"""What the directed schedules share: a network to begin with, load while things break, and what holds in the end."""

from __future__ import annotations

from typing import Any

from harness import Net
from wiretap import Wiretap

__all__ = ["checked", "complete", "leftovers", "network", "stream", "tapped", "unsettled"]


def network(tree: str, delta: int, *subscribers: str, **options: Any) -> tuple[Net, Wiretap]:
    tap = Wiretap()
    net = Net(tree, delta, transcript=tap, **options)
    for name in subscribers:
        net.subscribe(name)
    net.run(1000)
    net.began = net.world.now
    return net, tap


def tapped(tree: str, delta: int) -> tuple[Net, Wiretap]:
    """A network that has met, with nobody's subscriptions."""
    tap = Wiretap()
    net = Net(tree, delta, transcript=tap)
    net.run(500)
    net.began = net.world.now
    return net, tap


def stream(net: Net, publisher: str, ms: int, every: int = 20) -> None:
    """Publish one event after another, and let time pass."""
    for _ in range(ms // every):
        net.publish(publisher)
        net.run(every)


def complete(net: Net, subscriber: str, publisher: str) -> bool:
    """Everything published came, once and in order, and was accepted."""
    got = [each for each in net.got(subscriber) if each.startswith(f"{publisher}#")]
    published = [str(event) for event in net.memories[publisher].published]
    return got == published and net.memories[publisher].accepted == set(net.memories[publisher].published)


def unsettled(net: Net) -> list[str]:
    """Sessions that are missing or superfluous, rounds and partitions that are left, queues, tables that differ."""
    found = [f"{name} holds {count}" for name, count in net.held().items()]
    if len(set(map(tuple, net.knowing().values()))) > 1:
        found.append(f"tables differ: {net.knowing()}")
    for name in net.edges:
        if not net.world.nodes[name].is_up:
            continue
        node = net.node(name)
        if node.spread._rounds or node.spread.partitions.open or node.spread.partitions.crossings:
            found.append(f"{name} has rounds or partitions")
        for station in node.reach.stations.values():
            if (station.distance == 1) != station.is_open:
                found.append(f"{name}: {station.name} is {station.phase}")
    return found


def checked(net: Net, tap: Wiretap) -> list[str]:
    return unsettled(net) + tap.broken_laws(net)


def leftovers(net: Net) -> list[str]:
    return [
        name
        for name in net.edges
        if net.world.nodes[name].is_up
        and (net.node(name).spread.partitions.open or net.node(name).spread.partitions.crossings)
    ]
