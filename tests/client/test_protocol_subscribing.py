"""Subscribing through interruptions: nothing twice, nothing after the end, and no more read than is wanted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from answered import Answered, deliveries
from holdfast.client.effect import (
    Acknowledged,
    Away,
    Delivered,
    Subscribed,
    SubscriptionRefused,
    Unsubscribed,
)
from holdfast.client.input import AddSubscription, Consumed, EndSubscription, Open
from holdfast.clock import SECOND
from holdfast.identity import SubscriptionId
from holdfast.messages.publications import Accepted, Batch, Copy, Deliveries, Publication
from holdfast.messages.session import Heartbeat
from holdfast.messages.streams import Order, StreamOrder
from holdfast.messages.subscriptions import Confirmed, Partition, Refused, Subscribe, Unsubscribe, Withdrawn
from holdfast.overlay.transport import Pause, Resume, Send, Wake


def subscribed(**settings: Any) -> Answered:
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
    assert world.say(Confirmed(world.id(1), partial)) == [], "once"


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


def test_every_stream_has_the_order_the_broker_says_and_an_edge_of_its_own() -> None:
    world = Answered()
    world.step(Open())
    world.connected()
    world.welcome(streams=(StreamOrder("loose", Order.NONE), StreamOrder("strict", Order.FIFO)))
    world.subscribe(1)
    for stream, number in (("loose", 2), ("strict", 2), ("loose", 1), ("strict", 1), ("new", 2), ("new", 1)):
        world.say(replace(deliveries("p", number), stream=stream))
    assert world.items() == [("p", 2), ("p", 2), ("p", 1), ("p", 2)], "an unheard-of stream is FIFO"
    assert world.core.turned_away == 2


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
    world.say(Confirmed(world.id(1)))
    assert world.told(Pause)[-1] == Pause(world.connection)


def test_whoever_waits_for_an_answer_goes_on_reading() -> None:
    """Answers come the same way as events: who consumes and publishes on one connection must not wait for itself."""
    world = Answered()
    world.open()
    world.subscribe(1, buffer=4)
    assert world.say(deliveries("p", 1, 2, 3, 4))[-1] == Pause(world.connection)
    assert world.submit(1)[-1] == Resume(world.connection)
    assert not any(isinstance(effect, Pause) for effect in world.say(deliveries("p", 5, 6, 7)))
    assert world.say(Accepted(1)) == [Acknowledged(1, ()), Pause(world.connection)]


def test_even_then_what_waits_is_bounded() -> None:
    world = Answered()
    world.open()
    world.subscribe(1, buffer=2)
    world.submit(1)
    assert world.say(deliveries("p", *range(1, 20)))[-1] != Pause(world.connection)
    assert world.say(deliveries("p", 20))[-1] == Pause(world.connection)


def test_what_is_consumed_after_the_end_counts_for_nothing() -> None:
    world = subscribed()
    world.say(deliveries("p", 1))
    world.step(EndSubscription(1))
    assert world.step(Consumed(1, 1)) == []


def test_consuming_more_than_was_delivered_is_the_callers_bug() -> None:
    world = subscribed()
    with pytest.raises(AssertionError):
        world.step(Consumed(1, 1))
