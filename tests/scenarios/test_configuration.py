"""Reading configurations, and refusing them."""

from __future__ import annotations

import pytest
from hypothesis import given

from drawn_scenarios import configurations, everything_supported
from examples import examples
from holdfast.clock import MILLISECOND
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.language import ScenarioError
from holdfast.scenarios.topology import Configuration, Process, Site

SMALL = "Site a Parent none\nProcess b is broker On a URL tcp://localhost:0/\n"


def refusal(text: str) -> str:
    with pytest.raises(ScenarioError) as refused:
        parse_configuration(text, "net.txt")
    return str(refused.value)


def test_defaults_are_those_of_the_contract() -> None:
    assert parse_configuration(SMALL) == Configuration(
        (Site("a", None),),
        (Process("b", "broker", "a", "tcp://localhost:0/"),),
        (),
        routing="filter",
        ordering="FIFO",
        logging="light",
        guarantee="best-effort",
        delta=0,
        seed=0,
        acknowledge="dack",
        refill=True,
        aggregation=False,
        failover_after_ns=None,
        heartbeat_ns=100 * MILLISECOND,
        detect_after_ns=500 * MILLISECOND,
        probe_every_ns=200 * MILLISECOND,
        dack_every_ns=1000 * MILLISECOND,
        retain_ns=None,
        pubends=1,
    )


def test_keywords_are_case_insensitive_and_lines_stand_in_any_order() -> None:
    text = "PROCESS b IS Broker ON a url tcp://localhost:0/\nordering no\nSITE a parent NONE\nroutingpolicy Flooding\n"
    configuration = parse_configuration(text)
    assert (configuration.ordering, configuration.routing) == ("NO", "flooding")
    assert configuration.processes[0].kind == "broker"


@examples(150)
@given(configurations())
def test_a_configuration_reads_back_from_its_text(configuration: Configuration) -> None:
    with everything_supported():
        assert parse_configuration(str(configuration)) == configuration


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            "Frobnicate 1",
            "line 3: unexpected 'Frobnicate'; expected one of Site, Process, Link, RoutingPolicy",
        ),
        ("RoutingPolicy random", "line 3: unexpected 'random'; expected filter or flooding"),
        ("Ordering FIFO LIFO", "unexpected 'LIFO'; expected the end of the line"),
        ("Seed 1\nSeed 2", "line 4: Seed was given on line 3; expected each setting once"),
        ("Seed -1", "'-1' will not do; expected Seed, a whole number from 0"),
        ("Heartbeat 0", "expected Heartbeat: milliseconds above 0"),
        ("Heartbeat 500", "line 3: DetectAfter 500 has no effect where heartbeats come every 500 ms"),
        ("Heartbeat 50\nDetectAfter 20", "line 4: DetectAfter 20 has no effect"),
        ("Site a Parent none", "line 3: the name a is taken on line 1"),
        ("Site b Parent a", "line 2: the name b is taken on line 3"),
        ("Site c", "the line ends; expected Parent"),
        ("Site c Parent x", "line 3: there is no site x; expected the name of a site, or none"),
        ("Site c Parent none", "line 3: c is a second root beside a; expected one site with Parent none"),
        ("Site None Parent a", "a site cannot be called None"),
        ("Site c Parent d\nSite d Parent c", "line 3: the parents go in a circle: c -> d -> c"),
        ("Site c Parent c", "circle: c -> c"),
        (
            "Site c Parent a\nSite d Parent c",
            "line 4: c has no broker; expected a line such as: Process NAME",
        ),
        ("Process p is publisher On x URL tcp://localhost:0/", "line 3: there is no site x"),
        ("Process b2 is broker On a URL tcp://localhost:0/", "line 3: a has the broker b already"),
        (
            "Process p is pony On a URL tcp://localhost:0/",
            "expected broker, publisher, subscriber or archive",
        ),
        ("Process p is publisher On a URL udp://x", "expected tcp://host:port/anything"),
        (
            "Process p is publisher On a URL tcp://8.8.8.8:1/",
            "expected localhost, a loopback address or a name",
        ),
        (
            "Process p is publisher On a URL tcp://h:5/\nProcess q is publisher On a URL tcp://H:5/x",
            "line 4: p listens at H:5 already; expected a port of its own, or 0",
        ),
        ("Link a x", "line 3: there is no process x, and no site x with a broker"),
        ("Link a b", "line 3: a and b are the same; expected two ends of a link"),
        ("Link a b Speed 3", "unexpected 'Speed'; expected Delay, Jitter, Loss, Duplicate or Reorder"),
        ("Link a b Loss 2", "expected Loss: a share from 0 to 1"),
        ("Link a b Delay 1 Delay 2", "Delay stands twice"),
        ("Link a -> ", "the line ends; expected the name of a site or process"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(lines: str, says: str) -> None:
    assert says in refusal(SMALL + lines)


def test_an_empty_configuration_says_what_is_missing() -> None:
    assert refusal("") == "net.txt, line 1: there is no site; expected a line such as: Site site0 Parent none"
    assert "there is no process; expected a broker" in refusal("Site a Parent none")
    text = "Site a Parent none\nProcess p is publisher On a URL tcp://h:0/"
    assert refusal(text).startswith("net.txt, line 2: a has no broker")


def test_a_site_without_processes_or_sites_below_needs_no_broker() -> None:
    assert len(parse_configuration(SMALL + "Site later Parent a").sites) == 2


def test_all_bad_lines_are_reported_and_then_all_that_do_not_fit() -> None:
    assert refusal(SMALL + "Sight c Parent a\nSite d Parent x\nDelta one").count("\n") == 1
    text = refusal(SMALL + "Site c Parent x\nSite d Parent none\nLink q r")
    assert [line.split(":")[0] for line in text.split("\n")] == [
        f"net.txt, line {number}" for number in (3, 4, 5, 5)
    ]
