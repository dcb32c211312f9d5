"""Join, Leave and Expel [contracts.md §4, B0.25], in the simulator; ``tests/puppet`` has them with real processes."""

from __future__ import annotations

import pytest

from simulations import numbers, of_kind, promises_kept, simulated

#: A chain of three brokers with room for a fourth at its end, and clients at both ends and in the middle.
CHAIN = """
Guarantee reliable
Delta 1
DackEvery 200
LoggingLevel full
Site s1 Parent none
Site s2 Parent s1
Site s3 Parent s2
Site s4 Parent s3
Process b1 is broker On s1 URL tcp://localhost:0/b
Process b2 is broker On s2 URL tcp://localhost:0/b
Process b3 is broker On s3 URL tcp://localhost:0/b
Process p is publisher On s1 URL tcp://localhost:0/p
Process u2 is subscriber On s2 URL tcp://localhost:0/u
Process u3 is subscriber On s3 URL tcp://localhost:0/u
"""
TEN = "Publisher p Publish 10 Ontopic a Interval 10\n"
JOIN_BROKER = "Join Process b4 is broker On s4 URL tcp://localhost:0/b\n"
JOIN_SUBSCRIBER = "Join Process u4 is subscriber On s4 URL tcp://localhost:0/u\n"
ALL_TEN = list(range(1, 11))


# Join


def test_a_leaf_broker_and_its_client_join_and_are_served() -> None:
    result = simulated(CHAIN, f"{JOIN_BROKER}{JOIN_SUBSCRIBER}Subscriber u4 Subscribe # As s\n{TEN}")
    assert [line["nodes"] for line in of_kind(result.trace, "join")] == [["b4"], ["u4"]]
    assert of_kind(result.trace, "subscribed", subscriber="u4")[0]["partial"] == []
    assert numbers(result.trace, "deliver", subscriber="u4") == ALL_TEN
    assert result.drained
    assert promises_kept(result.trace)


def test_the_first_line_of_the_trace_has_everybody_who_is_ever_there() -> None:
    tree = simulated(CHAIN, f"{JOIN_BROKER}At 50 {JOIN_SUBSCRIBER}Wait 100\n").trace[0]["tree"]
    assert tree["b4"] == "b3"
    assert tree["u4"] == "b4"


def test_who_has_joined_is_reached_past_a_failed_broker_and_survives_it() -> None:
    """b2 and b4 are two hops apart and have never met before b3 fails: each must know the other's address."""
    script = f"{JOIN_BROKER}{JOIN_SUBSCRIBER}Subscriber u4 Subscribe # As s\nCrash b3\n{TEN}Wait 3000\nRestart b3\n"
    result = simulated(CHAIN, script)
    delivered = of_kind(result.trace, "deliver", subscriber="u4")
    assert [line["n"] for line in delivered] == ALL_TEN
    [restart] = of_kind(result.trace, "restart")
    assert delivered[-1]["t"] < restart["t"]
    assert result.drained
    assert promises_kept(result.trace)


@pytest.mark.parametrize(
    "joining",
    [
        pytest.param(JOIN_BROKER, id="told of it"),
        pytest.param(f"Isolate b2\nWait 1500\n{JOIN_BROKER}Heal b2\nWait 2000\n", id="cut off meanwhile"),
    ],
)
def test_everybody_in_reach_knows_who_has_joined(joining: str) -> None:
    """B0.25: JOIN goes to depth δ+1, the unreachable learn it in the handshake; so b2 knows whom it cannot reach."""
    result = simulated(CHAIN, f"{joining}Crash b3\nCrash b4\nWait 2000\nSubscriber u2 Subscribe # As s\n")
    [subscribed] = of_kind(result.trace, "subscribed")
    [partition] = subscribed["partial"]
    assert (partition["lead"], partition["fragment"]) == ("b2", ["b3", "b4"])


def test_who_joins_while_a_subscription_is_under_way_knows_it_before_it_is_confirmed() -> None:
    """B0.25: a publisher at the joiner must not be unknown to a subscription that is confirmed later."""
    joining = JOIN_BROKER + "Join Process q is publisher On s4 URL tcp://localhost:0/q\n"
    script = f"At 0 Subscriber u3 Subscribe # As s\n{joining}Publisher q Publish 10 Ontopic a Interval 10\n"
    result = simulated(CHAIN + "Link b2 b3 Delay 100\n", script)
    assert numbers(result.trace, "accepted", publisher="q") == ALL_TEN
    assert result.drained
    assert promises_kept(result.trace)


