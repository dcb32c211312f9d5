"""Best-effort under single faults: what must break, what must not, and that service comes back by itself.

Heartbeats every 100 ms, silence noticed after 500 ms, a lost parent dialled every 200 ms.
"""

from __future__ import annotations

import pytest

from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.liveness import liveness, settled_at
from holdfast.simulator.transcript import Transcript
from simulations import CHAIN, numbers, of_kind, promises_kept, simulated

SUBSCRIBE = "Subscriber u3 Subscribe orders As far\nSubscriber u2 Subscribe orders As near\n"
STEADY = "Publisher p Publish 400 Ontopic orders Interval 10\n"  # four seconds
AFTERWARDS = "Wait 6000\nPublisher p Publish 5 Ontopic orders Interval 10\nDrain 5000\n"


def run_with(fault: str, *, after: str = AFTERWARDS, configuration: str = CHAIN) -> list[TraceLine]:
    """Steady publishing with a fault in its midst, and five events more when all is whole again."""
    return simulated(configuration, f"{SUBSCRIBE}{STEADY}{fault}{after}").trace


def is_whole_again(trace: list[TraceLine]) -> bool:
    violations = liveness(trace, settled_at(trace, 2.5))
    assert not violations, "\n".join(violation.message for violation in violations)
    return promises_kept(trace)


def missing(trace: list[TraceLine], subscription: str) -> list[int]:
    """What was published and not delivered to a subscription."""
    got = set(numbers(trace, "deliver", subscription=subscription))
    return [n for n in numbers(trace, "publish") if n not in got]


# Crashes


def test_a_broker_that_crashes_and_comes_back_is_told_the_tables_and_routes_again() -> None:
    trace = run_with("At 1000 Crash b2\nAt 2000 Restart b2\n")
    assert is_whole_again(trace)
    for subscription in ("far", "near"):
        lost = missing(trace, subscription)
        assert 90 <= len(lost) <= 250, "what was published while it was away, and until it was found again"
        assert lost == list(range(lost[0], lost[-1] + 1)), "one hole"
    assert len(of_kind(trace, "subscribed")) == 2, "the clients made their subscriptions again by themselves"


def test_a_restart_faster_than_the_detector_is_seen_for_what_it_is() -> None:
    trace = run_with("At 1000 Crash b2\nAt 1050 Restart b2\n")
    assert is_whole_again(trace)
    assert len(missing(trace, "far")) < 100


def test_the_publishers_broker_crashes_and_what_it_had_not_acknowledged_is_sent_again() -> None:
    trace = run_with("At 1000 Crash b1\nAt 1700 Restart b1\n")
    assert is_whole_again(trace)
    assert len(of_kind(trace, "accepted")) == len(of_kind(trace, "publish")) == 405


def test_a_subscriber_that_crashes_forgets_and_subscribes_again() -> None:
    trace = run_with("At 1000 Crash u3\nAt 1500 Restart u3\n")
    assert is_whole_again(trace)
    assert not missing(trace, "near")
    assert [line["kind"] for line in of_kind(trace, "subscribe", "subscribed", subscription="far")] == [
        "subscribe",
        "subscribed",
    ] * 2


def test_a_subscriber_that_never_comes_back_costs_no_traffic_after_a_while() -> None:
    trace = run_with("At 1000 Crash u3\n", after="Wait 8000\n" + STEADY)
    crash = of_kind(trace, "crash")[0]["t"]
    late = [line for line in of_kind(trace, "forward") if line["t"] > crash + 6.5]
    assert late
    assert {(line["from"], line["to"]) for line in late} == {("b1", "b2"), ("b2", "u2")}


def test_a_publisher_that_crashes_and_comes_back_repeats_nothing() -> None:
    trace = run_with("At 1000 Crash p\nAt 1500 Restart p\n")
    assert is_whole_again(trace)
    published = numbers(trace, "publish")
    assert len(set(published)) == len(published)
    assert published == sorted(published)


# Freezes


