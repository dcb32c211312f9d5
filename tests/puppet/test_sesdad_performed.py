"""SESDAD's scenarios with real processes, their waits shortened [SESDAD §4, E3.1, E3.3, E3.4, X35, B3.10]."""

from __future__ import annotations

import re

import pytest

from holdfast.scenarios.trace import TraceLine
from holdfast.scenarios.traffic import link_traffic
from performances import on_free_ports, performed
from simulations import SESDAD, numbers, of_kind, promises_kept

PATH_OF_THREE = {
    ("broker5", "broker3"),
    ("broker3", "broker4"),
    ("broker5", "subscriber5"),
    ("broker3", "subscriber3"),
    ("broker4", "subscriber4"),
}
PATH_TO_THE_ROOT = {
    ("broker5", "broker3"),
    ("broker3", "broker2"),
    ("broker2", "broker0"),
    ("broker0", "broker1"),
    ("broker0", "subscriber0"),
    ("broker1", "subscriber1"),
}


def configuration(file: str, routing: str, order: str) -> str:
    text = on_free_ports((SESDAD / file).read_text("utf-8"))
    return f"{text}\nRoutingPolicy {routing}\nOrdering {order}\nLoggingLevel full\n"


def script1(interval_ms: int) -> str:
    """Script 1, which publishes every 200 ms and waits for up to 15 s, so many times as fast.

    The waits are shortened more, since subscribing takes its time all the same and the last of it happens in the last
    second of publishing.
    """
    text = (SESDAD / "script1.txt").read_text("utf-8")
    text = re.sub(r"Interval 200", f"Interval {interval_ms}", text)
    return re.sub(r"Wait (\d+)", lambda found: f"Wait {int(found[1]) * interval_ms // 300}", text)


def links(trace: list[TraceLine], topic: str, since: float, until: float) -> set[tuple[str, str]]:
    """Where the events of a topic went that were published in this time."""
    ids = {line["n"] for line in of_kind(trace, "publish", topic=topic) if since < line["t"] < until}
    return {(line["from"], line["to"]) for line in of_kind(trace, "forward") if line["n"] in ids}


@pytest.mark.parametrize("order", ["NO", "FIFO"])
def test_e31_filtering_follows_the_subscriptions(order: str) -> None:
    result = performed(configuration("configuration1.txt", "filter", order), script1(10))
    trace = result.trace
    assert result.drained
    assert promises_kept(trace)
    asked = of_kind(trace, "subscribe", "subscribed", "unsubscribe", "unsubscribed")
    when = {(line["kind"], line["subscription"]): line["t"] for line in asked}
    began, parted = when["subscribed", "subscriber5#1"], when["unsubscribe", "subscriber3#1"]
    nobody = max(when["unsubscribed", "subscriber4#1"], when["unsubscribed", "subscriber5#1"])
    again, both = when["subscribe", "subscriber0#1"], when["subscribed", "subscriber1#1"]
    assert links(trace, "p00-0", began, parted) == PATH_OF_THREE
    between = [line for line in of_kind(trace, "forward") if nobody < line["t"] < again]
    assert between == [], "everything ends at broker5"
    assert [line for line in of_kind(trace, "accepted") if nobody < line["t"] < again], (
        "and is accepted there"
    )
    assert links(trace, "p00-0", both, 99) == PATH_TO_THE_ROOT
    assert links(trace, "p00-1", 0, again) == set(), "nobody asked for the other topic"
    assert numbers(trace, "deliver", subscription="subscriber5#1")[0] == 1, "B3.10"
    assert len(of_kind(trace, "publish")) == len(of_kind(trace, "accepted")) == 360


@pytest.mark.parametrize(("order", "interval_ms"), [("NO", 10), ("FIFO", 1)])
def test_e31_flooding_goes_everywhere_and_delivers_only_what_was_asked_for(
    order: str, interval_ms: int
) -> None:
    network = configuration("configuration1.txt", "flooding", order)
    result = performed(network, script1(interval_ms))
    trace = result.trace
    assert result.drained
    assert promises_kept(trace)
    traffic = {link: copies for link, copies in link_traffic(trace).items() if link[1].startswith("broker")}
    assert len(traffic) == 5
    assert set(traffic.values()) == {360}
    assert numbers(trace, "deliver", subscription="subscriber5#1")[0] == 1, "B3.10"


def test_x35_two_publishers_do_not_deadlock() -> None:
    network = configuration("configuration1-two-publishers.txt", "filter", "FIFO")
    result = performed(network, (SESDAD / "two-publishers.txt").read_text("utf-8"))
    assert result.drained
    assert promises_kept(result.trace)
    at_five = of_kind(result.trace, "deliver", subscriber="subscriber5")
    assert len([line for line in at_five if line["topic"] == "p00-0"]) == 180
    assert len([line for line in at_five if line["topic"] == "p01-1"]) == 180
    assert next(line["n"] for line in at_five if line["topic"] == "p00-0") == 1, "B3.10"
