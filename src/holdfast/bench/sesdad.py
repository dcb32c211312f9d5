"""The tests of [SESDAD §4] as experiments, in virtual time: its configuration 1 and script 1, under every policy.

E3.2: what each link carries, with flooding and with filtering, in each order. E3.3: the same script ever faster; below
200 ms between two events the paper's program crashed. In total order a stream of ours has to be logged, at its
sequencer: it floods only to where subscribers are, and what goes to the sequencer first is no copy of an event there,
but a request to publish it, and not counted. The other runs are best-effort.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.bench.overlay_finding import Check, Finding
from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.scenarios.traffic import link_traffic
from holdfast.simulator.run import Result, simulate

__all__ = ["SESDAD_EXPERIMENTS", "SesdadPlan", "intervals", "links"]

#: The paper's interval; waits are shortened with it.
INTERVAL_MS: Final = 200
GRACE_SECONDS: Final = 0.5

SITES: Final = (
    ("site0", "none"),
    ("site1", "site0"),
    ("site2", "site0"),
    ("site3", "site2"),
    ("site4", "site3"),
    ("site5", "site3"),
)
WITHOUT_SUBSCRIBER: Final = "site2"
PUBLISHING: Final = "site5"


@dataclass(frozen=True, slots=True)
class Policy:
    """How events are routed and ordered."""

    routing: str
    order: str

    def __str__(self) -> str:
        return f"{self.routing}, {self.order}"


POLICIES: Final = [
    Policy(routing, order) for routing in ("filter", "flooding") for order in ("NO", "FIFO", "TOTAL")
]


@dataclass(frozen=True, slots=True)
class SesdadPlan:
    """The experiments' size."""

    events: int = 180  #: on each of the two topics
    intervals_ms: tuple[int, ...] = (200, 100, 50, 20, 10, 5, 1)


def configuration(policy: Policy) -> str:
    """Configuration 1: six sites, a broker each, five subscribers and one publisher."""
    lines = [f"Site {site} Parent {parent}" for site, parent in SITES]
    for i, (site, _) in enumerate(SITES):
        lines.append(f"Process broker{i} is broker On {site} URL tcp://localhost:{3330 + i}/broker")
        if site != WITHOUT_SUBSCRIBER:
            lines.append(f"Process subscriber{i} is subscriber On {site} URL tcp://localhost:{1110 + i}/sub")
    lines.append(f"Process publisher00 is publisher On {PUBLISHING} URL tcp://localhost:2220/pub")
    lines += [f"RoutingPolicy {policy.routing}", f"Ordering {policy.order}", "LoggingLevel full"]
    if policy.order == "TOTAL":
        lines.append("Guarantee durable")
    return "".join(f"{line}\n" for line in lines)


def script(plan: SesdadPlan, interval_ms: int) -> str:
    """Script 1, its intervals and waits shortened by the same factor."""

    def wait(ms: int) -> str:
        return f"Wait {ms * plan.events * interval_ms // (180 * INTERVAL_MS)}"

    lines = [
        *(f"Subscriber subscriber{i} Subscribe /p00-0" for i in (3, 4, 5)),
        *(
            f"Publisher publisher00 Publish {plan.events} Ontopic /p00-{i} Interval {interval_ms}"
            for i in (0, 1)
        ),
        wait(15_000),
        "Subscriber subscriber3 Unsubscribe /p00-0",
        wait(10_000),
        *(f"Subscriber subscriber{i} Unsubscribe /p00-0" for i in (4, 5)),
        wait(10_000),
        *(f"Subscriber subscriber{i} Subscribe /p00-0" for i in (0, 1)),
        wait(5_000),
        "Subscriber subscriber5 Subscribe /p00-1",
        "Status",
    ]
    return "".join(f"{line}\n" for line in lines)


def _run(plan: SesdadPlan, policy: Policy, interval_ms: int) -> Result:
    network = parse_configuration(configuration(policy), "configuration")
    return simulate(network, parse_script(script(plan, interval_ms), "script", network))


def links(plan: SesdadPlan) -> Finding:
    """E3.2: copies on every link between brokers."""
    carried = {policy: link_traffic(_run(plan, policy, INTERVAL_MS).trace) for policy in POLICIES}
    between = sorted(
        {
            link
            for traffic in carried.values()
            for link in traffic
            if link[0].startswith("broker") and link[1].startswith("broker")
        }
    )
    rows = [
        (f"{a[-1]} to {b[-1]}", str(policy), carried[policy].get((a, b), 0))
        for a, b in between
        for policy in POLICIES
    ]
    sums = {policy: sum(carried[policy].get(link, 0) for link in between) for policy in POLICIES}
    return Finding(
        "sesdad-links",
        "Filtering and flooding (E3.2)",
        ("link", "policy", "copies"),
        rows,
        ("routing", "order", "copies between brokers"),
        [(policy.routing, policy.order, sums[policy]) for policy in POLICIES],
        [_saving(sums, order) for order in ("NO", "FIFO", "TOTAL")],
        f"Virtual time: six brokers, {2 * plan.events} events on two topics, {INTERVAL_MS} ms apart; copies of events "
        "from broker to broker, by the numbers of their sites. In total order the stream is durable: it floods only to "
        "where subscribers are, and the way to the sequencer, at site 0, is not counted; the others are best-effort.",
    )


def _saving(sums: dict[Policy, int], order: str) -> Check:
    filtered, flooded = sums[Policy("filter", order)], sums[Policy("flooding", order)]
    found = f"{filtered:,} copies, {flooded:,} by flooding"
    return Check(f"{order}: filtering carries less than flooding", found, filtered < flooded)


def intervals(plan: SesdadPlan) -> Finding:
    """E3.3: script 1 ever faster; what was published, delivered and kept."""
    rows: list[tuple[str, str, int, int, int, str]] = []
    for policy in POLICIES:
        for interval_ms in plan.intervals_ms:
            result = _run(plan, policy, interval_ms)
            kinds = [line["kind"] for line in result.trace]
            is_kept = result.drained and not check_all(result.trace, grace_seconds=GRACE_SECONDS)
            counts = kinds.count("publish"), kinds.count("deliver")
            rows.append((policy.routing, policy.order, interval_ms, *counts, "kept" if is_kept else "broken"))
    columns = ("routing", "order", "interval ms", "published", "delivered", "promises")
    return Finding(
        "sesdad-intervals",
        "Ever faster (E3.3)",
        columns,
        rows,
        columns,
        rows,
        [_kept(rows, policy) for policy in POLICIES],
        "Virtual time, so no processor is short of time: what is tested is the protocol, not its speed. How many are "
        "delivered depends on when subscribers come and go, which is at other events when they follow closer.",
    )


def _kept(rows: Sequence[tuple[str, str, int, int, int, str]], policy: Policy) -> Check:
    found = [row[2] for row in rows if row[:2] == (policy.routing, policy.order) and row[-1] == "kept"]
    asked = [row[2] for row in rows if row[:2] == (policy.routing, policy.order)]
    claim = f"{policy}: every promise is kept, at every interval"
    return Check(claim, f"kept at {', '.join(map(str, found)) or 'none'} ms", found == asked)


SESDAD_EXPERIMENTS: Final[dict[str, Callable[[SesdadPlan], Finding]]] = {"E3.2": links, "E3.3": intervals}
