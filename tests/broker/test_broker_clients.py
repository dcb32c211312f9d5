"""Clients: who is let in, who takes over from whom, and what is kept while they are away."""

from __future__ import annotations

import pytest

from by_hand import ByHand, hello, own, publish, subscribe
from holdfast.clock import MILLISECOND, SECOND
from holdfast.identity import SubscriptionId
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Welcome
from holdfast.messages.subscriptions import (
    Confirmed,
    Heal,
    Healed,
    Known,
    Lore,
    Partition,
    Refused,
    Subscribe,
    Unsubscribe,
    Upgraded,
    Withdrawn,
)


def farewells(world: ByHand, connection: int) -> list[Farewell]:
    return [goodbye.farewell for goodbye in world.said(connection, Goodbye)]


def test_clients_wait_until_the_broker_is_ready() -> None:
    world = ByHand(["child"])
    peer = world.connect()
    assert world.say(peer, hello("peer")) == []
    world.wait(500 * MILLISECOND)
    assert len(world.said(peer, Welcome)) == 1


def test_a_client_that_waited_long_is_not_silent_once_it_is_welcomed() -> None:
    world = ByHand(["child"], detect_after_ns=2 * SECOND)
    peer = world.connect()
    world.say(peer, hello("peer", heartbeat_ns=100 * MILLISECOND))
    world.wait(2 * SECOND + 150 * MILLISECOND)
    assert len(world.said(peer, Welcome)) == 1
    assert peer not in world.closed


def test_a_client_that_went_while_it_waited_is_forgotten() -> None:
    world = ByHand(["child"])
    peer = world.connect()
    world.say(peer, hello("peer"))
    world.lose(peer)
    world.wait(SECOND)
    assert len(world.broker.clients) == 0


def test_a_later_client_takes_over_and_the_subscriptions_of_the_older_end() -> None:
    world = ByHand()
    old = world.client("peer", incarnation=1)
    world.say(old, subscribe("peer", 1), publish("peer", 41))
    new = world.connect()
    [welcome] = world.say(new, hello("peer", incarnation=2))
    assert farewells(world, old) == [Farewell.TAKEN_OVER]
    assert old in world.closed
    assert isinstance(welcome, Welcome)
    assert welcome.last_number == 41, "numbers of one name go on, whoever has it"
    assert len(world.broker.table) == 0
    world.say(new, publish("peer", 42))
    assert world.delivered(new) == []


@pytest.mark.parametrize("incarnations", [(1, 2), (2, 1)])
def test_later_is_who_comes_later_and_the_other_does_not_come_back(incarnations: tuple[int, int]) -> None:
    world = ByHand()
    old, new = (world.client("peer", incarnation=each) for each in incarnations)
    assert farewells(world, old) == [Farewell.TAKEN_OVER]
    back = world.connect()
    world.say(back, hello("peer", incarnation=incarnations[0]))
    assert farewells(world, back) == [Farewell.TAKEN_OVER]
    assert new not in world.closed


def test_who_was_taken_over_stays_so_for_all_who_follow() -> None:
    world = ByHand()
    for incarnation in (5, 3, 4):
        world.client("peer", incarnation=incarnation)
    for incarnation in (5, 3):
        back = world.connect()
        world.say(back, hello("peer", incarnation=incarnation))
        assert farewells(world, back) == [Farewell.TAKEN_OVER]


@pytest.mark.parametrize("incarnations", [(1, 2), (2, 1)])
def test_of_two_that_waited_under_one_name_the_later_stays(incarnations: tuple[int, int]) -> None:
    world = ByHand(["child"])
    first, second = world.connect(), world.connect()
    world.say(first, hello("peer", incarnation=incarnations[0]))
    world.say(second, hello("peer", incarnation=incarnations[1]))
    world.wait(SECOND)
    assert farewells(world, first) == [Farewell.TAKEN_OVER]
    assert farewells(world, second) == []
    assert len(world.said(second, Welcome)) == 1


