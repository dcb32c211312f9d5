"""E0.6: what sequence vectors cost on the wire, by δ, and by how many publications travel together.

A vector names the last 3δ+1 nodes of the way and the number each gave [KJ §3.1, B0.6]. Publications that travel
together came one way: the names stand once in their frame, the numbers are columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from holdfast.bench.overlay_finding import Check, Finding
from holdfast.bench.overlay_meter import Meter, Watch
from holdfast.bench.overlay_network import BEGIN_MS, Patience, chain_configuration, perform

__all__ = ["VectorsPlan", "vectors"]

#: An event of the benchmarks, to see what share a vector has.
EVENT_BYTES = 418


@dataclass(frozen=True, slots=True)
class VectorsPlan:
    """The experiment's size."""

    deltas: tuple[int, ...] = (0, 1, 2, 3, 4)
    batches: tuple[int, ...] = (1, 10, 100)


Row = tuple[int, int, int, float, float]


def vectors(plan: VectorsPlan) -> Finding:
    """Run it, once for each δ, along a chain that is longer than a vector."""
    rows = [row for delta in plan.deltas for row in _run(plan, delta)]
    columns = ("δ", "events together", "nodes named", "vector bytes per event", "% of 418-byte events")
    return Finding(
        "vectors",
        "Sequence vectors on the wire (E0.6)",
        columns,
        [(*row[:3], round(row[3], 2), round(row[4], 2)) for row in rows],
        columns,
        rows,
        _checks(rows),
        "As the last broker of a chain of 3δ+3 gets them; names of nodes have two or three letters.",
    )


def _run(plan: VectorsPlan, delta: int) -> list[Row]:
    brokers = 3 * delta + 3
    meter = Meter(frozenset({f"b{brokers}"}), relays=[])
    script = [f"At {BEGIN_MS // 2} Subscriber s Subscribe v"]
    for i, batch in enumerate(plan.batches):
        script.append(f"At {BEGIN_MS + i * 1_000} Publisher p Publish {batch} Ontopic v Interval 0")
    script.append(f"Wait {BEGIN_MS + len(plan.batches) * 1_000}")
    perform(chain_configuration(brokers, delta, Patience()), script, Watch(meter).make_broker)
    rows: list[Row] = []
    assert meter.relays is not None
    for relay in meter.relays:
        events = len(relay.at)
        each = len(msgspec.msgpack.encode(relay.trail)) / events
        rows.append((delta, events, len(relay.trail.steps), each, 100 * each / EVENT_BYTES))
    return rows


def _checks(rows: list[Row]) -> list[Check]:
    named = {delta: nodes for delta, _, nodes, _, _ in rows}
    due = {delta: max(3 * delta + 1, 2) for delta in named}
    most = max(events for _, events, *_ in rows)
    alone = {delta: each for delta, events, _, each, _ in rows if events == 1}
    together = {delta: each for delta, events, _, each, _ in rows if events == most}
    # A number below 128 takes a byte, below 65,536 three; a column of them is nearly all that is left of a vector.
    bound = {delta: 4.0 * nodes for delta, nodes in named.items()}
    return [
        Check("3δ+1 nodes are named, at least two", " ".join(map(str, named.values())), named == due),
        Check(
            f"{most} together: at most 4 bytes for each node named",
            " ".join(f"{each:.1f}" for each in together.values()),
            all(together[delta] <= bound[delta] for delta in named),
        ),
        Check(
            f"{most} together: less than a fourth of alone",
            " ".join(f"{alone[delta] / together[delta]:.1f}" for delta in named) + " times",
            all(together[delta] < alone[delta] / 4 for delta in named),
        ),
    ]
