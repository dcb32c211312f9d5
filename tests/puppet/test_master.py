"""The Puppet Master's commands, carried out on real processes."""

from __future__ import annotations

import pytest

from holdfast.scenarios.actor_publishing import RESERVED_BLOCK
from holdfast.scenarios.trace import TraceLine
from performances import PAIR, performed
from simulations import numbers, of_kind, promises_kept

PUBLISH = "Publisher p Publish 20 Ontopic orders Interval 5 With price=uniform(1,200)\n"


def accepted_at(trace: list[TraceLine], n: int) -> float:
    """When this event was accepted."""
    (line,) = of_kind(trace, "accepted", n=n)
    return float(line["t"])


def test_a_trace_has_run_first_and_end_last_and_everything_arrives_once_and_in_order() -> None:
    script = f'Subscriber u2 Subscribe "orders WHERE price > 0" As s\n{PUBLISH}'
    result = performed(PAIR, script)
    first, last = result.trace[0], result.trace[-1]
    assert (first["kind"], first["world"], first["tree"]["u2"]) == ("run", "processes", "b2")
    assert 0 <= first["t"] < 0.1
    assert (last["kind"], last["drained"], result.drained) == ("end", True, True)
    assert numbers(result.trace, "deliver", subscription="s") == list(range(1, 21))
    assert promises_kept(result.trace)


def test_a_script_goes_its_course() -> None:
    """Waiting, at a time, several publications at once, slowness, status, draining: one network for all of it."""
    script = """At 600 Subscriber u1 Subscribe late As at
        Subscriber u2 Subscribe orders As s
        Subscriber u1 Subscribe other As gone
        Subscriber u1 Unsubscribe gone
        Slow u2 20
        Publisher p Publish 10 Ontopic orders Interval 1
        Publisher p Publish 10 Ontopic other Interval 1
        Drain 5000
        Status
        """
    trace = performed(PAIR, script).trace
    (confirmed,) = of_kind(trace, "subscribed", subscription="s")
    assert confirmed["t"] < of_kind(trace, "publish")[0]["t"]
    assert [line["kind"] for line in of_kind(trace, "unsubscribe", "unsubscribed", subscription="gone")] == [
        "unsubscribe",
        "unsubscribed",
    ]
    assert not of_kind(trace, "deliver", subscription="gone")
    times = [line["t"] for line in of_kind(trace, "deliver", subscription="s")]
    assert len(times) == 10
    assert times[-1] - times[0] >= 0.9 * 9 * 0.02, "one event every 20 ms"
    status = {line["node"]: line for line in of_kind(trace, "status")}
    assert sorted(status) == ["b1", "b2", "p", "u1", "u2"]
    assert min(line["t"] for line in status.values()) >= times[-1], "Drain waited for the slow subscriber"
    assert status["u2"]["tables"] == {"subscriptions": ["s"]}
    assert status["b2"]["connections"]["neighbours"] == {"b1": "active"}
    (at,) = of_kind(trace, "subscribe", subscription="at")
    assert at["t"] == pytest.approx(0.6, abs=0.4)
    assert promises_kept(trace)


def test_what_cannot_be_completed_or_drained_is_given_up_and_what_changes_nothing_leaves_no_line() -> None:
    script = f"""Restart u2
        Unfreeze u2
        Subscriber u1 Subscribe orders As s
        {PUBLISH}
        Drain 10
        Status
        Crash u2
        Crash u2
        Freeze u2
        Subscriber u2 Subscribe orders
        """
    trace = performed(PAIR, script).trace
    kinds = [line["kind"] for line in trace if line["node"] == "master"]
    assert kinds == ["run", "crash", "end"]
    published, status = of_kind(trace, "publish"), of_kind(trace, "status")
    assert status[0]["t"] < published[-1]["t"], "Drain 10 gave up"
    assert len(status) == 5


def test_a_crashed_publisher_goes_on_above_every_number_it_used() -> None:
    result = performed(
        PAIR, f"Subscriber u2 Subscribe # As s\n{PUBLISH}Wait 50\nCrash p\nRestart p\n{PUBLISH}"
    )
    used = numbers(result.trace, "publish")
    before = [n for n in used if n <= RESERVED_BLOCK]
    assert 0 < len(before) < 20, "it was killed in the midst of publishing"
    assert used[len(before) :] == list(range(RESERVED_BLOCK + 1, RESERVED_BLOCK + 21))
    assert numbers(result.trace, "deliver")[-20:] == used[-20:]
    assert result.drained
    assert promises_kept(result.trace)


def test_a_restarted_subscriber_subscribes_again_to_what_it_had() -> None:
    script = f"""Subscriber u2 Subscribe orders As kept
        Subscriber u2 Subscribe alarms As given-up
        Subscriber u2 Unsubscribe given-up
        Crash u2
        Restart u2
        {PUBLISH}"""
    trace = performed(PAIR, script).trace
    assert [line["subscription"] for line in of_kind(trace, "subscribed")] == ["kept", "given-up", "kept"]
    assert numbers(trace, "deliver", subscription="kept") == list(range(1, 21))
    assert promises_kept(trace)