@pytest.mark.parametrize("frozen", ["b1", "b2", "b3", "u3", "p"])
def test_a_freeze_too_short_to_be_noticed_loses_nothing(frozen: str) -> None:
    trace = run_with(f"At 1000 Freeze {frozen}\nAt 1300 Unfreeze {frozen}\n")
    assert is_whole_again(trace)
    assert not missing(trace, "far")
    assert not missing(trace, "near")


@pytest.mark.parametrize("frozen", ["b1", "b2", "b3", "u3", "p"])
def test_whoever_was_suspected_wrongly_is_taken_back(frozen: str) -> None:
    trace = run_with(f"At 1000 Freeze {frozen}\nAt 3000 Unfreeze {frozen}\n")
    assert is_whole_again(trace)


def test_a_broker_frozen_for_a_while_does_not_deliver_twice_what_it_had_queued() -> None:
    """X18 without its second way: the late frames of b2 go to sessions that are over."""
    trace = run_with("At 1000 Freeze b2\nAt 4000 Unfreeze b2\n")
    assert is_whole_again(trace)
    for subscription in ("far", "near"):
        got = numbers(trace, "deliver", subscription=subscription)
        assert len(set(got)) == len(got)


# Cuts


@pytest.mark.parametrize("cut", ["s2 s1", "b2 b3", "u3 b3", "p b1"])
@pytest.mark.parametrize("length_ms", [30, 300, 1500])
def test_a_cut_ends_and_everything_is_as_it_was(cut: str, length_ms: int) -> None:
    trace = run_with(f"At 1000 Cut {cut}\nAt {1000 + length_ms} Heal {cut}\n")
    assert is_whole_again(trace)


def test_a_cut_is_silent_and_its_hole_ends_the_session() -> None:
    transcript = Transcript()
    script = f"{SUBSCRIBE}{STEADY}At 1000 Cut b2 b3\nAt 1100 Heal b2 b3\n"
    trace = simulated(CHAIN, script, transcript=transcript).trace
    assert any("the numbering leaves a hole" in line for line in transcript.lines)
    assert promises_kept(trace)
    assert missing(trace, "far")
    assert not missing(trace, "near")


def test_what_is_lost_last_is_noticed_although_nothing_follows() -> None:
    """The subscription itself is lost in a short cut: the next heartbeat tells."""
    script = "At 100 Cut b3 u3\nAt 105 Subscriber u3 Subscribe orders As far\nAt 150 Heal b3 u3\nWait 3000\n"
    trace = simulated(CHAIN, script).trace
    assert of_kind(trace, "subscribed")[0]["t"] < 1


def test_the_two_sides_of_a_partition_go_on_by_themselves() -> None:
    network = CHAIN + "Process p3 is publisher On s3 URL tcp://localhost:7/p\n"
    script = f"{SUBSCRIBE}Cut s2 s3\nPublisher p Publish 10 Ontopic orders Interval 200\n"
    script += "Publisher p3 Publish 10 Ontopic orders Interval 200\nWait 2500\nHeal s2 s3\n"
    trace = simulated(network, script + AFTERWARDS).trace
    assert numbers(trace, "deliver", subscription="near", publisher="p")[:10] == list(range(1, 11))
    assert numbers(trace, "deliver", subscription="far", publisher="p3")[:10] == list(range(1, 11))
    assert is_whole_again(trace)


def test_what_is_subscribed_during_a_partition_is_known_everywhere_after_it() -> None:
    script = "Cut s1 s2\nWait 1000\nSubscriber u3 Subscribe orders As far\nHeal s1 s2\n"
    trace = simulated(CHAIN, script + AFTERWARDS).trace
    assert numbers(trace, "deliver", subscription="far") == [1, 2, 3, 4, 5]


def test_what_is_unsubscribed_during_a_partition_does_not_come_back() -> None:
    """X12 for δ = 0: nobody beyond the cut routes for it afterwards."""
    script = f"{SUBSCRIBE}Isolate b2\nWait 1000\nSubscriber u3 Unsubscribe far\nHeal b2\n"
    trace = simulated(CHAIN, script + AFTERWARDS).trace
    assert promises_kept(trace)
    assert not of_kind(trace, "forward", to="b3")
    assert len(of_kind(trace, "deliver", subscription="near")) == 5


