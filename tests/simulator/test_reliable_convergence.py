"""I31 for a reliable network, by its status lines alone; and that a subscription ends wholly confirmed [I34]."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.convergence import convergence
from holdfast.simulator.liveness import stuck
from simulations import CHAIN, of_kind, simulated

RELIABLE = f"{CHAIN}Guarantee reliable\nDelta 1\nDackEvery 100\n"
SCRIPT = """Subscriber u3 Subscribe orders As far
Subscriber u2 Subscribe orders As near
Publisher p Publish 5 Ontopic orders Interval 10
Crash b2
Wait 1000
Restart b2
Drain 5000
Wait 1000
Status
"""


@pytest.fixture(scope="module")
def at_rest() -> list[TraceLine]:
    return simulated(RELIABLE, SCRIPT).trace


def test_a_network_that_survived_a_crash_is_at_rest_again(at_rest: list[TraceLine]) -> None:
    assert convergence(at_rest) == []
    assert stuck(at_rest) == []


def test_while_a_broker_is_down_a_network_is_not_at_rest() -> None:
    trace = simulated(RELIABLE, SCRIPT.replace("Restart b2\n", "")).trace
    assert {violation.message.split(" has ")[1].split(" ")[0] for violation in convergence(trace)} >= {
        "down",
        "bypassing",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("down", ["b2"]),
        ("bypassing", [{"past": ["b2"], "to": "b3"}]),
        ("queued", 3),
        ("stalled", {"b2": 7}),
        ("partitions", [{"lead": "b1", "seq": 1, "fragment": ["b2"], "subscriptions": 1}]),
        ("crossings", [{"lead": "b1", "seq": 1, "fragment": ["b2"], "crossed": True}]),
        ("members", []),
    ],
)
def test_what_is_left_in_the_overlay_is_found(at_rest: list[TraceLine], name: str, value: Any) -> None:
    spoilt = []
    for line in at_rest:
        if line["kind"] == "status" and line["node"] == "b1":
            overlay = {**line["connections"]["overlay"], name: value}
            line = {**line, "connections": {**line["connections"], "overlay": overlay}}
        spoilt.append(line)
    (violation,) = convergence(spoilt)
    assert violation.message.startswith(f"b1 has {name} {value}, not ")


def test_a_subscription_that_is_never_upgraded_is_stuck() -> None:
    script = "Crash b2\nWait 1000\nSubscriber u3 Subscribe orders As far\nWait 500\nRestart b2\nWait 2000\n"
    trace = simulated(RELIABLE.replace("Delta 1", "Delta 0"), script).trace
    assert of_kind(trace, "subscribed")[0]["partial"]
    assert stuck(trace) == []
    without = [line for line in trace if line["kind"] != "upgraded"]
    assert [violation.message for violation in stuck(without)] == ["u3 was never told of the rest of far"]
