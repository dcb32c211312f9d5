"""Partition information, tags and their end: R0.27-R0.30, R0.49, R0.54, R0.56, R0.57, B0.19, B0.31-B0.33; I11, I34."""

from __future__ import annotations

from typing import Any

import pytest
from bare_node import Bare
from harness import Net
from schedules import leftovers, tapped
from wiretap import Wiretap

from holdfast.identity import SubscriptionId
from holdfast.messages.overlay import Step, Trail
from holdfast.messages.publications import Tag
from holdfast.messages.subscriptions import Cleared, Confirmed, Heal, Partition, Upgraded, UpgradeTaken
from holdfast.node.partitions import Crossing, Partitions

CUT = Partition("N", 1, 1, ("F", "G"))
S1 = SubscriptionId("S", 1, 1)


def way(*names: str) -> Trail:
    return Trail(tuple(Step(name, 1) for name in names), [[1]] * len(names))


# The table by itself


def test_r028_the_lead_names_the_fragment_once_while_it_is_open() -> None:
    partitions = Partitions("N", 1)
    first = partitions.lead(("F", "G"))
    partitions.add(first, S1)
    assert partitions.lead(("F", "G")) is first
    assert partitions.lead(("F", "H")) != first
    partitions.drop(first, S1)
    again = partitions.lead(("F", "G"))
    assert (again.lead, again.fragment) == ("N", ("F", "G"))
    assert again.number > first.number


def test_b031_a_partition_that_began_to_end_is_not_joined() -> None:
    """What is barred has crossed it with the subscriptions it had then: for a later one that says nothing."""
    partitions = Partitions("N", 1)
    first = partitions.lead(("F", "G"))
    partitions.add(first, S1)
    partitions.open[first].is_ending = True
    later = partitions.lead(("F", "G"))
    assert later.number > first.number
    partitions.add(later, SubscriptionId("T", 1, 1))
    assert partitions.lead(("F", "G")) == later


def test_r056_what_comes_from_the_fragment_is_tagged_and_nothing_else_is() -> None:
    partitions = Partitions("N", 1)
    partitions.add(CUT, S1)
    assert partitions.tags_for(way("P", "G", "F"), (), "F") == (Tag("N", 1, 1, False),)
    assert partitions.tags_for(way("Q", "M"), (), "M") == ()


def test_b031_a_tag_stays_what_it_was() -> None:
    """What carries the plain tag never gets the barred one, also where the partition has been crossed."""
    partitions = Partitions("F", 1)
    partitions.crossings[CUT] = Crossing("N", is_crossed=True)
    plain = (Tag("N", 1, 1, False),)
    assert partitions.tags_for(way("P", "G"), plain, "G") == plain
    assert partitions.tags_for(way("P", "G"), (), "G") == (Tag("N", 1, 1, True),)
    assert partitions.tags_for(way("S", "N"), (), "N") == (), (
        "what comes from the lead's side has crossed nothing"
    )


def test_b031_what_was_accepted_before_the_subscriptions_were_installed_gets_the_plain_tag() -> None:
    partitions = Partitions("F", 1)
    partitions.crossings[CUT] = Crossing("N")
    assert partitions.tags_before(CUT, (), "G") == (Tag("N", 1, 1, False),)
    assert partitions.tags_before(CUT, (), "N") == ()


def test_a_publisher_that_was_the_partition_and_begins_a_life_is_barred_until_we_hear_that_it_is_over() -> (
    None
):
    """Its lead has ended the partition with the publisher's earlier life; we were away (wild seed 3072)."""
    partitions = Partitions("S", 1)
    alone = Partition("N", 1, 2, ("P",))
    partitions.add(alone, S1)
    plain, barred = Tag("N", 1, 2, False), Tag("N", 1, 2, True)
    assert partitions.tags_at_edge("P", (plain,)) == (plain,), "it says itself what it is"
    assert partitions.tags_at_edge("P", ()) == (barred,)
    assert partitions.tags_at_edge("Q", ()) == ()
    partitions.drop(alone, S1)
    assert partitions.tags_at_edge("P", ()) == ()


def test_b031_a_bar_from_beyond_is_not_true_where_the_subscriptions_are_not_installed_yet() -> None:
    """A publisher has crossed, and its broker waits for others beyond it: what passes there may be missing (3787)."""
    partitions = Partitions("F", 1)
    partitions.crossings[CUT] = Crossing("N")
    plain, barred = (Tag("N", 1, 1, False),), (Tag("N", 1, 1, True),)
    assert partitions.tags_for(way("P"), barred, "P") == plain
    assert partitions.tags_before(CUT, barred, "P") == plain
    assert partitions.tags_for(way("S", "N"), barred, "N") == barred, (
        "from the lead's side it says nothing of us"
    )
    partitions.crossings[CUT].is_crossed = True
    assert partitions.tags_for(way("P"), barred, "P") == barred


