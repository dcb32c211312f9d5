from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.scenarios.actor_publishing import RESERVED_BLOCK
from holdfast.scenarios.language import ScenarioError
from holdfast.simulator.run import NotConnected
from holdfast.simulator.transcript import Transcript
from simulations import CHAIN, numbers, of_kind, promises_kept, simulated

PUBLISH = "Publisher p Publish 10 Ontopic orders Interval 20 With price=uniform(1,200)\n"


def test_a_trace_has_run_first_end_last_and_begins_at_zero() -> None:
    result = simulated(CHAIN, "Subscriber u3 Subscribe orders As s\n" + PUBLISH)
    first, last = result.trace[0], result.trace[-1]
    assert (first["kind"], first["t"], first["world"]) == ("run", 0.0, "simulator")
    assert (last["kind"], last["drained"]) == ("end", True)
    assert numbers(result.trace, "deliver") == list(range(1, 11))
    assert promises_kept(result.trace)


def test_the_script_begins_when_brokers_far_apart_have_met() -> None:
    """By then each has given the other up once, and would serve its clients alone."""
    script = f"Subscriber u3 Subscribe orders As s\n{PUBLISH}"
    trace = simulated(f"{CHAIN}Link b1 b2 Delay 200\n", script).trace
    assert [line["partial"] for line in of_kind(trace, "subscribed")] == [[]]
    assert numbers(trace, "deliver") == list(range(1, 11))
    assert promises_kept(trace)


def test_sessions_lost_before_the_script_began_are_not_in_the_trace() -> None:
    lost = 0
    for seed in range(1, 9):
        transcript = Transcript()
        lossy = f"{CHAIN}Seed {seed}\nLink b1 b2 Delay 10 Loss 0.2\n"
        trace = simulated(lossy, "Wait 1\n", transcript=transcript).trace
        assert (trace[0]["kind"], trace[0]["i"]) == ("run", 1)
        assert min(line["t"] for line in trace) == 0.0
        lost += str(transcript).count("disconnect nodes")
    assert lost, "there was nothing to leave out"


def test_subscribing_waits_for_the_confirmation_and_publishing_for_nothing() -> None:
    trace = simulated(
        CHAIN, f"Subscriber u3 Subscribe orders\n{PUBLISH}Subscriber u2 Subscribe orders\n"
    ).trace
    (first, second), (publish, *_) = of_kind(trace, "subscribed"), of_kind(trace, "publish")
    assert first["t"] == publish["t"] == pytest.approx(0.06)  # three hops out and back
    assert second["t"] < of_kind(trace, "publish")[-1]["t"]


def test_a_subscription_without_a_name_is_numbered() -> None:
    script = "Subscriber u3 Subscribe a\nSubscriber u3 Subscribe b As bee\nSubscriber u3 Subscribe c\n"
    assert [line["subscription"] for line in of_kind(simulated(CHAIN, script).trace, "subscribed")] == [
        "u3#1",
        "bee",
        "u3#3",
    ]


def test_the_filter_stands_in_the_trace_as_it_was_given() -> None:
    trace = simulated(CHAIN, 'Subscriber u3 Subscribe "/orders  WHERE (price>100)" As s\n').trace
    assert [line["filter"] for line in of_kind(trace, "subscribe", "subscribed")] == [
        "/orders  WHERE (price>100)"
    ] * 2


def test_commands_at_a_time_run_then_and_the_script_does_not_wait_for_them() -> None:
    script = "At 300 Subscriber u3 Subscribe orders As s\nWait 100\nStatus\nAt 200 " + PUBLISH
    trace = simulated(CHAIN, script).trace
    assert of_kind(trace, "status")[0]["t"] == pytest.approx(0.1)
    assert of_kind(trace, "publish")[0]["t"] == pytest.approx(0.2)
    assert of_kind(trace, "subscribe")[0]["t"] == pytest.approx(0.3)


def test_the_end_waits_for_commands_that_are_still_to_come() -> None:
    assert len(of_kind(simulated(CHAIN, f"At 20000 {PUBLISH}").trace, "publish")) == 10


def test_drain_waits_until_everything_has_arrived_and_no_longer() -> None:
    trace = simulated(CHAIN, f"Subscriber u3 Subscribe orders\n{PUBLISH}Drain 5000\nStatus\n").trace
    assert of_kind(trace, "status")[0]["t"] == of_kind(trace, "deliver")[-1]["t"]


def test_drain_gives_up_after_its_time() -> None:
    trace = simulated(CHAIN, f"{PUBLISH}Drain 50\nStatus\n").trace
    assert of_kind(trace, "status")[0]["t"] == pytest.approx(0.05)


def test_drain_waits_for_a_frozen_process_until_it_is_given_up() -> None:
    script = f"Subscriber u3 Subscribe orders\nFreeze u3\n{PUBLISH}Drain 5000\nStatus\n"
    result = simulated(CHAIN, script)
    freeze, status = of_kind(result.trace, "freeze", "status")[:2]
    assert 0.4 <= status["t"] - freeze["t"] < 0.7
    assert result.drained


