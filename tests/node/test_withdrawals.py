"""The end of subscriptions and of clients: B0.24, B0.25, B0.27; I14."""

from __future__ import annotations

from harness import Bare
from schedules import tapped

from holdfast.identity import Element, SubscriptionId
from holdfast.messages.subscriptions import Grave, Known, Lore, Subscribe, Unsubscribe, Withdrawn
from holdfast.node.graves import NUMBER_MAX, Graves


def test_b024_a_withdrawal_reaches_everybody_and_is_confirmed() -> None:
    net, tap = tapped("S-A-B-P", 1)
    net.subscribe("S")
    net.run(500)
    net.unsubscribe("S")
    net.run(500)
    assert len(tap.sent(Unsubscribe)) == len(tap.sent(Withdrawn)) == 3
    assert net.memories["S"].withdrawn == [1]
    assert not any(net.knowing().values())
    net.publish("P")
    net.run(500)
    assert tap.copies_of("P#1") == []


def test_b024_a_withdrawal_beats_the_subscription_whatever_comes_first() -> None:
    """I14: a late SUB, or a row of somebody who did not hear, changes nothing, and is answered with the grave."""
    net, tap = tapped("S-A-B-P", 1)
    subscription = SubscriptionId("S", 1, 1)

    def late(bare: Bare) -> list[object]:
        spread, sender = bare.node.spread, bare.node.reach["A"]
        spread.interests.bury(Grave("S", 1, 1, 1))
        effects = spread.on_subscribe(
            sender, Subscribe(subscription, "#", (Element("S", 1, 1), Element("A", 1, 1)))
        )
        effects += spread.on_lore(sender, Lore((Known(subscription, "#", ("S",)),)))
        return [*effects]

    net.do("B", late)
    net.run(100)
    assert subscription not in net.node("B").spread.interests
    answers = [frame.message for frame in tap.sent(Lore, "B", "A") if frame.at >= net.began]
    assert answers == [Lore((), (Grave("S", 1, 1, 1),))] * 2


def test_graves_are_a_few_ranges_however_many_there_were() -> None:
    graves = Graves()
    for number in (1, 3, 2, 7, 5, 6, 4):
        graves.add(Grave("S", 1, number, number))
    assert list(graves) == [Grave("S", 1, 1, 7)]
    assert SubscriptionId("S", 1, 4) in graves
    assert SubscriptionId("S", 1, 8) not in graves
    assert SubscriptionId("S", 2, 4) not in graves
    graves.add(Grave("S", 1, 9, 9))
    assert not graves.covers(Grave("S", 1, 7, 9))
    graves.add(Grave("S", 1, 1, NUMBER_MAX))
    assert list(graves) == [Grave("S", 1, 1, NUMBER_MAX)]
    assert graves.covers(Grave("S", 1, 7, 9))


# Clients that come and go


def test_b025_a_joiner_is_told_all_there_is_and_is_in_every_map_within_reach() -> None:
    net, _ = tapped("S-A-B", 1)
    net.subscribe("S")
    net.run(500)
    net.join("P", "B")
    net.run(500)
    assert net.knowing()["P"] == ["S.1#1"]
    assert "P" in net.node("A").topology
    net.publish("P")
    net.run(500)
    assert net.got("S") == ["P#1"]


def test_b025_who_leaves_takes_its_subscriptions_along_everywhere() -> None:
    net, _ = tapped("S-A-B-C-P", 1)
    net.subscribe("S")
    net.run(500)
    net.expel("A", "S")
    net.world.crash("S")
    net.run(500)
    assert not any(net.knowing().values())
    assert all("S" not in net.node(name).topology for name in ("A", "B"))


def test_b025_expelling_a_dead_subscriber_frees_the_queues_it_pinned() -> None:
    net, _ = tapped("P-A-B-S A-T", 1)
    net.subscribe("S")
    net.subscribe("T")
    net.run(500)
    net.crash("S")
    net.run(1000)
    net.publish("P", 4)
    net.run(5000)
    assert net.held() == {"A": 4, "B": 4}
    net.expel("B", "S")
    net.run(3000)
    assert net.held() == {}
    assert net.got("T") == ["P#1", "P#2", "P#3", "P#4"]


def test_a_restarted_subscriber_is_another_one_its_old_subscriptions_are_over() -> None:
    net, _ = tapped("S-A-B-P", 1)
    net.subscribe("S")
    net.run(500)
    net.crash("S")
    net.run(1000)
    net.restart("S")
    net.run(1000)
    assert set(map(tuple, net.knowing().values())) == {("S.2#1",)}
    net.publish("P")
    net.run(500)
    assert net.got("S") == ["P#1"]


def test_b027_a_publisher_knows_who_wants_what_and_sends_past_its_dead_broker() -> None:
    net, tap = tapped("P-A-B-S A-T", 1)
    net.subscribe("S", 1, "# WHERE k = 1")
    net.subscribe("T", 1, "# WHERE k = 2")
    net.run(500)
    net.crash("A")
    net.run(1000)
    net.publish("P", k=1)
    net.publish("P", k=2)
    net.publish("P", k=3)
    net.run(500)
    assert tap.copies_of("P#1") == [("P", "B"), ("B", "S")]
    assert tap.copies_of("P#2") == [("P", "T")]
    assert tap.copies_of("P#3") == []


def test_a_partition_is_not_over_because_its_leads_first_subscription_is() -> None:
    """B0.24, R0.31: who is cut off from all says so, whatever it withdrew before (seed 2720)."""
    net, _ = tapped("S-A-B-P", 1)
    net.subscribe("S")
    net.run(500)
    net.unsubscribe("S")
    net.run(500)
    for name in ("A", "B", "P"):
        net.cut("S", name)
    net.run(3000)
    net.subscribe("S", 2)
    net.run(1000)
    assert [partition.fragment for partition in net.partial("S", 2)] == [("A", "B")]
