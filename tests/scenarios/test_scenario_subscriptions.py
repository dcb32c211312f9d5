"""Which subscription a line speaks of."""

from __future__ import annotations

import pytest

from holdfast.scenarios.commands import At, Subscribe, Unsubscribe
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.language import ScenarioError
from holdfast.scenarios.script import parse_script

NETWORK = parse_configuration(
    """Site a Parent none
    Process b is broker On a URL tcp://localhost:0/
    Process s is subscriber On a URL tcp://localhost:0/
    Process t is subscriber On a URL tcp://localhost:0/"""
)


def names(*lines: str) -> list[str]:
    """The subscriptions the lines speak of, in order."""
    commands = parse_script("\n".join(lines), "script", NETWORK).commands
    inner = [command.command if isinstance(command, At) else command for command in commands]
    return [command.subscription for command in inner if isinstance(command, Subscribe | Unsubscribe)]


def test_a_subscription_without_a_name_is_called_by_its_number() -> None:
    assert names(
        "Subscriber s Subscribe x",
        "Subscriber s Subscribe x As mine",
        "Subscriber t Subscribe x",
        "Subscriber s Subscribe x",
    ) == ["s#1", "mine", "t#1", "s#3"]


def test_a_name_goes_before_a_filter() -> None:
    assert names(
        "Subscriber s Subscribe x", "Subscriber s Subscribe y As x", "Subscriber s Unsubscribe x"
    ) == ["s#1", "x", "x"]


def test_a_filter_ends_the_first_that_is_left_with_the_same_meaning() -> None:
    assert names(
        "Subscriber s Subscribe x WHERE a = 1",
        "Subscriber s Subscribe x WHERE a = 1",
        "Subscriber s Unsubscribe /x where a=1",
        'Subscriber s Unsubscribe "x WHERE a = 1"',
    )[2:] == ["s#1", "s#2"]


def test_those_above_go_before_those_below_which_at_may_run_first() -> None:
    assert names(
        "Subscriber s Subscribe x",
        "At 900 Subscriber s Unsubscribe x",
        "At 500 Subscriber s Unsubscribe x",
        "At 5 Subscriber s Subscribe x",
    ) == ["s#1", "s#1", "s#2", "s#2"]


def test_subscriptions_of_others_are_not_ended() -> None:
    with pytest.raises(
        ScenarioError, match="t has no subscription 'x' left to end; expected the filter or the As"
    ):
        names("Subscriber s Subscribe x", "Subscriber t Unsubscribe x")


def test_ending_twice_and_naming_twice_are_refused() -> None:
    with pytest.raises(ScenarioError, match="line 3: s has no subscription 'x' left to end"):
        names("Subscriber s Subscribe x", "Subscriber s Unsubscribe x", "Subscriber s Unsubscribe x")
    with pytest.raises(
        ScenarioError, match="line 2: s has a subscription n on line 1; expected a name of its own"
    ):
        names("Subscriber s Subscribe x As n", "Subscriber s Subscribe y As n")
    names("Subscriber s Subscribe x As n", "Subscriber t Subscribe y As n")