# In a running network


def parted(tree: str = "S-N0-N1-F1-F2-F3-P", delta: int = 1) -> tuple[Net, Wiretap]:
    """F1 and F2 are down, and S has subscribed."""
    tap = Wiretap()
    net = Net(tree, delta, transcript=tap)
    net.run(500)
    net.crash("F1", "F2")
    net.run(1500)
    net.subscribe("S")
    net.run(500)
    net.began = net.world.now
    return net, tap


def test_r027_a_large_fragment_is_not_waited_for_and_is_named() -> None:
    net, _ = parted()
    (partition,) = net.partial("S")
    assert (partition.lead, partition.fragment) == ("N1", ("F1", "F2"))


def test_r029_every_node_towards_the_subscriber_adds_its_own_to_what_it_was_told() -> None:
    """Two fragments, at N1 and beside N0."""
    net = Net("S-N0-N1-F1-F2-P N0-G1-G2-Q", 1)
    net.run(500)
    net.crash("F1", "F2", "G1", "G2")
    net.run(1500)
    net.subscribe("S")
    net.run(500)
    assert {(each.lead, each.fragment) for each in net.partial("S")} == {
        ("N1", ("F1", "F2")),
        ("N0", ("G1", "G2")),
    }
    net.restart("F1", "F2")
    net.run(3000)
    assert net.full_at("S") is None, "one is over, the other is not"
    net.restart("G1", "G2")
    net.run(3000)
    assert net.full_at("S") is not None
    assert leftovers(net) == []


def test_r030_those_on_the_way_keep_the_partition_and_so_does_the_subscriber() -> None:
    net, _ = parted()
    for name in ("N1", "N0", "S"):
        assert [each.lead for each in net.node(name).spread.partitions.open] == ["N1"]


def test_b019_one_dead_publisher_makes_a_partition_and_its_return_ends_it() -> None:
    net = Net("S-A-B-P", 1)
    net.run(500)
    net.crash("P")
    net.run(1000)
    net.subscribe("S")
    net.run(500)
    assert [each.fragment for each in net.partial("S")] == [("P",)]
    net.restart("P")
    net.run(1500)
    assert net.full_at("S") is not None
    net.publish("P")
    net.run(500)
    assert net.got("S") == ["P#1"]


def test_r054_the_subscriptions_cross_as_a_whole_and_the_change_goes_back_to_the_subscriber() -> None:
    net, tap = parted()
    net.subscribe("S", 2, "# WHERE k = 1")
    net.run(500)
    net.restart("F1", "F2")
    net.run(3000)
    for frame in tap.sent(Heal):
        assert isinstance(frame.message, Heal)
        assert {row.subscription.number for row in frame.message.rows} == {1, 2}
    ways = [(frame.node, frame.peer) for frame in tap.sent(Upgraded)]
    assert set(ways) == {("N1", "N0"), ("N0", "S")}
    assert {(frame.node, frame.peer) for frame in tap.sent(UpgradeTaken)} == {("S", "N0"), ("N0", "N1")}
    assert net.full_at("S", 1) is not None
    assert net.full_at("S", 2) is not None
    assert net.knowing()["P"] == ["S.1#1", "S.1#2"]


def test_b032_when_every_subscriber_knows_the_tags_end() -> None:
    net, tap = parted()
    net.restart("F1", "F2")
    net.run(3000)
    assert tap.sent(Cleared)
    assert leftovers(net) == []
    net.publish("P")
    net.run(500)
    assert [each.tags for each in net.memories["S"].deliveries] == [()]


def test_b032_an_upgrade_the_subscriber_did_not_hear_is_repeated() -> None:
    """S is cut off while the partition ends; what comes meanwhile stays tagged, and nobody forgets."""
    net, _ = parted()
    net.cut("N0", "S")
    net.cut("N1", "S")
    net.run(1000)
    net.restart("F1", "F2")
    net.run(3000)
    assert net.full_at("S") is None
    net.heal("N0", "S")
    net.heal("N1", "S")
    net.run(3500)
    assert net.full_at("S") is not None
    assert leftovers(net) == []


