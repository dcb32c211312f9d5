"""The topology map: R0.1, R0.4, R0.6, R0.32, R0.33, and routes as others see them (B0.2)."""

from __future__ import annotations

from random import Random

import pytest
from harness import Net, role_of

from holdfast.messages.overlay import Role
from holdfast.node.topology import Path, Topology, seen_from
from holdfast.node.trails import vector_length

DELTAS = (0, 1, 2, 3)


class Tree:
    """A tree in full: who is beside whom, and so the path between any two."""

    def __init__(self, random: Random, size: int) -> None:
        self.names = [f"N{i}" for i in range(size)]
        self.beside: dict[str, list[str]] = {name: [] for name in self.names}
        for i in range(1, size):
            # Mostly chains: long ways are where routes are cut.
            parent = self.names[max(0, i - random.choice((1, 1, 1, 2, 5)))]
            self.beside[parent].append(self.names[i])
            self.beside[self.names[i]].append(parent)

    def path(self, a: str, b: str) -> Path:
        """From a neighbour of ``a`` to ``b``."""
        ways: dict[str, Path] = {a: ()}
        todo = [a]
        for name in todo:
            for other in self.beside[name]:
                if other not in ways:
                    ways[other] = (*ways[name], other)
                    todo.append(other)
        return ways[b]


def trees() -> list[Tree]:
    return [Tree(Random(seed), 2 + seed) for seed in range(14)]


def mapped(tree: Tree, me: str, reach: int) -> Topology:
    topology = Topology(me, reach)
    near = sorted((len(tree.path(me, name)), name) for name in tree.names if name != me)
    for _, name in near:
        path = tree.path(me, name)
        topology.add(name, Role.BROKER, path[-2] if len(path) > 1 else me)
    return topology


@pytest.mark.parametrize("delta", DELTAS)
def test_r04_the_map_holds_exactly_the_nodes_within_reach_each_with_the_path_of_the_tree(delta: int) -> None:
    for tree in trees():
        for me in tree.names:
            topology = mapped(tree, me, delta + 1)
            expected = {name: tree.path(me, name) for name in tree.names if name != me}
            near = {name: path for name, path in expected.items() if len(path) <= delta + 1}
            assert {place.name: place.path for place in topology} == near
            for name, path in near.items():
                assert topology.toward(name) == path
                assert topology[name].direction == path[0]
                assert topology[name].distance == len(path)
                beyond = {each.name for each in topology.beyond(name)}
                assert beyond == {each for each in near if near[each][-2:-1] == (name,)}


@pytest.mark.parametrize("delta", DELTAS)
def test_a_route_seen_from_any_node_within_reach_is_the_path_of_the_tree(delta: int) -> None:
    """Told by E of a subscriber beyond E, beyond me, between us or beside the way; as far as the route goes."""
    length = vector_length(delta)
    for tree in trees():
        for me in tree.names:
            for teller in tree.names:
                back = tree.path(me, teller)
                if teller == me or len(back) > delta + 1:
                    continue
                for subscriber in tree.names:
                    route = tree.path(teller, subscriber)
                    whole = tree.path(me, subscriber)
                    seen = seen_from(me, route[:length], back, length)
                    assert seen == whole[: len(seen)], (me, teller, subscriber)
                    if len(route) <= length:
                        assert seen == whole[:length], (me, teller, subscriber)
                    # R0.6: *from* lies δ+1 hops closer to the subscriber, or is the subscriber.
                    assert len(seen) >= min(delta + 1, len(whole)), (me, teller, subscriber)


def test_a_route_cut_short_anywhere_leads_the_right_way_or_nowhere() -> None:
    """Whoever was told by one who knew little knows less; that never becomes a wrong direction."""
    for tree in trees():
        for me in tree.names:
            for teller in tree.names:
                back, way = tree.path(me, teller), (*tree.path(teller, me),)
                for subscriber in tree.names if teller != me else ():
                    route, whole = tree.path(teller, subscriber), tree.path(me, subscriber)
                    for cut in range(1, len(route) + 1):
                        seen = seen_from(me, route[:cut], back, 99, is_whole=cut == len(route))
                        assert seen == whole[: len(seen)], (me, teller, subscriber, cut)
                        ends_on_the_way = way[:cut] == route[:cut] and cut < len(route)
                        assert bool(seen) == (subscriber != me and not ends_on_the_way), (me, teller, cut)


def test_a_route_that_ends_at_me_is_empty() -> None:
    assert seen_from("A", ("B", "A"), ("B", "C"), 4) == ()


def test_a_subscriber_between_us_is_on_the_way_back() -> None:
    assert seen_from("A", ("S",), ("S", "E"), 4) == ("S",)


def test_a_subscriber_beside_the_way_is_reached_from_where_the_ways_part() -> None:
    assert seen_from("A", ("X", "S"), ("Y", "X", "E"), 4) == ("Y", "X", "S")


def test_who_is_too_far_is_not_entered() -> None:
    topology = Topology("A", 2)
    assert topology.add("B", Role.BROKER, "A") is not None
    assert topology.add("C", Role.BROKER, "B") is not None
    assert topology.add("D", Role.BROKER, "C") is None
    assert topology.add("X", Role.BROKER, "unknown") is None
    assert topology.add("A", Role.BROKER, "B") is None
    assert [place.name for place in topology] == ["B", "C"]


def test_a_place_never_moves_but_more_can_be_learnt_of_it() -> None:
    topology = Topology("A", 2)
    topology.add("B", Role.BROKER, "A")
    topology.add("S", Role.SUBSCRIBER, "B", None, 1)
    topology.add("S", Role.PUBLISHER, "A", "s:1", 3)
    topology.add("S", Role.PUBLISHER, "A", None, 2)
    place = topology["S"]
    assert (place.path, place.role, place.address, place.incarnation) == (
        ("B", "S"),
        Role.PUBLISHER,
        "s:1",
        3,
    )


def test_a_leaf_can_leave_and_a_node_with_others_behind_it_cannot() -> None:
    topology = Topology("A", 2)
    topology.add("B", Role.BROKER, "A")
    topology.add("S", Role.SUBSCRIBER, "B")
    with pytest.raises(AssertionError, match="no leaf"):
        topology.remove("B")
    topology = Topology("A", 2)
    topology.add("B", Role.BROKER, "A")
    topology.add("S", Role.SUBSCRIBER, "B")
    topology.remove("S")
    assert "S" not in topology
    assert topology.beyond("B") == []


def test_what_a_message_passed_is_learnt_as_far_as_the_reach() -> None:
    topology = Topology("A", 2)
    topology.learn(("B", "S"), "S", 3)
    assert {place.name: place.role for place in topology} == {"B": Role.BROKER, "S": Role.SUBSCRIBER}
    assert {place.name: place.incarnation for place in topology} == {"B": 0, "S": 3}
    topology.learn(("B", "C", "D"), "S2", 1)
    assert "C" in topology
    assert "D" not in topology


@pytest.mark.parametrize("delta", [0, 1, 2])
def test_r01_clients_are_nodes_of_the_one_tree(delta: int) -> None:
    """Every node of a running network, client or broker, maps all within δ+1 hops; clients made themselves known."""
    net = Net("P-B1-B2-B3-S B2-T B3-Q", delta)
    net.run(1000)
    for me in net.edges:
        topology = net.node(me).topology
        near = {name: net.path(me, name)[1:] for name in net.edges if name != me}
        expected = {name: path for name, path in near.items() if len(path) <= delta + 1}
        assert {place.name: place.path for place in topology} == expected
        assert all(place.role is role_of(place.name) for place in topology)
