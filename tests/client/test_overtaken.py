"""Events that come behind later ones of their publisher: on a reliable stream in order they are announced, once."""

from __future__ import annotations

import pytest

from answered import deliveries
from holdfast.client.inbox import OVERTAKEN, Inbox, Subscription
from holdfast.client.item import Gap
from holdfast.messages.publications import Batch, Deliveries, Publication
from holdfast.messages.streams import Guarantee, Order, StreamOrder
from holdfast.ordering.unordered import WINDOW


def inbox_of(guarantee: Guarantee = Guarantee.RELIABLE, order: Order = Order.FIFO) -> Inbox:
    inbox = Inbox()
    inbox.learn([StreamOrder(deliveries("p", 1).stream, order, guarantee, ("#",))])
    for number in (1, 2):
        inbox.subscriptions[number] = Subscription("#", 10**9, is_current=True)
        inbox.confirm(number)
    return inbox


def items(
    inbox: Inbox, *numbers: int, to: tuple[int, ...] = (1,), is_returned: bool = False
) -> dict[int, list[object]]:
    batch = Batch([Publication("p", n, b"") for n in numbers])
    message = Deliveries(deliveries("p", 1).stream, batch, range(len(numbers)), [to] * len(numbers))
    return {
        each.number: [item.n if isinstance(item, Publication) else item for item in each.items]
        for each in inbox.take(message, is_returned=is_returned)
    }


def gap(after: int, upto: int) -> Gap:
    return Gap("p", after, upto, OVERTAKEN)


def test_what_comes_behind_a_later_one_is_announced_to_those_it_was_for() -> None:
    inbox = inbox_of()
    assert items(inbox, 1, 2, 5) == {1: [1, 2, 5]}
    assert items(inbox, 3, to=(1, 2)) == {1: [gap(2, 3)], 2: [gap(2, 3)]}
    assert items(inbox, 6, 4, 7) == {1: [6, gap(3, 4), 7]}
    assert inbox.turned_away == 2


def test_several_in_a_row_are_one_gap() -> None:
    inbox = inbox_of()
    items(inbox, 1, 9)
    assert items(inbox, 3, 4, 5, 7, 8) == {1: [gap(2, 5), gap(6, 8)]}


def test_a_repeat_is_none_nor_is_what_was_announced() -> None:
    inbox = inbox_of()
    items(inbox, 1, 2, 5)
    assert items(inbox, 1, 2, 5) == {}
    assert items(inbox, 4) == {1: [gap(3, 4)]}
    assert items(inbox, 4) == {}


def test_what_is_so_late_that_nobody_remembers_counts_as_a_repeat() -> None:
    inbox = inbox_of()
    items(inbox, 1, 2 + WINDOW)
    assert items(inbox, 2) == {}
    assert items(inbox, 3) == {1: [gap(2, 3)]}


def test_what_was_overtaken_before_a_subscription_was_confirmed_is_not_announced_to_it() -> None:
    inbox = inbox_of()
    items(inbox, 1, 2, 5)
    inbox.subscriptions[3] = Subscription("#", 10**9)
    inbox.confirm(3)
    assert items(inbox, 3, to=(1, 3)) == {1: [gap(2, 3)]}
    assert items(inbox, 8, to=(1, 3)) == {1: [8], 3: [8]}
    assert items(inbox, 4, 7, to=(1, 3)) == {1: [gap(3, 4), gap(6, 7)], 3: [gap(6, 7)]}
    assert items(inbox, 6, to=(2, 3)) == {2: [gap(5, 6)], 3: [gap(5, 6)]}


def test_of_what_its_publisher_was_given_back_and_sends_again_nothing_is_late() -> None:
    """It sends it to all, those too who were not there when it was published (seed 85119 of the swarm)."""
    inbox = inbox_of()
    items(inbox, 5)
    assert items(inbox, 3, 4, 6, is_returned=True) == {1: [6]}
    assert items(inbox, 4) == {1: [gap(3, 4)]}


@pytest.mark.parametrize(
    ("guarantee", "order", "found"),
    [(Guarantee.BEST_EFFORT, Order.FIFO, {}), (Guarantee.RELIABLE, Order.NONE, {1: [3]})],
)
def test_without_the_promise_it_is_turned_away_and_without_order_delivered(
    guarantee: Guarantee, order: Order, found: dict[int, list[object]]
) -> None:
    inbox = inbox_of(guarantee, order)
    items(inbox, 1, 5)
    assert items(inbox, 3) == found
