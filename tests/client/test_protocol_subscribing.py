"""Subscribing through interruptions: nothing twice, what may be missing announced, and no more read than is wanted."""

from __future__ import annotations

import pytest

from answered import Answered, deliveries
from holdfast.client.effect import Away, Delivered, Subscribed, SubscriptionRefused, Unsubscribed
from holdfast.client.input import AddSubscription, Consumed, EndSubscription
from holdfast.client.item import Gap
from holdfast.clock import SECOND
from holdfast.identity import SubscriptionId
from holdfast.messages.publications import Accepted, Batch, Copy, Deliveries, Publication
from holdfast.messages.session import Farewell, Goodbye, Heartbeat
from holdfast.messages.streams import Order
from holdfast.messages.subscriptions import Confirmed, Partition, Refused, Subscribe, Unsubscribe, Withdrawn
from holdfast.overlay.transport import Connect, Pause, Resume, Send, Wake


def subscribed(**settings: object) -> Answered:
    world = Answered(**settings)
    world.open()
    world.subscribe(1)
    return world


# Subscriptions


def test_a_subscription_is_confirmed_with_what_could_not_be_reached() -> None:
    world = Answered()
    world.open()
    world.step(AddSubscription(1, "a", 10))
    [said] = [message for message in world.said if isinstance(message, Subscribe)]
    assert (said.subscription, said.filter) == (world.id(1), "a")
    partial = (Partition("b", 1, 1, ("far",)),)
    assert world.say(Confirmed(world.id(1), partial)) == [Subscribed(1, partial)]
    assert world.say(Confirmed(world.id(1))) == [], "once"


@pytest.mark.parametrize(
    "somebody", [SubscriptionId("other", 1, 1), SubscriptionId("peer", 2, 1), SubscriptionId("peer", 1, 2)]
)
def test_answers_for_somebody_else_are_ignored(somebody: SubscriptionId) -> None:
    world = Answered()
    world.open()
    world.step(AddSubscription(1, "a", 10))
    assert world.say(Confirmed(somebody), Refused(somebody, "no"), Withdrawn(somebody)) == []


def test_a_refused_subscription_is_over() -> None:
    world = Answered()
    world.open()
    world.step(AddSubscription(1, "a WHERE", 10))
    assert world.say(Refused(world.id(1), "line 1")) == [SubscriptionRefused(1, "line 1")]
    world.lose()
    world.reconnect()
    assert not any(isinstance(message, Subscribe) for message in world.said)


def test_subscriptions_are_made_again_under_their_old_ids() -> None:
    world = subscribed()
    world.lose()
    world.step(AddSubscription(2, "b", 10))
    world.reconnect()
    again = [message.subscription for message in world.said if isinstance(message, Subscribe)]
    assert again == [world.id(1), world.id(2)]
    world.say(Confirmed(world.id(1)), Confirmed(world.id(2)))
    assert [each.number for each in world.told(Subscribed)] == [1, 2]


def test_nothing_is_delivered_after_the_end_and_the_end_is_confirmed() -> None:
    world = subscribed()
    world.step(EndSubscription(1))
    assert world.said[-1] == Unsubscribe(world.id(1))
    assert world.say(deliveries("p", 1)) == []
    assert world.say(Withdrawn(world.id(1))) == [Unsubscribed(1)]
    assert world.say(Withdrawn(world.id(1))) == []


def test_an_end_while_away_is_told_to_the_next_session() -> None:
    world = subscribed()
    world.lose()
    assert world.step(EndSubscription(1)) == []
    world.reconnect()
    assert world.said[-1] == Unsubscribe(world.id(1))
    assert not any(isinstance(message, Subscribe) for message in world.said)
    world.lose()
    world.reconnect()
    assert world.said[-1] == Unsubscribe(world.id(1)), "until it is confirmed"
    assert world.say(Withdrawn(world.id(1))) == [Unsubscribed(1)]
    world.lose()
    world.reconnect()
    assert not any(isinstance(message, Unsubscribe) for message in world.said)


# Deliveries


def test_one_delivery_goes_to_each_subscription_it_names() -> None:
    world = subscribed()
    world.subscribe(2)
    effects = world.say(deliveries("p", 1, 2, to=(1, 2)), deliveries("p", 3, to=(2,)))
    assert all(isinstance(effect, Delivered) for effect in effects)
    assert world.items(1) == [("p", 1), ("p", 2)]
    assert world.items(2) == [("p", 1), ("p", 2), ("p", 3)]


