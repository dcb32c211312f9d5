"""E1.3: subscribers disconnect one after the other, and catch up [BZA §5.1, Fig 5 and 6]; in virtual time.

latestDelivered goes on as if nothing had happened, since the consolidated stream is nobody's own; released stops while
somebody is away, until he has caught up. How long that takes is no finding here: in the paper subscribers were away for
5 s and caught up in 5 to 6 s, and the speed of ours was chosen so that they need as long. What is found is what the
brokers add to the time that a subscriber of that speed needs by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.durable_simulated import Crowd, Observed, catch_up_seconds, observe, slopes
from holdfast.bench.overlay_finding import Check, Finding

__all__ = ["DisconnectionsPlan", "disconnections", "run_disconnections"]


@dataclass(frozen=True, slots=True)
class DisconnectionsPlan:
    """The experiment's size."""

    crowd: Crowd = field(default_factory=lambda: Crowd(subscribers=4, per_second=40, slow_ms=12.5))
    away_s: int = 5
    every_s: int = 15  #: between the disconnections of two subscribers
    first_s: int = 5

    @property
    def seconds(self) -> int:
        """Of the whole run."""
        return self.first_s + self.every_s * self.crowd.subscribers

    @property
    def needed_s(self) -> float:
        """What a subscriber needs by itself for what it missed, while more comes."""
        return self.away_s * self.crowd.per_second / (1_000 / self.crowd.slow_ms - self.crowd.per_second)

    def away(self) -> list[tuple[str, int]]:
        """Who disconnects, and when."""
        return [(name, self.first_s + i * self.every_s) for i, name in enumerate(self.crowd.names)]


def run_disconnections(scale: DurableScale) -> Finding:
    """At its full size, which is a matter of seconds."""
    return disconnections(DisconnectionsPlan())


def disconnections(plan: DisconnectionsPlan) -> Finding:
    """Everybody disconnects once."""
    beside = []
    for name, at in plan.away():
        beside.append(f"At {at * 1_000} Subscriber {name} Disconnect")
        beside.append(f"At {(at + plan.away_s) * 1_000} Subscriber {name} Reconnect")
    found = observe(plan.crowd, plan.seconds, beside)
    slow_s = plan.crowd.slow_ms / 1_000
    took = [
        catch_up_seconds(found.trace, name, at + plan.away_s, 0.1 + 2 * slow_s) for name, at in plan.away()
    ]
    return Finding(
        "durable-disconnections",
        "Disconnections (E1.3)",
        ("t", "latestDelivered ms", "released ms", "catching up"),
        [(s.t, round(s.delivered_ms, 3), round(s.released_ms, 3), s.catching_up) for s in found.samples],
        ("subscriber", "away from, s", "missed", "caught up in, s", "released moved while away, ms"),
        [
            (name, at, plan.away_s * plan.crowd.per_second, seconds, _released_moved(found, at, plan.away_s))
            for (name, at), seconds in zip(plan.away(), took, strict=True)
        ],
        _checks(plan, found, took),
        f"Virtual time: {plan.crowd.subscribers} subscribers at one broker, {plan.crowd.per_second} events/s each, "
        f"which can take {1 / slow_s:g} a second; each is away once for {plan.away_s} s. "
        "That speed is given, and chosen after the paper's 5 to 6 s: it is not a result.",
    )


def _released_moved(found: Observed, at: int, away_s: int) -> float:
    """By how much released moved while somebody was away, without the second in which what was on its way arrives."""
    inside = [sample for sample in found.samples if at + 1 <= sample.t <= at + away_s]
    return inside[-1].released_ms - inside[0].released_ms


def _checks(plan: DisconnectionsPlan, found: Observed, took: list[float]) -> list[Check]:
    steady = slopes(found.samples, plan.first_s, plan.seconds - 1, 1.0)
    moved = [_released_moved(found, at, plan.away_s) for _, at in plan.away()]
    behind = [
        sample.delivered_ms - sample.released_ms
        for _, at in plan.away()
        for sample in found.samples
        if abs(sample.t - (at + plan.every_s - 0.1)) < 0.05
    ]
    return [
        Check(
            "latestDelivered advances by 1,000 ms a second, ± 10 %, whoever is away",
            f"{min(steady):,.0f} to {max(steady):,.0f}",
            min(steady) >= 900 and max(steady) <= 1_100,
        ),
        Check(
            "released stands still while somebody is away", f"at most {max(moved):,.0f} ms", max(moved) < 100
        ),
        Check(
            "and is less than 1.5 s behind latestDelivered when he has caught up",
            f"at most {max(behind):,.0f} ms",
            max(behind) < 1_500,
        ),
        Check(
            f"the brokers add at most 0.5 s to the {plan.needed_s:.1f} s a subscriber needs by itself to catch up",
            f"{min(took) - plan.needed_s:+.2f} to {max(took) - plan.needed_s:+.2f} s",
            max(took) - plan.needed_s <= 0.5,
        ),
    ]
