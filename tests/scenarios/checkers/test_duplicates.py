"""Nothing twice."""

from __future__ import annotations

from holdfast.scenarios.checkers.duplicates import duplicates
from scenario_traces import good_run


def test_a_good_run_passes() -> None:
    assert duplicates(good_run().trace()) == []


def test_a_second_delivery_is_caught() -> None:
    lines = good_run()
    lines.deliver(20, 2)
    (violation,) = duplicates(lines.trace())
    assert violation.kind == "duplicate"
    assert violation.message == "s1 got p#2 again for all"
    assert [line["t"] for line in violation.lines] == [5.03, 20]


def test_one_event_for_two_subscriptions_of_one_subscriber_is_none() -> None:
    lines = good_run()
    lines.subscribe(20, name="other")
    lines.deliver(21, 2, name="other")
    assert duplicates(lines.trace()) == []


def test_a_restarted_subscriber_is_a_new_one_and_others_are_not() -> None:
    for restarted, expected in (("s1", 0), ("s2", 1)):
        lines = good_run()
        lines.fault(19, "restart", "b1", restarted)
        lines.deliver(20, 2)
        assert len(duplicates(lines.trace())) == expected
    again = good_run()
    again.fault(19, "restart", "s1")
    again.deliver(20, 2)
    again.deliver(21, 2)
    assert len(duplicates(again.trace())) == 1


def test_an_id_that_is_used_again_is_caught() -> None:
    lines = good_run()
    lines.publish(20, 4, topic="b")
    (violation,) = duplicates(lines.trace())
    assert violation.message == "p#4 was published 2 times"
