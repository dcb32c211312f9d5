"""Forwarding and the queue: R0.10-R0.16, R0.55, R0.67, B0.9-B0.11, B0.21, B0.28, B0.29, B0.35."""

from __future__ import annotations

import pytest
from harness import Net
from wiretap import Wiretap

from holdfast.clock import MILLISECOND
from holdfast.messages.overlay import Confirmations, Relay, Step, Trail
from holdfast.messages.publications import Batch, Publication
from holdfast.node.settings import Acknowledge


def settled(tree: str, delta: int, *subscribers: str, **options: object) -> tuple[Net, Wiretap]:
    """A network in which these subscribe to everything, confirmed."""
    tap = Wiretap()
    net = Net(tree, delta, transcript=tap, **options)  # type: ignore[arg-type]
    for name in subscribers:
        net.subscribe(name)
    net.run(1000)
    net.began = net.world.now
    return net, tap


# Who gets it


def test_r012_one_copy_crosses_each_link_behind_which_somebody_wants_it() -> None:
    """I32, the multicast effect: B2 gets one copy for three subscribers; nobody beyond B4 wants any."""
    net, tap = settled("P-B1-B2-S1 B2-S2 B2-B3-S3 B1-B4-S4", 2)
    for name in ("S1", "S2", "S3"):
        net.subscribe(name)
    net.subscribe("S4", 1, "nothing")
    net.run(1000)
    net.publish("P")
    net.run(500)
    copies = [("P", "B1"), ("B1", "B2"), ("B2", "S1"), ("B2", "S2"), ("B2", "B3"), ("B3", "S3")]
    assert sorted(tap.copies_of("P#1")) == sorted(copies)


def test_r010_a_publication_never_goes_back_where_it_came_from() -> None:
    """The publisher's own side wants it too: those recipients have it from nearer nodes."""
    net, tap = settled("P-B1-B2-B3-S B1-T", 1, "S", "T")
    net.publish("P")
    net.run(500)
    assert ("B2", "B1") not in tap.copies_of("P#1")
    assert net.got("T") == net.got("S") == ["P#1"]


def test_r011_what_matches_beyond_is_kept_by_target_and_what_does_not_is_not_kept() -> None:
    net, _ = settled("P-B1-B2-S B1-T", 1, acknowledge=Acknowledge.NONE)
    net.subscribe("S", 1, "# WHERE k = 1")
    net.run(1000)
    net.publish("P", k=1)
    net.publish("P", k=2)
    net.run(500)
    assert [segment.shares.keys() for segment in net.node("B1").plane.queue.values()] == [
        {net.node("B1").reach["S"]}
    ]
    assert net.node("P").plane.counters.unwanted == 1
    assert [str(event) for event in net.memories["P"].accepted] == ["P#2"], (
        "nobody wants it: accepted (B0.35)"
    )


def test_r016_bypassing_does_not_change_what_a_node_receives() -> None:
    net, tap = settled("P-A-B-C-S B-T", 1, "S")
    net.subscribe("T", 1, "nothing")
    net.run(500)
    net.crash("B")
    net.run(1500)
    net.publish("P")
    net.run(500)
    assert tap.copies_of("P#1") == [("P", "A"), ("A", "C"), ("C", "S")]


def test_an_event_for_two_subscriptions_of_one_client_is_sent_once() -> None:
    net, tap = settled("P-B1-S", 1, "S")
    net.subscribe("S", 2, "t WHERE n >= 1")
    net.run(500)
    net.publish("P")
    net.run(500)
    assert tap.copies_of("P#1") == [("P", "B1"), ("B1", "S")]
    assert net.got("S", 1) == net.got("S", 2) == ["P#1"]


# Order, and what stalls


