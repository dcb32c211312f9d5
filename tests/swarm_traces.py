"""Traces of networks that the swarms draw, for the audit: their own checkers find nothing wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.broker.broker import Broker
from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.durable_scenarios import DurableScenario, draw_durable
from holdfast.simulator.reliable_lapse_scenarios import draw_lapsing
from holdfast.simulator.reliable_scenarios import draw_reliable
from holdfast.simulator.swarm_scenarios import Scenario, draw_scenario
from simulations import simulated

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
