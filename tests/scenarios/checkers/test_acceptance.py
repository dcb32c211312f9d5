"""Everything published is accepted."""

from __future__ import annotations

from math import inf

from holdfast.scenarios.checkers.acceptance import acceptance
from scenario_traces import Lines, good_run


def unaccepted(lines: Lines, drained: bool = True, healed_at: float = -inf) -> list[str]:
    found = acceptance(lines.trace(drained=drained), healed_at=healed_at)
    assert {violation.kind for violation in found} <= {"unaccepted"}
    return [violation.message for violation in found]


def one_missing(**run: str) -> Lines:
    lines = good_run(**run)
    lines.publish(20, 5, accepted=False)
    return lines


def test_a_good_run_passes() -> None:
    assert unaccepted(good_run()) == []


def test_an_event_that_was_never_accepted_is_caught() -> None:
    assert unaccepted(one_missing()) == ["p#5 was published and never accepted"]


def test_nothing_is_claimed_of_a_run_that_was_not_drained_or_broke() -> None:
    assert unaccepted(one_missing(), drained=False) == []
    broken = one_missing()
    broken.fault(15, "cut", "b0", "b1")
    assert unaccepted(broken) == []
    assert unaccepted(broken, healed_at=16) == ["p#5 was published and never accepted"]
    assert unaccepted(broken, healed_at=20) == []


def test_the_events_of_a_publisher_that_crashed_are_not_claimed() -> None:
    for crashed, expected in (("p", 0), ("b1", 1)):
        lines = one_missing(guarantee="reliable")
        lines.fault(21, "crash", crashed)
        assert len(unaccepted(lines)) == expected


def test_what_a_publisher_publishes_after_its_crash_is_claimed() -> None:
    lines = one_missing(guarantee="reliable")
    lines.fault(19.9, "crash", "p")  # at 20 it was not dead yet
    lines.fault(30, "restart", "p")
    assert unaccepted(lines) == []
    lines = one_missing(guarantee="reliable")
    lines.fault(12, "crash", "p")
    lines.fault(19, "restart", "p")
    assert unaccepted(lines) == ["p#5 was published and never accepted"]
