"""The audit and the checkers of the swarms judge the same runs and share no code: disagreement is a bug of one of them.

Sound networks are accused by neither, brokers broken on purpose by both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from audited import verdict_on
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
from holdfast.broker.broker import Broker
from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.durable_scenarios import DurableScenario, draw_durable
from holdfast.simulator.reliable_lapse_scenarios import draw_lapsing
from holdfast.simulator.reliable_scenarios import draw_reliable
from holdfast.simulator.swarm_scenarios import Scenario, draw_scenario
from simulations import simulated

SECONDS = 4.0  #: of each kind of network
SEEDS = range(12)

Draw = Callable[[int], Scenario | DurableScenario]

#: Networks whose checkers find nothing, whatever the seed: `make soak` has seen to that.
SWARMS: dict[str, Draw] = {
    "best-effort": lambda seed: draw_scenario(seed, faults=False),
    "best-effort with faults": lambda seed: draw_scenario(seed, faults=True),
    "reliable": lambda seed: draw_reliable(seed, wild=False),
    "reliable, wild": lambda seed: draw_reliable(seed, wild=True),
    "reliable, lapsing": draw_lapsing,
    "durable": lambda seed: draw_durable(seed, faults=False),
    "durable with faults": lambda seed: draw_durable(seed, faults=True),
}


def trace_of(scenario: Scenario | DurableScenario, broker: type[Broker] = Broker) -> list[TraceLine]:
    beside: dict[str, Any] = {}
    if isinstance(scenario, DurableScenario):
        beside = {"beside": scenario.beside, "others": scenario.others}
    return simulated(scenario.configuration, scenario.script, make_broker=broker, **beside).trace


@pytest.mark.parametrize("swarm", SWARMS)
def test_a_sound_network_is_not_accused(swarm: str) -> None:
    until = time.monotonic() + SECONDS
    for seed in count():
        scenario = SWARMS[swarm](seed)
        verdict = verdict_on(trace_of(scenario))
        # A disk that has no room refuses, and that stands in no trace.
        is_hazardous = isinstance(scenario, DurableScenario) and bool(scenario.hazards)
        found = [
            each.words for each in verdict.violations if not (is_hazardous and each.kind == "unaccepted")
        ]
        assert not found, f"seed {seed} of {swarm}: {found[:5]}"
        if seed >= 2 and time.monotonic() > until:
            return


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
