"""All checkers together, and in which order."""

from __future__ import annotations

from holdfast.scenarios.checkers import check_all
from scenario_traces import good_run


def test_a_good_run_has_nothing_wrong() -> None:
    assert check_all(good_run().trace()) == []
    assert check_all(good_run(order="NO", routing="flooding").trace()) == []


def test_safety_is_told_before_liveness_and_that_before_waste() -> None:
    lines = good_run()
    lines.forward(20, 4, "b0", "b2")
    lines.publish(20, 5, x=9)
    lines.publish(21, 6, accepted=False)
    lines.deliver(22, 1, subscriber="s2", name="dear")
    lines.deliver(22.5, 2, subscriber="s2", name="dear")
    kinds = [violation.kind for violation in check_all([*lines.trace(), lines.lines[1]])]
    order = ["malformed", "duplicate", "misorder", "wrong", "unaccepted", "lost", "no-interest"]
    assert list(dict.fromkeys(kinds)) == order


def test_the_options_reach_the_checkers() -> None:
    lines = good_run()
    lines.fault(20, "crash", "b1")
    lines.fault(21, "restart", "b1")
    lines.publish(30, 5, x=9)
    lines.publish(31, 6, accepted=False)
    lines.forward(30.5, 5, "b0", "b1")
    trace = lines.trace()
    assert [violation.kind for violation in check_all(trace, grace_seconds=60)] == []
    healed = check_all(trace, healed_at=25, grace_seconds=5)
    assert [violation.kind for violation in healed] == ["unaccepted", "lost", "no-interest"]


def test_a_violation_says_what_and_shows_the_lines() -> None:
    lines = good_run()
    planted = lines.deliver(20, 9)
    (violation,) = check_all(lines.trace())
    assert str(violation) == "wrong: p#9 was delivered to s1 for all: it was never published"
    assert violation.lines == (planted,)
