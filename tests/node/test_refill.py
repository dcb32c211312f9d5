"""Memory lost and regained: refill, by those beyond (B0.16); replay, by those before; incarnations (B0.17, B0.18)."""

from __future__ import annotations

import pytest
from harness import Net
from wiretap import Wiretap

from holdfast.messages.overlay import Told


def holding(*, refill: bool = True, replay_bytes_max: int = 0) -> tuple[Net, Wiretap]:
    """B2 and B3 hold three publications for a subscriber that is cut off; P and B1 have purged them (δ = 1)."""
    tap = Wiretap()
    net = Net("P-B1-B2-B3-S", 1, refill=refill, replay_bytes_max=replay_bytes_max, transcript=tap)
    net.subscribe("S")
    net.run(1000)
    net.cut("B3", "S")
    net.cut("B2", "S")
    net.run(1500)
    net.publish("P", 3)
    net.run(4000)
    assert net.held() == {"B2": 3, "B3": 3}
    net.began = net.world.now
    return net, tap


def heal(net: Net) -> None:
    net.heal("B3", "S")
    net.heal("B2", "S")
    net.run(3000)


def test_b016_one_after_another_all_holders_crash_and_nothing_is_lost() -> None:
    """One node down at a time; without refill the second crash loses all three."""
    for refill, expected in ((True, ["P#1", "P#2", "P#3"]), (False, [])):
        net, tap = holding(refill=refill)
        for name in ("B2", "B3"):
            net.crash(name)
            net.run(1500)
            net.restart(name)
            net.run(3000)
        heal(net)
        assert net.got("S") == expected
        assert not tap.broken_laws(net)


def test_b016_what_is_given_back_comes_within_the_handshake() -> None:
    """Before Told, and so before the restarted node is ready for publications from upstream."""
    net, tap = holding()
    net.crash("B2")
    net.run(1500)
    net.restart("B2")
    net.run(3000)
    refills = [frame for frame, _ in tap.relays(refill=True)]
    assert {(frame.node, frame.peer) for frame in refills} == {("B3", "B2")}
    told = [frame.at for frame in tap.sent(Told, "B3", "B2")]
    assert all(frame.at <= told[-1] for frame in refills)
    assert net.node("B2").plane.counters.refilled == 3


def test_b016_what_is_given_back_leaves_no_mark_and_goes_only_where_it_came_from() -> None:
    """An older publication that only another branch needs must not look like a duplicate afterwards."""
    net = Net("P-B1-B2-B3-S B2-B4-T", 1)
    net.subscribe("S")
    net.subscribe("T")
    net.run(1000)
    net.cut("B3", "S")
    net.cut("B2", "S")
    net.run(1000)
    net.publish("P", 2)
    net.run(4000)
    assert net.got("T") == ["P#1", "P#2"]
    net.crash("B2")
    net.run(1500)
    net.restart("B2")
    net.run(500)
    plane = net.node("B2").plane
    assert plane.counters.refilled == 2
    assert all({each.name for each in segment.shares} == {"S"} for segment in plane.queue.values())
    heal(net)
    assert net.got("S") == ["P#1", "P#2"]
    assert net.got("T") == ["P#1", "P#2"]
    assert net.memories["T"].suppressed == 0


def test_b016_older_publications_come_before_newer_ones_after_a_restart() -> None:
    """B2 restarts while P publishes on: what it is given back precedes what P sends it."""
    net, tap = holding()
    net.crash("B2")
    net.run(100)
    net.publish("P", 2)
    net.run(400)
    net.restart("B2")
    for _ in range(10):
        net.publish("P")
        net.run(10)
    net.run(3000)
    net.crash("B3")
    net.run(1500)
    net.restart("B3")
    net.run(2000)
    heal(net)
    assert net.got("S") == [f"P#{n}" for n in range(1, 16)]
    assert not tap.broken_laws(net)