def test_b09_nothing_overtakes_what_cannot_be_sent_legitimately() -> None:
    """X2 in small: p is stalled at X; q of another publisher waits behind it, and the other direction does not."""
    net, tap = settled("P-Z-A-X-B-N-S X-Q X-T", 1, "S", "T")
    net.crash("A", "B")
    net.run(2000)
    net.publish("P")
    net.run(200)
    assert net.node("X").plane.stalled == {"B": 1}
    net.publish("Q")
    net.run(500)
    assert net.got("S") == []
    assert net.got("T") == ["P#1", "Q#1"]
    net.restart("B")
    net.run(1500)
    assert net.node("X").plane.stalled == {}
    assert net.got("S") == ["P#1", "Q#1"]
    assert not tap.broken_laws(net)


def test_b010_a_queued_copy_keeps_the_vector_it_came_with() -> None:
    """The repeat that comes after A's return is not merged: p leaves X with A:⊥ still."""
    net, _ = settled("P-Z-A-X-B-N-S", 1, "S")
    net.crash("A", "B")
    net.run(2000)
    net.publish("P")
    net.run(200)
    net.restart("A")
    net.run(1000)
    (segment,) = net.node("X").plane.queue.values()
    assert [step.incarnation is None for step in segment.trail.steps] == [False, False, True]
    assert segment.aliases, "the repeat is remembered, for depth-acknowledgements only (B0.11)"
    net.restart("B")
    net.run(1500)
    assert net.got("S") == ["P#1"]


def test_r055_whoever_becomes_next_is_served_from_the_head_of_the_queue_in_order() -> None:
    """B0.28: nobody can be reached, five wait; then the first of the fragment returns."""
    net, tap = settled("P-A-B-C-D-S", 1, "S")
    net.crash("B", "C")
    net.run(1500)
    for _ in range(5):
        net.publish("P")
    net.run(200)
    assert net.queue("A") == 5
    net.restart("B")
    net.run(1500)
    assert net.got("S") == [f"P#{n}" for n in range(1, 6)]
    assert not tap.broken_laws(net)


@pytest.mark.parametrize("acknowledge", list(Acknowledge))
def test_r067_events_of_one_instant_keep_their_order_whatever_the_mode(acknowledge: Acknowledge) -> None:
    net, _ = settled("P-A-B-S Q-B", 2, "S", acknowledge=acknowledge)
    for _ in range(10):
        net.publish("P", 3)
        net.publish("Q", 2)
    net.run(1500)
    got = net.got("S")
    assert [each for each in got if each[0] == "P"] == [f"P#{n}" for n in range(1, 31)]
    assert [each for each in got if each[0] == "Q"] == [f"Q#{n}" for n in range(1, 21)]


# Confirmations


def test_r014_a_confirmation_comes_back_when_every_subscriber_beyond_has_it() -> None:
    net, tap = settled("P-A-B-S B-T", 1, "S", "T", acknowledge=Acknowledge.CONF)
    net.slow("B", "T", 500)
    net.publish("P")
    net.run(400)
    assert net.got("S") == ["P#1"]
    assert not net.memories["P"].accepted
    assert [net.queue(name) for name in ("P", "A", "B")] == [1, 1, 1]
    net.run(400)
    assert net.got("T") == ["P#1"]
    assert net.memories["P"].accepted
    assert net.held() == {}
    senders = [frame.node for frame in tap.sent(Confirmations)]
    assert senders == ["S", "T", "B", "A"]


def test_b028_a_confirmation_that_never_comes_is_replaced_by_that_of_whoever_is_next() -> None:
    net, _ = settled("P-A-B-C-S", 1, "S", acknowledge=Acknowledge.CONF)
    net.publish("P")
    net.run(25)
    net.crash("B")
    net.run(1500)
    assert net.got("S") == ["P#1"]
    assert net.held() == {}
    assert net.memories["P"].accepted


