"""The durable guarantee with real processes: brokers and subscribers are killed, and nothing accepted is lost."""

from __future__ import annotations

from itertools import cycle

from holdfast.puppet.run import Result
from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.topology import MASTER
from performances import PAIR, performed
from simulations import of_kind

DURABLE = PAIR.replace("LoggingLevel full", "Guarantee durable")
SUBSCRIBE = "Subscriber u1 Subscribe a As near Durable\nSubscriber u2 Subscribe a As far Durable\n"
EVENTS = list(range(1, 401))
STEADY = "Publisher p Publish 400 Ontopic a Interval 5\n"  # two seconds


def kept(result: Result) -> bool:
    """Whether both had everything once and in order, and nothing else is wrong."""
    assert result.drained
    assert [str(violation) for violation in check_all(result.trace)] == []
    assert not of_kind(result.trace, "gap")
    assert [line["n"] for line in of_kind(result.trace, "accepted")] == EVENTS
    for subscription in ("near", "far"):
        assert [line["n"] for line in of_kind(result.trace, "deliver", subscription=subscription)] == EVENTS
    return True


def test_brokers_and_subscribers_are_killed_over_and_over_under_load() -> None:
    victims = zip(range(200, 2000, 300), cycle(("b1", "u2", "b2", "u1")), strict=False)
    kills = "".join(f"At {at} Crash {name}\nAt {at + 150} Restart {name}\n" for at, name in victims)
    assert kept(performed(DURABLE, f"{SUBSCRIBE}{STEADY}{kills}Wait 2500\nDrain 10000\n"))


def test_a_subscriber_moves_to_another_process_and_one_that_is_killed_there_comes_back_there() -> None:
    script = f"""{SUBSCRIBE}{STEADY}Wait 300
    Subscriber u2 Disconnect
    Wait 300
    Subscriber u2 Reconnect On s1
    Wait 300
    Crash u2
    Wait 200
    Restart u2
    Wait 500
    Subscriber u2 Reconnect On s2
    Wait 500
    """
    result = performed(DURABLE, script)
    assert kept(result)
    told = [line["kind"] for line in result.trace if line.get("nodes") == ["u2"] and line["node"] == MASTER]
    assert told[-2:] == ["disconnect", "reconnect"], "who moves is away for a moment"
    assert {line["tick"] for line in of_kind(result.trace, "deliver", subscription="far")} == {
        line["tick"] for line in of_kind(result.trace, "accepted")
    }


def test_a_total_order_is_that_of_the_sequencer_in_every_process() -> None:
    network = DURABLE + "Ordering TOTAL\nProcess q is publisher On s2 URL tcp://localhost:0/q\n"
    script = f"""{SUBSCRIBE}Publisher p Publish 100 Ontopic a Interval 2
    Publisher q Publish 100 Ontopic a Interval 2
    At 600 Crash b1
    At 900 Restart b1
    Wait 2000
    """
    result = performed(network, script)
    assert result.drained
    assert [str(violation) for violation in check_all(result.trace)] == []
    near, far = (
        [line["tick"] for line in of_kind(result.trace, "deliver", subscription=name)]
        for name in ("near", "far")
    )
    assert near == far == sorted(near)
    assert len(near) == 200
