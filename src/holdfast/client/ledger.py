"""What the application has asked of its client, and what it is owed: the same whatever the way to the network.

A plain client and a member of the overlay differ in how they speak with the network, and in nothing their application
asks for. So a client that becomes a member takes its ledger along.
"""

from __future__ import annotations

from typing import Final

from holdfast.client.effect import (
    Effect,
    NotAccepted,
    Subscribed,
    SubscriptionRefused,
    Unsubscribed,
    Upgraded,
)
from holdfast.client.inbox import Inbox, Subscription
from holdfast.client.outbox import Outbox
from holdfast.identity import SubscriptionId
from holdfast.messages.subscriptions import Partition

__all__ = ["AWAITING_BUFFERS_MAX", "Ledger"]

#: While the client waits for an answer, this many buffers' worth of items may wait to be consumed.
AWAITING_BUFFERS_MAX: Final = 10


class Ledger:
    """The subscriptions and the events of one client; ``incarnation`` is part of the subscriptions' ids."""

    def __init__(self, name: str, incarnation: int, unacknowledged_max: int) -> None:
        self.name = name
        self.incarnation = incarnation
        self.inbox = Inbox()
        self.outbox = Outbox(unacknowledged_max)
        self.ending: dict[int, None] = {}  #: subscriptions that are over and not yet forgotten by the network

    # Subscriptions

    def id(self, number: int) -> SubscriptionId:
        """A subscription's id in the network."""
        return SubscriptionId(self.name, self.incarnation, number)

    def add(self, number: int, filter: str, buffer: int) -> None:
        """The application subscribes."""
        assert number not in self.inbox.subscriptions, "a number is used once"
        self.inbox.subscriptions[number] = Subscription(filter, buffer)

    def end(self, number: int) -> bool:
        """The application unsubscribes; False if there is nothing to end."""
        if self.inbox.remove(number) is None:
            return False
        self.ending[number] = None
        return True

    def on_confirmed(self, subscription: SubscriptionId, partial: tuple[Partition, ...]) -> list[Effect]:
        """The network knows a subscription, or knows it again."""
        mine = self._mine(subscription)
        if mine is None:
            return []  # it has ended meanwhile
        mine.is_current = True
        if mine.is_confirmed:  # and now again: what has become of its partitions meanwhile nobody has told us
            cleared = tuple(each for each in mine.partial if each not in partial)
            is_news = partial != mine.partial
            return self.on_upgraded(subscription, cleared, partial) if is_news else []
        mine.is_confirmed = True
        mine.partial = partial
        return [Subscribed(subscription.number, partial)]

    def on_refused(self, subscription: SubscriptionId, problem: str) -> list[Effect]:
        """The network will not have it."""
        if self._mine(subscription) is None:
            return []
        self.inbox.remove(subscription.number)
        return [SubscriptionRefused(subscription.number, problem)]

    def on_upgraded(
        self, subscription: SubscriptionId, cleared: tuple[Partition, ...], partial: tuple[Partition, ...]
    ) -> list[Effect]:
        """Partitions are over."""
        mine = self._mine(subscription)
        if mine is None:
            return []
        mine.partial = partial
        return [Upgraded(subscription.number, cleared, partial)]

    def on_withdrawn(self, subscription: SubscriptionId) -> list[Effect]:
        """The network has forgotten it."""
        if subscription != self.id(subscription.number) or subscription.number not in self.ending:
            return []
        del self.ending[subscription.number]
        return [Unsubscribed(subscription.number)]

    def _mine(self, subscription: SubscriptionId) -> Subscription | None:
        is_mine = subscription == self.id(subscription.number)
        return self.inbox.subscriptions.get(subscription.number) if is_mine else None

    # Events

    def on_rejected(self, n: int, problem: str) -> list[Effect]:
        """An event will not be accepted."""
        return [NotAccepted(n, problem)] if self.outbox.reject(n) else []

    # Reading

    @property
    def is_full(self) -> bool:
        """Whether so much waits to be consumed that nothing more should be read."""
        return self.inbox.is_full(1) and self.inbox.is_full(self._room)

    @property
    def has_room(self) -> bool:
        """Whether so little waits that reading should go on."""
        return self.inbox.has_room(self._room)

    @property
    def _room(self) -> int:
        """How many buffers' worth may wait. Answers come as events do: whoever waits for one must go on reading."""
        awaits = len(self.outbox) or self.ending or self.inbox.is_unconfirmed
        return AWAITING_BUFFERS_MAX if awaits else 1
