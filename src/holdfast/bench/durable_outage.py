"""E1.6: the subscribers' broker fails for 25 s, and everybody comes back at once [BZA §5.3, Fig 7 and 8].

In virtual time with 40 subscribers, and with real processes and 8. What the broker asks for is what it has missed,
once: nacks are joined, whoever waits for the answer.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from holdfast.bench.durable_catch_up import Outage, real_outages
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.durable_simulated import Crowd, Observed, catch_up_seconds, observe, slopes
from holdfast.bench.network_workload import GROUPS
from holdfast.bench.overlay_finding import Check, Finding

__all__ = ["OutagePlan", "broker_outage", "run_broker_outage"]

REAL_SUBSCRIBERS = 8


@dataclass(frozen=True, slots=True)
class OutagePlan:
    """The experiment's size."""

    crowd: Crowd = field(default_factory=lambda: Crowd(subscribers=40, per_second=10, slow_ms=50))
    first_s: int = 5
    down_s: int = 25
    after_s: int = 60  #: how long it is watched afterwards

    @property
    def needed_s(self) -> float:
        """What a subscriber needs by itself for what it missed, while more comes."""
        return self.down_s * self.crowd.per_second / (1_000 / self.crowd.slow_ms - self.crowd.per_second)

    @property
    def back_s(self) -> int:
        """When the broker is started again."""
        return self.first_s + self.down_s


def run_broker_outage(scale: DurableScale) -> Finding:
    """Both worlds."""
    with ExitStack() as stack:
        folder = stack.enter_context(scale.data())
        real = real_outages(replace(scale, together=REAL_SUBSCRIBERS), folder)
    return broker_outage(OutagePlan(), real, scale.outage_seconds)


def broker_outage(plan: OutagePlan, real: list[Outage], real_down_s: float) -> Finding:
    """The simulated part, beside what was found with real processes."""
    beside = [f"At {plan.first_s * 1_000} Crash shb", f"At {plan.back_s * 1_000} Restart shb"]
    found = observe(plan.crowd, plan.back_s + plan.after_s, beside)
    took = [
        catch_up_seconds(found.trace, name, plan.back_s, 0.1 + 2 * plan.crowd.slow_ms / 1_000)
        for name in plan.crowd.names
    ]
    missed = plan.down_s * plan.crowd.per_second * GROUPS
    worst, copies = max(each.current_seconds for each in real), max(each.copies for each in real)
    return Finding(
        "durable-outage",
        "A broker's outage (E1.6)",
        ("t", "latestDelivered ms", "released ms", "catching up"),
        [(s.t, round(s.delivered_ms, 3), round(s.released_ms, 3), s.catching_up) for s in found.samples],
        (
            "world",
            "subscribers",
            "down, s",
            "all current after, s",
            "mean, s",
            "copies for each event missed",
        ),
        [
            (
                "simulator",
                plan.crowd.subscribers,
                plan.down_s,
                max(took),
                statistics.fmean(took),
                found.asked.answered / missed,
            ),
            ("real", REAL_SUBSCRIBERS, f"{real_down_s:g}", worst, "", copies),
        ],
        [
            *_simulated_checks(plan, found, took, missed),
            Check("real: all current within twice the outage", f"{worst:.1f} s", worst <= 2 * real_down_s),
            Check("real: a copy for each event missed, ± 20 %", f"{copies:.2f}", 0.8 <= copies <= 1.2),
        ],
        f"Virtual time: {plan.crowd.subscribers} subscribers, {plan.crowd.per_second} events/s each, which can take "
        f"{1_000 / plan.crowd.slow_ms:g} a second. That speed is given, not a result: at the paper's (116 s to catch "
        f"up on 37.5 s) they would need about three times the outage. Real processes: {REAL_SUBSCRIBERS} subscribers, "
        "200 events/s each.",
    )


def _simulated_checks(plan: OutagePlan, found: Observed, took: list[float], missed: int) -> list[Check]:
    recovering = max(slopes(found.samples, plan.back_s - 1, plan.back_s + 10, 0.5))
    asked = found.asked
    return [
        Check(
            f"events sent for nacks: those missed, {missed:,}, ± 10 %, not times the subscribers",
            f"{asked.answered:,} for {asked.nacks:,} nacks",
            0.9 * missed <= asked.answered <= 1.1 * missed,
        ),
        Check(
            f"the brokers add at most 1 s to the {plan.needed_s:.1f} s a subscriber needs by itself to catch up",
            f"{max(took) - plan.needed_s:+.2f} s",
            max(took) - plan.needed_s <= 1,
        ),
        Check(
            "latestDelivered comes back at least five times as fast as it goes",
            f"{recovering:,.0f} ms a second",
            recovering >= 5_000,
        ),
    ]
