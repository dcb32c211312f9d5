"""Our own directed schedules: clients that come and go, and subscriptions made or ended, at bad moments.

Many are swept over the instant something breaks. Within δ everything comes once and in order (I1-I3, I30), tables agree
(I31), nothing is left, and the laws of the wire hold.
"""

from __future__ import annotations

import pytest
from schedules import checked, complete, network, stream

# Publishers and subscribers


@pytest.mark.parametrize("at", [0, 10, 20, 30, 60])
def test_the_publishers_broker_dies_with_its_hands_full(at: int) -> None:
    net, tap = network("P-A-B-S A-T", 1, "S", "T")
    stream(net, "P", 100)
    net.run(at)
    net.crash("A")
    stream(net, "P", 1000)
    net.restart("A")
    stream(net, "P", 500)
    net.run(4000)
    assert complete(net, "S", "P")
    assert complete(net, "T", "P")
    assert not checked(net, tap)


def test_the_only_broker_restarts_and_learns_its_clients_subscriptions_from_the_publisher() -> None:
    """δ = 0: what P sends before S is back is kept for S, not dropped."""
    net, tap = network("P-B-S", 0, "S")
    net.cut("B", "S")
    net.crash("B")
    stream(net, "P", 700, 50)
    net.restart("B")
    stream(net, "P", 700, 50)
    net.heal("B", "S")
    stream(net, "P", 1000, 50)
    net.run(4000)
    assert complete(net, "S", "P")
    assert not checked(net, tap)


@pytest.mark.parametrize("after", [0, 10, 20, 30, 40, 60])
def test_a_publisher_joins_while_a_subscription_is_under_way(after: int) -> None:
    """B0.25: the confirmation speaks for the joiner too."""
    net, tap = network("S-A-B-C", 1)
    net.subscribe("S")
    net.run(after)
    net.join("P", "C")
    while net.full_at("S") is None:
        net.run(1)
    net.run(50)
    stream(net, "P", 300)
    net.run(4000)
    assert complete(net, "S", "P")
    assert not checked(net, tap)


def test_a_subscriber_is_expelled_with_its_queue_and_returns_as_a_newcomer() -> None:
    net, _ = network("P-A-B-S B-T", 1, "S", "T")
    net.freeze("S")
    stream(net, "P", 1500, 50)
    net.run(3000)
    assert net.held()
    net.expel("B", "S")
    net.run(2500)
    assert net.held() == {}
    assert set(map(tuple, net.knowing().values())) == {("T.1#1",)}
    net.crash("S")
    net.restart("S")
    net.run(1500)
    stream(net, "P", 200, 50)
    net.run(3000)
    assert complete(net, "T", "P")
    assert net.got("S")[-4:] == net.got("T")[-4:]
    assert set(map(tuple, net.knowing().values())) == {("S.2#1", "T.1#1")}


@pytest.mark.parametrize("away", ["freeze", "cut"])
def test_who_was_away_when_a_publisher_was_expelled_does_not_bring_it_back(away: str) -> None:
    """A later subscription is confirmed in full: nobody waits for Q, or names it as a fragment."""
    net, tap = network("P-B1-B2-S B2-Q", 1)
    net.crash("Q")
    if away == "freeze":
        net.freeze("B1")
    else:
        net.world.isolate("B1")
    net.run(1000)
    net.expel("B2", "Q")
    net.run(1000)
    if away == "freeze":
        net.unfreeze("B1")
    else:
        net.world.network.heal("B1")
    net.run(2000)
    net.subscribe("S")
    net.run(1000)
    assert net.partial("S") == ()
    assert all("Q" not in net.node(name).topology for name in ("P", "B1", "B2", "S"))
    assert not checked(net, tap)


def test_two_subscribers_trade_places_while_the_middle_is_bypassed() -> None:
    """One leaves, one comes, both during the outage: what the middle learns afterwards is the present."""
    net, tap = network("P-A-B-C-S C-T", 1, "S")
    net.crash("B")
    net.run(1000)
    net.unsubscribe("S")
    net.subscribe("T")
    net.run(1000)
    net.restart("B")
    stream(net, "P", 500)
    net.run(4000)
    assert complete(net, "T", "P")
    assert net.got("S") == []
    assert not checked(net, tap)


# Rounds


@pytest.mark.parametrize("after", range(0, 100, 10))
def test_a_subscription_is_withdrawn_while_it_spreads(after: int) -> None:
    net, tap = network("S-A-B-C-P", 1)
    net.subscribe("S")
    net.run(after)
    net.unsubscribe("S")
    net.run(2000)
    assert not any(net.knowing().values())
    assert net.memories["S"].withdrawn == [1]
    assert not checked(net, tap)


@pytest.mark.parametrize("after", range(0, 130, 13))
def test_a_subscription_is_withdrawn_while_a_neighbour_recovers(after: int) -> None:
    """The last broker has been told the rows, not yet the grave, and is not open: nobody asks it."""
    net, tap = network("S-A-B", 1, "S")
    net.crash("B")
    net.run(1000)
    net.restart("B")
    net.run(after)
    net.unsubscribe("S")
    net.run(3000)
    assert not any(net.knowing().values())
    assert not checked(net, tap)


@pytest.mark.parametrize("after", range(0, 700, 70))
def test_a_subscription_spreads_while_the_middle_is_being_bypassed(after: int) -> None:
    """I34, within δ: whenever it comes, everybody beyond is asked in the end, and FULL means FULL."""
    net, tap = network("S-A-B-C-P", 1)
    net.crash("B")
    net.run(after)
    net.subscribe("S")
    net.run(1500)
    assert net.full_at("S") is not None
    stream(net, "P", 100)
    net.restart("B")
    stream(net, "P", 500)
    net.run(4000)
    assert complete(net, "S", "P")
    assert not checked(net, tap)


def test_a_subscriber_that_moves_on_while_the_lead_is_bypassed() -> None:
    """A partition ends through N0 because its lead N1 is dead; S withdraws one of two subscriptions meanwhile."""
    net, tap = network("S-N0-N1-F1-F2-F3-P", 1)
    net.crash("F1", "F2")
    net.run(1500)
    net.subscribe("S", 1)
    net.subscribe("S", 2, "t")
    net.run(500)
    net.crash("N1")
    net.run(1000)
    net.restart("F1")
    net.run(300)
    net.unsubscribe("S", 1)
    net.restart("F2")
    net.run(3000)
    assert net.full_at("S", 2) is not None
    stream(net, "P", 100)
    net.restart("N1")
    stream(net, "P", 500)
    net.run(5000)
    assert complete(net, "S", "P")
    assert not checked(net, tap)
