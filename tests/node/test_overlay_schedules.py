"""The directed schedules of requirements D.2 that concern the overlay, on bare nodes, with exact times.

Defaults as there: 10 ms one way, heartbeat 100, detector 500, probe 200, depth-acks each 1000; times in ms. After every
schedule the laws of the wire are checked over all that was said (I5, I6, I7, I9, I13).
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from harness import Net
from schedules import network

from holdfast.messages.overlay import Relay, Step
from holdfast.messages.subscriptions import Lore
from holdfast.node.settings import Acknowledge


def is_once_in_order(net: Net, subscriber: str, publisher: str, count: int) -> bool:
    got = [each for each in net.got(subscriber) if each.startswith(f"{publisher}#")]
    return got == [f"{publisher}#{n}" for n in range(1, count + 1)]


def test_x1_forgetful_common_node() -> None:
    """Every node that could tell the second copy by the paper's rule has lost its memory meanwhile (B0.8)."""
    net, tap = network("P-Z-A-X-B-N-S", 1, "S", acknowledge=Acknowledge.NONE, refill=False)

    def report(name: str) -> None:
        stations = net.node(name).reach.stations.values()
        net.do(name, lambda bare: bare.node.plane.depth_acks([each for each in stations if each.is_told]))

    net.play(
        (1000, partial(net.crash, "A")),
        (2000, partial(net.publish, "P")),
        (2600, partial(report, "S")),
        (2620, partial(report, "N")),
        (3000, partial(net.restart, "A")),
        (5000, partial(net.crash, "X")),
        (7000, partial(net.restart, "X")),
        (9000, partial(net.crash, "B")),
        end=10900,
    )
    assert [net.queue(name) for name in ("P", "Z", "A", "X", "N")] == [1, 1, 1, 1, 0]
    assert net.got("S") == ["P#1"]
    assert net.memories["S"].suppressed == 0, "N has told it by an element beyond the last 2δ+1"
    assert net.node("N").plane.counters.duplicates == 1
    net.play((11000, partial(net.restart, "B")), end=14000)
    assert net.got("S") == ["P#1"]
    assert not tap.broken_laws(net)


def test_x2_overtaking_a_stalled_message() -> None:
    net, tap = network("P-Z-A-X-B-N-S X-Q", 1, "S")
    before_b: list[list[str]] = []
    net.play(
        (1000, partial(net.crash, "A")),
        (2000, partial(net.crash, "B")),
        (3000, partial(net.publish, "P")),
        (4000, partial(net.publish, "Q")),
        (5999, lambda: before_b.append(net.got("S"))),
        (6000, partial(net.restart, "B")),
        (8000, partial(net.restart, "A")),
        (10000, partial(net.publish, "P")),
        end=14000,
    )
    assert before_b == [[]], "nothing may pass before B is back"
    assert sorted(net.got("S")) == ["P#1", "P#2", "Q#1"]
    assert net.got("S").index("P#1") < net.got("S").index("P#2")
    assert net.held() == {}
    assert not tap.broken_laws(net)


def test_x4_restart_below_the_detector_timeout() -> None:
    net, tap = network("P-B1-B2-S", 1, "S")
    net.play(
        (1000, partial(net.crash, "B2")),
        (1050, partial(net.publish, "P")),
        (1100, partial(net.restart, "B2")),
        end=4000,
    )
    assert net.got("S") == ["P#1"]
    assert net.times("S")[0] <= 1500
    to_b2 = [
        frame.message
        for frame in tap.frames
        if frame.is_sent and (frame.node, frame.peer) == ("B1", "B2") and net.ms(frame.at) >= 1100
    ]
    told = next(i for i, each in enumerate(to_b2) if isinstance(each, Lore) and each.rows)
    sent = [i for i, each in enumerate(to_b2) if isinstance(each, Relay)]
    assert all(told < i for i in sent), "the tuple of S comes before p1"
    last_hop = [relay for frame, relay in tap.relays() if (frame.node, frame.peer) == ("B2", "S")]
    assert all(relay.trail.steps[-1] == Step("B2", 2) for relay in last_hop)
    assert not tap.broken_laws(net)


def test_x5_discard_watermark() -> None:
    net, tap = network("P-B1-B2-B3-B5-S1 B2-B4-B6-S2", 1)
    net.subscribe("S1", 1, "# WHERE k = 1")
    net.subscribe("S2", 1, "# WHERE k = 2")
    net.run(1000)
    net.began = net.world.now
    held_at_b1: list[int] = []
    net.play(
        (1000, partial(net.crash, "B3", "B5")),
        (2000, partial(net.publish, "P", k=1)),
        (2100, partial(net.publish, "P", k=2)),
        (5000, partial(net.crash, "B2")),
        (6200, partial(net.restart, "B2")),
        *((at, lambda: held_at_b1.append(net.queue("B1"))) for at in range(2200, 7000, 200)),
        (7000, partial(net.restart, "B3", "B5")),
        end=12000,
    )
    assert all(held_at_b1), "B1 never purges p1 before 7000"
    assert net.got("S1") == ["P#1"]
    assert net.times("S1")[0] > 7000
    assert net.got("S2") == ["P#2"]
    assert net.held() == {}
    assert not tap.broken_laws(net)