# Links


@pytest.mark.parametrize("trouble", ["Loss 0.05", "Duplicate 0.05", "Reorder 0.2"])
def test_a_bad_link_costs_sessions_but_never_a_promise(trouble: str) -> None:
    trace = run_with(f"At 1000 Link b2 b3 {trouble}\nAt 3000 Link b2 b3\nAt 3001 Heal b2 b3\n")
    assert is_whole_again(trace)
    assert len(missing(trace, "far")) < 350


def test_a_slow_link_delays_everything_and_loses_nothing() -> None:
    trace = run_with("At 1000 Link b2 b3 Delay 800\nAt 2000 Link b2 b3\n")
    assert promises_kept(trace)
    assert not missing(trace, "far")
    times = {line["n"]: line["t"] for line in of_kind(trace, "publish")}
    delays = [line["t"] - times[line["n"]] for line in of_kind(trace, "deliver", subscription="far")]
    assert max(delays) == pytest.approx(0.83, abs=0.02)


def test_links_slower_than_a_heartbeat_can_be_lived_with() -> None:
    network = CHAIN + "DetectAfter 3000\nLink b1 b2 Delay 400\nLink u3 b3 Delay 400\n"
    trace = simulated(network, f"{SUBSCRIBE}Publisher p Publish 20 Ontopic orders Interval 10\n").trace
    assert promises_kept(trace)
    assert not missing(trace, "far")


# Disconnecting


def test_a_subscriber_that_disconnects_gets_a_gap_when_it_is_back() -> None:
    trace = run_with("At 1000 Subscriber u3 Disconnect\nAt 1800 Subscriber u3 Reconnect\n")
    assert is_whole_again(trace)
    (gap,) = of_kind(trace, "gap")
    assert (gap["subscription"], gap["pubend"]) == ("far", "p")
    assert missing(trace, "far") == list(range(gap["after"] + 1, gap["upto"] + 1))
    assert not missing(trace, "near")


def test_a_slow_subscriber_slows_nobody_else() -> None:
    network = CHAIN.replace("p is publisher On s1", "p is publisher On s2")
    script = f"{SUBSCRIBE}Slow u2 50\nPublisher p Publish 3000 Ontopic orders Interval 1 Payload 100\n"
    trace = simulated(network, f"{script}Wait 3500\nStatus\nSlow u2 0\n").trace
    assert promises_kept(trace)
    assert not missing(trace, "far")
    times = {line["n"]: line["t"] for line in of_kind(trace, "publish")}
    assert max(line["t"] - times[line["n"]] for line in of_kind(trace, "deliver", subscription="far")) < 0.05


def test_a_subscriber_that_is_far_too_slow_is_dropped_told_and_taken_back() -> None:
    """It stops reading, what waits for it outgrows its buffer, and when it reads again it learns what it missed."""
    transcript = Transcript()
    script = f"{SUBSCRIBE}Slow u2 5\nPublisher p Publish 4000 Ontopic orders Interval 1 Payload 8000\n"
    script += "Wait 5000\nSlow u2 0\nDrain 5000\nPublisher p Publish 5 Ontopic orders Interval 10\n"
    trace = simulated(CHAIN, script, transcript=transcript).trace
    assert any("u2" in line and "< b2: Goodbye(too-slow" in line for line in transcript.lines)
    (gap,) = of_kind(trace, "gap")
    assert missing(trace, "near") == list(range(gap["after"] + 1, gap["upto"] + 1))
    assert not missing(trace, "far")
    assert numbers(trace, "deliver", subscription="near")[-5:] == list(range(4001, 4006))


@pytest.mark.parametrize("delay_ms", [300, 1000])
def test_brokers_further_apart_than_a_neighbours_silence_meet_and_deliver(delay_ms: int) -> None:
    far = f"{CHAIN}Link b1 b2 Delay {delay_ms}\n"
    trace = simulated(far, f"{SUBSCRIBE}Publisher p Publish 5 Ontopic orders Interval 10\nDrain 9000\n").trace
    assert numbers(trace, "deliver", subscription="far") == [1, 2, 3, 4, 5]
    assert promises_kept(trace)