def test_b032_the_answer_to_an_upgrade_goes_back_to_whoever_told_it() -> None:
    """Two partitions of one subscription end at once, in two directions; seed 2240 beyond delta kept both for ever."""
    tap = Wiretap()
    net = Net("S-N0-N1-F1-F2-F3-P N0-M1-G1-G2-G3-Q", 1, transcript=tap)
    net.run(500)
    net.crash("F1", "F2", "G1", "G2")
    net.run(1500)
    net.subscribe("S")
    net.run(500)
    net.restart("F1", "F2", "G1", "G2")
    net.run(3000)
    heard = {
        (frame.peer, each.lead)
        for frame in tap.sent(UpgradeTaken)
        if isinstance(frame.message, UpgradeTaken) and frame.node == "N0"
        for each in frame.message.cleared
    }
    assert heard == {("N1", "N1"), ("M1", "M1")}
    assert leftovers(net) == []


@pytest.mark.parametrize("after", [0, 40, 90])
def test_b031_a_bar_is_true_for_whoever_comes_while_the_partition_ends(after: int) -> None:
    """N1 tells F1 of S, slowly, when N0 tells N1 of T; what has crossed with S says nothing of T (wild seed 2887)."""
    net = Net("S-N0-N1-F1-F2-F3-P N0-T", 0)
    net.run(500)
    net.cut("N1", "F1")
    net.run(1500)
    net.subscribe("S", 1, "# WHERE k = 1")
    net.run(300)
    net.cut("N0", "N1")
    net.run(1500)
    net.subscribe("T")
    net.run(500)
    net.slow("N1", "F1", 120)
    net.slow("F1", "F2", 120)
    net.heal("N1", "F1")
    net.run(after)
    net.heal("N0", "N1")
    for i in range(150):
        net.publish("P", k=i % 2)
        net.run(10)
    net.run(2000)
    deliveries = net.bare("T").memory.deliveries
    barred = next(i for i, each in enumerate(deliveries) if any(tag.bar for tag in each.tags))
    first = deliveries[barred].event.n
    assert [each.event.n for each in deliveries[barred:]] == list(range(first, 151))
    assert leftovers(net) == []


def test_b033_the_lead_dies_and_another_that_knows_ends_the_partition() -> None:
    """N0 reaches F1 past the dead N1 (δ = 1)."""
    net, _ = parted()
    net.crash("N1")
    net.run(1000)
    net.restart("F1")
    net.run(1000)
    net.restart("F2")
    net.run(3000)
    assert net.full_at("S") is not None
    net.publish("P")
    net.run(500)
    assert net.got("S") == ["P#1"]
    net.restart("N1")
    net.run(3000)
    assert leftovers(net) == []


def test_b033_a_lead_that_lost_its_memory_learns_of_its_own_partition() -> None:
    net, _ = parted()
    net.crash("N1")
    net.run(1000)
    net.restart("N1")
    net.run(1500)
    assert [each.lead for each in net.node("N1").spread.partitions.open] == ["N1"]
    net.restart("F1", "F2")
    net.run(3000)
    assert net.full_at("S") is not None
    assert leftovers(net) == []


def test_b033_all_on_the_way_lose_their_memory_and_the_subscriber_remembers() -> None:
    net, _ = parted()
    net.crash("N0", "N1")
    net.run(1000)
    net.restart("N0", "N1")
    net.run(2000)
    net.restart("F1", "F2")
    net.run(3000)
    assert net.full_at("S") is not None
    assert leftovers(net) == []


@pytest.mark.parametrize("after", [20, 40, 50, 80, 200, 400, 530, 560, 700])
def test_a_fragment_that_dies_again_while_it_is_told_has_not_been_told(after: int) -> None:
    """Whenever F1 dies: FULL is said only if everybody knows, and what is published after FULL is delivered."""
    net, tap = parted()
    net.restart("F1")
    net.run(after)
    net.crash("F1")
    net.run(2000)
    net.publish("P")
    net.run(500)
    net.restart("F1", "F2")
    net.run(4000)
    net.publish("P")
    net.run(500)
    full_at = net.full_at("S")
    assert full_at is not None
    owed = [str(event) for event, at in net.memories["P"].published_at.items() if at > full_at]
    assert net.got("S")[-len(owed) :] == owed
    assert net.memories["S"].deliveries[-1].tags == ()
    assert leftovers(net) == []
    assert not tap.broken_laws(net)


def test_a_partition_beyond_a_partition_takes_its_place() -> None:
    """F1, F2 return while G1, G2 behind them are gone: S is told of the second when the first is over."""
    net = Net("S-N-F1-F2-M-G1-G2-P", 1)
    net.run(500)
    net.crash("F1", "F2", "G1", "G2")
    net.run(1500)
    net.subscribe("S")
    net.run(500)
    net.restart("F1", "F2")
    net.run(3000)
    assert net.full_at("S") is None
    (upgrade,) = net.memories["S"].upgraded
    assert [each.fragment for each in upgrade[2]] == [("F1", "F2")]
    assert [(each.lead, each.fragment) for each in upgrade[3]] == [("M", ("G1", "G2"))]
    net.restart("G1", "G2")
    net.run(3000)
    assert net.full_at("S") is not None
    net.publish("P")
    net.run(500)
    assert net.got("S") == ["P#1"]
    assert leftovers(net) == []