def test_x8_lemma_2() -> None:
    net, tap = network("S-N-F1-F2-M-P", 2)
    net.crash("F1", "F2")
    net.began = net.world.now
    net.play(
        (1000, partial(net.subscribe, "S")),
        (3000, partial(net.restart, "F2")),
        (3001, partial(net.publish, "P")),
        (3300, partial(net.publish, "P")),
        (4000, partial(net.restart, "F1")),
        (4001, partial(net.publish, "P")),
        (6000, partial(net.publish, "P")),
        end=9000,
    )
    assert net.partial("S") == (), "confirmed in full, past F1 and F2"
    assert is_once_in_order(net, "S", "P", 4)
    interests = {name: list(net.node(name).spread.interests.values()) for name in ("F1", "F2")}
    assert [each.port.name for each in interests["F1"] + interests["F2"]] == ["S", "S"]
    knowing: set[int] = set()
    for frame in tap.frames:
        if frame.is_sent and isinstance(frame.message, Lore) and frame.message.rows:
            knowing.add(frame.connection)
        if frame.is_sent and isinstance(frame.message, Relay) and frame.peer in ("F1", "F2"):
            assert frame.connection in knowing, (
                "the tuple precedes the first publication on every new connection"
            )
    assert not tap.broken_laws(net)


def test_x10_leaf_crash_is_a_large_fragment() -> None:
    net, tap = network("S-B1-B2-P", 1)
    net.play(
        (500, partial(net.crash, "P")),
        (1500, partial(net.subscribe, "S")),
        (3000, partial(net.restart, "P")),
        (3005, partial(net.publish, "P")),
        (4000, partial(net.publish, "P")),
        end=8000,
    )
    confirmed_at, partitions = net.memories["S"].confirmed[1]
    assert net.ms(confirmed_at) <= 1700, "nobody waits for P"
    assert [(each.lead, each.fragment) for each in partitions] == [("B2", ("P",))]
    full_at = net.full_at("S")
    assert full_at is not None
    assert net.ms(full_at) <= 4000
    assert is_once_in_order(net, "S", "P", 2)
    first, second = net.memories["S"].deliveries
    assert first.tags or first.at > full_at
    assert second.at > full_at or all(tag.bar for tag in second.tags)
    assert not tap.broken_laws(net)


def test_x11_p1_p2_p3_of_section_7() -> None:
    """T stands for S′: what it alone wanted crosses the fragment although S was not told to those beyond."""
    net, tap = network("S-N0-N1-F1-F2-F3-P N0-T", 1)
    net.play(
        (500, partial(net.subscribe, "T", 1, "# WHERE k = 1")),
        (1000, partial(net.crash, "F1", "F2")),
        (2000, partial(net.subscribe, "S")),
        (3000, partial(net.publish, "P", k=1)),
        (3100, partial(net.publish, "P", k=2)),
        (5000, partial(net.restart, "F1")),
        (7000, partial(net.restart, "F2")),
        (9000, partial(net.publish, "P", k=3)),
        end=13000,
    )
    assert net.got("T") == ["P#1"]
    assert [(each.lead, each.fragment) for each in net.partial("S")] == [("N1", ("F1", "F2"))]
    deliveries = {str(each.event): each for each in net.memories["S"].deliveries}
    assert len(deliveries) == len(net.memories["S"].deliveries)
    if "P#1" in deliveries:
        assert [(tag.lead, tag.bar) for tag in deliveries["P#1"].tags] == [("N1", False)]
    assert "P#2" not in deliveries
    full_at = net.full_at("S")
    assert full_at is not None
    assert deliveries["P#3"].at > full_at or [tag.bar for tag in deliveries["P#3"].tags] == [True]
    for name in net.edges:
        partitions = net.node(name).spread.partitions
        assert (partitions.open, partitions.crossings) == ({}, {}), name
    assert not tap.broken_laws(net)


def test_x12_resurrection() -> None:
    net, tap = network("S-B1-B2-B3-P", 1, "S")
    net.play(
        (1000, partial(net.cut, "B1", "B2")),
        (1000, partial(net.cut, "B2", "B3")),
        (2000, partial(net.unsubscribe, "S")),
        (4000, partial(net.heal, "B1", "B2")),
        (4000, partial(net.heal, "B2", "B3")),
        end=6000,
    )
    assert set(map(tuple, net.knowing().values())) == {()}
    net.play((6000, partial(net.publish, "P")), end=7000)
    assert set(tap.copies_of("P#1")) <= {("P", "B3")}
    net.play((7000, partial(net.subscribe, "S", 2)), (8000, partial(net.publish, "P")), end=10000)
    assert net.got("S") == ["P#2"]
    assert not tap.broken_laws(net)