def test_the_same_client_on_a_new_connection_keeps_its_subscriptions() -> None:
    world = ByHand()
    first = world.client("peer")
    world.say(first, subscribe("peer", 1))
    second = world.client("peer")
    assert farewells(world, first) == [Farewell.REPLACED]
    assert world.say(second, subscribe("peer", 1)) == [Confirmed(SubscriptionId("peer", 1, 1))]
    world.say(second, publish("peer", 1))
    assert world.delivered(second) == [("peer", 1, (1,))]
    assert world.delivered(first) == []
    assert len(world.broker.table) == 1


def test_a_lost_client_is_kept_for_the_grace_time_and_then_forgotten() -> None:
    world = ByHand(["child"], client_grace_ns=5 * SECOND)
    child = world.neighbour("child")
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1))
    world.say(child, Confirmed(own(1)))
    world.lose(peer)
    for _ in range(49):
        world.wait(100 * MILLISECOND)
        world.say(child, Heartbeat())
    assert len(world.broker.table) == 1
    assert world.said(child, Unsubscribe) == []
    world.wait(200 * MILLISECOND)
    assert len(world.broker.table) == 0
    assert world.said(child, Unsubscribe) == [Unsubscribe(own(1))]
    assert len(world.broker.clients) == 0


def test_a_client_that_comes_back_within_the_grace_time_stays() -> None:
    world = ByHand(client_grace_ns=5 * SECOND)
    world.lose(world.client("peer"))
    world.wait(4 * SECOND)
    peer = world.client("peer")
    for _ in range(10):
        world.wait(SECOND)
        world.say(peer, Heartbeat())
    assert len(world.broker.clients) == 1


def test_a_client_that_comes_back_after_the_grace_time_may_subscribe_as_before() -> None:
    world = ByHand(client_grace_ns=5 * SECOND)
    first = world.client("peer")
    world.say(first, subscribe("peer", 1))
    world.lose(first)
    world.wait(6 * SECOND)
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1))
    assert world.said(peer, Refused) == []
    assert len(world.said(peer, Confirmed)) == 1
    world.say(peer, publish("peer", 1))
    assert world.delivered(peer) == [("peer", 1, (1,))]


def test_a_client_that_leaves_is_forgotten_at_once() -> None:
    world = ByHand()
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1))
    world.say(peer, Goodbye(Farewell.LEAVING, "done"))
    assert (len(world.broker.table), len(world.broker.clients)) == (0, 0)


def test_a_client_that_says_another_goodbye_is_kept_for_the_grace_time() -> None:
    world = ByHand()
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1))
    world.say(peer, Goodbye(Farewell.SILENT, "I heard nothing"))
    assert (len(world.broker.table), len(world.broker.clients)) == (1, 1)


def test_no_more_clients_than_there_may_be() -> None:
    world = ByHand(clients_max=2)
    first = world.client("one")
    world.client("two")
    third = world.connect()
    world.say(third, hello("three"))
    assert farewells(world, third) == [Farewell.FULL], "it may come back later"
    world.client("one", incarnation=2)
    assert farewells(world, first) == [Farewell.TAKEN_OVER], "a known name needs no new place"


def test_clients_that_wait_count_too() -> None:
    world = ByHand(["child"], clients_max=1)
    world.say(world.connect(), hello("one"))
    second = world.connect()
    world.say(second, hello("two"))
    assert farewells(world, second) == [Farewell.FULL]


# Subscriptions


def test_somebody_elses_subscription_is_a_breach() -> None:
    for message in (
        subscribe("other", 1),
        subscribe("peer", 1, incarnation=2),
        Unsubscribe(SubscriptionId("other", 1, 1)),
        Unsubscribe(SubscriptionId("peer", 9, 1)),
    ):
        world = ByHand()
        other = world.client("other")
        world.say(other, subscribe("other", 1))
        peer = world.client("peer")
        world.say(peer, message)
        assert farewells(world, peer) == [Farewell.PROTOCOL]
        assert len(world.broker.table) == 1


