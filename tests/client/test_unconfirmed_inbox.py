"""The inbox before a subscription is confirmed: of reliable streams it is handed nothing [B0.26]."""

from __future__ import annotations

import pytest

from answered import deliveries
from holdfast.client.inbox import Inbox, Subscription
from holdfast.messages.streams import Guarantee, Order, StreamOrder


@pytest.mark.parametrize("guarantee", [Guarantee.BEST_EFFORT, Guarantee.RELIABLE])
def test_of_reliable_streams_a_subscription_gets_nothing_before_its_confirmation(
    guarantee: Guarantee,
) -> None:
    inbox = Inbox()
    inbox.learn([StreamOrder(deliveries("p", 1, to=(1,)).stream, Order.FIFO, guarantee, ("#",))])
    inbox.subscriptions[1] = Subscription("#", 10, is_confirmed=True)
    late = inbox.subscriptions[2] = Subscription("#", 10)
    early = [each.number for each in inbox.take(deliveries("p", 1, to=(1, 2)))]
    assert early == ([1] if guarantee is Guarantee.RELIABLE else [1, 2])
    assert late.waiting == len(early) - 1, "what is not handed over does not fill a buffer"
    late.is_confirmed = True
    assert [each.number for each in inbox.take(deliveries("p", 2, to=(1, 2)))] == [1, 2]
