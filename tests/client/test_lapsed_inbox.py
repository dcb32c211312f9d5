"""The inbox after a lapse: gaps where events of reliable streams may be missing, until their publisher has marked."""

from __future__ import annotations

import pytest

from answered import deliveries
from holdfast.client.inbox import Inbox, Subscription
from holdfast.client.item import Gap
from holdfast.messages.marks import Mark, new_mark
from holdfast.messages.publications import Batch, Deliveries, Publication
from holdfast.messages.streams import Guarantee, Order, StreamOrder

LAPSE = "b", (2, 1)


def inbox_of(subscriptions: int = 1) -> Inbox:
    inbox = Inbox()
    stream = deliveries("p", 1).stream
    inbox.learn([StreamOrder(stream, Order.FIFO, Guarantee.RELIABLE, ("#",))], frozenset({stream}))
    for number in range(1, subscriptions + 1):
        inbox.subscriptions[number] = Subscription("#", 10**9, is_confirmed=True, is_current=True)
    return inbox


def marked(publisher: str, upto: int, *lapses: tuple[str, tuple[int, int]]) -> Deliveries:
    mark = new_mark(publisher, 1, Mark(upto, dict(lapses)))
    return Deliveries(deliveries("p", 1).stream, Batch([mark]), [0], [()])


def items(inbox: Inbox, message: Deliveries) -> dict[int, list[object]]:
    return {
        each.number: [item.n if isinstance(item, Publication) else item for item in each.items]
        for each in inbox.take(message)
    }


def gap(after: int, upto: int, publisher: str = "p") -> Gap:
    return Gap(publisher, after, upto, "beyond delta")


def test_without_a_lapse_what_is_missing_was_for_others() -> None:
    inbox = inbox_of()
    assert items(inbox, deliveries("p", 7, to=(1,))) == {1: [7]}
    assert items(inbox, marked("p", 9)) == {}
    assert items(inbox, deliveries("p", 12, to=(1,))) == {1: [12]}


def test_after_a_lapse_every_hole_is_a_gap_until_the_publisher_has_marked() -> None:
    inbox = inbox_of(2)
    inbox.take(deliveries("p", 3, to=(1,)))
    inbox.begin_lapse(*LAPSE)
    assert items(inbox, deliveries("p", 4, to=(1,))) == {1: [4]}
    assert items(inbox, deliveries("p", 6, to=(1,))) == {1: [gap(4, 5), 6], 2: [gap(4, 5)]}
    assert items(inbox, marked("p", 8, LAPSE)) == {1: [gap(6, 8)], 2: [gap(6, 8)]}
    assert items(inbox, deliveries("p", 11, to=(1,))) == {1: [11]}


def test_a_publisher_nobody_has_heard_of_is_in_doubt_too() -> None:
    inbox = inbox_of()
    inbox.begin_lapse(*LAPSE)
    assert items(inbox, deliveries("q", 3, to=(1,))) == {1: [gap(0, 2, "q"), 3]}
    assert items(inbox, marked("r", 2, LAPSE)) == {1: [gap(0, 2, "r")]}
    assert items(inbox, marked("s", 0, LAPSE)) == {}


def test_what_a_mark_says_is_lost_does_not_come_after_it() -> None:
    inbox = inbox_of()
    inbox.begin_lapse(*LAPSE)
    inbox.take(marked("p", 5, LAPSE))
    assert items(inbox, deliveries("p", 4, to=(1,))) == {}
    assert inbox.turned_away == 1


def test_a_mark_that_did_not_know_of_the_lapse_does_not_end_the_doubt() -> None:
    inbox = inbox_of()
    inbox.begin_lapse(*LAPSE)
    inbox.begin_lapse("c", (3, 1))
    assert items(inbox, marked("p", 2, LAPSE)) == {1: [gap(0, 2)]}
    assert items(inbox, deliveries("p", 5, to=(1,))) == {1: [gap(2, 4), 5]}
    assert items(inbox, marked("p", 6, LAPSE, ("c", (3, 1)))) == {1: [gap(5, 6)]}
    assert items(inbox, deliveries("p", 9, to=(1,))) == {1: [9]}


def test_a_mark_may_come_before_the_news_it_answers() -> None:
    inbox = inbox_of()
    inbox.take(deliveries("p", 1, to=(1,)))
    assert items(inbox, marked("p", 4, LAPSE)) == {1: [gap(1, 4)]}
    inbox.begin_lapse(*LAPSE)
    assert items(inbox, deliveries("p", 9, to=(1,))) == {1: [9]}


@pytest.mark.parametrize("again", [LAPSE, ("b", (1, 7)), ("b", (2, 0))])
def test_what_is_known_is_no_new_lapse(again: tuple[str, tuple[int, int]]) -> None:
    inbox = inbox_of()
    inbox.begin_lapse(*LAPSE)
    inbox.take(marked("p", 5, LAPSE))
    inbox.begin_lapse(*again)
    assert items(inbox, deliveries("p", 9, to=(1,))) == {1: [9]}


def test_whoever_subscribes_later_is_in_no_doubt() -> None:
    inbox = inbox_of()
    inbox.begin_lapse(*LAPSE)
    inbox.subscriptions[2] = Subscription("#", 10**9, is_confirmed=True, is_current=True)
    assert items(inbox, deliveries("p", 3, to=(1, 2))) == {1: [gap(0, 2), 3], 2: [3]}


def test_a_mark_that_cannot_be_read_is_an_error() -> None:
    bad = Deliveries(deliveries("p", 1).stream, Batch([Publication("p", 0, b"\xc1")]), [0], [()])
    with pytest.raises(ValueError, match="a mark of p that cannot be read"):
        inbox_of().take(bad)