def test_an_unsubscription_ends_the_partition_it_was_alone_in() -> None:
    net, _ = parted()
    net.unsubscribe("S")
    net.run(1000)
    assert leftovers(net) == []
    net.restart("F1", "F2")
    net.run(2000)
    assert not any(net.knowing().values())


def test_r031_a_partial_confirmation_is_a_confirmation() -> None:
    """What does not come from beyond the fragment is owed from then on."""
    net, tap = parted("S-N0-N1-F1-F2-F3-P N1-Q")
    net.publish("Q")
    net.run(300)
    assert net.got("S") == ["Q#1"]
    assert net.memories["S"].deliveries[0].tags == ()
    partial = [frame.message for frame in tap.sent(Confirmed, "N0", "S")]
    assert len(partial) == 1


@pytest.mark.parametrize("is_crossed", [False, True])
def test_what_begins_beyond_a_partition_says_so_until_every_subscriber_knows_that_it_is_over(
    is_crossed: bool,
) -> None:
    """B0.31, I11: nobody else can tag what a publisher in the fragment sends around its broker (seed 1612, wild)."""
    net, tap = tapped("P-B-A-S", 1)
    net.subscribe("S")
    net.run(500)
    partitions = net.node("P").spread.partitions
    partitions.crossings[Partition("B", 1, 1, ("P",))] = Crossing("B", is_crossed=is_crossed)
    net.publish("P")
    net.run(500)
    assert {relay.tags for _, relay in tap.relays()} == {(Tag("B", 1, 1, is_crossed),)}
    partitions.crossings.clear()
    net.publish("P")
    net.run(500)
    assert {relay.tags for frame, relay in tap.relays() if frame.node == "P"} == {
        (Tag("B", 1, 1, is_crossed),),
        (),
    }


@pytest.mark.parametrize(("late", "after"), [(300, 860), (450, 1000)])
def test_b032_what_was_over_while_we_were_ending_it_is_over_when_we_cannot_go_on(
    late: float, after: float
) -> None:
    """N and L cannot meet, and both tell F what their partition stopped; L is first, and N needs F no more."""
    net, _ = tapped("S-N-L-F-G-P", 1)
    net.crash("F", "G")
    net.run(1000)
    net.subscribe("S")
    net.run(1000)
    assert net.partial("S")
    net.cut("N", "L")
    net.run(1500)
    net.slow("F", "N", late)
    net.restart("F", "G")
    net.run(after)
    assert net.node("N").spread.partitions.open
    net.heal("N", "L")
    net.run(5000)
    assert not net.node("N").spread.partitions.open


def test_r056_tags_at_a_brokers_own_subscriptions_are_those_of_a_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What plain clients are told: also of a publisher that was a partition by itself, and comes without a tag."""
    tags: list[tuple[Tag, ...]] = []

    def on_local(self: Bare, *delivery: Any) -> list[Any]:
        tags.append(delivery[-1])
        return []

    monkeypatch.setattr(Bare, "on_local", on_local)
    net, _ = tapped("B1-B2-B3-B4-B5-P", 1)  # so far away that the trail does not name P
    net.subscribe("B1")
    net.run(500)
    net.publish("P")
    net.run(100)
    own = SubscriptionId("B1", 1, 1)
    net.node("B1").spread.partitions.add(Partition("B9", 1, 2, ("P",)), own)
    net.publish("P")
    net.run(100)
    assert tags == [(), (Tag("B9", 1, 2, True),)]


def test_b031_of_what_is_over_a_publisher_is_asked_once_and_again_after_the_next() -> None:
    partitions = Partitions("S", 1)
    first, second = Partition("N", 1, 1, ("A", "P")), Partition("N", 1, 2, ("A", "P"))
    plain = [Tag("N", 1, 1, False), Tag("N", 1, 2, False)]
    partitions.remember_over(first)
    assert partitions.tags_at_edge("P", ()) == ()
    assert partitions.tags_at_edge("P", ()) == ()
    assert partitions.tags_at_edge("P", (plain[0],)) == (), "it was past it"
    partitions.remember_over(second)
    assert partitions.tags_at_edge("P", (plain[1],)) == (plain[1],)
    assert partitions.tags_at_edge("P", ()) == ()
    assert partitions.tags_at_edge("P", (plain[1],)) == ()
