"""Subscriptions: R0.5, R0.22-R0.31, R0.44, R0.48-R0.53, B0.2, B0.19, B0.22-B0.27, B0.30, B0.34; I9, I14, I31."""

from __future__ import annotations

import pytest
from harness import Net
from schedules import tapped

from holdfast.identity import Element, SubscriptionId
from holdfast.messages.subscriptions import Confirmed, Lore, Subscribe


def froms(net: Net) -> dict[str, str]:
    """By node, the *from* of the one subscription there is."""
    return {
        name: interest.port.name
        for name in net.edges
        if net.world.nodes[name].is_up
        for interest in net.node(name).spread.interests.values()
        if interest.is_installed
    }


# Propagation


def test_r022_a_subscription_reaches_every_broker_and_publisher_and_no_other_subscriber() -> None:
    net, tap = tapped("S-B1-B2-P B1-T B2-B3-Q B3-S2", 1)
    net.subscribe("S")
    net.run(500)
    asked = {(frame.node, frame.peer) for frame in tap.sent(Subscribe)}
    assert asked == {("S", "B1"), ("B1", "B2"), ("B2", "P"), ("B2", "B3"), ("B3", "Q")}
    assert len(tap.sent(Subscribe)) == len(asked)
    assert set(froms(net)) == {"S", "B1", "B2", "B3", "P", "Q"}


@pytest.mark.parametrize("delta", [0, 1, 2])
def test_r06_from_is_the_subscriber_or_the_node_delta_plus_1_hops_closer_to_it(delta: int) -> None:
    net, _ = tapped("S-B1-B2-B3-B4-P", delta)
    net.subscribe("S")
    net.run(500)
    for name, port in froms(net).items():
        way = net.path(name, "S")
        assert port == way[min(delta + 1, len(way) - 1)]


def test_b02_from_may_be_a_node_that_was_bypassed_and_is_never_just_the_sender() -> None:
    net, _ = tapped("S-B1-B2-B3-P", 1)
    net.crash("B2")
    net.run(1000)
    net.subscribe("S")
    net.run(500)
    assert froms(net)["B3"] == "B1"
    assert froms(net)["P"] == "B2"


def test_r024_a_subscription_is_installed_when_everybody_outward_has_confirmed_and_not_before() -> None:
    net, _ = tapped("S-B1-B2-B3-P", 1)
    net.slow("B3", "P", 300)
    net.subscribe("S")
    net.run(200)
    assert froms(net) == {}
    assert net.node("B3").spread.pending == 1
    net.run(155)
    assert set(froms(net)) == {"P", "B3", "B2"}, "from the outside in"
    net.run(200)
    assert set(froms(net)) == {"P", "B3", "B2", "B1", "S"}
    assert net.node("B3").spread.pending == 0


def test_r025_step_1_confirms_before_anything_else_is_said() -> None:
    net, tap = tapped("S-B1-B2-P", 1)
    net.subscribe("S")
    net.run(500)
    assert [frame.node for frame in tap.sent(Confirmed)] == ["P", "B2", "B1"]
    assert not [frame for frame in tap.sent(Lore) if frame.at >= net.began], "who asked needs no telling"


def test_r025_step_3_tells_the_inward_nodes_that_were_bypassed() -> None:
    """F returns while M's round still runs: M installs later, and tells F though F did not ask (R0.26)."""
    net, _ = tapped("S-N-F-M-P", 1)
    net.crash("F")
    net.run(1000)
    net.slow("M", "P", 800)
    net.subscribe("S")
    net.run(100)
    net.restart("F")
    net.run(600)
    assert "F" not in froms(net)
    net.run(1500)
    assert set(froms(net)) == {"S", "N", "F", "M", "P"}
    assert froms(net)["F"] == "S"
    assert net.memories["S"].confirmed[1][1] == ()


def test_r031_everything_published_after_the_confirmation_is_delivered() -> None:
    """The event is published in the same instant in which the confirmation arrives, at the far end."""
    net, _ = tapped("S-B1-B2-B3-P", 1)
    net.subscribe("S")
    while not net.memories["S"].confirmed:
        net.run(1)
    net.publish("P")
    net.run(500)
    assert net.got("S") == ["P#1"]


def test_b030_several_copies_are_answered_each() -> None:
    """M's round is under way when F, who asked, dies: N asks M itself, and later F again; each is answered."""
    net, tap = tapped("S-N-F-M-P", 1)
    net.slow("M", "P", 2500)
    net.subscribe("S")
    net.run(100)
    net.crash("F")
    net.run(1000)
    net.restart("F")
    net.run(4000)
    askers = [frame.node for frame in tap.sent(Subscribe, peer="M")]
    assert askers == ["F", "N", "F"]
    assert len(tap.sent(Subscribe, "M", "P")) == 1
    assert net.partial("S") == ()
    assert set(froms(net)) == {"S", "N", "F", "M", "P"}


def test_r044_a_copy_of_a_subscription_that_is_known_is_confirmed_again_and_installed_once() -> None:
    net, tap = tapped("S-A-B-C-P", 1)
    net.subscribe("S")
    net.run(500)
    tap.frames.clear()
    node = net.node("B")
    vector = (Element("S", 1, 9), Element("A", 1, 9))
    message = Subscribe(SubscriptionId("S", 1, 1), "#", vector)
    net.do("B", lambda bare: bare.node.spread.on_subscribe(bare.node.reach["A"], message))
    net.run(100)
    assert [(frame.node, frame.peer) for frame in tap.sent(Confirmed)] == [("B", "A")]
    assert len(node.spread.interests) == 1


