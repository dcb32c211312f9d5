"""The connection manager: R0.8, R0.13, R0.33-R0.37, R0.47, R0.66 (connections), B0.1, B0.20, B0.36.

By hand, one node's reach at a time; and in a running network, where the times count.
"""

from __future__ import annotations

import pytest
from harness import Net
from schedules import complete, network
from wiretap import Wiretap

from holdfast.clock import MILLISECOND
from holdfast.messages.overlay import Need, Relay, Role
from holdfast.node.reach import Reach
from holdfast.node.station import Phase, Station
from holdfast.node.topology import Topology
from holdfast.overlay.transport import Connect, Send

PROBE = 200 * MILLISECOND
PATIENCE = 500 * MILLISECOND


def chain(*names: str, delta: int, last: Role = Role.BROKER) -> Reach:
    """The reach of ``me`` at the beginning of a chain; who is too far is left out."""
    topology = Topology("me", delta + 1)
    reach = Reach(topology, PROBE, PATIENCE)
    before = "me"
    for name in names:
        role = last if name == names[-1] else Role.BROKER
        place = topology.add(name, role, before, f"{name}:1")
        if place is not None:
            reach.enter(place)
        before = name
    return reach


def dialled(reach: Reach, now: int) -> list[str]:
    reach.review(now)
    return [effect.peer for effect in reach.on_wake(now) if isinstance(effect, Connect)]


def opened(station: Station, connection: int = 1) -> None:
    station.meet(connection, 1, is_dialler=True, is_restarted=False)
    station.open()


def test_r035_only_the_neighbour_is_dialled_while_it_may_come() -> None:
    reach = chain("A", "B", "C", delta=2)
    assert dialled(reach, 0) == ["A"]
    assert list(reach.wanted()) == ["A"]


def test_r035_who_is_lost_is_replaced_by_the_next_and_so_on_as_far_as_delta_plus_1_hops() -> None:
    """B0.1: reach δ+1, bypass at most δ."""
    reach = chain("A", "B", "C", "D", delta=2)
    dialled(reach, 0)
    opened(reach["A"])
    reach.on_lost(reach["A"], 0)
    assert dialled(reach, 0) == ["B"]
    reach.on_dial_failed(reach["B"], 10)
    assert dialled(reach, 10) == ["C"]
    reach.on_dial_failed(reach["C"], 20)
    assert dialled(reach, 20) == []
    assert list(reach.wanted()) == ["A", "B", "C"]
    assert reach.get("D") is None
    assert reach.is_unreachable("A")


def test_r036_the_nearest_open_station_is_the_active_one_whatever_else_is_open() -> None:
    reach = chain("A", "B", delta=1)
    path = ("A", "B")
    dialled(reach, 0)
    assert reach.next_hop(path) is None
    reach.give_up(reach["A"])
    dialled(reach, 0)
    opened(reach["B"], 2)
    assert reach.next_hop(path) is reach["B"]
    assert reach.endpoints() == [reach["B"]]
    opened(reach["A"], 1)
    assert reach.next_hop(path) is reach["A"]
    assert reach.endpoints() == [reach["A"]]


def test_r047_who_was_given_up_is_probed_again_and_again() -> None:
    reach = chain("A", "B", delta=1)
    dialled(reach, 0)
    reach.on_dial_failed(reach["A"], 0)
    assert dialled(reach, PROBE - 1) == []
    assert dialled(reach, PROBE) == ["A"]
    assert reach.next_deadline() == PATIENCE
    reach.on_wake(PATIENCE)
    assert reach["A"].is_bypassed
    assert dialled(reach, PATIENCE) == ["B"]
    reach.on_dial_failed(reach["A"], PATIENCE)
    assert dialled(reach, PATIENCE + PROBE) == ["A"]


def test_r033_a_large_fragment_is_the_way_on_which_nobody_is_reached() -> None:
    reach = chain("A", "B", "C", delta=1)
    dialled(reach, 0)
    frontier = reach.frontier(["A"])
    assert not frontier.is_decided
    for name in ("A", "B"):
        reach.give_up(reach[name])
    frontier = reach.frontier(["A"])
    assert frontier.is_decided
    assert frontier.endpoints == []
    assert frontier.fragments == [("A", "B")]


