"""The experiments of [BZA §5], E1.1 to E1.6: with real processes where two cores are enough, else in virtual time.

What is compared with the paper are shapes and ratios; its machines had six processors each, of the year 2000.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.bench.durable_auto_ack import auto_acknowledge
from holdfast.bench.durable_chain import run_chain
from holdfast.bench.durable_disconnections import run_disconnections
from holdfast.bench.durable_microbenchmark import run_filtering
from holdfast.bench.durable_outage import run_broker_outage
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.durable_scaling import run_scaling
from holdfast.bench.overlay_finding import Finding

__all__ = ["DURABLE_EXPERIMENTS"]

DURABLE_EXPERIMENTS: dict[str, Callable[[DurableScale], Finding]] = {
    "E1.1": run_chain,
    "E1.2": run_scaling,
    "E1.3": run_disconnections,
    "E1.4": run_filtering,
    "E1.5": auto_acknowledge,
    "E1.6": run_broker_outage,
}
