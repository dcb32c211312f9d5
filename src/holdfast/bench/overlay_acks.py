"""E0.3: depth-acknowledgements against confirmations [KJ §10.3, Fig. 16], over a ramp of rates, seen from n2.

A confirmation answers every frame of publications. Depth-acknowledgements come once in a period on each connection,
however many publications passed, so what they cost does not follow the rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.bench.overlay_finding import Check, Finding
from holdfast.bench.overlay_meter import Meter, Passed, Watch
from holdfast.bench.overlay_network import BEGIN_MS, Extent, Network, Patience, perform
from holdfast.clock import SECOND

__all__ = ["AcksPlan", "acks"]

MODES = ("conf", "dack")
WATCHED = "n2"
#: Between two rates, so that what follows from one is over before the next.
PAUSE_S = 5


@dataclass(frozen=True, slots=True)
class AcksPlan:
    """The experiment's size."""

    extent: Extent = field(default_factory=Extent)
    patience: Patience = field(
        default_factory=lambda: Patience(heartbeat_ms=500, detect_ms=2_000, dack_ms=1_000)
    )
    rates: tuple[int, ...] = (5, 10, 20, 40, 80, 160)
    phase_s: int = 10


@dataclass(frozen=True, slots=True)
class _Count:
    """A second of one phase."""

    frames: float
    frame_bytes: float


def acks(plan: AcksPlan) -> Finding:
    """Run it, once for each mode."""
    network = Network(plan.extent)
    found: dict[tuple[str, int, str], _Count] = {}
    for mode in MODES:
        passed = _run(network, plan, mode)
        for phase, rate in enumerate(plan.rates):
            for kind in ("publications", "acknowledgements"):
                found[mode, rate, kind] = _count(passed, kind, phase, plan.phase_s)
    rows = [
        (
            mode,
            rate,
            data.frames,
            control.frames,
            data.frame_bytes,
            control.frame_bytes,
            100 * control.frame_bytes / data.frame_bytes,
        )
        for mode in MODES
        for rate in plan.rates
        for data in [found[mode, rate, "publications"]]
        for control in [found[mode, rate, "acknowledgements"]]
    ]
    columns = (
        "mode",
        "events/s",
        "data frames/s",
        "control frames/s",
        "data B/s",
        "control B/s",
        "control %",
    )
    return Finding(
        "acks",
        "Depth-acknowledgements and confirmations (E0.3)",
        columns,
        [tuple(cell if isinstance(cell, str) else round(cell, 3) for cell in row) for row in rows],
        columns,
        rows,
        _checks(found, plan, network.degree(WATCHED)),
        f"{len(network.parents)} nodes, δ = 3, {len(network.wishes):,} subscriptions; frames in and out at {WATCHED}, "
        f"which has {network.degree(WATCHED)} neighbours; depth-acknowledgements every {plan.patience.dack_ms} ms. "
        "Events are small; heartbeats are not counted. A depth-acknowledgement names pairs of nodes: while few "
        "publications pass, its bytes are more than those of confirmations, and they stop growing once every pair has "
        "news in every period. Processor time is not simulated.",
    )


def _run(network: Network, plan: AcksPlan, mode: str) -> list[Passed]:
    """What passed, in time since the first publication did."""
    meter = Meter(frozenset({WATCHED}))
    script = network.subscribing()
    for phase, rate in enumerate(plan.rates):
        script += network.publishing(phase * (plan.phase_s + PAUSE_S), plan.phase_s, rate)
    script.append(f"Wait {BEGIN_MS + len(plan.rates) * (plan.phase_s + PAUSE_S) * 1_000}")
    perform(network.configuration(plan.patience, acknowledge=mode), script, Watch(meter).make_broker)
    began = next(each.at for each in meter.passed if each.kind == "publications")
    return [
        Passed(each.at - began, each.kind, each.is_out, each.frame_bytes)
        for each in meter.passed
        if each.at >= began
    ]


def _count(passed: Sequence[Passed], kind: str, phase: int, seconds: int) -> _Count:
    begin = phase * (seconds + PAUSE_S) * SECOND
    end = begin + (seconds + PAUSE_S // 2) * SECOND  # with what follows from the last publications
    frames = [each.frame_bytes for each in passed if each.kind == kind and begin <= each.at < end]
    return _Count(len(frames) / seconds, sum(frames) / seconds)


def _checks(found: dict[tuple[str, int, str], _Count], plan: AcksPlan, neighbours: int) -> list[Check]:
    ratios = [
        found["conf", rate, "acknowledgements"].frames / found["conf", rate, "publications"].frames
        for rate in plan.rates
    ]
    # In either direction one frame on each connection, in each period that has news.
    periods = (plan.phase_s + PAUSE_S // 2) * 1_000 / plan.patience.dack_ms / plan.phase_s
    bound = 2 * neighbours * periods
    most = max(found["dack", rate, "acknowledgements"].frames for rate in plan.rates)
    fewer = [
        found["conf", rate, "acknowledgements"].frames / found["dack", rate, "acknowledgements"].frames
        for rate in plan.rates
    ]
    return [
        Check(
            "conf: as many control frames as data frames, ± 10 %",
            " ".join(f"{ratio:.2f}" for ratio in ratios),
            all(0.9 <= ratio <= 1.1 for ratio in ratios),
        ),
        Check(
            "dack: one frame per connection, direction and period at most, at any rate",
            f"{most:.1f} of {bound:.1f} a second",
            most <= bound,
        ),
        Check(
            "dack: fewer control frames than conf, at every rate",
            " ".join(f"{ratio:.1f}" for ratio in fewer) + " times fewer",
            all(ratio > 1 for ratio in fewer),
        ),
    ]
