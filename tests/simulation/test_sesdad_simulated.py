"""SESDAD's configuration 1 and script 1, as they are, in virtual time [SESDAD §4, E3.1-E3.4, X35, B3.10]."""

from __future__ import annotations

import pytest

from holdfast.scenarios.trace import TraceLine
from holdfast.scenarios.traffic import link_traffic, traffic_table
from simulations import SESDAD, numbers, of_kind, promises_kept, simulated

POLICIES = [(routing, order) for routing in ("filter", "flooding") for order in ("NO", "FIFO")]


def configuration(routing: str = "filter", order: str = "FIFO", file: str = "configuration1.txt") -> str:
    """A configuration of the paper under another policy, traced in full."""
    text = (SESDAD / file).read_text()
    kept = [line for line in text.splitlines() if line.split()[:1] not in (["RoutingPolicy"], ["Ordering"])]
    kept = [line for line in kept if not line.startswith("LoggingLevel")]
    return "\n".join([*kept, f"RoutingPolicy {routing}", f"Ordering {order}", "LoggingLevel full", ""])


def script(interval_ms: int = 200) -> str:
    """Script 1 with its intervals and waits shortened by the same factor; the status lines are its own."""
    lines = []
    for line in (SESDAD / "script1.txt").read_text().splitlines():
        words = line.split()
        if words[:1] == ["Wait"]:
            line = f"Wait {int(words[1]) * interval_ms // 200}"
        lines.append(line.replace("Interval 200", f"Interval {interval_ms}"))
    return "\n".join(lines) + "\n"


def routers(trace: list[TraceLine], topic: str, since: float, until: float) -> set[str]:
    """The brokers that passed events of a topic on that were published in this time."""
    ids = {
        (line["publisher"], line["n"])
        for line in of_kind(trace, "publish", topic=topic)
        if since < line["t"] < until
    }
    return {line["from"] for line in of_kind(trace, "forward") if (line["publisher"], line["n"]) in ids}


def test_the_files_of_the_paper_run_as_they_are() -> None:
    result = simulated((SESDAD / "configuration1.txt").read_text(), (SESDAD / "script1.txt").read_text())
    assert result.drained
    assert promises_kept(result.trace)
    assert result.trace[-1]["t"] > 36, "180 events every 200 ms"


def test_e31_the_routing_log_follows_the_subscriptions() -> None:
    trace = simulated(configuration(), script()).trace
    asked = of_kind(trace, "subscribed", "unsubscribe", "unsubscribed")
    when = {(line["kind"], line["subscriber"], line["filter"]): line["t"] for line in asked}
    first = when["subscribed", "subscriber5", "/p00-0"]
    three_left = when["unsubscribe", "subscriber3", "/p00-0"]
    four_left = when["unsubscribe", "subscriber4", "/p00-0"]
    five_left = when["unsubscribed", "subscriber5", "/p00-0"]
    zero_came = when["subscribed", "subscriber0", "/p00-0"]
    one_came = when["subscribed", "subscriber1", "/p00-0"]
    grace = 0.2
    # Brokers 3, 4 and 5 route while they have subscribers; broker3 goes on for broker4 when its own has left.
    assert routers(trace, "p00-0", first, three_left - grace) == {"broker3", "broker4", "broker5"}
    assert routers(trace, "p00-0", three_left + grace, four_left - grace) == {"broker3", "broker4", "broker5"}
    # After both unsubscriptions nobody routes; broker5 alone receives what its publisher says.
    assert routers(trace, "p00-0", five_left + grace, zero_came - grace) == set()
    # After the new subscriptions at sites 0 and 1 the path 5-3-2-0-1 appears.
    path = {"broker5", "broker3", "broker2", "broker0", "broker1"}
    assert routers(trace, "p00-0", one_came + grace, 99) == path
    assert not routers(trace, "p00-1", first, when["subscribed", "subscriber5", "/p00-1"] - grace)


def test_b310_subscriber5_gets_sequence_1() -> None:
    trace = simulated(configuration(), script()).trace
    assert numbers(trace, "deliver", subscriber="subscriber5")[0] == 1


@pytest.mark.parametrize(("routing", "order"), POLICIES)
@pytest.mark.parametrize("interval_ms", [200, 100, 50, 20, 10, 5, 1])
def test_e33_every_policy_keeps_its_promises_at_every_interval(
    routing: str, order: str, interval_ms: int
) -> None:
    result = simulated(configuration(routing, order), script(interval_ms))
    assert result.drained
    assert promises_kept(result.trace)
    assert len(of_kind(result.trace, "publish")) == len(of_kind(result.trace, "accepted")) == 360


@pytest.mark.parametrize(("routing", "order"), POLICIES)
def test_x35_two_publishers_do_not_deadlock(routing: str, order: str) -> None:
    network = configuration(routing, order, "configuration1-two-publishers.txt")
    result = simulated(network, (SESDAD / "two-publishers.txt").read_text())
    assert result.drained
    assert promises_kept(result.trace)
    assert result.trace[-1]["t"] < 2
    at_five = of_kind(result.trace, "deliver", subscriber="subscriber5")
    assert len([line for line in at_five if line["topic"] == "p00-0"]) == 180
    assert len([line for line in at_five if line["topic"] == "p01-1"]) == 180
    assert next(line["n"] for line in at_five if line["topic"] == "p00-0") == 1


def test_e32_filtering_carries_less_than_flooding_on_every_link_between_brokers() -> None:
    columns = {
        f"{routing} {order}": link_traffic(simulated(configuration(routing, order), script(20)).trace)
        for routing, order in POLICIES
    }
    filtered, flooded = columns["filter FIFO"], columns["flooding FIFO"]
    assert columns["filter NO"] == filtered
    assert columns["flooding NO"] == flooded
    between_brokers = [link for link in flooded if link[1].startswith("broker")]
    assert len(between_brokers) == 5, "away from the publisher, and never back"
    assert all(filtered.get(link, 0) < flooded[link] == 360 for link in between_brokers)
    assert 2 * sum(filtered.values()) < sum(flooded.values())
    table = traffic_table(columns)
    assert table.splitlines()[0].split() == [
        "link",
        "filter",
        "NO",
        "filter",
        "FIFO",
        "flooding",
        "NO",
        "flooding",
        "FIFO",
    ]
    assert table.splitlines()[-1].split()[0] == "all"