def test_r033_fragments_on_several_ways_share_the_nodes_they_share() -> None:
    topology = Topology("me", 2)
    reach = Reach(topology, PROBE, PATIENCE)
    for name, beside in (("A", "me"), ("B", "A"), ("C", "A")):
        place = topology.add(name, Role.BROKER, beside, f"{name}:1")
        assert place is not None
        reach.give_up(reach.enter(place))
    assert reach.frontier(["A"]).fragments == [("A", "B"), ("A", "C")]
    opened(reach["C"], 3)
    frontier = reach.frontier(["A"])
    assert frontier.endpoints == [reach["C"]]
    assert frontier.fragments == [("A", "B")]


def test_a_subscriber_need_not_know_of_subscriptions_and_is_no_fragment() -> None:
    reach = chain("S", delta=1, last=Role.SUBSCRIBER)
    reach.give_up(reach["S"])
    frontier = reach.frontier(["S"])
    assert (frontier.endpoints, frontier.fragments, frontier.is_decided) == ([], [], True)


def test_b020_who_needs_us_is_served_directly_though_a_nearer_one_is_open() -> None:
    """R0.37: a connection can be active at one end only."""
    reach = chain("M", "S", delta=1, last=Role.SUBSCRIBER)
    opened(reach["M"], 1)
    opened(reach["S"], 2)
    assert reach.endpoints() == [reach["M"]]
    reach["S"].needs_us = True
    assert reach.endpoints() == [reach["M"], reach["S"]]


def test_need_is_said_once_and_taken_back_once() -> None:
    reach = chain("A", "B", delta=1)
    dialled(reach, 0)
    reach.give_up(reach["A"])
    dialled(reach, 0)
    opened(reach["B"], 2)
    assert [effect.messages for effect in reach.review(0)] == [[Need(True)]]  # type: ignore[union-attr]
    assert reach.review(0) == []
    opened(reach["A"], 1)
    assert [effect.messages for effect in reach.review(0)] == [[Need(False)]]  # type: ignore[union-attr]
    assert reach.needless() == [], "what it sends us is still on its way"
    assert reach.on_need(reach["B"], False, is_echo=True) == []
    assert reach.needless() == [reach["B"]]
    reach.on_need(reach["B"], True, is_echo=False)
    assert reach.needless() == []


def test_that_we_are_not_needed_is_answered() -> None:
    reach = chain("A", "B", delta=1)
    opened(reach["B"], 2)
    assert reach.on_need(reach["B"], True, is_echo=False) == []
    [answer] = reach.on_need(reach["B"], False, is_echo=False)
    assert answer == Send(2, [Need(False, is_echo=True)])
    assert not reach["B"].needs_us


def test_who_is_not_wanted_any_more_is_not_tried_any_more() -> None:
    reach = chain("A", "B", delta=1)
    dialled(reach, 0)
    reach.give_up(reach["A"])
    dialled(reach, 0)
    assert list(reach.wanted()) == ["A", "B"]
    opened(reach["A"], 1)
    dialled(reach, 1)
    assert reach["B"].phase is Phase.IDLE
    assert not reach["B"].is_bypassed
    assert reach.next_deadline() is None


# In a running network


def test_what_is_on_its_way_from_beyond_a_bypassed_broker_arrives_though_that_is_reached_again() -> None:
    """Whoever reaches its broker again ends its session beyond it when nothing more can come on it.

    The broker may have matched the same publications before it knew who wanted them (seed 87062 of the swarm).
    """
    net, tap = network("P-B-S", 1, "S")
    net.cut("B", "S")
    net.run(1_500)
    net.slow("P", "S", 100)
    net.publish("P", 5)
    net.run(50)
    net.heal("B", "S")
    for _ in range(300):
        net.publish("P")
        net.run(5)
    net.run(2_000)
    said = [frame.message for frame in tap.frames if (frame.node, frame.peer) == ("P", "S") and frame.is_sent]
    heard = [
        frame.message for frame in tap.frames if (frame.node, frame.peer) == ("S", "P") and not frame.is_sent
    ]
    relays = [each for each in said if isinstance(each, Relay)]
    assert len(relays) > 5
    assert [each for each in heard if isinstance(each, Relay)] == relays
    assert not net.node("S").reach["P"].is_open
    assert complete(net, "S", "P")


