"""What brokers keep does not grow with publishers, nor with time; all of it is counted, whatever it is for.

R0.46, R0.63, E0.5. One mark per publisher is kept at the edge only [B0.8]: by the subscriber, for a million publishers
at most, and by the publisher's own broker, which turns away what a publisher sends again, while it is in session; then
as one number for each of the last hundred thousand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from crowd import Crowd
from harness import Net
from measure import growth, measure

from holdfast.broker.clients import Clients
from holdfast.messages.overlay import Relay
from holdfast.node.plane import Plane
from holdfast.node.segment import Segment
from holdfast.node.settings import Acknowledge
from holdfast.node.station import Station
from holdfast.ordering.order import PUBENDS_MAX

FEW, MANY = 10, 10_000
#: What a broker knows of each client that is there.
SESSION = {"Clients._ports", "Sessions._ports", "Sessions._sessions"}


def brokers_of(crowd: Crowd) -> dict[str, Counter[str]]:
    return {name: measure(crowd.broker(name)) for name in crowd.brokers}


def node_of(net: Net, name: str) -> Counter[str]:
    """Without what its owner writes down."""
    return measure(net.node(name), but=net.memories[name])


def grown(before: dict[str, Counter[str]], after: dict[str, Counter[str]]) -> dict[str, dict[str, int]]:
    """By node what has become more, if anything has."""
    found = {name: growth(before[name], after[name]) for name in before}
    return {name: each for name, each in found.items() if each}


def test_r046_from_ten_publishers_to_ten_thousand_no_broker_keeps_more_than_their_sessions() -> None:
    crowd = Crowd()
    crowd.come(FEW, events=1)
    brokers, plane = brokers_of(crowd), measure(crowd.broker("b0").node.plane)
    subscriber = measure(crowd.subscriber)
    crowd.come(MANY - FEW, events=1)
    assert crowd.subscriber.delivered == MANY
    assert grown(brokers, brokers_of(crowd)) == {"b0": dict.fromkeys(SESSION, MANY - FEW)}
    assert growth(plane, measure(crowd.broker("b0").node.plane)) == {}
    assert growth(subscriber, measure(crowd.subscriber)) == {"Watchful._seen": 3 * (MANY - FEW)}, "B0.8"
    assert MANY < PUBENDS_MAX
    crowd.go()
    assert grown(brokers, brokers_of(crowd)) == {"b0": {"Clients._last_numbers": MANY}}
    assert MANY < Clients.LAST_NUMBERS_MAX


def test_r046_members_grow_nothing_at_brokers_beyond_the_vector() -> None:
    """δ = 1, so vectors name four: publishers at B0 are neighbours to some, and nobody to B4, B5 and S."""
    net = Net("B0-B1-B2-B3-B4-B5-S", 1, dack_every_ms=100)
    net.subscribe("S")
    net.run(1000)

    def come(numbers: range) -> dict[str, Counter[str]]:
        for number in numbers:
            net.join(f"P{number}", "B0")
        net.run(1000)
        for number in numbers:
            net.publish(f"P{number}", 2)
        net.run(3000)
        return {name: node_of(net, name) for name in ("B4", "B5", "S")}

    assert grown(come(range(3)), come(range(3, 40))) == {}
    assert len(net.got("S")) == 80


def test_nothing_grows_with_time() -> None:
    crowd = Crowd()
    crowd.come(FEW, events=1)

    def waves(numbers: range) -> dict[str, Counter[str]]:
        for n in numbers:
            for name in crowd.publishers:
                crowd.publish(name, n)
            crowd.settle()
        return {**brokers_of(crowd), "u": measure(crowd.subscriber)}

    assert grown(waves(range(2, 5)), waves(range(5, 60))) == {}
    assert crowd.subscriber.delivered == FEW * 59


@pytest.mark.parametrize("acknowledge", [Acknowledge.DACK, Acknowledge.CONF])
def test_nothing_grows_with_crashes_and_subscriptions_that_come_and_go(acknowledge: Acknowledge) -> None:
    """Of the lives of a node some are remembered, and of subscriptions that are over the ranges of their numbers."""
    net = Net("P-A-B-C-S C-T", 1, acknowledge=acknowledge, dack_every_ms=200)
    net.subscribe("S")
    net.run(1000)

    def waves(numbers: range) -> dict[str, Counter[str]]:
        for number in numbers:
            net.subscribe("T", number)
            net.publish("P", 5)
            net.run(200)
            net.crash("B")
            net.publish("P", 5)
            net.run(900)
            net.unsubscribe("T", number)
            net.restart("B")
            net.publish("P", 5)
            net.run(4000)
        return {name: node_of(net, name) for name in net.edges}

    assert grown(waves(range(1, 7)), waves(range(7, 15))) == {}
    assert len(net.got("S")) == 15 * 14


# E0.5


@pytest.mark.parametrize("delta", [0, 1, 2])
def test_e05_what_waits_for_a_dead_subscriber_is_on_delta_plus_1_brokers(delta: int) -> None:
    """R0.63. One more keeps copies that are safe but not for good [B0.16], for up to so many bytes and no more."""
    net = Net("P-B1-B2-B3-B4-B5-B6-S", delta, dack_every_ms=100, replay_bytes_max=100)
    net.subscribe("S")
    net.run(1000)
    net.crash("S")
    net.run(1000)

    def publish(times: int) -> dict[str, Counter[str]]:
        for _ in range(times):
            net.publish("P", 1)
            net.run(100)
        net.run(3000)
        return {name: node_of(net, name) for name in net.edges if name != "S"}

    before = publish(20)
    holders = [f"B{i}" for i in range(6 - delta, 7)]
    assert list(grown(before, publish(60))) == holders
    assert net.held() == dict.fromkeys(holders, 80)
    assert len(net.memories["P"].accepted) == 80


def test_what_waits_for_a_dead_subscriber_makes_nothing_of_others_stay() -> None:
    """One event waits at the head of the queue, and hundreds pass it; what is gone is swept by and by."""
    net = Net("P-B1-B2-B3-S B3-T", 1, dack_every_ms=100, replay_bytes_max=100)
    net.subscribe("S")
    net.subscribe("T", text="rare")
    net.run(1000)
    net.crash("T")
    net.run(1000)
    net.publish("P", topic="rare")

    def publish(times: int) -> dict[str, Counter[str]]:
        for _ in range(times):
            net.publish("P")
            net.run(50)
        net.run(2000)
        return {name: node_of(net, name) for name in net.edges if name != "T"}

    before = publish(40)
    found = grown(before, publish(300))
    assert net.held() == {"B2": 1, "B3": 1}
    assert all(sum(each.values()) < 100 for each in found.values()), found


# The measure catches what grows

Plant = Callable[[pytest.MonkeyPatch], None]


def _mark_per_publisher(patch: pytest.MonkeyPatch) -> None:
    """Brokers remember the last number of each publisher, as many systems do."""
    enter = Plane._enter

    def and_mark(plane: Plane, stream: str, batch: Any, *others: Any, **named: Any) -> Segment | None:
        for publication in batch.publications:
            plane.marks._see(publication.publisher, 1, publication.n)
        return enter(plane, stream, batch, *others, **named)

    patch.setattr(Plane, "_enter", and_mark)


def _id_per_event(patch: pytest.MonkeyPatch) -> None:
    """Brokers remember whatever has come, in a place nobody has thought of."""
    new = Plane.new

    def and_remember(plane: Plane, sender: Station, relay: Relay) -> list[int]:
        seen: set[Any] = plane.__dict__.setdefault("seen", set())
        seen.update(each.id for each in relay.batch.publications)
        return new(plane, sender, relay)

    patch.setattr(Plane, "new", and_remember)


@pytest.mark.parametrize(
    ("plant", "where", "which"),
    [
        (_mark_per_publisher, "Marks._highest", {"b0", "b1", "b2", "b3"}),
        (_id_per_event, "Plane.seen", {"b1", "b2", "b3"}),
    ],
)
def test_the_measure_catches_what_grows(
    plant: Plant, where: str, which: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    crowd = Crowd()
    crowd.come(FEW, events=1)
    before = brokers_of(crowd)
    crowd.come(20, events=1)
    found = grown(before, brokers_of(crowd))
    assert {name for name, each in found.items() if each.get(where, 0) >= 20} == which
