"""E0.4: how long a restarted node takes to be whole again [KJ §10.4, Fig. 17].

(a) One, two and three adjacent core nodes restart with everything lost, at five rates of publications, and are told all
subscriptions: almost the same time each. (b) A node restarts whose neighbours hang, so that the nearest it can reach on
the way lies two or three hops off: each hop more costs a detector timeout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from holdfast.bench.overlay_finding import Check, Finding
from holdfast.bench.overlay_meter import Life, Watch
from holdfast.bench.overlay_network import BEGIN_MS, CORE, Extent, Network, Patience, perform
from holdfast.clock import Instant

__all__ = ["RecoveryPlan", "recovery"]

#: A restarted broker is dialled by those below it, who probe so often (ProbeEvery).
PROBE_MS = 200


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """The experiment's size."""

    extent: Extent = field(default_factory=Extent)
    patience: Patience = field(
        default_factory=lambda: Patience(heartbeat_ms=500, detect_ms=1_500, dack_ms=1_000)
    )
    rates: tuple[int, ...] = (1, 5, 10, 20, 40)
    down_s: int = 4  #: how long they are
    up_s: int = 4  #: until the next episode
    timeouts_ms: tuple[int, int] = (500, 2_000)  #: for (b)

    @property
    def episode_s(self) -> int:
        """How long an episode of (a) takes."""
        return self.down_s + self.up_s


def recovery(plan: RecoveryPlan) -> Finding:
    """Run both parts."""
    network = Network(plan.extent)
    several = _several(network, plan)
    distant = _distant(network, plan)
    rows = [
        ("a", f"{nodes} of the core at {rate} events/s", f"{heard:.3f}", f"{whole:.3f}")
        for (rate, nodes), (heard, whole) in several.items()
    ]
    rows += [
        ("b", f"nearest at {hops} hops, timeout {timeout} ms", f"{heard:.3f}", "")
        for (timeout, hops), heard in distant.items()
    ]
    columns = ("part", "case", "knows all, s", "all neighbours open, s")
    data: list[tuple[str | int | float, ...]] = [
        ("a", rate, nodes, "", "", round(heard, 3)) for (rate, nodes), (heard, _) in several.items()
    ]
    data += [("b", "", "", timeout, hops, round(heard, 3)) for (timeout, hops), heard in distant.items()]
    return Finding(
        "recovery",
        "Time to recover (E0.4)",
        ("part", "events/s", "nodes", "timeout ms", "hops", "knows all, s"),
        data,
        columns,
        rows,
        [*_several_checks(several), *_distant_checks(distant, plan)],
        f"{len(network.parents)} nodes, δ = 3, {len(network.wishes):,} subscriptions, told whole to everybody who "
        "restarts; (b) n1a restarts while n1, or n1 and n2, hang. A link takes 10 ms and the work of the processor no "
        "time: what real processes need for it stands in the benchmarks.",
    )


def _whole(life: Life) -> Instant | None:
    return life.connected


def _heard(life: Life) -> Instant | None:
    return life.recovered


def _several(network: Network, plan: RecoveryPlan) -> dict[tuple[int, int], tuple[float, float]]:
    """All cases of (a) by rate and nodes, one after the other in one run: until all is known, and all are open."""
    watch = Watch()
    script = network.subscribing()
    lives = dict.fromkeys(CORE, 0)
    cases: list[tuple[tuple[int, int], dict[str, int]]] = []
    for i, rate in enumerate(plan.rates):
        begin_s = i * 3 * plan.episode_s
        script += network.publishing(begin_s, 3 * plan.episode_s, rate)
        for nodes in (1, 2, 3):
            crash_ms = BEGIN_MS + (begin_s + (nodes - 1) * plan.episode_s) * 1_000 + 500
            for name in CORE[:nodes]:
                script.append(f"At {crash_ms} Crash {name}")
                script.append(f"At {crash_ms + plan.down_s * 1_000} Restart {name}")
                lives[name] += 1
            cases.append(((rate, nodes), {name: lives[name] for name in CORE[:nodes]}))
    script.append(f"Wait {BEGIN_MS + len(cases) * plan.episode_s * 1_000 + 1_000}")
    perform(network.configuration(plan.patience), script, watch.make_broker)
    return {
        case: (
            max(watch.recovery_seconds(name, life, _heard) for name, life in restarted.items()),
            max(watch.recovery_seconds(name, life, _whole) for name, life in restarted.items()),
        )
        for case, restarted in cases
    }


def _distant(network: Network, plan: RecoveryPlan) -> dict[tuple[int, int], float]:
    """All cases of (b) by timeout and hops, in one run for each timeout: until all is known."""
    found: dict[tuple[int, int], float] = {}
    for timeout in plan.timeouts_ms:
        watch = Watch()
        script = network.subscribing()
        rest_ms = 3 * timeout + 1_000
        at = BEGIN_MS
        for hops in (1, 2, 3):
            hanging = CORE[: hops - 1]
            script += [f"At {at} Crash n1a", *(f"At {at} Freeze {name}" for name in hanging)]
            script.append(f"At {at + rest_ms} Restart n1a")
            script += [f"At {at + 2 * rest_ms} Unfreeze {name}" for name in hanging]
            at += 3 * rest_ms
        script.append(f"Wait {at}")
        patience = replace(plan.patience, heartbeat_ms=timeout // 5, detect_ms=timeout)
        perform(network.configuration(patience), script, watch.make_broker)
        for hops in (1, 2, 3):
            found[timeout, hops] = watch.recovery_seconds("n1a", hops, _heard)
    return found


def _several_checks(found: dict[tuple[int, int], tuple[float, float]]) -> Sequence[Check]:
    heard = [knows for knows, _ in found.values()]
    claim = (
        f"(a) almost constant: no two differ by more than the {PROBE_MS} ms between two probes of a neighbour"
    )
    found_text = f"{min(heard):.3f} to {max(heard):.3f} s"
    return [Check(claim, found_text, (max(heard) - min(heard)) * 1_000 <= PROBE_MS)]


def _distant_checks(found: dict[tuple[int, int], float], plan: RecoveryPlan) -> list[Check]:
    checks: list[Check] = []
    for timeout in plan.timeouts_ms:
        for hops in (2, 3):
            extra_ms = (found[timeout, hops] - found[timeout, 1]) * 1_000
            due_ms = (hops - 1) * timeout
            claim = f"(b) timeout {timeout} ms, {hops} hops: {due_ms} ms more, ± a heartbeat"
            checks.append(Check(claim, f"{extra_ms:+,.0f} ms", abs(extra_ms - due_ms) <= timeout / 5))
    return checks
