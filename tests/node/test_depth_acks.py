"""Depth-acknowledgements: R0.60-R0.65, B0.12-B0.15, B0.38; I12."""

from __future__ import annotations

import pytest
from harness import Net
from wiretap import Wiretap

from holdfast.messages.overlay import Confirmations, DepthAck, Holding, Role
from holdfast.messages.subscriptions import Confirmed
from holdfast.node.holdings import Holdings
from holdfast.node.plane import RETELL_EVERY
from holdfast.node.settings import Acknowledge
from holdfast.node.station import Station
from holdfast.node.topology import Topology


def holdings(*chain: str, incarnation: int = 1) -> tuple[Holdings, dict[str, Station]]:
    """What ``me`` knows at the beginning of a chain."""
    topology = Topology("me", len(chain))
    stations = {}
    before = "me"
    for name in chain:
        place = topology.add(name, Role.BROKER, before)
        assert place is not None
        stations[name] = Station(place)
        before = name
    return Holdings(topology, incarnation, relays=True), stations


def report(
    node: str, arrived: int, discarded: int = 0, *, by: str = "me", life: int = 1, of: int = 1
) -> Holding:
    return Holding(node, of, by, life, arrived, discarded)


PATH = ("A", "B")


@pytest.mark.parametrize(
    ("reports", "safe", "for_good"),
    [
        ([], 0, 0),
        ([report("A", 7)], 0, 0),  # B has not said anything
        ([report("A", 7), report("B", 5)], 5, 0),  # R0.62 (i): all nodes of the way have it
        ([report("A", 7, 6)], 6, 6),  # R0.62 (ii): one has discarded it
        ([report("A", 7, 2), report("B", 5, 4)], 5, 4),  # B0.14: the better of the two
        ([report("A", 7, 2), report("B", 1, 0)], 2, 2),
        ([report("A", 7, life=2), report("B", 5)], 0, 0),  # numbers of another life of ours
    ],
)
def test_r062_what_is_safe_on_a_way(reports: list[Holding], safe: int, for_good: int) -> None:
    known, stations = holdings(*PATH)
    known.hear(stations["A"], reports, {"A"})
    assert known.safe(PATH) == (safe, for_good)


def test_b013_the_last_message_is_safe_too() -> None:
    """Not "succeeds": a report of 5 is enough for number 5."""
    net = Net("P-A-S", 1)
    net.subscribe("S")
    net.run(1000)
    net.publish("P")
    net.run(3500)
    assert net.held() == {}


def test_b015_arrivals_at_a_node_nobody_hears_any_more_do_not_count_but_discards_do() -> None:
    known, stations = holdings(*PATH)
    known.hear(stations["A"], [report("A", 9, 3), report("B", 9, 4)], {"A"})
    assert known.safe(PATH)[0] == 9
    known.doubt(stations["A"])
    assert known.safe(PATH)[0] == 4


def test_b015_a_later_life_holds_nothing_until_it_says_so_and_its_discards_stay() -> None:
    known, stations = holdings(*PATH)
    known.hear(stations["A"], [report("A", 9, 3), report("B", 9)], {"A"})
    known.hear(stations["A"], [report("A", 4, 0, of=2)], {"A"})
    assert known.safe(PATH)[0] == 4
    known.hear(stations["A"], [report("A", 2, 0, of=2)], {"A"})
    assert known.safe(PATH)[0] == 3


def test_who_was_counted_on_in_an_earlier_life_is_known() -> None:
    """Its copies were counted, and are gone: what was let go for them is replayed."""
    known, stations = holdings(*PATH)
    known.hear(stations["A"], [report("A", 9), report("B", 9, of=3)], {"A"})
    for name, life, counted in (("A", 1, False), ("A", 2, True), ("B", 3, False), ("B", 4, True)):
        stations[name].incarnation = life
        assert known.counted_on_earlier_life(stations[name]) is counted


def test_that_a_node_in_session_has_less_nobody_else_is_believed() -> None:
    known, stations = holdings(*PATH)
    known.hear(stations["B"], [report("B", 2)], {"A", "B"})
    known.hear(stations["A"], [report("A", 9), report("B", 0)], {"A", "B"})
    assert known.safe(PATH)[0] == 2