def test_b029_a_repeat_of_what_is_gone_is_confirmed_again() -> None:
    """B confirmed, the link broke under the confirmation; A sends again, and B answers again."""
    net, _ = settled("P-A-B-S", 0, "S", acknowledge=Acknowledge.CONF)
    net.publish("P")
    net.run(35)
    net.cut("A", "B")
    net.run(1000)
    assert net.queue("A") == 1
    assert net.queue("B") == 0
    net.heal("A", "B")
    net.run(1500)
    assert net.got("S") == ["P#1"]
    assert net.held() == {}
    assert net.memories["P"].accepted


def test_b021_every_sender_of_a_message_is_confirmed_to() -> None:
    """B froze with copies in its hands: A went past it to C; when B goes on it must not hold them for ever."""
    net, _ = settled("P-A-B-C-S", 1, "S", acknowledge=Acknowledge.CONF)
    net.slow("B", "C", 300)
    net.publish("P", 3)
    net.run(100)
    net.freeze("B")
    net.run(1200)
    net.unfreeze("B")
    net.run(3000)
    assert net.got("S") == ["P#1", "P#2", "P#3"]
    assert net.held() == {}


def test_a_confirmation_for_an_earlier_life_confirms_nothing_of_the_next() -> None:
    """X restarts while N holds what it sent; N's late confirmations are not for the numbers of X's new life."""
    net, _ = settled("P-X-N-S", 2, "S", acknowledge=Acknowledge.CONF, refill=False)
    net.publish("P", 5)
    net.run(500)
    net.slow("N", "S", 2000)
    net.publish("P", 5)
    net.run(200)
    net.crash("X")
    net.run(50)
    net.restart("X")
    net.run(1650)
    net.publish("P", 5)
    net.run(155)
    assert net.queue("N") == 5
    assert net.queue("X") == 5, "N has confirmed none of these"
    net.crash("N")
    net.run(2000)
    assert net.got("S") == [f"P#{n}" for n in range(1, 16)]


# What cannot be


def relay(net: Net, *steps: Step, numbers: list[list[int]]) -> Relay:
    return Relay("default", Batch([Publication("P", 1, b"")]), [0], Trail(steps, numbers))


@pytest.mark.parametrize(
    ("steps", "numbers", "problem"),
    [
        ((Step("X", 1),), [[1]], "does not lead from A"),
        ((Step("A", 2),), [[1]], "did not begin with it"),
        ((Step("A", None),), [], "did not begin with it"),
        ((Step("Q", None), Step("R", None), Step("A", 1)), [[1]], "not legitimate"),
        ((Step("A", 1),), [[1], [2]], "too many or too few"),
        ((Step("A", 1),), [[1, 2]], "do not increase"),
    ],
)
def test_a_way_that_cannot_be_is_refused(
    steps: tuple[Step, ...], numbers: list[list[int]], problem: str
) -> None:
    net = Net("A-B", 1)
    plane, sender = net.node("B").plane, net.node("B").reach["A"]
    with pytest.raises(ValueError, match=problem):
        plane.new(sender, relay(net, *steps, numbers=numbers))
    assert len(plane.marks) == 0


def test_a_peer_that_breaks_a_rule_loses_its_session_and_nobody_else_notices() -> None:
    net, _ = settled("P-A-B-S", 1, "S")
    bad = relay(net, Step("nobody", 1), numbers=[[1]])
    connection = net.node("A").reach["B"].connection
    assert connection is not None
    net.world.network.send(net.world.nodes["A"], connection, [bad])
    net.run(100)
    net.publish("P")
    net.run(2000)
    assert net.got("S") == ["P#1"]
    assert net.node("A").reach["B"].is_open


def test_i33_one_failure_delays_a_publication_by_one_detector_timeout_at_most() -> None:
    net, _ = settled("P-A-B-C-S", 1, "S")
    net.crash("B")
    net.publish("P")
    net.run(1500)
    assert net.times("S")[0] <= (net.settings.detect_after_ns + net.settings.heartbeat_ns) / MILLISECOND + 200
