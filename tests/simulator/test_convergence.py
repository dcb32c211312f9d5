from __future__ import annotations

from typing import Any

import pytest

from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.convergence import convergence
from simulations import CHAIN, simulated

SCRIPT = """Subscriber u3 Subscribe orders As far
Subscriber u2 Subscribe orders As near
Subscriber u2 Subscribe alarms As gone
Subscriber u2 Unsubscribe gone
Publisher p Publish 5 Ontopic orders Interval 10
Drain 1000
Status
"""


def changed(trace: list[TraceLine], node: str, part: str, **fields: Any) -> list[TraceLine]:
    """The trace with something else in one status line."""
    made = []
    for line in trace:
        if line["kind"] == "status" and line["node"] == node:
            line = {**line, part: _merged(line[part], fields)}
        made.append(line)
    assert made != trace
    return made


def _merged(old: Any, new: dict[str, Any]) -> Any:
    return {**old, **{k: _merged(old[k], v) if isinstance(v, dict) else v for k, v in new.items()}}


@pytest.mark.parametrize("routing", ["filter", "flooding"])
def test_a_network_at_rest_has_converged(routing: str) -> None:
    assert convergence(simulated(f"{CHAIN}RoutingPolicy {routing}\n", SCRIPT).trace) == []


@pytest.mark.parametrize(
    ("node", "part", "fields", "message"),
    [
        ("b1", "tables", {"subscriptions": {"installed": 3}}, "b1 has installed 3, not 2"),
        ("b1", "tables", {"subscriptions": {"pending": 1}}, "b1 has pending 1, not 0"),
        ("b2", "tables", {"subscriptions": {"own": 2}}, "b2 has own 2, not 1"),
        ("b2", "queues", {"held": {"b1": 7}}, "b2 has held 7, not 0"),
        (
            "b2",
            "connections",
            {"neighbours": {"b3": "absent"}},
            "b2 has neighbours not active ['b3'], not []",
        ),
        ("b3", "connections", {"clients": {"away": 1}}, "b3 has clients away 1, not 0"),
        ("p", "queues", {"unacknowledged": 2}, "p has unacknowledged 2, not 0"),
        ("u2", "connections", {"broker": False}, "u2 has connected False, not True"),
    ],
)
def test_what_is_left_behind_is_found(node: str, part: str, fields: dict[str, Any], message: str) -> None:
    trace = simulated(CHAIN, SCRIPT).trace
    assert [each.message for each in convergence(changed(trace, node, part, **fields))] == [message]


def test_a_subscription_nobody_has_any_more_is_missed_nowhere() -> None:
    trace = simulated(CHAIN, SCRIPT).trace
    stale = changed(trace, "u3", "tables", subscriptions=[])
    assert {each.lines[0]["node"] for each in convergence(stale)} == {"b1", "b2", "b3"}
