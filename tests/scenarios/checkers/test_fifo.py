"""The order of publication."""

from __future__ import annotations

from holdfast.scenarios.checkers.fifo import fifo
from scenario_traces import Lines, good_run


def swapped(**run: str) -> Lines:
    lines = good_run(**run)
    lines.publish(20, 5)
    lines.publish(20, 6)
    lines.deliver(21, 6)
    lines.deliver(22, 5)
    return lines


def test_a_good_run_passes() -> None:
    assert fifo(good_run().trace()) == []


def test_two_events_in_the_wrong_order_are_caught() -> None:
    (violation,) = fifo(swapped().trace())
    assert violation.kind == "misorder"
    assert violation.message == "s1 got p#5 after #6 for all"


def test_everything_after_the_highest_is_compared_with_the_highest() -> None:
    lines = swapped()
    lines.deliver(23, 4)
    assert [violation.message for violation in fifo(lines.trace())] == [
        "s1 got p#5 after #6 for all",
        "s1 got p#4 after #6 for all",
    ]


def test_where_no_order_was_promised_none_is_missing() -> None:
    assert fifo(swapped(order="NO").trace()) == []


def test_position_decides_and_not_time() -> None:
    lines = good_run()
    lines.deliver(20, 6)
    lines.deliver(20, 5)
    assert len(fifo(lines.trace())) == 1


def test_a_repeated_number_is_no_matter_of_order() -> None:
    lines = good_run()
    lines.deliver(20, 3)
    assert fifo(lines.trace()) == []


def test_publishers_subscriptions_and_lives_are_apart() -> None:
    lines = good_run()
    lines.deliver(20, 1, name="other")
    lines.fault(21, "restart", "s1")
    lines.deliver(22, 1)
    other = {"subscriber": "s1", "subscription": "all", "topic": "a", "pubend": "q", "tick": 1, "tags": []}
    lines.add(23, "s1", "deliver", publisher="q", n=1, **other)
    assert fifo(lines.trace()) == []