def test_a_bad_filter_is_refused_with_its_place_and_the_session_goes_on() -> None:
    world = ByHand()
    peer = world.client("peer")
    [refused] = world.say(peer, subscribe("peer", 1, "a WHERE price != 3"))
    assert isinstance(refused, Refused)
    assert "column 15" in refused.problem
    [confirmed] = world.say(peer, subscribe("peer", 2, "a WHERE price <> 3"))
    assert isinstance(confirmed, Confirmed)
    assert world.broker.status()["subscriptions"] == {"installed": 1, "pending": 0, "own": 1}


def test_no_more_subscriptions_than_there_may_be() -> None:
    world = ByHand(subscriptions_max=2)
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1), subscribe("peer", 2), subscribe("peer", 3))
    [refused] = world.said(peer, Refused)
    assert refused.subscription.number == 3
    assert "2 subscriptions" in refused.problem


def test_a_full_broker_still_confirms_the_subscriptions_it_has() -> None:
    world = ByHand(subscriptions_max=1)
    world.say(world.client("peer"), subscribe("peer", 1))
    again = world.client("peer")
    assert world.say(again, subscribe("peer", 1)) == [Confirmed(SubscriptionId("peer", 1, 1))]


def test_a_number_is_not_used_for_another_filter() -> None:
    world = ByHand()
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1, "a"))
    answer = world.say(peer, subscribe("peer", 1, "b"))
    assert not any(isinstance(each, Confirmed) for each in answer), "what was confirmed is another filter"


def test_asking_again_in_other_words_is_asking_again() -> None:
    world = ByHand()
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1, "/a  WHERE (x>1)"))
    for words in ("/a  WHERE (x>1)", "a WHERE x > 1"):
        assert world.say(peer, subscribe("peer", 1, words)) == [Confirmed(SubscriptionId("peer", 1, 1))]


def test_unsubscribing_is_confirmed_once_everybody_has_forgotten() -> None:
    world = ByHand(["child"])
    child, peer = world.neighbour("child"), world.client("peer")
    subscription = SubscriptionId("peer", 1, 1)
    world.say(peer, subscribe("peer", 1))
    world.say(child, Confirmed(own(1)))
    assert world.say(peer, Unsubscribe(subscription)) == []
    world.say(child, Withdrawn(own(1)))
    assert world.said(peer, Withdrawn) == [Withdrawn(subscription)]


def test_unsubscribing_before_the_confirmation_ends_it_everywhere() -> None:
    world = ByHand(["child"])
    child, peer = world.neighbour("child"), world.client("peer")
    subscription = SubscriptionId("peer", 1, 1)
    world.say(peer, subscribe("peer", 1), Unsubscribe(subscription))
    world.say(child, Confirmed(own(1)), Withdrawn(own(1)))
    assert [type(message) for message in world.heard[child][-2:]] == [Subscribe, Unsubscribe]
    assert world.said(peer, Confirmed) == []
    assert world.said(peer, Withdrawn) == [Withdrawn(subscription)]
    assert world.broker.status()["subscriptions"] == {"installed": 0, "pending": 0, "own": 0}


def test_asked_again_a_withdrawal_is_still_under_way() -> None:
    world = ByHand(["child"])
    child, peer = world.neighbour("child"), world.client("peer")
    subscription = SubscriptionId("peer", 1, 1)
    world.say(peer, subscribe("peer", 1))
    world.say(child, Confirmed(own(1)))
    world.say(peer, Unsubscribe(subscription))
    again = world.client("peer")
    assert world.say(again, Unsubscribe(subscription)) == [], "the child has not forgotten it yet"
    world.say(child, Withdrawn(own(1)))
    assert world.said(again, Withdrawn) == [Withdrawn(subscription)]


def test_unsubscribing_what_is_not_there_is_confirmed() -> None:
    world = ByHand()
    subscription = SubscriptionId("peer", 1, 77)
    assert world.say(world.client("peer"), Unsubscribe(subscription)) == [Withdrawn(subscription)]


