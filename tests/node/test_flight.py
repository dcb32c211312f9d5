"""What is on its way to a station is bounded in bytes, and what waits is sent in order when there is room.

Events of a megabyte, or what a broker had missed for minutes, used to be sent at once: the connection was given up as
too slow, and all of it began anew, for ever.
"""

from __future__ import annotations

import pytest
from schedules import checked, complete, network
from wiretap import Wiretap

from holdfast.messages.overlay import DepthAck, Relay
from holdfast.node.flight import CLIENT_PART, Flight
from holdfast.node.plane import Plane
from holdfast.node.settings import Acknowledge

ROOM = 1_600  #: bytes between brokers: fifty events, and six to a client


def test_what_arrives_is_not_on_its_way_any_more() -> None:
    flight = Flight()
    flight.send(3, 100)
    flight.send(7, 50)
    flight.arrive(2)
    assert flight.size == 150
    flight.arrive(5)
    assert flight.size == 50
    flight.arrive(7)
    assert flight.size == 0


def most_on_the_way(tap: Wiretap, node: str, peer: str) -> int:
    """The most bytes that one had sent to the other, less what that had said to have got of it."""
    sent: list[tuple[int, int]] = []
    most = 0
    for frame in tap.frames:
        message = frame.message
        if (frame.node, frame.peer, frame.is_sent) == (node, peer, True) and isinstance(message, Relay):
            size = sum(len(message.batch.publications[i].event) for i in message.at)
            sent.append((message.trail.numbers[-1][-1], size))
        elif (frame.node, frame.peer, frame.is_sent) == (node, peer, False) and isinstance(message, DepthAck):
            arrived = max(
                (h.arrived for h in message.holdings if (h.node, h.numbered_by) == (peer, node)), default=0
            )
            sent = [each for each in sent if each[0] > arrived]
        most = max(most, sum(size for _, size in sent))
    assert most, f"{node} has sent {peer} something"
    return most


def test_so_much_is_on_its_way_and_all_of_it_comes_in_order() -> None:
    net, tap = network("P-B1-B2-S", 1, "S", relayed_bytes=ROOM, dack_every_ms=100)
    for _ in range(200):
        net.publish("P")
    net.freeze("B2")  # for less than it takes to be given up
    net.run(300)
    net.unfreeze("B2")
    net.run(20_000)
    assert complete(net, "S", "P")
    assert checked(net, tap) == []
    assert ROOM <= most_on_the_way(tap, "B1", "B2") < 2 * ROOM
    for node, peer in (("P", "B1"), ("B2", "S")):
        assert ROOM // CLIENT_PART <= most_on_the_way(tap, node, peer) < ROOM // 2


def test_much_that_has_come_is_acknowledged_at_once() -> None:
    """Not when it is time for that: else no more than so much would pass in each such time."""
    net, _ = network("P-B1-B2-S", 1, "S", relayed_bytes=ROOM, dack_every_ms=60_000)
    for _ in range(200):
        net.publish("P")
    net.run(5_000)
    assert len(net.got("S")) == 200


def test_who_was_away_is_given_what_it_missed_as_it_takes_that() -> None:
    net, tap = network("P-B1-B2-S", 0, "S", relayed_bytes=ROOM, dack_every_ms=100)
    net.freeze("B2")
    net.run(1_000)
    for _ in range(200):
        net.publish("P")
    net.run(1_000)
    net.unfreeze("B2")
    net.run(20_000)
    assert complete(net, "S", "P")
    assert checked(net, tap) == []
    assert most_on_the_way(tap, "B1", "B2") < 2 * ROOM


def test_of_two_beyond_a_failed_broker_a_slow_one_does_not_hold_up_the_other() -> None:
    """Both are in one direction, and each has room of its own; in order at each."""
    net, tap = network("P-B1-B2-B3-S B2-B4-T", 1, "S", "T", relayed_bytes=ROOM, dack_every_ms=100)
    net.crash("B2")
    net.run(1_500)
    net.freeze("B4")  # for less than it takes to be given up
    for _ in range(100):
        net.publish("P")
    net.run(300)
    assert len(net.got("S")) == 100
    assert net.got("T") == []
    net.unfreeze("B4")
    net.run(5_000)
    assert complete(net, "S", "P")
    assert complete(net, "T", "P")
    net.restart("B2")
    net.run(5_000)
    assert checked(net, tap) == []


@pytest.mark.parametrize("acknowledge", [Acknowledge.CONF, Acknowledge.NONE])
def test_where_nobody_says_what_has_arrived_nothing_waits_for_that(acknowledge: Acknowledge) -> None:
    net, _ = network("P-B1-B2-S", 1, "S", relayed_bytes=ROOM, acknowledge=acknowledge)
    for _ in range(200):
        net.publish("P")
    net.run(5_000)
    assert len(net.got("S")) == 200


def test_a_node_that_does_not_go_on_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plane, "_go_on", lambda self: [])
    net, _ = network("P-B1-B2-S", 1, "S", relayed_bytes=ROOM, dack_every_ms=100)
    for _ in range(200):
        net.publish("P")
    net.run(20_000)
    assert not complete(net, "S", "P")
