"""E1.1: how much of the delay along a chain of five brokers is logging [BZA §5]; and that it is logged once."""

from __future__ import annotations

from holdfast.bench.durable_latency import ALL_LOG, CHAIN, CHAIN_JOB, SYNC, chain_latency
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.overlay_finding import Check, Finding

__all__ = ["chain_finding", "run_chain"]

PAPER_MS = (50, 44)  #: the whole delay, and the logging


def run_chain(scale: DurableScale) -> Finding:
    """Real processes."""
    return chain_finding(list(chain_latency(scale)), scale.brokers)


def chain_finding(outcomes: list[Outcome], brokers: int) -> Finding:
    """What the latencies mean; each is in µs."""
    medians = {o.variant: o for o in outcomes if o.job == f"{CHAIN_JOB}, p50"}
    tails = {o.variant: o for o in outcomes if o.job == f"{CHAIN_JOB}, p99"}
    sync, one, every = (medians[variant].value / 1e3 for variant in (SYNC, CHAIN, ALL_LOG))
    more = medians[ALL_LOG].over(medians[CHAIN])
    return Finding(
        "durable-chain",
        "Delay along a chain (E1.1)",
        ("what", "run", "p50 µs", "p99 µs"),
        [
            (variant, i, round(p50, 1), round(p99, 1))
            for variant in medians
            for i, (p50, p99) in enumerate(zip(medians[variant].runs, tails[variant].runs, strict=True))
        ],
        ("what", "p50 ms", "p99 ms", "share of logging %"),
        [
            (
                variant,
                medians[variant].value / 1e3,
                tails[variant].value / 1e3,
                1e5 * sync / medians[variant].value,
            )
            for variant in medians
        ],
        [
            Check("delay ≤ logging + 2 ms, by medians", f"{one:.2f} ms, logging {sync:.2f}", one <= sync + 2),
            Check(
                "the same wherever subscribers are, within a half: an event is logged once",
                f"{every:.2f} ms with subscribers at all {brokers}, {more:.2f} times",
                more <= 1.5,
            ),
        ],
        f"Real processes: {brokers} brokers, 800 events/s of 418 bytes, one by one; logging is an append and fdatasync "
        f"on the same disk, in turns with it. In the paper {PAPER_MS[0]} ms, {PAPER_MS[1]} of them logging (88 %).",
    )
