"""E0.5: who keeps what a dead subscriber misses [KJ §8, R0.63]: the δ+1 nodes before it, and nobody else.

What is safe by arrival only is kept a while beyond the queue, in case more fail than δ; that is told separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.bench.overlay_finding import Check, Finding
from holdfast.bench.overlay_meter import Watch
from holdfast.bench.overlay_network import BEGIN_MS, Extent, Network, Patience, perform

__all__ = ["LocalityPlan", "locality"]


@dataclass(frozen=True, slots=True)
class LocalityPlan:
    """The experiment's size."""

    extent: Extent = field(default_factory=Extent)
    patience: Patience = field(
        default_factory=lambda: Patience(heartbeat_ms=200, detect_ms=1_000, dack_ms=500)
    )
    deltas: tuple[int, ...] = (1, 2, 3)
    events: int = 200
    per_second: int = 20

    @property
    def seconds(self) -> int:
        """How long it is published for."""
        return self.events // self.per_second


Row = tuple[int, int, str, int, int]


def locality(plan: LocalityPlan) -> Finding:
    """Run it, once for each δ."""
    network = Network(plan.extent)
    data = [row for delta in plan.deltas for row in _run(network, plan, delta)]
    on_way = network.path(network.behind("n3a"), network.publishers[0])
    others = len(network.subscribing(but=network.behind("n3a")))
    columns = ("δ", "distance", "node", "queued", "kept besides")
    return Finding(
        "locality",
        "Queues behind a dead subscriber (E0.5)",
        columns,
        data,
        columns,
        [row for row in data if row[2] in on_way],
        [_check(data, delta, on_way, plan.events) for delta in plan.deltas],
        f"{len(network.parents)} nodes, {others:,} subscriptions of others (of {len(network.wishes):,} in all) with "
        "traffic of their own; "
        f"{plan.events} events for a subscriber that has crashed, {len(on_way) - 1} hops from the publisher. The table "
        "has the way between them, the data file everybody; at the publisher, what is not accepted.",
    )


def _run(network: Network, plan: LocalityPlan, delta: int) -> list[Row]:
    publisher, subscriber = network.publishers[0], network.behind("n3a")
    watch = Watch()
    script = [
        *network.subscribing(but=subscriber),
        f"At {BEGIN_MS // 2} Subscriber {subscriber} Subscribe dead As dead",
        *network.publishing(0, plan.seconds, 10),
        f"At {BEGIN_MS - 500} Crash {subscriber}",
        f"At {BEGIN_MS} Publisher {publisher} Publish {plan.events} Ontopic dead Interval {1_000 // plan.per_second}",
        f"Wait {BEGIN_MS + plan.seconds * 1_000 + 10 * plan.patience.dack_ms}",
    ]
    trace = perform(network.configuration(plan.patience, delta=delta), script, watch.make_broker)
    rows: list[Row] = []
    for name in network.brokers:
        plane = watch.last(name).node.plane
        kept = sum(len(segment.batch) for segment in plane.kept.values())
        rows.append((delta, len(network.path(subscriber, name)) - 1, name, plane.held, kept))
    for name in network.publishers:
        published = sum(line["kind"] == "publish" and line["publisher"] == name for line in trace)
        accepted = sum(line["kind"] == "accepted" and line["publisher"] == name for line in trace)
        rows.append((delta, len(network.path(subscriber, name)) - 1, name, published - accepted, 0))
    return sorted(rows)


def _check(data: Sequence[Row], delta: int, on_way: Sequence[str], events: int) -> Check:
    queued = {name: queue for its_delta, _, name, queue, _ in data if its_delta == delta}
    keepers = {name: queue for name, queue in queued.items() if queue}
    due = dict.fromkeys(on_way[1 : delta + 2], events)
    claim = f"δ = {delta}: everything is queued on the {delta + 1} nodes before it, nothing anywhere else"
    found = ", ".join(f"{name} {queue}" for name, queue in keepers.items()) or "nobody"
    return Check(claim, found, keepers == due)
