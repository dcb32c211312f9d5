"""No copy on a link beyond which nobody asked for it."""

from __future__ import annotations

import pytest

from holdfast.scenarios.checkers.no_interest import no_interest
from scenario_traces import Lines, good_run


def wasted(lines: Lines, grace_seconds: float = 1.0) -> list[str]:
    found = no_interest(lines.trace(), grace_seconds=grace_seconds)
    assert {violation.kind for violation in found} <= {"no-interest"}
    return [violation.message.partition(" went ")[2].partition(",")[0] for violation in found]


def test_a_good_run_passes() -> None:
    assert wasted(good_run()) == []


def test_a_copy_that_matches_nobody_beyond_is_caught_on_every_link() -> None:
    lines = good_run()
    lines.publish(20, 5, x=5)
    lines.publish(20, 6, x=1)
    lines.forward(20, 5, "b0", "b1")
    lines.forward(20, 5, "b1", "s1")
    lines.forward(20, 5, "b0", "b2")
    lines.forward(20, 5, "b2", "b0")
    lines.forward(20, 6, "b2", "s2")
    assert wasted(lines) == ["from b0 to b1", "from b1 to s1", "from b2 to b0", "from b2 to s2"]


def test_flooding_is_exempt_and_so_is_the_publishers_own_link() -> None:
    lines = good_run(routing="flooding")
    lines.forward(20, 4, "b0", "b1")
    assert wasted(lines) == []
    own = good_run()
    own.forward(20, 4, "p", "b0")
    assert wasted(own) == []


@pytest.mark.parametrize("guarantee", ["best-effort", "durable"])
def test_a_durable_subscriber_that_came_back_may_be_anywhere(guarantee: str) -> None:
    """What s2 asks for, which was at b2, goes to b1; what nobody asks for goes nowhere."""
    lines = good_run(guarantee=guarantee)
    lines.fault(18, "reconnect", "s2")
    lines.publish(20, 5, x=2)
    lines.forward(20, 5, "b0", "b1")
    assert wasted(lines) == ([] if guarantee == "durable" else ["from b0 to b1"])
    lines.publish(21, 6, x=1)
    lines.forward(21, 6, "b0", "b1")
    assert wasted(lines)[-1] == "from b0 to b1"


@pytest.mark.parametrize("change", ["subscribe", "unsubscribed", "restart", "heal"])
def test_copies_sent_while_things_change_are_not_judged(change: str) -> None:
    lines = good_run()
    if change in ("restart", "heal"):
        lines.fault(20, change, "b2")
    else:
        lines.ask(20, change, "s2", "c", "other")
    lines.forward(20.9, 4, "b0", "b1")
    lines.forward(19.9, 4, "b0", "b2")
    lines.forward(21.1, 4, "b0", "b2")
    assert wasted(lines) == ["from b0 to b2", "from b0 to b2"]
    assert wasted(lines, grace_seconds=1.2) == ["from b0 to b2"]


def test_a_subscription_counts_from_subscribe_to_unsubscribed() -> None:
    lines = Lines()
    lines.ask(1, "subscribe")
    lines.publish(5, 1)
    lines.forward(5, 1, "b0", "b1")
    lines.ask(6, "subscribed")
    lines.ask(7, "unsubscribe")
    lines.forward(10, 1, "b0", "b1")
    assert wasted(lines) == []
    lines.ask(11, "unsubscribed")
    lines.forward(15, 1, "b0", "b1")
    assert wasted(lines) == ["from b0 to b1"]


def test_before_anybody_asked_nothing_may_be_sent() -> None:
    lines = Lines()
    lines.publish(1, 1)
    lines.forward(1, 1, "b0", "b1")
    lines.subscribe(50)
    assert wasted(lines) == ["from b0 to b1"]


def test_a_link_past_a_broker_has_beyond_it_what_is_reached_over_it() -> None:
    lines = good_run()
    lines.publish(20, 5, x=5)
    lines.forward(20, 5, "p", "b2")
    lines.forward(20, 5, "b1", "b2")
    lines.forward(20, 5, "s2", "b0")
    assert wasted(lines) == ["from s2 to b0"]


def test_a_filter_the_trace_cannot_judge_counts_as_interest() -> None:
    lines = Lines()
    lines.subscribe(1, filter="a WHERE XPATH '/e'")
    lines.publish(5, 1)
    lines.forward(5, 1, "b0", "b1")
    assert wasted(lines) == []


def test_copies_sent_while_something_is_broken_are_not_judged() -> None:
    lines = good_run()
    lines.fault(20, "crash", "b2")
    lines.forward(25, 4, "b0", "b2")
    lines.fault(26, "restart", "b2")
    lines.forward(28, 4, "b0", "b2")
    assert wasted(lines) == ["from b0 to b2"]