def test_drain_waits_for_a_frozen_broker_however_often_it_is_dialled() -> None:
    """Its neighbours and clients dial it all the time, and are never all at rest at once."""
    clients = "".join(f"Process c{n} is subscriber On s2 URL tcp://localhost:1{n}/u\n" for n in range(9))
    assert simulated(f"{CHAIN}ProbeEvery 10\n{clients}", f"Freeze b2\n{PUBLISH}").drained


def test_drain_waits_for_a_publish_command_that_a_frozen_publisher_cannot_finish() -> None:
    assert not simulated(CHAIN, f"Freeze p\n{PUBLISH}").drained


def test_drain_does_not_wait_for_a_subscription_that_cannot_be_confirmed() -> None:
    result = simulated(CHAIN, f"Crash b3\nSubscriber u3 Subscribe orders\n{PUBLISH}Drain 5000\nStatus\n")
    assert result.drained
    assert of_kind(result.trace, "status")[0]["t"] < of_kind(result.trace, "accepted")[-1]["t"] + 0.5


def test_drain_waits_for_a_publisher_that_will_be_connected_again() -> None:
    result = simulated(CHAIN, f"Crash b1\n{PUBLISH}Wait 3000\nRestart b1\n")
    assert result.drained
    assert numbers(result.trace, "accepted") == list(range(1, 11))


def test_a_command_that_never_completes_is_given_up_after_five_seconds() -> None:
    trace = simulated(CHAIN, "Freeze b3\nSubscriber u3 Subscribe orders\nStatus\n").trace
    assert of_kind(trace, "status")[0]["t"] == pytest.approx(5.0)


def test_every_process_that_is_up_has_a_status() -> None:
    trace = simulated(CHAIN, "Subscriber u3 Subscribe orders As s\nCrash u2\nStatus\n").trace
    status = {line["node"]: line for line in of_kind(trace, "status")}
    assert list(status) == ["b1", "b2", "b3", "p", "u3"]
    assert status["b2"]["connections"]["neighbours"] == {"b1": "active", "b3": "active"}
    assert status["u3"]["tables"] == {"subscriptions": ["s"]}


def test_a_frozen_process_writes_its_status_when_it_goes_on() -> None:
    script = "Freeze u2\nFreeze b3\nStatus\nStatus\nCrash u2\nRestart u2\nWait 100\nUnfreeze b3\n"
    trace = simulated(CHAIN, script).trace
    (unfreeze,) = of_kind(trace, "unfreeze")
    assert [line["t"] for line in of_kind(trace, "status", node="b3")] == [unfreeze["t"]] * 2
    assert len(of_kind(trace, "status", node="b2")) == 2
    assert not of_kind(trace, "status", node="u2"), "who is killed never hears what it was told"


def test_what_changes_nothing_is_left_out_of_the_trace() -> None:
    script = "Restart u2\nCrash u2\nCrash u2\nFreeze u2\nUnfreeze u2\nSubscriber u2 Subscribe a\nRestart u2\n"
    trace = simulated(CHAIN, script).trace
    assert [line["kind"] for line in trace] == ["run", "crash", "restart", "end"]


def test_a_crashed_publisher_goes_on_above_every_number_it_used() -> None:
    script = f"{PUBLISH}Wait 90\nCrash p\nRestart p\n{PUBLISH}"
    used = numbers(simulated(CHAIN, script).trace, "publish")
    assert used[:5] == [1, 2, 3, 4, 5]
    assert used[5:] == list(range(RESERVED_BLOCK + 1, RESERVED_BLOCK + 11))


def test_a_restarted_subscriber_subscribes_again_to_what_it_had() -> None:
    script = """Subscriber u3 Subscribe orders As kept
        Subscriber u3 Subscribe alarms As given-up
        Subscriber u3 Unsubscribe given-up
        Crash u3
        Restart u3
        """
    trace = simulated(CHAIN, script + PUBLISH).trace
    assert [line["subscription"] for line in of_kind(trace, "subscribed")] == ["kept", "given-up", "kept"]
    assert len(of_kind(trace, "deliver", subscription="kept")) == 10


def test_a_slow_application_takes_one_event_at_a_time() -> None:
    trace = simulated(CHAIN, f"Subscriber u2 Subscribe orders\nSlow u2 100\n{PUBLISH}").trace
    times = [line["t"] for line in of_kind(trace, "deliver")]
    assert len(times) == 10
    assert all(later - earlier >= 0.1 - 1e-9 for earlier, later in pairwise(times))
    assert trace[-1]["drained"]


def test_a_network_that_does_not_come_up_is_named() -> None:
    with pytest.raises(NotConnected, match="u3"):
        simulated(CHAIN + "Link b3 u3 Loss 1\n", "Wait 1\n")


def test_no_process_may_have_the_name_under_which_the_script_writes() -> None:
    with pytest.raises(ScenarioError, match="line 13: the name master is that of the Puppet Master"):
        simulated(f"{CHAIN}\nProcess master is publisher On s1 URL tcp://localhost:9/p\n", "Wait 1\n")