@pytest.mark.parametrize(("delta", "dead"), [(1, 1), (2, 1), (2, 2), (3, 3)])
def test_r013_a_run_of_up_to_delta_dead_nodes_is_bypassed(delta: int, dead: int) -> None:
    """I33: each costs at most one detector timeout and one attempt to connect."""
    chain = "-".join(f"B{i}" for i in range(dead + 2))
    net = Net(f"P-{chain}-S", delta)
    net.subscribe("S")
    net.run(1000)
    net.began = net.world.now
    net.crash(*[f"B{i}" for i in range(1, dead + 1)])
    net.publish("P")
    net.run(600 + dead * 600)
    assert net.got("S") == ["P#1"]
    assert net.times("S")[0] <= 600 + dead * 50 + 100
    spans = {station.name for station in net.node("B0").reach.endpoints()}
    assert spans == {"P", f"B{dead + 1}"}


def test_b01_delta_plus_1_dead_nodes_are_not() -> None:
    net = Net("P-B0-B1-B2-B3-S", 1)
    net.subscribe("S")
    net.run(1000)
    net.crash("B1", "B2")
    net.run(2000)
    net.publish("P")
    net.run(2000)
    assert net.got("S") == []
    assert net.node("B0").reach.is_unreachable("B1")
    net.restart("B1")
    net.run(1500)
    assert net.got("S") == ["P#1"]


def test_b036_the_farther_connection_serves_until_the_nearer_is_open_and_then_goes() -> None:
    tap = Wiretap()
    net = Net("P-A-B-C-S", 1, transcript=tap)
    net.subscribe("S")
    net.run(1000)
    net.crash("B")
    net.run(1500)
    net.restart("B")
    for _ in range(30):
        net.publish("P")
        net.run(10)
    net.run(500)
    assert net.got("S") == [f"P#{n}" for n in range(1, 31)]
    ways = [tuple(way for way in tap.copies_of(f"P#{n}") if way[0] == "A") for n in range(1, 31)]
    assert ways[0][0] == ("A", "C")
    assert ways[-1] == (("A", "B"),)
    assert net.node("A").reach["C"].connection is None
    assert not tap.broken_laws(net)


def test_r08_a_client_whose_broker_is_dead_reaches_a_broker_beyond_and_a_client_beside_it() -> None:
    """P and S hang on the same dead broker: they speak with each other."""
    net = Net("A-M-P M-S", 1)
    net.subscribe("S")
    net.run(1000)
    net.crash("M")
    net.run(1500)
    assert net.node("P").reach["S"].is_open
    assert net.node("P").reach["A"].is_open
    net.publish("P")
    net.run(200)
    assert net.got("S") == ["P#1"]
    net.restart("M")
    net.run(2000)
    assert net.node("P").reach["S"].connection is None
    assert net.node("P").reach["M"].is_open


def test_r034_a_wrong_suspicion_does_no_harm() -> None:
    """B0.21: B is slow, not dead; A and B both feed C, and C tells the copies apart."""
    net = Net("P-A-B-C-S", 1)
    net.subscribe("S")
    net.run(1000)
    net.freeze("B")
    for _ in range(20):
        net.publish("P")
        net.run(40)
    net.unfreeze("B")
    for _ in range(20):
        net.publish("P")
        net.run(40)
    net.run(2500)
    assert net.got("S") == [f"P#{n}" for n in range(1, 41)]
    assert net.memories["S"].suppressed == 0
    assert net.node("C").plane.counters.duplicates > 0
    assert net.held() == {}
