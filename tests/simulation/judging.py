"""A reliable network simulated under the oracle, and all that the checkers and the laws say of it."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.checkers.delay import delay
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.simulator.liveness import stuck
from holdfast.simulator.oracle.oracle import Oracle
from holdfast.simulator.run import simulate

__all__ = ["chain", "found_in", "kinds_of"]


def chain(brokers: int, *clients: tuple[str, str, int], settings: str = "") -> str:
    """Brokers b0, b1 … in a row, δ = 1; clients as (name, kind, number of their broker)."""
    lines = ["Guarantee reliable", "Delta 1", "LoggingLevel full", *settings.splitlines()]
    for i in range(brokers):
        lines.append(f"Site s{i} Parent {f's{i - 1}' if i else 'none'}")
        lines.append(f"Process b{i} is broker On s{i} URL tcp://localhost:0/b")
    lines += [f"Process {name} is {kind} On s{at} URL tcp://localhost:0/c" for name, kind, at in clients]
    return "".join(f"{line}\n" for line in lines)


def found_in(configuration: str, script: str) -> list[Violation]:
    """What is said of one run."""
    network = parse_configuration(configuration, "configuration")
    oracle = Oracle(network)
    trace = simulate(network, parse_script(script, "script", network), transcript=oracle).trace
    return [
        *check_all(trace, grace_seconds=1.5),
        *stuck(trace),
        *delay(trace, within_seconds=1.5),
        *oracle.broken,
    ]


def kinds_of(violations: Iterable[Violation]) -> set[str]:
    """The words they begin with."""
    return {violation.kind for violation in violations}