def test_the_marks_of_a_copy_come_with_its_event() -> None:
    world = subscribed()
    copies = [None, Copy(lo=1)]
    batch = Batch([Publication("p", 1, b""), Publication("p", 2, b"")])
    [delivered] = world.say(Deliveries("default", batch, [0, 1], [(1,), (1,)], copies))
    assert isinstance(delivered, Delivered)
    assert delivered.copies == copies


def test_a_shared_batch_gives_only_what_is_picked() -> None:
    world = subscribed()
    batch = Batch([Publication("p", n, b"") for n in range(1, 6)])
    world.say(Deliveries("default", batch, [1, 3], [(1,), (1,)]))
    assert world.items() == [("p", 2), ("p", 4)]


@pytest.mark.parametrize("order", list(Order))
def test_nothing_is_delivered_twice_whatever_is_sent_again(order: Order) -> None:
    world = subscribed(order=order)
    world.say(deliveries("p", 1, 2), deliveries("p", 1, 2, 3), deliveries("q", 1))
    world.lose()
    world.reconnect()
    world.say(deliveries("p", 2, 3, 4))
    assert world.items() == [("p", 1), ("p", 2), ("p", 3), ("q", 1), ("p", 4)]
    assert world.core.turned_away == 4


def test_late_ones_pass_without_order_and_not_with_it() -> None:
    for order, expected in ((Order.NONE, [2, 1]), (Order.FIFO, [2])):
        world = subscribed(order=order)
        world.say(deliveries("p", 2), deliveries("p", 1))
        assert world.items() == [("p", n) for n in expected]


# Gaps


def test_what_may_be_missing_after_an_interruption_is_announced_before_the_next_event() -> None:
    world = subscribed()
    world.say(deliveries("p", 1, 2), deliveries("q", 5))
    world.lose()
    world.reconnect()
    world.say(Confirmed(world.id(1)))
    world.say(deliveries("p", 6, 7), deliveries("q", 6))
    gap = Gap("p", 2, 5, "disconnected")
    assert world.items() == [("p", 1), ("p", 2), ("q", 5), gap, ("p", 6), ("p", 7), ("q", 6)]


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


# Back-pressure


def test_reading_stops_when_a_buffer_is_full_and_resumes_when_it_is_half_empty() -> None:
    world = Answered()
    world.open()
    world.subscribe(1, buffer=4)
    assert not any(isinstance(effect, Pause) for effect in world.say(deliveries("p", 1, 2, 3)))
    assert world.say(deliveries("p", 4))[-1] == Pause(world.connection)
    assert world.say(deliveries("p", 5))[-1] != Pause(world.connection), "once"
    assert world.step(Consumed(1, 2)) == []
    assert world.step(Consumed(1, 1)) == [Resume(world.connection)]
    assert world.step(Consumed(1, 2)) == []


def test_the_slowest_subscription_decides() -> None:
    world = Answered()
    world.open()
    world.subscribe(1, buffer=2)
    world.subscribe(2, buffer=2)
    world.say(deliveries("p", 1, 2, to=(1, 2)))
    assert world.step(Consumed(1, 2)) == []
    assert world.step(Consumed(2, 2)) == [Resume(world.connection)]


def test_ending_the_subscription_that_was_full_resumes_reading() -> None:
    world = Answered()
    world.open()
    world.subscribe(1, buffer=1)
    world.subscribe(2, buffer=10)
    world.say(deliveries("p", 1))
    assert Resume(world.connection) in world.step(EndSubscription(1))


def test_while_paused_the_broker_is_not_given_up_but_hears_us() -> None:
    world = Answered(detect_after_ns=5 * SECOND, heartbeat_ns=SECOND)
    world.open()
    world.subscribe(1, buffer=1)
    world.say(deliveries("p", 1))
    for _ in range(60):
        world.wait_for(Send)
        assert world.said[-1] == Heartbeat()
    assert world.now == 60 * SECOND
    assert world.core.is_ready
    world.step(Consumed(1, 1))
    assert world.step(Wake()) == [], "silence counts from the moment of reading again"
    world.wait_for(Away)
    assert world.now == 65 * SECOND


def test_a_full_subscription_pauses_the_next_session_too() -> None:
    world = Answered()
    world.open()
    world.subscribe(1, buffer=1)
    world.say(deliveries("p", 1))
    world.lose()
    world.reconnect()
    assert world.told(Pause)[-1] == Pause(world.connection)


def test_consuming_more_than_was_delivered_is_the_callers_bug() -> None:
    world = subscribed()
    with pytest.raises(AssertionError):
        world.step(Consumed(1, 1))


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