def test_that_a_node_in_session_has_more_anybody_is_believed() -> None:
    """Else it would be told once, not heard, and never repeated."""
    known, stations = holdings(*PATH)
    known.hear(stations["B"], [report("B", 2)], {"A", "B"})
    known.hear(stations["A"], [report("A", 9), report("B", 9)], {"A", "B"})
    assert known.safe(PATH)[0] == 9


def test_r060_only_what_is_new_to_a_station_is_told_and_only_of_numbers_given_there_or_beyond() -> None:
    known, stations = holdings("A", "B", "C")
    for station in stations.values():
        known.begin(station)
    own = {"A": Holding("me", 1, "A", 1, 5, 5), "C": Holding("me", 1, "C", 1, 2, 2)}
    assert known.news_for(stations["A"], own) == list(own.values())
    assert known.news_for(stations["A"], own) == []
    assert known.news_for(stations["B"], own) == [own["C"]]
    known.begin(stations["A"])
    assert known.news_for(stations["A"], own) == list(own.values())


def test_who_left_leaves_nothing() -> None:
    known, stations = holdings(*PATH)
    known.begin(stations["A"])
    known.hear(stations["A"], [report("A", 9, 9)], {"A"})
    known.news_for(stations["A"], {"A": Holding("me", 1, "A", 1, 5, 5)})
    known.forget("A")
    assert known.safe(("A",)) == (0, 0)
    assert not known._reports
    assert "A" not in known._told


# In a running network


def settled(tree: str, delta: int, *subscribers: str, **options: object) -> Net:
    net = Net(tree, delta, **options)  # type: ignore[arg-type]
    for name in subscribers:
        net.subscribe(name)
    net.run(1000)
    net.began = net.world.now
    return net


def test_r063_with_a_dead_subscriber_publications_stay_on_the_delta_plus_1_nodes_before_it() -> None:
    for delta in (0, 1, 2):
        net = settled("P-B1-B2-B3-B4-B5-S", delta, "S")
        net.crash("S")
        net.run(1500)
        net.publish("P", 3)
        net.run(6000)
        assert net.held() == {f"B{i}": 3 for i in range(5 - delta, 6)}
        assert net.memories["P"].accepted


def test_r063_also_after_a_node_on_the_way_was_bypassed_and_came_back() -> None:
    net = settled("P-B1-B2-B3-B4-S", 1, "S")
    net.crash("S")
    net.run(1500)
    net.crash("B3")
    net.run(1500)
    net.publish("P", 3)
    net.run(3000)
    assert net.queue("B2") == 3, "B4 alone is one copy too few"
    net.restart("B3")
    net.run(6000)
    assert set(net.held()) == {"B3", "B4"}


def test_r061_accepted_means_held_by_the_first_delta_plus_1_nodes_beyond_the_publisher() -> None:
    """B0.35: a dead subscriber five hops away does not keep the publisher waiting, a dead broker beside it does."""
    net = settled("P-B1-B2-B3-B4-S", 1, "S", dack_every_ms=100)
    net.crash("S")
    net.run(1500)
    net.publish("P")
    net.run(1000)
    assert [str(event) for event in net.memories["P"].accepted] == ["P#1"]
    net.crash("B2")
    net.run(1000)
    net.publish("P")
    net.run(1000)
    assert len(net.memories["P"].accepted) == 1
    net.restart("B2")
    net.run(2000)
    assert len(net.memories["P"].accepted) == 2


def test_b012_discarded_is_a_low_water_mark() -> None:
    """X5 in small: what B2 has still to send on one branch keeps it from claiming what it sent on the other."""
    net = settled("P-B1-B2-B3-B5-S1 B2-B4-S2", 1)
    net.subscribe("S1", 1, "# WHERE k = 1")
    net.subscribe("S2", 1, "# WHERE k = 2")
    net.run(500)
    net.crash("B3", "B5")
    net.run(1500)
    net.publish("P", k=1)
    net.run(10)
    net.publish("P", k=2)
    net.run(3500)
    assert net.got("S2") == ["P#2"]
    (held,) = net.node("B1").plane.queue.values()
    assert str(held.batch.publications[0].id) == "P#1"
    own = net.node("B2").plane._own_holdings()["B1"]
    assert (own.arrived, own.discarded) == (2, 0)


