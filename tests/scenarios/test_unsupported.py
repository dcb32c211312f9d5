"""What does not exist yet is refused by name, with file and line; and nothing else is."""

from __future__ import annotations

import pytest

from drawn_scenarios import everything_supported
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
            "Guarantee durable",
            "Guarantee durable does not exist yet; expected Guarantee best-effort or reliable",
        ),
        ("Guarantee archived", "Guarantee archived does not exist yet"),
        ("Ordering total", "Ordering TOTAL does not exist yet; expected Ordering NO or FIFO"),
        ("Aggregation on", "Aggregation on does not exist yet"),
        ("FailoverAfter 5000", "FailoverAfter 5000 does not exist yet"),
        ("Retain 5000", "Retain 5000 does not exist yet"),
        ("Pubends 2", "Pubends 2 does not exist yet"),
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
        ("Subscriber s Subscribe a Durable", "Durable does not exist yet"),
        (
            "Subscriber s Reconnect On a",
            "Reconnect On SITE does not exist yet; expected Reconnect to the same",
        ),
        ("Join Process x is archive On a URL tcp://h:0/", "Join of an archive does not exist yet"),
        ("Leave b", "Leave of a broker does not exist yet; expected the name of a publisher or subscriber"),
        ("Expel b", "Expel of anybody but a client of a reliable network does not exist yet"),
        ("Expel s", "Expel of anybody but a client of a reliable network does not exist yet"),
        ("Clock b Shift -50", "Clock does not exist yet"),
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
    lines = "Acknowledge conf\nRefill off\nAggregation off\nDelta 0\nPubends 1\nRetain never\nFailoverAfter never\n"
    parse_configuration(SMALL + lines + "Guarantee best-effort\nDackEvery 5\nProbeEvery 5")