@pytest.mark.parametrize(
    "line",
    [
        "Crash b4",
        "Restart b4",
        "Freeze b4",
        "Unfreeze b4",
        "Cut b4 b3",
        "Isolate s4",
        "Heal b4",
        "Subscriber u4 Subscribe # As s",
        "Leave u4",
        "Expel u4",
    ],
)
def test_what_is_said_to_somebody_who_has_not_joined_yet_is_not_heard(line: str) -> None:
    result = simulated(CHAIN, f"At 300 {JOIN_BROKER}At 350 {JOIN_SUBSCRIBER}At 100 {line}\nWait 900\n")
    told = [each["kind"] for each in result.trace if each["kind"] != "status"]
    assert told == ["run", "join", "join", "end"]


# Leave


def test_who_leaves_is_owed_nothing_more_and_holds_nobody_up() -> None:
    result = simulated(CHAIN, f"Subscriber u3 Subscribe # As s\n{TEN}Wait 200\nLeave u3\n{TEN}")
    assert numbers(result.trace, "deliver", subscriber="u3") == ALL_TEN
    assert of_kind(result.trace, "leave")[0]["nodes"] == ["u3"]
    assert not of_kind(result.trace, "disconnect"), "it is in no trace that somebody was lost"
    assert result.drained
    assert promises_kept(result.trace)


def test_who_leaves_while_its_broker_is_down_is_forgotten_too() -> None:
    script = f"Subscriber u3 Subscribe # As s\nCrash b3\nWait 2000\nLeave u3\n{TEN}"
    result = simulated(CHAIN, script)
    assert result.drained, "or b2 waits for it for ever"
    assert promises_kept(result.trace)


def test_a_publisher_leaves_when_what_it_has_published_is_accepted() -> None:
    result = simulated(CHAIN, f"Subscriber u3 Subscribe # As s\n{TEN}Wait 55\nLeave p\nWait 500\n")
    published = numbers(result.trace, "publish")
    assert 1 < len(published) < 10, "it publishes nothing more"
    assert numbers(result.trace, "accepted") == numbers(result.trace, "deliver") == published
    assert promises_kept(result.trace)


def test_who_has_left_may_come_back() -> None:
    script = f"Subscriber u3 Subscribe # As s\nLeave u3\nWait 100\n{TEN}Wait 200\nRestart u3\n{TEN}"
    result = simulated(CHAIN, script)
    assert numbers(result.trace, "deliver", subscriber="u3") == list(range(11, 21))
    assert result.drained
    assert promises_kept(result.trace)


def test_a_plain_client_leaves_a_best_effort_network() -> None:
    network = CHAIN.replace("Guarantee reliable\n", "")
    result = simulated(network, f"Subscriber u3 Subscribe # As s\nLeave u3\nWait 100\n{TEN}")
    assert not of_kind(result.trace, "deliver")
    assert not of_kind(result.trace, "forward", node="b1"), "nobody beyond has asked for it"


# Expel


def test_what_is_held_for_somebody_who_is_down_for_ever_is_not_drained_until_he_is_expelled() -> None:
    """E0.5: without EXPEL a dead subscriber pins memory on δ+1 nodes for ever."""
    script = f"Subscriber u3 Subscribe # As s\nCrash u3\n{TEN}Wait 300\n"
    assert not simulated(CHAIN, script).drained
    expelled = simulated(CHAIN, f"{script}Expel u3\n")
    assert expelled.drained
    assert of_kind(expelled.trace, "leave")[0]["nodes"] == ["u3"]


def test_a_client_whose_broker_is_down_is_expelled_by_the_next() -> None:
    script = f"Subscriber u3 Subscribe # As s\nCrash u3\nCrash b3\nWait 1000\n{TEN}Wait 300\nExpel u3\n"
    assert simulated(CHAIN, script).drained
    assert simulated(CHAIN, f"{script}Restart b3\nWait 1000\n").drained, "b3 must not bring it back"


def test_who_is_expelled_alive_stays_out_until_it_begins_anew() -> None:
    script = (
        f"Subscriber u3 Subscribe # As s\nExpel u3\nWait 100\n{TEN}Wait 1000\nCrash u3\nRestart u3\n{TEN}"
    )
    result = simulated(CHAIN, script)
    assert numbers(result.trace, "deliver", subscriber="u3") == list(range(11, 21))
    assert result.drained
    assert promises_kept(result.trace)


def test_where_no_broker_in_reach_runs_nobody_is_expelled() -> None:
    result = simulated(CHAIN, "Crash b2\nCrash b3\nExpel u3\n")
    assert not of_kind(result.trace, "leave")
