"""What the application has asked of its client, and what it is owed: the same whatever the way to the network.

A plain client and a member of the overlay differ in how they speak with the network, and in nothing their application
asks for. So a client that becomes a member takes its ledger along.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.client.effect import (
    Effect,
    NotAccepted,
    Ousted,
    Subscribed,
    SubscriptionRefused,
    Unsubscribed,
    Upgraded,
)
from holdfast.client.inbox import Inbox, Subscription
from holdfast.client.input import AddSubscription
from holdfast.client.logged import LoggedStreams
from holdfast.client.outbox import Outbox
from holdfast.client.reading import Reading
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Detach
from holdfast.messages.message import Message
from holdfast.messages.subscriptions import NO_SEAT, Partition, Seat, Unsubscribe
from holdfast.messages.ticks import Tick
from holdfast.streams.checkpoint_token import Token

__all__ = ["AWAITING_BUFFERS_MAX", "Ledger"]

#: While the client waits for an answer, this many buffers' worth of items may wait to be consumed.
AWAITING_BUFFERS_MAX: Final = 10


class Ledger:
    """The subscriptions and the events of one client; ``incarnation`` is part of the subscriptions' ids."""

    def __init__(self, name: str, incarnation: int, unacknowledged_max: int, sent_bytes_max: int) -> None:
        self.name = name
        self.incarnation = incarnation
        self.inbox = Inbox()
        self.logged = LoggedStreams(self.inbox)
        self.outbox = Outbox(unacknowledged_max, sent_bytes_max)
        self.home = ""  #: the broker our events are logged at: the first they were sent to; "": none was
        #: Subscriptions that are over and not yet forgotten by the network.
        self.ending: dict[int, Subscription] = {}
        self._detaching: dict[int, None] = {}  #: durable ones that are left, and kept by the broker

    # Subscriptions

    def id(self, number: int) -> SubscriptionId:
        """A subscription's id in the network."""
        return SubscriptionId(self.name, self.incarnation, number)

    def add(self, wish: AddSubscription) -> Subscription:
        """The application subscribes."""
        assert wish.number not in self.inbox.subscriptions, "a number is used once"
        reading = Reading(wish.buffer, durable=wish.durable, start=wish.start, token=wish.token)
        added = self.inbox.subscriptions[wish.number] = Subscription(
            wish.filter, wish.buffer, reading=reading
        )
        return added

    def end(self, number: int, *, keep: bool = False) -> list[Message]:
        """The application unsubscribes, or leaves a durable one; what the broker is told. Nothing: there is none."""
        last_words = self.logged.acknowledge_all(number) if keep else []
        ended = self.inbox.remove(number)
        if ended is None:
            return []
        if keep:
            self._detaching[number] = None
            return [*last_words, Detach(number)]
        self.ending[number] = ended
        return [Unsubscribe(self.id(number))]

    def on_away(self) -> list[Effect]:
        """There is no session any more."""
        for each in self.inbox.subscriptions.values():
            each.acknowledging.begin_again()
        return self.let_go()

    def let_go(self) -> list[Effect]:
        """Without a session, what was to be left and kept has been."""
        left, self._detaching = self._detaching, {}
        return [Unsubscribed(number) for number in left]

    def on_confirmed(
        self,
        subscription: SubscriptionId,
        partial: tuple[Partition, ...],
        token: Mapping[str, tuple[int, Tick]] | None = None,
        born: tuple[int, str] | None = None,
        seat: Seat = NO_SEAT,
    ) -> list[Effect]:
        """The network knows a subscription, or knows it again.

        ``token``: where it goes on in logged streams; None: none has anything for it. ``born`` and ``seat``: what
        brokers are to be told when it goes on after an interruption.
        """
        mine = self._mine(subscription)
        if mine is None:
            return []  # it has ended meanwhile
        mine.is_current = True
        stood = mine.reading.token
        jumps = [] if token is None else mine.reading.begin(subscription.number, token, born, seat)
        if mine.is_confirmed:  # and now again: what has become of its partitions meanwhile nobody has told us
            cleared = tuple(each for each in mine.partial if each not in partial)
            is_news = partial != mine.partial
            return [*(self.on_upgraded(subscription, cleared, partial) if is_news else []), *jumps]
        self.inbox.confirm(subscription.number)
        mine.partial = partial
        begins = Token({**mine.reading.token, **stood})
        return [Subscribed(subscription.number, partial, begins), *jumps]

    def on_refused(self, subscription: SubscriptionId, problem: str, code: str = "") -> list[Effect]:
        """The network will not have it."""
        if self._mine(subscription) is None:
            return []
        self.inbox.remove(subscription.number)
        return [SubscriptionRefused(subscription.number, problem, code)]

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
        """The network has forgotten it, or its broker has let go of it."""
        number = subscription.number
        is_over = number in self.ending or number in self._detaching
        if subscription != self.id(number) or not is_over:
            return []
        self.ending.pop(number, None)
        self._detaching.pop(number, None)
        return [Unsubscribed(number)]

    def on_ousted(self, number: int, reason: str) -> list[Effect]:
        """Another client reads it, also if we wanted to end it: then it is not over."""
        was_there = self.inbox.remove(number) or self.ending.pop(number, None)
        return [Ousted(number, reason)] if was_there is not None else []

    def _mine(self, subscription: SubscriptionId) -> Subscription | None:
        is_mine = subscription == self.id(subscription.number)
        return self.inbox.subscriptions.get(subscription.number) if is_mine else None

    # Events

    def on_rejected(self, n: int, problem: str, code: str) -> list[Effect]:
        """An event will not be accepted."""
        if code != "event":
            self.outbox.hear(n)
        return [NotAccepted(n, problem, code)] if self.outbox.reject(n) else []

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
        awaits = len(self.outbox) or self.ending or self._detaching or self.inbox.is_unconfirmed
        return AWAITING_BUFFERS_MAX if awaits else 1
