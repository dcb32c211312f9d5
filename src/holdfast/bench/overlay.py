"""`holdfast bench overlay`: the experiments of [KJ §10], E0.1 to E0.6, in virtual time.

What is compared with the paper are shapes: what returns to its level, what rises, what grows by what. The simulator's
processors take no time; what work costs is the matter of `holdfast bench network`.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.bench.overlay_acks import AcksPlan, acks
from holdfast.bench.overlay_delay import DelayPlan, delay
from holdfast.bench.overlay_finding import Finding
from holdfast.bench.overlay_load import LoadPlan, load
from holdfast.bench.overlay_locality import LocalityPlan, locality
from holdfast.bench.overlay_recovery import RecoveryPlan, recovery
from holdfast.bench.overlay_vectors import VectorsPlan, vectors

__all__ = ["EXPERIMENTS"]

#: By name; the longest take some minutes.
EXPERIMENTS: dict[str, Callable[[], Finding]] = {
    "load": lambda: load(LoadPlan()),
    "delay": lambda: delay(DelayPlan()),
    "acks": lambda: acks(AcksPlan()),
    "recovery": lambda: recovery(RecoveryPlan()),
    "locality": lambda: locality(LocalityPlan()),
    "vectors": lambda: vectors(VectorsPlan()),
}
