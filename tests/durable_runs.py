"""Durable networks simulated under the oracle: scenarios as text, and what is asked of their traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.liveness import stuck
from holdfast.simulator.oracle.durable import DurableOracle
from holdfast.simulator.run import simulate
from holdfast.simulator.world import World

__all__ = ["Run", "chain", "run"]


def chain(brokers: int, *clients: tuple[str, str, int], settings: str = "") -> str:
    """Brokers b0, b1 … in a row, b0 the root; clients as (name, kind, number of their broker)."""
    lines = ["Guarantee durable", *settings.splitlines()]
    for i in range(brokers):
        lines.append(f"Site s{i} Parent {f's{i - 1}' if i else 'none'}")
        lines.append(f"Process b{i} is broker On s{i} URL tcp://localhost:0/b")
    lines += [f"Process {name} is {kind} On s{at} URL tcp://localhost:0/c" for name, kind, at in clients]
    return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Run:
    """What became of a scenario."""

    trace: list[TraceLine]
    oracle: DurableOracle

    def lines(self, *kinds: str, **fields: Any) -> list[TraceLine]:
        """The lines of these kinds whose fields have these values."""
        return [
            line
            for line in self.trace
            if line["kind"] in kinds and all(line.get(name) == value for name, value in fields.items())
        ]

    def got(self, subscription: str, publisher: str = "p") -> list[int]:
        """The numbers of the events a subscription got of a publisher, in their order."""
        return [line["n"] for line in self.lines("deliver", subscription=subscription, publisher=publisher)]

    def accepted(self, publisher: str = "p") -> list[int]:
        """The numbers of a publisher's events that were accepted."""
        return [line["n"] for line in self.lines("accepted", publisher=publisher)]

    def gaps(self, subscription: str) -> list[TraceLine]:
        """What a subscription was told is gone."""
        return self.lines("gap", subscription=subscription)

    def seconds(self, tick: int) -> float:
        """When a tick was, in seconds of the trace: by the publication of whose event it is, or is between."""
        published = {(line["publisher"], line["n"]): line["t"] for line in self.lines("publish")}
        times = {
            line["tick"]: published[line["publisher"], line["n"]]
            for line in self.lines("accepted", "deliver")
        }
        earlier = [at for at in times if at <= tick]
        assert earlier, "before the first event"
        return float(times[max(earlier)] + (tick - max(earlier)) / 1e6)


def run(
    configuration: str,
    script: str,
    *,
    retain_seconds: float = inf,
    clock_seconds: float = 0.0,
    is_judged: Callable[[str], bool] = lambda kind: True,
    beside: Callable[[World], None] = lambda world: None,
    wire: bool = False,
    oracle: DurableOracle | None = None,
    **options: Any,
) -> Run:
    """Run a scenario, and see to it that all promises were kept, of the kinds that are judged."""
    network = parse_configuration(configuration, "configuration")
    watching = oracle or DurableOracle()
    happenings = parse_script(script, "script", network)
    trace = simulate(network, happenings, transcript=watching, beside=beside, wire=wire, **options).trace
    found = [
        *check_all(trace, retain_seconds=retain_seconds, clock_seconds=clock_seconds),
        *stuck(trace),
        *watching.broken(releases_early=retain_seconds < inf),
    ]
    broken = [str(violation) for violation in found if is_judged(violation.kind)]
    assert not broken, "\n".join(broken[:20])
    return Run(trace, watching)
