"""The experiments that need nothing but the simulator: their results are the same on every machine.

Each at its full size, which takes up to some minutes of processor time, or *quick*: a smaller network and shorter
times, in which the same claims hold, in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from holdfast.bench.durable_disconnections import DisconnectionsPlan, disconnections
from holdfast.bench.overlay import EXPERIMENTS
from holdfast.bench.overlay_acks import AcksPlan, acks
from holdfast.bench.overlay_delay import DelayPlan, delay
from holdfast.bench.overlay_finding import Finding
from holdfast.bench.overlay_load import LoadPlan, load
from holdfast.bench.overlay_locality import LocalityPlan, locality
from holdfast.bench.overlay_network import Extent, Patience
from holdfast.bench.overlay_recovery import RecoveryPlan, recovery
from holdfast.bench.overlay_vectors import VectorsPlan, vectors
from holdfast.bench.result import Result, Size, result_of
from holdfast.bench.sesdad import SESDAD_EXPERIMENTS, SesdadPlan

__all__ = ["SIMULATED", "simulated_result"]

_FEW: Final = Extent(
    edge_brokers=1, core_clients=(2, 1, 2), edge_clients=7, publishers=3, subscriptions=60, topics=12
)
_HASTE: Final = Patience(heartbeat_ms=100, detect_ms=500, dack_ms=200)

_QUICK: Final[dict[str, Callable[[], Finding]]] = {
    "E0.1": lambda: load(LoadPlan(_FEW, _HASTE, failures_s=(8, 16), end_s=24, settle_s=3, per_second=12)),
    "E0.2": lambda: delay(DelayPlan(_FEW, _HASTE, fail_s=4, recover_s=10, end_s=14)),
    "E0.3": lambda: acks(
        AcksPlan(
            _FEW,
            Patience(heartbeat_ms=100, detect_ms=500, dack_ms=1_000),
            rates=(20, 40, 80),
            phase_s=3,
        )
    ),
    "E0.4": lambda: recovery(
        RecoveryPlan(_FEW, _HASTE, rates=(5, 10), down_s=2, up_s=2, timeouts_ms=(200, 400))
    ),
    "E0.5": lambda: locality(LocalityPlan(_FEW, _HASTE, events=40, per_second=20)),
    "E0.6": lambda: vectors(VectorsPlan()),
    "E1.3": lambda: disconnections(DisconnectionsPlan()),
    **{name: partial(run, SesdadPlan(events=60)) for name, run in SESDAD_EXPERIMENTS.items()},
}

_FULL: Final[dict[str, Callable[[], Finding]]] = {
    "E0.1": EXPERIMENTS["load"],
    "E0.2": EXPERIMENTS["delay"],
    "E0.3": EXPERIMENTS["acks"],
    "E0.4": EXPERIMENTS["recovery"],
    "E0.5": EXPERIMENTS["locality"],
    "E0.6": EXPERIMENTS["vectors"],
    "E1.3": _QUICK["E1.3"],
    **{name: partial(run, SesdadPlan()) for name, run in SESDAD_EXPERIMENTS.items()},
}

#: By experiment the command that repeats it at its full size.
SIMULATED: Final[dict[str, str]] = {
    **{f"E0.{i}": f"holdfast bench overlay {name}" for i, name in enumerate(EXPERIMENTS, start=1)},
    "E1.3": "holdfast bench durable --experiment E1.3",
    **{name: f"holdfast bench sesdad {name}" for name in SESDAD_EXPERIMENTS},
}


def simulated_result(experiment: str, size: Size) -> Result:
    """Run one, now."""
    finding = (_FULL if size == "full" else _QUICK)[experiment]()
    command = SIMULATED[experiment] if size == "full" else "holdfast report --simulate quick"
    return result_of(finding, experiment, command, size)