def test_x14_leaf_link() -> None:
    net, tap = network("P-A-M-S", 1, "S")
    net.play(
        (1000, partial(net.cut, "M", "S")),
        (2000, partial(net.publish, "P")),
        (3000, partial(net.publish, "P")),
        (5000, partial(net.heal, "M", "S")),
        (6000, partial(net.publish, "P")),
        end=8000,
    )
    assert is_once_in_order(net, "S", "P", 3)
    assert net.times("S")[0] <= 2300
    assert net.times("S")[1] <= 3100
    assert ("A", "S") in tap.copies_of("P#1")
    assert ("M", "S") in tap.copies_of("P#3")
    assert ("A", "S") not in tap.copies_of("P#3")
    assert net.queue("M") == 0
    assert not tap.broken_laws(net)


@pytest.mark.parametrize("seed", range(3))
def test_x16_concurrent_recovery(seed: int) -> None:
    """B2 and B3 return at the same instant, and meet each other while both are empty (B0.23)."""
    random = Random(seed)
    subscribers = [f"S{i}" for i in range(5)]
    net, tap = network(
        "-".join(f"B{i}" for i in range(1, 6)) + " B5-P " + " ".join(f"B1-{s}" for s in subscribers), 2
    )
    for name in subscribers:
        for number in range(1, 11):
            net.subscribe(name, number, f"# WHERE k = {number}")
    net.run(1000)
    net.began = net.world.now
    actions: list[tuple[float, Any]] = [
        (1000, partial(net.crash, "B2", "B3")),
        (3000, partial(net.restart, "B2", "B3")),
    ]
    for i in range(10):
        name = random.choice(subscribers)
        actions.append((random.uniform(1000, 3000), partial(net.unsubscribe, subscribers[i % 5], 1 + i // 5)))
        actions.append(
            (random.uniform(1000, 3000), partial(net.subscribe, name, 11 + i, f"# WHERE k = {i % 3 + 3}"))
        )
    for _ in range(100):
        actions.append((random.uniform(0, 6000), partial(net.publish, "P", k=random.randint(3, 10))))
    net.play(*actions, end=8000)
    live = sorted(f"{name}.1#{number}" for name in subscribers for number in net.memories[name].wishes)
    assert len(live) == 50
    assert net.knowing() == dict.fromkeys(net.knowing(), live), "I31"
    published = net.memories["P"]
    for name in subscribers:
        for number, text in net.memories[name].wishes.items():
            full_at = net.full_at(name, number)
            assert full_at is not None
            wanted = int(text.rsplit(" ", 1)[1])
            owed = [
                f"P#{event.n}"
                for event, (_, k) in zip(published.published, published.ks, strict=True)
                if k == wanted and published.published_at[event] > full_at
            ]
            got = net.got(name, number)
            assert got[len(got) - len(owed) :] == owed, "I3, I10"
            assert len(set(got)) == len(got)
    net.until(12000)
    assert net.held() == {}
    assert not tap.broken_laws(net)


def test_x18_freeze() -> None:
    net, tap = network("P-B1-B2-B3-S", 1, "S")
    net.play(
        *((at, partial(net.publish, "P")) for at in range(500, 5001, 50)),
        (1000, partial(net.freeze, "B2")),
        (4000, partial(net.unfreeze, "B2")),
        end=9000,
    )
    assert is_once_in_order(net, "S", "P", 91)
    assert max(b - a for a, b in pairwise(net.times("S"))) <= 700
    assert net.memories["S"].suppressed == 0, "B2's late frames are told at B3"
    assert net.held() == {}
    assert not tap.broken_laws(net)


def test_x19_delta_plus_1_failures_then_repair() -> None:
    net, tap = network("P-B1-B2-B3-B4-B5-B6-B7-S", 2, "S")
    held: list[dict[str, int]] = []
    net.play(
        *((at, partial(net.publish, "P")) for at in range(500, 10001, 100)),
        (1000, partial(net.crash, "B3", "B4", "B5")),
        (8900, lambda: held.append(net.held())),
        (9000, partial(net.restart, "B3", "B4", "B5")),
        end=13000,
    )
    assert is_once_in_order(net, "S", "P", 96)
    assert not [at for at in net.times("S") if 1100 < at < 9000]
    assert max(net.times("S")) <= 13000
    assert set(held[0]) == {"P", "B1", "B2"}
    net.until(16000)
    assert net.held() == {}
    assert not tap.broken_laws(net)