def test_a_crashed_broker_comes_back_to_its_port_and_service_is_restored() -> None:
    script = f"""Subscriber u1 Subscribe orders As near
        Subscriber u2 Subscribe orders As far
        Publisher p Publish 200 Ontopic orders Interval 2
        Wait 50
        Crash b2
        Wait 100
        Restart b2
        Wait 1000
        {PUBLISH}"""
    result = performed(PAIR, script)
    assert promises_kept(result.trace)
    assert result.drained
    assert numbers(result.trace, "deliver", subscription="near") == list(range(1, 221))
    assert numbers(result.trace, "deliver", subscription="far")[-20:] == list(range(201, 221))


def test_the_root_crashes_and_its_publisher_sends_again_what_was_not_acknowledged() -> None:
    script = f"""Subscriber u2 Subscribe orders As far
        {PUBLISH}
        Crash b1
        Publisher p Publish 20 Ontopic orders Interval 2
        Wait 100
        Restart b1
        Wait 1000
        {PUBLISH}"""
    result = performed(PAIR, script)
    assert promises_kept(result.trace)
    assert result.drained
    assert sorted(numbers(result.trace, "accepted")) == list(range(1, 61))
    assert numbers(result.trace, "deliver", subscription="far")[-20:] == list(range(41, 61))


def test_a_frozen_broker_is_given_up_and_taken_back() -> None:
    script = f"""Subscriber u2 Subscribe orders As far
        {PUBLISH}
        Drain 2000
        Freeze b2
        Publisher p Publish 20 Ontopic orders Interval 2
        Wait 600
        Status
        Unfreeze b2
        Wait 1000
        {PUBLISH}"""
    result = performed(PAIR, script)
    assert promises_kept(result.trace)
    assert result.drained
    (status,) = of_kind(result.trace, "status", node="b1")
    assert status["connections"]["neighbours"] == {"b2": "absent"}
    got = numbers(result.trace, "deliver", subscription="far")
    assert got[:20] == list(range(1, 21))
    assert got[-20:] == list(range(41, 61))
    assert of_kind(result.trace, "status", node="b2"), "it hears what it was told when it goes on"


def test_a_cut_link_carries_nothing_and_a_healed_one_everything() -> None:
    script = f"""Subscriber u1 Subscribe orders As near
        Subscriber u2 Subscribe orders As far
        Cut s1 s2
        {PUBLISH}
        Wait 700
        Status
        Heal s1 s2
        Wait 700
        {PUBLISH}"""
    result = performed(PAIR, script)
    assert promises_kept(result.trace)
    assert result.drained
    assert numbers(result.trace, "deliver", subscription="near") == list(range(1, 41))
    assert numbers(result.trace, "deliver", subscription="far") == list(range(21, 41))
    (status,) = of_kind(result.trace, "status", node="b2")
    assert status["connections"]["neighbours"] == {"b1": "absent"}
    assert [line["nodes"] for line in of_kind(result.trace, "cut", "heal")] == [["b1", "b2"]] * 2


@pytest.mark.parametrize("after", ["", PUBLISH], ids=["nothing follows", "more follows"])
def test_a_cut_too_short_to_be_noticed_loses_the_session_and_nothing_else(after: str) -> None:
    script = f"""Subscriber u1 Subscribe orders As near
        {PUBLISH}
        Drain 2000
        Cut p b1
        {PUBLISH}
        Wait 150
        Heal p b1
        Wait 500
        {after}"""
    result = performed(PAIR, script)
    assert promises_kept(result.trace)
    assert result.drained
    count = 60 if after else 40
    assert numbers(result.trace, "accepted") == list(range(1, count + 1))
    assert numbers(result.trace, "deliver", subscription="near") == list(range(1, count + 1))


def test_a_process_is_isolated_even_through_its_crash() -> None:
    script = f"""At 200 Restart u2
        Subscriber u2 Subscribe orders As s
        Isolate u2
        Crash u2
        Wait 1000
        {PUBLISH}
        Drain 2000
        Status
        Heal u2
        Wait 700
        {PUBLISH}"""
    result = performed(PAIR, script)
    assert promises_kept(result.trace)
    (restart,) = of_kind(result.trace, "restart")
    (status,) = of_kind(result.trace, "status", node="u2")
    assert restart["t"] < status["t"] < accepted_at(result.trace, 20) + 1.5, "nobody waits for the isolated"
    assert status["connections"] == {"broker": False}
    assert numbers(result.trace, "deliver", subscription="s") == list(range(21, 41))


def test_a_disconnected_subscriber_stays_away_until_it_reconnects() -> None:
    script = f"""Subscriber u2 Subscribe orders As s
        Subscriber u2 Disconnect
        {PUBLISH}
        Drain 2000
        Status
        Subscriber u2 Reconnect
        {PUBLISH}"""
    result = performed(PAIR, script)
    assert promises_kept(result.trace)
    assert [line["kind"] for line in of_kind(result.trace, "disconnect", "reconnect")] == [
        "disconnect",
        "reconnect",
    ]
    (status,) = of_kind(result.trace, "status", node="u2")
    assert status["connections"] == {"broker": False}
    assert numbers(result.trace, "deliver", subscription="s") == list(range(21, 41))
