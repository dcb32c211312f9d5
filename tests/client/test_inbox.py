"""The inbox by itself: how much it remembers, and for whom."""

from __future__ import annotations

from answered import deliveries
from counted_calls import work_of
from holdfast.client.inbox import Inbox, Subscription
from holdfast.client.item import Gap


def inbox_of(subscriptions: int, publishers: int) -> Inbox:
    inbox = Inbox()
    numbers = tuple(range(1, subscriptions + 1))
    for number in numbers:
        inbox.subscriptions[number] = Subscription("#", 10**9, is_confirmed=True, is_current=True)
    for i in range(publishers):
        inbox.take(deliveries(f"p{i}", 1, to=(1,)))
    return inbox


def test_an_interruption_costs_publishers_plus_subscriptions_not_their_product() -> None:
    small, large = inbox_of(10, 10), inbox_of(300, 300)
    assert work_of(large.begin_doubt).calls < 90 * max(1, work_of(small.begin_doubt).calls)


def test_every_confirmed_subscription_hears_of_the_gap_of_every_publisher_once() -> None:
    inbox = inbox_of(3, 2)
    inbox.begin_doubt()
    for each in inbox.subscriptions.values():
        each.is_current = True
    for publisher in ("p0", "p1"):
        found = inbox.take(deliveries(publisher, 5, to=(1,)))
        gap = Gap(publisher, 1, 4, "disconnected")
        assert {each.number: each.items[0] for each in found} == {1: gap, 2: gap, 3: gap}
        assert [len(each.items) for each in sorted(found, key=lambda each: each.number)] == [2, 1, 1]
        assert [each.number for each in inbox.take(deliveries(publisher, 9, to=(1,)))] == [1]


def test_who_was_not_confirmed_is_owed_no_gap() -> None:
    inbox = inbox_of(2, 1)
    inbox.subscriptions[2].is_confirmed = False
    inbox.begin_doubt()
    for each in inbox.subscriptions.values():
        each.is_current = each.is_confirmed = True
    found = {each.number: each.items for each in inbox.take(deliveries("p0", 5, to=(1, 2)))}
    assert isinstance(found[1][0], Gap)
    assert len(found[2]) == 1
