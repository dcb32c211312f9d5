"""Nothing that was not asked for."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.scenarios.checkers.soundness import soundness
from scenario_traces import Lines, good_run


def problems(lines: Lines) -> list[str]:
    found = soundness(lines.trace())
    assert {violation.kind for violation in found} <= {"wrong", "late"}
    return [violation.message.partition(": ")[2] for violation in found]


def test_a_good_run_passes() -> None:
    assert problems(good_run()) == []


def test_what_was_never_published_is_caught() -> None:
    lines = good_run()
    lines.deliver(20, 99, subscriber="s2", name="dear")
    assert problems(lines) == ["it was never published"]


def test_what_is_published_later_is_caught() -> None:
    lines = good_run()
    lines.deliver(20, 5, subscriber="s2", name="dear")
    lines.publish(21, 5, x=5)
    assert problems(lines) == ["it was published later"]


def test_at_the_same_instant_nobody_can_say_which_came_first() -> None:
    lines = good_run()
    lines.publish(20, 5, x=5)
    lines.deliver(20, 5, subscriber="s2", name="dear")
    assert problems(lines) == []


def test_another_topic_is_caught_and_a_leading_slash_is_none() -> None:
    lines = good_run()
    lines.publish(20, 5, topic="/a", x=5)
    lines.publish(20, 6, topic="b", x=5)
    lines.deliver(21, 5, subscriber="s2", name="dear")
    lines.deliver(21, 6, subscriber="s2", name="dear")
    assert problems(lines) == ["its topic is b, not a"]


@pytest.mark.parametrize("attributes", [{"x": 1}, {}, {"x": "2"}])
def test_what_does_not_match_is_caught(attributes: dict[str, Any]) -> None:
    lines = good_run()
    lines.publish(20, 5, **attributes)
    lines.deliver(21, 5, subscriber="s2", name="dear")
    assert problems(lines) == ["it does not match /a WHERE x > 1"]


def test_deliveries_before_subscribe_and_to_nobody_are_caught() -> None:
    lines = Lines()
    lines.publish(1, 1)
    lines.deliver(2, 1)
    lines.subscribe(3)
    lines.deliver(4, 1, name="unheard of")
    assert problems(lines) == ["nobody had subscribed", "nobody had subscribed"]


def test_after_subscribe_and_until_unsubscribed_a_delivery_is_right() -> None:
    lines = Lines()
    lines.publish(1, 1)
    lines.ask(2, "subscribe")
    lines.deliver(2, 1)
    lines.ask(3, "subscribed")
    lines.ask(4, "unsubscribe")
    lines.publish(4, 2)
    lines.deliver(5, 2)
    lines.ask(5, "unsubscribed")
    assert problems(lines) == []
    lines.deliver(5, 2)
    assert problems(lines) == ["the subscription had ended"]


def test_a_filter_with_xpath_is_judged_by_its_other_conditions() -> None:
    lines = Lines()
    lines.subscribe(1, filter="a WHERE x > 1 AND XPATH '/e' AND y = 1", name="and")
    lines.subscribe(1, filter="a WHERE NOT (x = 9 OR XPATH '/e')", name="or")
    lines.subscribe(1, filter="a WHERE XPATH '/e'", name="alone")
    lines.publish(2, 1, x=2, y=1)
    lines.publish(2, 2, x=1, y=1)
    lines.publish(2, 3, topic="b")
    for name in ("and", "or", "alone"):
        lines.deliver(3, 1, name=name)
        lines.deliver(3, 2, name=name)
        lines.deliver(3, 3, name=name, topic="b")
    assert len(problems(lines)) == 1 + 3, "x = 1 to the first, and the topic b to each"
