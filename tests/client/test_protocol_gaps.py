"""Gaps: what may be missing after an interruption is announced, to whom it concerns, before what comes next."""

from __future__ import annotations

from typing import Any

from answered import Answered, deliveries
from holdfast.client.item import Gap
from holdfast.messages.overlay import Lapse
from holdfast.messages.publications import Accepted
from holdfast.messages.session import Farewell, Goodbye
from holdfast.messages.streams import Order
from holdfast.messages.subscriptions import Confirmed
from holdfast.overlay.transport import Connect


def subscribed(**settings: Any) -> Answered:
    world = Answered(**settings)
    world.open()
    world.subscribe(1)
    return world


def test_what_may_be_missing_after_an_interruption_is_announced_before_the_next_event() -> None:
    world = subscribed()
    world.say(deliveries("p", 1, 2), deliveries("q", 5))
    world.lose()
    world.reconnect()
    world.say(Confirmed(world.id(1)))
    world.say(deliveries("p", 6, 7), deliveries("q", 6))
    gap = Gap("p", 2, 5, "disconnected")
    assert world.items() == [("p", 1), ("p", 2), ("q", 5), gap, ("p", 6), ("p", 7), ("q", 6)]


def test_a_plain_client_is_told_of_a_lapse_by_the_next_event() -> None:
    """More brokers have failed together than the network survives; the session stands."""
    world = subscribed()
    world.say(deliveries("p", 1))
    world.say(Lapse("b", 2, 1))
    world.say(deliveries("p", 4), deliveries("p", 9))
    assert world.items() == [("p", 1), Gap("p", 1, 3, "beyond delta"), ("p", 4), ("p", 9)]


def test_two_interruptions_in_a_row_are_one_gap() -> None:
    world = subscribed()
    world.say(deliveries("p", 1))
    for _ in range(2):
        world.lose()
        world.reconnect()
        world.say(Confirmed(world.id(1)))
    world.say(deliveries("p", 9))
    assert world.items() == [("p", 1), Gap("p", 1, 8, "disconnected"), ("p", 9)]


def test_who_subscribed_later_misses_nothing() -> None:
    world = subscribed()
    world.say(deliveries("p", 1))
    world.lose()
    world.reconnect()
    world.say(Confirmed(world.id(1)))
    world.subscribe(2)
    world.say(deliveries("p", 5, to=(1, 2)))
    assert world.items(1) == [("p", 1), Gap("p", 1, 4, "disconnected"), ("p", 5)]
    assert world.items(2) == [("p", 5)]


def test_a_gap_reaches_a_subscription_whose_next_event_never_comes() -> None:
    world = subscribed()
    world.subscribe(2)
    world.say(deliveries("p", 1, to=(1, 2)))
    world.lose()
    world.reconnect()
    world.say(Confirmed(world.id(1)), Confirmed(world.id(2)))
    world.say(deliveries("p", 4, to=(1,)))
    assert world.items(2) == [("p", 1), Gap("p", 1, 3, "disconnected")]


def test_a_gap_lasts_until_the_subscription_is_confirmed_again() -> None:
    """Before that the far brokers of a network that lost it may not know it: its events may still be missed."""
    world = subscribed()
    world.subscribe(2)
    world.say(deliveries("p", 1, to=(1, 2)))
    world.lose()
    world.reconnect()
    world.say(Confirmed(world.id(1)))
    world.say(deliveries("p", 4, to=(1,)))
    world.say(Confirmed(world.id(2)))  # 5 was for 2, and lost
    world.say(deliveries("p", 6, to=(1, 2)))
    covered = {
        n for item in world.items(2) if isinstance(item, Gap) for n in range(item.after + 1, item.upto + 1)
    }
    assert covered >= {2, 3, 5}
    assert world.items(2)[-1] == ("p", 6)


def test_what_the_edge_turns_away_ends_no_doubt() -> None:
    world = subscribed()
    world.subscribe(2)
    world.say(deliveries("p", 2, to=(1, 2)))
    world.lose()
    world.reconnect()
    world.say(Confirmed(world.id(1)), deliveries("p", 6, to=(1,)))
    world.say(Confirmed(world.id(2)), deliveries("p", 5, to=(2,)))  # late: the edge is past it
    world.say(deliveries("p", 7, to=(1, 2)))
    assert world.items(2) == [("p", 2), Gap("p", 2, 6, "disconnected"), ("p", 7)]


def test_a_late_event_ends_no_doubt() -> None:
    world = subscribed(order=Order.NONE)
    world.say(deliveries("p", 5))
    world.lose()
    world.reconnect()
    world.say(Confirmed(world.id(1)), deliveries("p", 3), deliveries("p", 9))
    assert world.items() == [("p", 5), ("p", 3), Gap("p", 5, 8, "disconnected"), ("p", 9)]


def test_a_subscriber_that_was_too_slow_comes_back_and_is_told_of_the_gap() -> None:
    world = subscribed()
    world.say(deliveries("p", 1))
    world.say(Goodbye(Farewell.TOO_SLOW, "8 MiB were waiting"))
    world.wait_for(Connect)
    world.connected()
    world.welcome()
    world.say(Confirmed(world.id(1)), Accepted(0))
    world.say(deliveries("p", 3))
    assert world.items() == [("p", 1), Gap("p", 1, 2, "disconnected"), ("p", 3)]
