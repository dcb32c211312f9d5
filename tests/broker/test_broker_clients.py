"""Clients: who is let in, who takes over from whom, and what is kept while they are away."""

from __future__ import annotations

import pytest

from by_hand import ByHand, hello, publish, subscribe
from holdfast.clock import MILLISECOND, SECOND
from holdfast.identity import SubscriptionId
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Welcome
from holdfast.messages.subscriptions import Confirmed, Refused, Subscribe, Unsubscribe, Withdrawn


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
    subscription = SubscriptionId("peer", 1, 1)
    world.say(child, Confirmed(subscription))
    world.lose(peer)
    for _ in range(49):
        world.wait(100 * MILLISECOND)
        world.say(child, Heartbeat())
    assert len(world.broker.table) == 1
    assert world.said(child, Unsubscribe) == []
    world.wait(200 * MILLISECOND)
    assert len(world.broker.table) == 0
    assert world.said(child, Unsubscribe) == [Unsubscribe(subscription)]
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


def test_unsubscribing_is_confirmed_once_everybody_has_forgotten() -> None:
    world = ByHand(["child"])
    child, peer = world.neighbour("child"), world.client("peer")
    subscription = SubscriptionId("peer", 1, 1)
    world.say(peer, subscribe("peer", 1))
    world.say(child, Confirmed(subscription))
    assert world.say(peer, Unsubscribe(subscription)) == []
    world.say(child, Withdrawn(subscription))
    assert world.said(peer, Withdrawn) == [Withdrawn(subscription)]


def test_unsubscribing_before_the_confirmation_ends_it_everywhere() -> None:
    world = ByHand(["child"])
    child, peer = world.neighbour("child"), world.client("peer")
    subscription = SubscriptionId("peer", 1, 1)
    world.say(peer, subscribe("peer", 1), Unsubscribe(subscription))
    world.say(child, Confirmed(subscription), Withdrawn(subscription))
    assert [type(message) for message in world.heard[child][-2:]] == [Subscribe, Unsubscribe]
    assert world.said(peer, Confirmed) == []
    assert world.said(peer, Withdrawn) == [Withdrawn(subscription)]
    assert world.broker.status()["subscriptions"] == {"installed": 0, "pending": 0, "own": 0}


def test_asked_again_a_withdrawal_is_still_under_way() -> None:
    world = ByHand(["child"])
    child, peer = world.neighbour("child"), world.client("peer")
    subscription = SubscriptionId("peer", 1, 1)
    world.say(peer, subscribe("peer", 1))
    world.say(child, Confirmed(subscription))
    world.say(peer, Unsubscribe(subscription))
    again = world.client("peer")
    assert world.say(again, Unsubscribe(subscription)) == [], "the child has not forgotten it yet"
    world.say(child, Withdrawn(subscription))
    assert world.said(again, Withdrawn) == [Withdrawn(subscription)]


def test_unsubscribing_what_is_not_there_is_confirmed() -> None:
    world = ByHand()
    subscription = SubscriptionId("peer", 1, 77)
    assert world.say(world.client("peer"), Unsubscribe(subscription)) == [Withdrawn(subscription)]
