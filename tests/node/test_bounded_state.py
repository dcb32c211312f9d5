"""What a node keeps is bounded by its neighbourhood, not by publishers or by time: R0.46, R0.63, E0.5."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from harness import Bare, Net

from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.messages.overlay import Relay, Step, Trail
from holdfast.messages.publications import Batch, Publication
from holdfast.node.marks import Marks
from holdfast.node.node import Node
from holdfast.node.settings import Acknowledge
from holdfast.node.trails import extended, vector_length


def sizes(node: Node) -> dict[str, int]:
    """Everything a node keeps that is not its table."""
    holdings = node.plane.holdings
    return {
        "marks": len(node.plane.marks),
        "queue": node.plane.held,
        "kept": len(node.plane.kept),
        "reports": len(holdings._reports),
        "told": len(holdings._told),
        "told pairs": sum(map(len, holdings._told.values())),
        "stations": len(node.reach.stations),
        "places": len(list(node.topology)),
        "rounds": len(node.spread._rounds),
        "partitions": len(node.spread.partitions.open) + len(node.spread.partitions.crossings),
    }


def fed(bare: Bare, publishers: int) -> list[Any]:
    """One publication each of so many publishers, as relays of theirs would bring them: that costs no sessions."""
    plane, anybody = bare.node.plane, next(iter(bare.node.reach.stations.values()))
    event = make_event("t", {}, b"")
    effects: list[Any] = []
    for i in range(publishers):
        trail = Trail((Step(f"P{i}", 1),), [[1]])
        relay = Relay("default", Batch([Publication(f"P{i}", 1, pack(event))]), [0], trail)
        effects += plane.take(relay, plane.marks.new(trail, 1), [event], (), anybody)
    return effects


def test_r046_marks_do_not_grow_with_publishers_beyond_the_vector() -> None:
    """Publishers at B0 are farther from B4 than a vector goes (δ = 1): the same marks at B4, however many they are."""
    found = {}
    for publishers in (10, 500):
        net = Net("B0-B1-B2-B3-B4-S", 1, acknowledge=Acknowledge.NONE)
        net.subscribe("S")
        net.run(1000)
        net.do("B0", partial(fed, publishers=publishers))
        net.run(1000)
        assert len(net.got("S")) == publishers
        assert len(net.node("B0").plane.marks) == publishers, "beside the publishers there is one for each"
        found[publishers] = sorted(net.node("B4").plane.marks._highest)
    assert found[10] == found[500] == ["B0", "B1", "B2", "B3"]


@pytest.mark.parametrize("delta", [1, 2, 3])
def test_r046_the_same_with_ten_thousand_publishers_by_the_vectors_alone(delta: int) -> None:
    """Each publication of each publisher passes the same chain of brokers, in its own batch."""
    chain = [f"B{i}" for i in range(3 * delta + 2)]
    marks = Marks()
    for i in range(10_000):
        trail = Trail((Step(f"P{i}", 1),), [[1]])
        for name in chain[:-1]:
            trail = extended(trail, Step(name, 1), [i + 1], (), delta)
        assert marks.new(trail, 1) == [0]
    assert sorted(marks._highest) == sorted(chain[-1 - vector_length(delta) : -1])


@pytest.mark.parametrize("acknowledge", [Acknowledge.DACK, Acknowledge.CONF])
def test_nothing_grows_with_time(acknowledge: Acknowledge) -> None:
    """After every wave of publications, with a subscription that comes and goes and a crash, nothing more is kept."""
    net = Net("P-A-B-C-S C-T", 1, acknowledge=acknowledge)
    net.subscribe("S")
    net.run(1000)

    def wave(number: int) -> None:
        net.subscribe("T", number)
        net.publish("P", 20)
        net.run(200)
        net.crash("B")
        net.publish("P", 20)
        net.run(900)
        net.unsubscribe("T", number)
        net.restart("B")
        net.publish("P", 20)
        net.run(5000)

    for number in (1, 2, 3):
        wave(number)
    before = {name: sizes(net.node(name)) for name in net.edges}
    graves = {name: len(list(net.node(name).spread.interests.graves)) for name in net.edges}
    for number in range(4, 12):
        wave(number)
    assert {name: sizes(net.node(name)) for name in net.edges} == before
    assert len(net.got("S")) == 60 * 11
    assert {name: len(list(net.node(name).spread.interests.graves)) for name in net.edges} == graves


def test_clients_that_come_and_go_leave_nothing_behind() -> None:
    """Publishers at B0, one after another, near and far from the others; only their graves remain (B0.24)."""
    net = Net("B0-B1-B2-B3-S", 1)
    net.subscribe("S")
    net.run(1000)

    def visit(number: int) -> None:
        name = f"P{number}"
        net.join(name, "B0")
        net.run(300)
        net.publish(name)
        net.run(3000)
        net.expel("B0", name)
        net.world.remove(name)
        del net.edges[name]
        net.edges["B0"].remove(name)
        net.run(500)

    for number in range(3):
        visit(number)
    before = {name: sizes(net.node(name)) for name in net.edges}
    for number in range(3, 12):
        visit(number)
    assert {name: sizes(net.node(name)) for name in net.edges} == before
    assert len(net.got("S")) == 12


@pytest.mark.parametrize("delta", [0, 1, 2, 3])
def test_e05_behind_a_dead_subscriber_only_delta_plus_1_brokers_keep_anything(delta: int) -> None:
    """R0.63: by distance from the dead subscriber; a living one beside it changes nothing."""
    net = Net("P-B1-B2-B3-B4-B5-B6-S B3-T", delta)
    net.subscribe("S")
    net.subscribe("T")
    net.run(1000)
    net.crash("S")
    net.run(1000)
    for _ in range(5):
        net.publish("P", 4)
        net.run(300)
    net.run(8000)
    assert net.held() == {f"B{i}": 20 for i in range(6 - delta, 7)}
    assert len(net.got("T")) == 20
    assert len(net.memories["P"].accepted) == 20