def test_b011_a_repeat_of_what_is_still_queued_counts_among_the_numbers_of_whoever_sent_it() -> None:
    """A restarts and numbers p anew; X, which holds p by A's old number, may not claim the new one discarded."""
    net = settled("P-A-X-N-S", 1, "S", acknowledge=Acknowledge.NONE)
    net.cut("N", "S")
    net.cut("X", "S")
    net.run(1000)
    net.publish("P")
    net.run(200)
    net.crash("A")
    net.run(100)
    net.restart("A")
    net.run(1000)
    plane = net.node("X").plane
    assert plane.counters.duplicates > 0
    own = plane._own_holdings()["A"]
    assert own.life == 2
    assert own.arrived > 0
    assert own.discarded == 0


def test_b038_who_holds_a_publication_under_another_vector_claims_nothing_past_it() -> None:
    """C took p past N (N:⊥). N returns and numbers p and q: C may not report them discarded while p waits."""
    net = settled("P-A-N-B-C-S", 1, "S")
    net.crash("S")
    net.run(1000)
    net.crash("N")
    net.run(1000)
    net.publish("P")
    net.run(1000)
    net.restart("N")
    net.run(1000)
    net.publish("P")
    net.run(4000)
    for name in ("B", "C"):
        own = net.node(name).plane._own_holdings().get("N")
        if own is not None:
            assert own.discarded == 0, f"{name} still holds both"
    assert net.queue("C") == 2


def test_r065_subscriptions_are_confirmed_one_by_one_also_with_depth_acks() -> None:
    tap = Wiretap()
    net = Net("P-A-B-S", 1, transcript=tap)
    net.subscribe("S")
    net.run(1000)
    net.publish("P")
    net.run(3500)
    assert [frame.node for frame in tap.sent(Confirmed)] == ["P", "A", "B"]
    assert not tap.sent(Confirmations)
    assert tap.sent(DepthAck)


def test_r065_in_conf_mode_there_are_no_depth_acks() -> None:
    tap = Wiretap()
    net = Net("P-A-B-S", 1, transcript=tap, acknowledge=Acknowledge.CONF)
    net.subscribe("S")
    net.run(1000)
    net.publish("P")
    net.run(3500)
    assert not tap.sent(DepthAck)
    assert tap.sent(Confirmations)


def test_r060_depth_acks_go_over_all_sessions_active_or_not_and_are_rare_when_nothing_is_new() -> None:
    """What has not changed is told again now and then: a report that went astray would pin a queue for ever."""
    tap = Wiretap()
    net = Net("P-A-B-C-S", 1, transcript=tap, dack_every_ms=500)
    net.subscribe("S")
    net.run(1000)
    net.publish("P")
    net.run(5000)
    said = len(tap.sent(DepthAck))
    pairs = {(frame.node, frame.peer) for frame in tap.sent(DepthAck)}
    assert {("S", "C"), ("C", "B"), ("B", "A"), ("A", "P")} <= pairs
    net.run(RETELL_EVERY * 500)
    assert {(frame.node, frame.peer) for frame in tap.sent(DepthAck)[said:]} >= {("S", "C"), ("C", "B")}
    assert len(tap.sent(DepthAck)) <= said + len(pairs)


@pytest.mark.parametrize("at", range(2950, 3450, 50))
def test_what_was_told_while_a_way_around_was_open_is_not_forgotten_with_it(at: int) -> None:
    """B2 returns and tells what B3 holds, while B1 still speaks with B3 itself: it is safe all the same."""
    net = Net("P-B1-B2-B3-S", 2, dack_every_ms=50)
    net.subscribe("S")
    net.run(300)
    net.began = net.world.now
    net.play(
        (1000, lambda: net.world.freeze("B2")),
        (3000, lambda: net.world.unfreeze("B2")),
        (at, lambda: net.publish("P", 3)),
        end=at + 3000,
    )
    assert net.got("S") == ["P#1", "P#2", "P#3"]
    assert {name: net.queue(name) for name in net.edges if net.queue(name)} == {}
