"""Everything that is owed arrives."""

from __future__ import annotations

from math import inf

import pytest

from holdfast.scenarios.checkers.completeness import completeness
from holdfast.scenarios.trace_fields import FAULTS
from scenario_traces import Lines, good_run


def lost(
    lines: Lines, drained: bool = True, healed_at: float = -inf, in_flight_seconds: float = inf
) -> list[str]:
    found = completeness(
        lines.trace(drained=drained), healed_at=healed_at, in_flight_seconds=in_flight_seconds
    )
    assert {violation.kind for violation in found} <= {"lost"}
    return [violation.message for violation in found]


def one_missing(**run: str) -> Lines:
    lines = good_run(**run)
    lines.publish(20, 5, x=5)
    lines.publish(21, 6, x=6)
    lines.deliver(22, 6, subscriber="s2", name="dear")
    return lines


def test_a_good_run_passes() -> None:
    assert lost(good_run()) == []


def test_a_missing_event_is_caught() -> None:
    assert lost(one_missing()) == ["p#5 never reached s2 for dear"]


def test_the_last_event_is_owed_while_the_subscription_stands() -> None:
    lines = good_run()
    lines.publish(20, 5, x=5)
    assert lost(lines) == ["p#5 never reached s2 for dear"]


def test_what_was_not_accepted_or_does_not_match_is_not_owed() -> None:
    lines = good_run()
    lines.publish(20, 5, accepted=False, x=5)
    lines.publish(20, 6, x=1)
    lines.publish(20, 7, topic="b", x=5)
    assert lost(lines) == []


def test_only_what_is_published_between_subscribed_and_unsubscribe_is_owed() -> None:
    lines = Lines()
    lines.publish(0.5, 1)
    lines.ask(1, "subscribe")
    lines.publish(1.5, 2)
    lines.publish(2, 3)
    lines.ask(2, "subscribed")
    lines.publish(3, 4)
    lines.deliver(3.5, 4)
    lines.ask(4, "unsubscribe")
    lines.publish(4, 5)
    lines.publish(4.5, 6)
    lines.ask(5, "unsubscribed")
    lines.publish(6, 7)
    assert lost(lines) == []


def test_what_was_in_flight_at_the_end_is_a_suffix_and_no_more() -> None:
    lines = Lines()
    lines.subscribe(1)
    for n in (1, 2, 3, 4):
        lines.publish(1 + n, n)
    lines.deliver(2.5, 1)
    lines.deliver(4.5, 3)
    lines.unsubscribe(6)
    assert lost(lines) == ["p#2 never reached s1 for all"]


def test_who_knows_how_long_things_fly_excuses_no_more_than_that() -> None:
    lines = Lines()
    lines.subscribe(1)
    lines.publish(2, 1)
    lines.publish(5.5, 2)
    lines.unsubscribe(6)
    assert lost(lines) == []
    assert lost(lines, in_flight_seconds=1) == ["p#1 never reached s1 for all"]


def test_a_run_that_was_not_drained_owes_nothing() -> None:
    assert lost(one_missing(), drained=False) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_best_effort_owes_nothing_once_something_broke(fault: str) -> None:
    lines = one_missing()
    lines.fault(15, fault, "b1")
    assert lost(lines) == []


def test_other_guarantees_owe_everything_all_the_same() -> None:
    lines = one_missing(guarantee="reliable")
    lines.fault(15, "crash", "b1")
    assert lost(lines) == ["p#5 never reached s2 for dear"]


def test_after_healing_what_is_published_is_owed_again() -> None:
    lines = one_missing()
    lines.fault(15, "disconnect", "s2")
    assert lost(lines, healed_at=18) == ["p#5 never reached s2 for dear"]
    assert lost(lines, healed_at=20.5) == []
    lines.fault(30, "crash", "b1")
    assert lost(lines, healed_at=18) == [], "it was not healed for long"


def test_a_crash_ends_a_subscription_and_subscribing_again_begins_one() -> None:
    lines = good_run()
    lines.fault(15, "crash", "s2")
    lines.publish(16, 5, x=5)
    assert lost(lines, healed_at=15) == []
    lines.fault(17, "restart", "s2")
    lines.subscribe(18, "s2", "/a WHERE x > 1", "dear")
    lines.publish(18, 6, x=6)
    lines.publish(19, 7, x=7)
    assert lost(lines, healed_at=17) == ["p#7 never reached s2 for dear"]


def test_what_came_to_a_later_life_does_not_show_that_an_earlier_one_should_have_had_more() -> None:
    lines = good_run(guarantee="reliable")
    lines.publish(20, 5, x=5)
    lines.publish(20.1, 6, x=6)
    lines.fault(20.2, "crash", "s2")
    lines.fault(21, "restart", "s2")
    lines.subscribe(22, "s2", "/a WHERE x > 1", "dear")
    lines.deliver(23, 6, subscriber="s2", name="dear")
    assert lost(lines) == []


def test_a_disconnection_ends_a_subscription_unless_it_is_durable() -> None:
    for durable, expected in ((False, []), (True, ["p#1 never reached s1 for all"])):
        lines = Lines(guarantee="durable")
        lines.subscribe(1, durable=durable)
        lines.fault(1.5, "disconnect", "s1")
        lines.publish(2, 1)
        lines.fault(3, "reconnect", "s1")
        assert lost(lines) == expected


def test_filters_with_xpath_are_not_judged() -> None:
    lines = Lines()
    lines.subscribe(1, filter="a WHERE XPATH '/e'")
    lines.publish(2, 1)
    assert lost(lines) == []
