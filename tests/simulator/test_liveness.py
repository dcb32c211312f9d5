from __future__ import annotations

from typing import Any

from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.liveness import liveness, settled_at
from simulations import CHAIN, of_kind, simulated

SCRIPT = """Subscriber u3 Subscribe orders As far
Publisher p Publish 20 Ontopic orders Interval 100
Wait 1000
Crash b2
Restart b2
Wait 4000
Publisher p Publish 5 Ontopic orders Interval 10
"""


def healed() -> list[TraceLine]:
    return simulated(CHAIN, SCRIPT).trace


def kinds(trace: list[TraceLine]) -> list[str]:
    return [violation.kind for violation in liveness(trace, settled_at(trace, 2.0))]


def without(trace: list[TraceLine], **fields: Any) -> list[TraceLine]:
    gone = [id(line) for line in of_kind(trace, fields.pop("kind"), **fields)]
    assert gone
    return [line for line in trace if id(line) not in gone]


def test_a_network_settles_some_time_after_its_last_repair() -> None:
    trace = healed()
    assert settled_at(trace, 2.0) == of_kind(trace, "restart")[0]["t"] + 2.0
    assert settled_at(simulated(CHAIN, "Wait 10\n").trace, 2.0) == 2.0


def test_what_was_lost_while_things_were_broken_is_not_owed() -> None:
    trace = healed()
    assert len(of_kind(trace, "deliver")) < len(of_kind(trace, "publish"))
    assert kinds(trace) == []


def test_what_is_lost_afterwards_is_owed() -> None:
    assert kinds(without(healed(), kind="deliver", n=23)) == ["lost"]


def test_what_is_never_accepted_afterwards_is_owed() -> None:
    assert "unaccepted" in kinds(without(healed(), kind="accepted", n=23))


def test_a_subscription_that_is_never_confirmed_is_stuck() -> None:
    assert "stuck" in kinds(without(healed(), kind="subscribed"))


def test_a_question_whose_asker_crashed_needs_no_answer() -> None:
    trace = simulated(CHAIN, "At 100 Subscriber u3 Subscribe orders As far\nAt 101 Crash u3\n").trace
    assert not of_kind(trace, "subscribed")
    assert kinds(trace) == []


def test_a_run_that_did_not_drain_is_stuck() -> None:
    trace = healed()
    assert kinds([*trace[:-1], {**trace[-1], "drained": False}]) == ["stuck"]