def test_b016_two_neighbours_that_recover_together_are_both_given_back_what_they_had() -> None:
    """δ = 2: B2 and B3 restart at the same instant, empty; B4 gives back to B3, and B3 to B2."""
    net = Net("P-B1-B2-B3-B4-S", 2, replay_bytes_max=0)
    net.subscribe("S")
    net.run(1000)
    for broker in ("B4", "B3", "B2"):
        net.cut(broker, "S")
    net.run(1500)
    net.publish("P", 3)
    net.run(5000)
    net.crash("B2", "B3")
    net.run(1500)
    net.restart("B2", "B3")
    net.run(3000)
    assert {"B2", "B3", "B4"} <= set(net.held())
    net.crash("B3", "B4")
    net.run(2000)
    for broker in ("B4", "B3", "B2"):
        net.heal(broker, "S")
    net.run(2000)
    assert net.got("S") == ["P#1", "P#2", "P#3"]


# Replay


@pytest.mark.parametrize(("kept_bytes", "expected"), [(1 << 20, ["P#1", "P#2", "P#3"]), (0, [])])
def test_all_holders_crash_at_once_and_those_before_them_have_kept_what_was_safe(
    kept_bytes: int, expected: list[str]
) -> None:
    """Beyond δ: B2 and B3, who held it all, are gone together. B1 had let it go, but not for good."""
    net, tap = holding(replay_bytes_max=kept_bytes)
    net.crash("B2", "B3")
    net.run(1500)
    net.restart("B2", "B3")
    net.run(3000)
    heal(net)
    assert net.got("S") == expected
    assert not tap.broken_laws(net)


def test_what_is_safe_for_good_is_not_kept() -> None:
    net = Net("P-B1-B2-B3-S", 1)
    net.subscribe("S")
    net.run(1000)
    net.publish("P", 5)
    net.run(6000)
    assert net.got("S") == [f"P#{n}" for n in range(1, 6)]
    assert [len(net.node(name).plane.kept) for name in net.edges] == [0] * 5


def test_the_oldest_is_let_go_when_too_much_is_kept() -> None:
    net, _ = holding(replay_bytes_max=200)
    for _ in range(30):
        net.publish("P")
        net.run(100)
    net.run(4000)
    plane = net.node("B1").plane
    assert 0 < sum(segment.size for segment in plane.kept.values()) <= 200
    newest = [publication.n for segment in plane.kept.values() for publication in segment.batch.publications]
    assert newest == list(range(34 - len(newest), 34))


def test_a_replay_is_no_repeat_to_those_who_remember() -> None:
    """B2 alone restarts: B1 replays what B3 still holds; B3 tells it for what it is, and S has it once."""
    net, tap = holding(refill=False, replay_bytes_max=1 << 20)
    net.crash("B2")
    net.run(1500)
    net.restart("B2")
    net.run(3000)
    heal(net)
    assert net.got("S") == ["P#1", "P#2", "P#3"]
    assert net.memories["S"].suppressed == 0
    assert not tap.broken_laws(net)


# Incarnations


def test_b016_a_restarted_publisher_is_given_back_what_it_had_published() -> None:
    """Its own publications of an earlier life; nothing of it is delivered twice."""
    net = Net("P-B1-B2-B3-S", 1)
    net.subscribe("S")
    net.run(1000)
    net.crash("B2", "B3")
    net.run(1500)
    net.publish("P", 2)
    net.run(500)
    net.crash("P")
    net.run(1000)
    net.restart("P")
    net.run(1000)
    net.publish("P")
    net.run(500)
    net.restart("B2", "B3")
    net.run(5000)
    assert net.got("S") == ["P#1", "P#2", "P#3"]
    assert net.held() == {}


def test_b017_a_restarted_node_never_gives_a_number_twice() -> None:
    """I13, over crashes of every broker in turn, with traffic; the tap checks each vector."""
    tap = Wiretap()
    net = Net("P-B1-B2-B3-S", 1, transcript=tap)
    net.subscribe("S")
    net.run(1000)
    for name in ("B1", "B2", "B3"):
        net.publish("P", 2)
        net.run(20)
        net.crash(name)
        net.publish("P", 2)
        net.run(1000)
        net.restart(name)
        net.publish("P", 2)
        net.run(4000)
    assert net.got("S") == [f"P#{n}" for n in range(1, 19)]
    lives = {
        (step.node, step.incarnation)
        for _, relay in tap.relays()
        for step in relay.trail.steps
        if step.incarnation
    }
    assert {("B1", 2), ("B2", 2), ("B3", 2)} <= lives
    assert not tap.broken_laws(net)
