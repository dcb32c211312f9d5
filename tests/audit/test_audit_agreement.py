"""The audit and the checkers of the swarms judge the same runs and share no code: disagreement is a bug of one of them.

Sound networks are accused by neither, brokers broken on purpose by both.
"""

from __future__ import annotations

import time
from itertools import count

import pytest

from audited import lines_of, verdict_on
from broken_brokers import (
    BrokenBroker,
    Careless,
    Doubling,
    Dropping,
    Hasty,
    Hushing,
    Misplacing,
    Muddling,
    NotForwarding,
    Refusing,
    Resurrecting,
    Skipping,
    Unassuring,
)
from holdfast.pipeline.audit.line import Line
from holdfast.pipeline.audit.local import audit_lines
from holdfast.simulator.durable_scenarios import DurableScenario
from swarm_traces import SWARMS, trace_of

SECONDS = 1.5  #: of each kind of network
SEEDS = range(12)


def test_sound_networks_are_not_accused_in_one_audit_of_them_all() -> None:
    lines: list[tuple[str, Line]] = []
    hazardous: set[str] = set()
    for swarm, draw in SWARMS.items():
        until = time.monotonic() + SECONDS
        for seed in count():
            run, scenario = f"seed {seed} of {swarm}", draw(seed)
            lines += lines_of(trace_of(scenario), run)
            if isinstance(scenario, DurableScenario) and scenario.hazards:
                hazardous.add(run)
            if seed >= 2 and time.monotonic() > until:
                break
    verdict = audit_lines(lines)
    assert verdict.runs >= 3 * len(SWARMS)
    # A disk that has no room refuses, and that stands in no trace.
    found = [each for each in verdict.violations if not (each.run in hazardous and each.kind == "unaccepted")]
    assert not found, [f"{each.run}: {each.words}" for each in found[:5]]


@pytest.mark.parametrize(
    ("swarm", "broker", "kind"),
    [
        ("best-effort", Doubling, "duplicate"),
        ("best-effort", Dropping, "lost"),
        ("best-effort", NotForwarding, "lost"),
        ("best-effort", Careless, "wrong"),
        ("best-effort", Refusing, "unaccepted"),
        ("best-effort", Resurrecting, "no-interest"),
        ("durable", Skipping, "lost"),
        ("durable", Hushing, "lost"),
        ("durable", Muddling, "duplicate"),
        ("durable", Muddling, "total-order"),
        ("durable", Misplacing, "duplicate"),
        ("durable", Unassuring, "unexplained"),
        ("durable", Refusing, "unaccepted"),
        ("durable with faults", Hasty, "lost"),
    ],
)
def test_a_broken_broker_is_caught(swarm: str, broker: type[BrokenBroker], kind: str) -> None:
    assert any(kind in verdict_on(trace_of(SWARMS[swarm](seed), broker)).counts for seed in SEEDS)