# To the network they are the broker's own


def test_the_network_knows_a_clients_subscription_under_an_id_of_the_brokers() -> None:
    world = ByHand(["child"])
    child, one, two = world.neighbour("child"), world.client("one"), world.client("two")
    world.say(one, subscribe("one", 7, "a"))
    world.say(two, subscribe("two", 7, "b"))
    assert [each.subscription for each in world.said(child, Subscribe)] == [own(1), own(2)]
    world.say(child, Confirmed(own(2)))
    assert world.said(one, Confirmed) == []
    assert world.said(two, Confirmed) == [Confirmed(SubscriptionId("two", 1, 7))]


def test_an_id_is_never_used_again() -> None:
    world = ByHand(["child"])
    child, peer = world.neighbour("child"), world.client("peer")
    subscription = SubscriptionId("peer", 1, 1)
    for _ in range(2):
        world.say(peer, subscribe("peer", 1), Unsubscribe(subscription))
    assert [each.subscription for each in world.said(child, Subscribe)] == [own(1), own(2)]


def test_what_an_earlier_life_of_the_broker_asked_for_is_over() -> None:
    world = ByHand(["child"])
    earlier = SubscriptionId("b", 0, 3)
    child = world.neighbour("child", [Known(earlier, "#", ("b",))])
    assert len(world.broker.table) == 0
    graves = [grave for lore in world.said(child, Lore) for grave in lore.graves]
    assert any(each.subscriber == "b" and each.first <= 3 <= each.last for each in graves)


def test_a_client_that_was_away_when_a_partition_ended_hears_so_when_it_asks_again() -> None:
    world = ByHand(["right"])
    world.wait(SECOND)  # given up
    first = world.client("peer")
    world.say(first, subscribe("peer", 1))
    [confirmed] = world.said(first, Confirmed)
    assert [each.fragment for each in confirmed.partial] == [("right",)]
    world.lose(first)
    right = world.neighbour("right")
    [heal] = world.said(right, Heal)
    world.say(right, Healed(heal.partition))
    second = world.client("peer")
    assert world.say(second, subscribe("peer", 1)) == [Confirmed(SubscriptionId("peer", 1, 1))]


def test_a_partition_that_ends_is_told_to_the_client_whose_subscription_it_had_stopped() -> None:
    world = ByHand(["left", "right"])
    world.wait(SECOND)  # both are given up
    left, peer = world.neighbour("left"), world.client("peer")
    world.say(peer, subscribe("peer", 1))
    world.say(left, Confirmed(own(1)))
    [confirmed] = world.said(peer, Confirmed)
    assert [each.fragment for each in confirmed.partial] == [("right",)]
    right = world.neighbour("right")
    [heal] = world.said(right, Heal)
    assert [each.subscription for each in heal.rows] == [own(1)]
    world.say(right, Healed(heal.partition))
    subscription = SubscriptionId("peer", 1, 1)
    assert world.said(peer, Upgraded) == [Upgraded(subscription, confirmed.partial, ())]


@pytest.mark.parametrize("is_over", [False, True])
def test_a_partition_whose_lead_has_died_is_over_with_the_same_one_of_its_next_life(is_over: bool) -> None:
    """Who led it has forgotten it, and would never end it (durable swarm with faults, seed 8823)."""
    world = ByHand(["left"])
    left, peer = world.neighbour("left"), world.client("peer")
    world.say(peer, subscribe("peer", 1))
    old, wider = Partition("far", 2, 1, ("x",)), Partition("far", 2, 2, ("x", "y"))
    other = Partition("beyond", 2, 1, ("x",))
    world.say(left, Confirmed(own(1), (old, wider, other)))
    new = Partition("far", 3, 1, ("x",))
    world.say(left, Upgraded(own(1), (new,) if is_over else (), () if is_over else (new,)))
    [upgraded] = world.said(peer, Upgraded)
    assert upgraded.cleared == (old,)
    assert set(upgraded.partial) == {wider, other} | (set() if is_over else {new})
