"""What does not exist yet is refused by name, with file and line; and nothing else is."""

from __future__ import annotations

import pytest

from drawn_scenarios import everything_supported
from holdfast.clock import MILLISECOND
from holdfast.scenarios.commands import ClockShift
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.language import ScenarioError
from holdfast.scenarios.script import parse_script

SMALL = (
    "Site a Parent none\nProcess b is broker On a URL tcp://localhost:0/\n"
    "Process s is subscriber On a URL tcp://localhost:0/\n"
)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (
            "Guarantee archived",
            "Guarantee archived does not exist yet; expected Guarantee best-effort, reliable or durable",
        ),
        ("Aggregation on", "Aggregation on does not exist yet"),
        ("FailoverAfter 5000", "FailoverAfter 5000 does not exist yet"),
        ("Process x is archive On a URL tcp://h:0/", "processes of the kind archive do not exist yet"),
    ],
)
def test_configurations(line: str, named: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse_configuration(SMALL + line, "net.txt")
    assert str(refused.value).startswith(f"net.txt, line 4: {named}")
    with everything_supported():
        parse_configuration(SMALL + line, "net.txt")


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (
            "Subscriber s Reconnect On a",
            "Reconnect On SITE in a network that logs nothing does not exist yet; expected Reconnect to the same",
        ),
        ("Join Process x is archive On a URL tcp://h:0/", "Join of an archive does not exist yet"),
        ("Leave b", "Leave of a broker does not exist yet; expected the name of a publisher or subscriber"),
        ("Expel b", "Expel of anybody but a client of a reliable network does not exist yet"),
        ("Expel s", "Expel of anybody but a client of a reliable network does not exist yet"),
        ("At 5 Leave b", "Leave of a broker does not exist yet"),
    ],
)
def test_scripts(line: str, named: str) -> None:
    configuration = parse_configuration(SMALL)
    with pytest.raises(ScenarioError) as refused:
        parse_script(f"Wait 5\n{line}", "script.txt", configuration)
    assert str(refused.value).startswith(f"script.txt, line 2: {named}")
    with everything_supported():
        parse_script(line, "script.txt", configuration)


def test_a_client_may_be_expelled_from_a_reliable_network_and_no_broker() -> None:
    configuration = parse_configuration(SMALL + "Guarantee reliable\n")
    parse_script("Expel s\nLeave s", "script.txt", configuration)
    with pytest.raises(ScenarioError):
        parse_script("Expel b", "script.txt", configuration)


def test_what_has_no_effect_under_best_effort_is_accepted() -> None:
    lines = (
        "Acknowledge conf\nRefill off\nAggregation off\nDelta 0\nPubends 2\nRetain 500\nFailoverAfter never\n"
    )
    parse_configuration(SMALL + lines + "Guarantee best-effort\nDackEvery 5\nProbeEvery 5")


# What never will: a promise that another setting rules out


@pytest.mark.parametrize("guarantee", ["best-effort", "reliable"])
def test_a_total_order_of_what_is_not_logged_is_refused(guarantee: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse_configuration(f"{SMALL}Guarantee {guarantee}\nOrdering TOTAL\n", "net.txt")
    assert str(refused.value).startswith(
        f"net.txt, line 5: there is no total order of what is not logged: Guarantee {guarantee}; expected"
    )
    parse_configuration(f"{SMALL}Guarantee durable\nOrdering TOTAL\n")


@pytest.mark.parametrize("guarantee", ["best-effort", "reliable"])
def test_a_durable_subscription_where_nothing_is_logged_is_refused(guarantee: str) -> None:
    configuration = parse_configuration(f"{SMALL}Guarantee {guarantee}\n")
    with pytest.raises(ScenarioError) as refused:
        parse_script("Subscriber s Subscribe a Durable", "script.txt", configuration)
    assert str(refused.value).startswith(
        f"script.txt, line 1: nothing is kept for anybody under Guarantee {guarantee}; expected Guarantee durable"
    )


def test_durable_networks_have_subscriptions_that_are_kept_moves_and_clocks() -> None:
    configuration = parse_configuration(f"{SMALL}Guarantee durable\nPubends 3\nRetain 5000\nOrdering TOTAL\n")
    assert (configuration.pubends, configuration.retain_ns) == (3, 5000 * MILLISECOND)
    text = (
        "Subscriber s Subscribe a As mine Durable\nSubscriber s Disconnect\n"
        "Subscriber s Reconnect On a\nClock b Shift -50.5\n"
    )
    script = parse_script(text, "script.txt", configuration)
    assert str(script) == text
    assert script.commands[-1] == ClockShift("b", -50_500_000, line=4)
