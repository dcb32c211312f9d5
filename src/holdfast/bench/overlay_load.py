"""E0.1: what bypassing costs the core [KJ §10.1, Fig. 14]. Node 1 fails, then node 2; what passes nodes 1 to 3.

A node that stands in for a failed one sends more, one copy for each of the failed node's neighbours that want a
publication, and receives what it received before: nothing is sent to where nobody wants it [R0.16]. So input returns to
its level and output rises. What the copies of every publication must be follows from the tree alone, and is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from holdfast.bench.overlay_finding import Check, Finding
from holdfast.bench.overlay_network import BEGIN_MS, CORE, Extent, Network, Patience, perform
from holdfast.scenarios.trace import TraceLine

__all__ = ["LoadPlan", "load"]


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The experiment's size."""

    extent: Extent = field(default_factory=Extent)
    patience: Patience = field(
        default_factory=lambda: Patience(heartbeat_ms=1_000, detect_ms=4_000, dack_ms=2_000)
    )
    failures_s: tuple[int, int] = (150, 275)
    end_s: int = 400
    settle_s: int = 25  #: from a failure until rates are steady, at most
    per_second: float = 10.0


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A time in which nothing changes: ``begin`` to ``end``, with ``dead`` nodes."""

    begin: float
    end: float
    dead: tuple[str, ...]


def load(plan: LoadPlan) -> Finding:
    """Run it."""
    network = Network(plan.extent)
    script = [
        *network.subscribing(),
        *network.publishing(0, plan.end_s, plan.per_second),
        *(
            f"At {BEGIN_MS + at * 1_000} Crash {node}"
            for at, node in zip(plan.failures_s, CORE, strict=False)
        ),
        f"Wait {BEGIN_MS + plan.end_s * 1_000}",
    ]
    trace = perform(network.configuration(plan.patience, logging="full"), script)
    forwards = [line for line in trace if line["kind"] == "forward"]
    published = {
        (line["publisher"], line["n"]): (line["t"], line["topic"])
        for line in trace
        if line["kind"] == "publish"
    }
    counts = _Counts(forwards, plan.end_s)
    stretches = _stretches(plan)
    summary = [
        (
            node,
            f"{stretch.begin:g}-{stretch.end:g} s",
            " ".join(stretch.dead) or "nobody",
            counts.rate("to", node, stretch),
            counts.rate("from", node, stretch),
            counts.extremes(node, failure, stretch.begin),
        )
        for failure, stretch in zip((None, *plan.failures_s), stretches, strict=True)
        for node in CORE
        if node not in stretch.dead
    ]
    checks = [*_rate_checks(counts, stretches), _hops_check(network, forwards, published, stretches)]
    return Finding(
        "load",
        "Load of the core (E0.1)",
        ("second", "node", "copies in", "copies out", "of these again"),
        [row for second in range(plan.end_s) for row in counts.rows(second)],
        ("node", "while", "down", "in/s", "out/s", "in/s before that, least and most"),
        summary,
        checks,
        f"{len(network.parents)} nodes, δ = 3, {len(network.wishes):,} subscriptions, {plan.per_second:g} events/s; "
        f"degrees of n1, n2, n3: {', '.join(str(network.degree(node)) for node in CORE)}. "
        "Copies of publications; processor time is not simulated. The last column has the drop and the spike after a "
        "failure, second by second.",
    )


def _stretches(plan: LoadPlan) -> list[_Stretch]:
    """Before the first failure, and after each when it has settled; all equally long."""
    ends = [*plan.failures_s, plan.end_s]
    length = min([ends[0], *(b - a for a, b in pairwise(ends))]) - plan.settle_s
    return [_Stretch(end - length, end, CORE[:i]) for i, end in enumerate(ends)]


class _Counts:
    """Copies by node, direction and second."""

    def __init__(self, forwards: Sequence[TraceLine], seconds: int) -> None:
        self._seconds = seconds
        self._found: dict[tuple[str, str, int], int] = {}
        for line in forwards:
            second = int(line["t"] // 1)
            for end in ("from", "to"):
                self._add(end, line[end], second)
            if line["again"]:
                self._add("again", line["from"], second)

    def _add(self, kind: str, node: str, second: int) -> None:
        key = kind, node, second
        self._found[key] = self._found.get(key, 0) + 1

    def at(self, kind: str, node: str, second: int) -> int:
        """So many in a second."""
        return self._found.get((kind, node, second), 0)

    def rate(self, kind: str, node: str, stretch: _Stretch) -> float:
        """So many a second, over a stretch."""
        seconds = range(int(stretch.begin), int(stretch.end))
        return sum(self.at(kind, node, second) for second in seconds) / len(seconds)

    def extremes(self, node: str, failure: int | None, end: float) -> str:
        """The least and the most that came in during a second, after a failure and before all is steady again."""
        if failure is None:
            return ""
        seconds = [self.at("to", node, second) for second in range(failure, int(end))]
        return f"{min(seconds)}, {max(seconds)}"

    def rows(self, second: int) -> list[tuple[int, str, int, int, int]]:
        """For the data file."""
        return [
            (
                second,
                node,
                self.at("to", node, second),
                self.at("from", node, second),
                self.at("again", node, second),
            )
            for node in CORE
        ]


def _rate_checks(counts: _Counts, stretches: Sequence[_Stretch]) -> list[Check]:
    checks: list[Check] = []
    for before, after in pairwise(stretches):
        for node in [each for each in CORE if each not in after.dead]:
            was, now = counts.rate("to", node, before), counts.rate("to", node, after)
            change = 100 * (now - was) / was
            checks.append(
                Check(
                    f"{node} without {after.dead[-1]}: input within 5 %", f"{change:+.2f} %", abs(change) <= 5
                )
            )
        # Only who stood beside the failed node has its neighbours to serve now.
        beside = CORE[len(after.dead)]
        was, now = counts.rate("from", beside, before), counts.rate("from", beside, after)
        claim = f"{beside} without {after.dead[-1]}: output rises"
        checks.append(Check(claim, f"{was:.2f} to {now:.2f} a second", now > was))
    return checks


def _hops_check(
    network: Network,
    forwards: Sequence[TraceLine],
    published: dict[tuple[str, int], tuple[float, str]],
    stretches: Sequence[_Stretch],
) -> Check:
    """For every event of a steady time and every core node: as many copies as there are next hops [R0.12]."""
    total = wrong = 0
    for stretch in stretches:
        copies: dict[tuple[str, str, int], int] = {}
        for line in forwards:
            if line["t"] < stretch.end:  # what is sent again at the next failure is not of this time
                key = line["from"], line["publisher"], line["n"]
                copies[key] = copies.get(key, 0) + 1
        for (publisher, n), (at, topic) in published.items():
            if not stretch.begin <= at < stretch.end - 1:  # it is everywhere within a second
                continue
            hops = _next_hops(network, publisher, network.wanting.get(topic, ()), stretch.dead)
            for node in CORE:
                due = len(hops.get(node, ()))
                total += due
                wrong += due != copies.get((node, publisher, n), 0)
    claim = "copies out = next hops of the recipients, for every event"
    return Check(claim, f"{total:,} copies, {wrong} events differ", total > 0 and not wrong)


def _next_hops(
    network: Network, publisher: str, subscribers: Sequence[str], dead: Sequence[str]
) -> dict[str, dict[str, None]]:
    """By node, to whom it must send: who is next on the way to a subscriber, past the dead."""
    hops: dict[str, dict[str, None]] = {}
    for subscriber in subscribers:
        alive = [node for node in network.path(publisher, subscriber) if node not in dead]
        for node, following in pairwise(alive):
            hops.setdefault(node, {})[following] = None
    return hops