def test_b034_a_subscription_that_cannot_go_on_legitimately_waits_and_says_where() -> None:
    """[A:⊥, X, B:⊥]: A down when it passed, B down now."""
    net, tap = tapped("S-Z-A-X-B-N-P", 1)
    net.crash("A", "B")
    net.run(1500)
    net.subscribe("S")
    net.run(1000)
    assert net.node("X").spread.stalled() == [(SubscriptionId("S", 1, 1), "N")]
    assert 1 not in net.memories["S"].confirmed
    net.restart("B")
    net.run(2000)
    assert net.node("X").spread.stalled() == []
    assert net.partial("S") == ()
    net.restart("A")
    net.run(2000)
    assert set(froms(net)) == {"S", "Z", "A", "X", "B", "N", "P"}
    assert not tap.broken_laws(net)


# What a session begins with


def test_r048_tables_come_before_publications() -> None:
    """I9 in a network under load whose middle restarts; the tap looks at every connection."""
    net, tap = tapped("P-A-B-C-S", 1)
    net.subscribe("S")
    net.run(500)
    for _ in range(3):
        net.publish("P", 2)
        net.crash("B")
        net.publish("P", 2)
        net.run(700)
        net.publish("P", 2)
        net.restart("B")
        net.publish("P", 2)
        net.run(3000)
    assert len(net.got("S")) == 24
    assert not list(tap.before_tables())


def test_r050_r051_a_restarted_node_learns_all_and_what_it_has_is_not_taken_twice() -> None:
    """B0.23: tuples are known by their ids, whoever tells."""
    net, _ = tapped("S-A-B-C-P", 1)
    for number in range(1, 6):
        net.subscribe("S", number, f"# WHERE k = {number}")
    net.run(500)
    net.crash("B")
    net.run(1000)
    net.unsubscribe("S", 1)
    net.subscribe("S", 6, "# WHERE k = 6")
    net.run(500)
    net.restart("B")
    net.run(1500)
    known = net.knowing()
    assert known["B"] == [f"S.1#{number}" for number in range(2, 7)]
    assert all(rows == known["B"] for rows in known.values())
    assert len(net.node("B").table) == 5


def test_r052_from_of_what_is_told_is_computed_anew() -> None:
    """Whoever tells it first, and however short the way it knows: the longest counts, and nothing erodes."""
    for tree, order in (("S-A-B-C-D-P", "ABCD"), ("S-A-B-C-D-P", "DCBA"), ("P-A-B-C-D-S", "ABCD")):
        net, _ = tapped(tree, 1)
        net.subscribe("S")
        net.run(500)
        before = froms(net)
        for name in order:
            net.crash(name)
            net.run(60)
            net.restart(name)
            net.run(2500)
            assert froms(net) == before


def test_b022_what_is_learnt_is_passed_on_before_any_publication_accepted_later() -> None:
    """R0.53: F learns s from N; M hears of it from F before F passes on anything."""
    net, _ = tapped("S-N-F-M-P", 1)
    net.cut("N", "F")
    net.cut("N", "M")
    net.run(1500)
    net.subscribe("S")
    net.run(500)
    assert [each.fragment for each in net.partial("S")] == [("F", "M")]
    net.heal("N", "F")
    net.heal("N", "M")
    net.run(1500)
    assert set(froms(net)) == {"S", "N", "F", "M", "P"}
    assert net.full_at("S") is not None
    net.publish("P")
    net.run(200)
    assert net.got("S") == ["P#1"]


def test_r050_a_publisher_that_only_a_subscriber_has_met_does_not_take_it_for_the_network() -> None:
    """Restarted while its brokers are down, it is met by a subscriber who knows of nobody else (seed 1580, wild)."""
    net, _ = tapped("P-C-B-A-T B-S", 3)
    net.subscribe("T")
    net.subscribe("S")
    net.run(500)
    net.crash("P", "C", "B")
    net.cut("P", "A")
    net.run(1000)
    net.restart("P")
    net.run(100)
    net.publish("P", 3)
    net.run(1500)
    assert net.node("P").reach["S"].is_open, "the subscriber has come, and no broker"
    assert not net.node("P").is_recovered
    net.heal("P", "A")
    net.restart("B", "C")
    net.run(4000)
    assert net.got("T") == net.got("S") != []


def test_b024_what_a_later_life_has_made_stays_when_the_earlier_ends() -> None:
    """B2 is cut off from B1: it learns of S's next life by P's subscriptions, before it hears that S has come."""
    net, _ = tapped("S-B1-B2-P", 1)
    net.subscribe("S")
    net.run(500)
    net.crash("S")
    net.cut("B1", "B2")
    net.cut("S", "B2")
    net.run(900)
    net.restart("S")
    net.run(1000)
    assert net.knowing()["B2"] == ["S.2#1"], "who is in a later life has ended the earlier one"
    net.heal("B1", "B2")
    for _ in range(2000):
        net.run(1)
        assert net.knowing()["B2"] == ["S.2#1"]
    assert net.node("B2").reach["B1"].is_ready
    net.publish("P")
    net.run(500)
    assert net.got("S") == ["P#1"]
