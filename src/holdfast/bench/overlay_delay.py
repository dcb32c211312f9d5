"""E0.2: how long failures delay a publication [KJ §10.2, Fig. 15]. One, two and three adjacent nodes fail, and recover.

On the way from the publisher to the subscriber lie n1a, n1, n2, n3, n3a. A node that *hangs* (Freeze) accepts a dial
and says nothing, so each that is bypassed costs a detector timeout more. One that is *gone* (Crash) refuses a dial at
once: only the first costs a timeout, that of noticing. What is under way when they recover is hardly delayed.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from holdfast.bench.overlay_finding import Check, Finding
from holdfast.bench.overlay_network import BEGIN_MS, CORE, Extent, Network, Patience, perform

__all__ = ["DelayPlan", "delay"]

#: What happens to nodes, and what undoes it.
MANNERS = {"hang": ("Freeze", "Unfreeze"), "crash": ("Crash", "Restart")}


@dataclass(frozen=True, slots=True)
class DelayPlan:
    """The experiment's size."""

    extent: Extent = field(default_factory=Extent)
    patience: Patience = field(
        default_factory=lambda: Patience(heartbeat_ms=1_000, detect_ms=4_000, dack_ms=2_000)
    )
    fail_s: int = 50
    recover_s: int = 150
    end_s: int = 200
    per_second: int = 10


#: When each publication left, in seconds, and how long it took, in milliseconds.
Delays = list[tuple[float, float]]


def delay(plan: DelayPlan) -> Finding:
    """Run it, for each manner and number of nodes: the runs are the same until the failure, to the nanosecond."""
    network = Network(plan.extent)
    found = {(manner, nodes): _run(network, plan, manner, nodes) for manner in MANNERS for nodes in (1, 2, 3)}
    spikes = {run: _worst(delays, plan.fail_s, plan.recover_s) for run, delays in found.items()}
    calm = statistics.median(took for delays in found.values() for at, took in delays if at < plan.fail_s - 1)
    recovery = {run: _worst(delays, plan.recover_s, plan.end_s) - calm for run, delays in found.items()}
    return Finding(
        "delay",
        "Delay at failures (E0.2)",
        ("manner", "nodes", "second", "mean delay ms", "longest delay ms"),
        [row for (manner, nodes), delays in found.items() for row in _rows(manner, nodes, delays)],
        ("manner", "nodes", "calm ms", "spike at the failure ms", "more at the recovery ms"),
        [(*run, calm, spikes[run], recovery[run]) for run in found],
        [*_spike_checks(spikes, plan.patience), *_recovery_checks(recovery, plan.patience)],
        f"{len(network.parents)} nodes, δ = 3, {len(network.wishes):,} subscriptions, one publisher with "
        f"{plan.per_second} events/s, a link takes 10 ms; heartbeat {plan.patience.heartbeat_ms} ms, detector "
        f"timeout {plan.patience.detect_ms} ms. They fail at {plan.fail_s} s and recover at {plan.recover_s} s.",
    )


def _run(network: Network, plan: DelayPlan, manner: str, nodes: int) -> Delays:
    begin, undo = MANNERS[manner]
    publisher, subscriber = network.publishers[0], network.behind("n3a")
    events, interval_ms = plan.end_s * plan.per_second, 1_000 // plan.per_second
    script = [
        *network.subscribing(),
        f"At {BEGIN_MS // 2} Subscriber {subscriber} Subscribe delay As delay",
        f"At {BEGIN_MS} Publisher {publisher} Publish {events} Ontopic delay Interval {interval_ms}",
    ]
    for node in CORE[:nodes]:
        script.append(f"At {BEGIN_MS + plan.fail_s * 1_000} {begin} {node}")
        script.append(f"At {BEGIN_MS + plan.recover_s * 1_000} {undo} {node}")
    script.append(f"Wait {BEGIN_MS + plan.end_s * 1_000}")
    trace = perform(network.configuration(plan.patience), script)
    left = {line["n"]: line["t"] for line in trace if line["kind"] == "publish"}
    return [
        (left[line["n"]], (line["t"] - left[line["n"]]) * 1_000)
        for line in trace
        if line["kind"] == "deliver" and line["subscription"] == "delay"
    ]


def _worst(delays: Delays, begin: float, end: float) -> float:
    """The longest delay from an instant on; of what was published a second before, too, and may be under way."""
    return max(took for at, took in delays if begin - 1 <= at < end)


def _rows(manner: str, nodes: int, delays: Delays) -> list[tuple[str, int, int, float, float]]:
    by_second: dict[int, list[float]] = {}
    for at, took in delays:
        by_second.setdefault(int(at), []).append(took)
    return [
        (manner, nodes, second, round(statistics.mean(these), 3), round(max(these), 3))
        for second, these in by_second.items()
    ]


def _spike_checks(spikes: dict[tuple[str, int], float], patience: Patience) -> list[Check]:
    checks: list[Check] = []
    for fewer, more in pairwise((1, 2, 3)):
        differs = spikes["hang", more] - spikes["hang", fewer]
        within = abs(differs - patience.detect_ms) <= patience.heartbeat_ms
        claim = f"hanging: the spike of {more} is that of {fewer} and a detector timeout, ± a heartbeat"
        checks.append(Check(claim, f"{differs:+,.0f} ms", within))
    differs = spikes["crash", 3] - spikes["crash", 1]
    claim = "crashed: no timeout more for the second and third"
    checks.append(Check(claim, f"{differs:+,.0f} ms", differs < patience.detect_ms / 2))
    return checks


def _recovery_checks(recovery: dict[tuple[str, int], float], patience: Patience) -> Sequence[Check]:
    checks: list[Check] = []
    for manner in MANNERS:
        impacts = [recovery[manner, number] for number in (1, 2, 3)]
        claim = f"{manner}: the recovery's impact hardly depends on how many recover"
        spread = max(impacts) - min(impacts)
        checks.append(
            Check(
                claim, " ".join(f"{each:,.0f}" for each in impacts) + " ms", spread <= patience.heartbeat_ms
            )
        )
    return checks
