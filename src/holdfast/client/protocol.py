"""The client without IO: one session with a broker, kept up for as long as the application wants.

A session that breaks is opened again, with growing pauses. Subscriptions are then made again under their old ids,
and events that were not acknowledged are sent again under their old numbers, in order: the broker, or the edge of
the subscriber, turns away what had arrived. Where the numbers of a publisher show that something may be missing
since, a gap says so.

What was delivered and not yet consumed is bounded: past a subscription's buffer the client stops reading, and the
broker sees a slow subscriber.
"""

from __future__ import annotations

import zlib
from typing import Final, assert_never

from holdfast.client.effect import (
    Acknowledged,
    Away,
    Effect,
    Ended,
    NotAccepted,
    Ready,
    Subscribed,
    SubscriptionRefused,
    Unsubscribed,
)
from holdfast.client.inbox import Inbox, Subscription
from holdfast.client.input import AddSubscription, Consumed, EndSubscription, Input, Leave, Open, Submit
from holdfast.client.outbox import Outbox, publishes
from holdfast.client.settings import Settings
from holdfast.clock import Instant
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.publications import (
    Accepted,
    Deliveries,
    Publication,
    Publications,
    Publish,
    Rejected,
)
from holdfast.messages.session import VERSION, Farewell, Goodbye, Heartbeat, Hello, Kind, Welcome
from holdfast.messages.subscriptions import (
    Confirmed,
    Partition,
    Refused,
    Subscribe,
    Table,
    Unsubscribe,
    Withdrawn,
)
from holdfast.overlay.session import HEARTBEATS_MISSED_MAX, HELLO_WITHIN_NS, heartbeat_problem
from holdfast.overlay.transport import (
    Close,
    Connect,
    Connected,
    ConnectFailed,
    Disconnected,
    Log,
    Pause,
    Received,
    Resume,
    Send,
    Wake,
)

__all__ = ["ClientCore"]

#: While the client waits for an answer, this many buffers' worth of items may wait to be consumed.
AWAITING_BUFFERS_MAX: Final = 10

#: After these there is no point in coming back.
FINAL: Final = {
    Farewell.TAKEN_OVER,
    Farewell.UNKNOWN,
    Farewell.VERSION,
    Farewell.PROTOCOL,
}


class ClientCore:
    """Driven by ``step`` and ``next_deadline``, as ``overlay.transport`` says."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.name
        self._settings = settings
        self._over = False

        # The session. A connection without a broker's name has not been welcomed yet.
        self._connection: int | None = None
        self._broker: str | None = None
        self._dialling = False
        self._session = 0
        self._attempts = 0
        self._dial_at: Instant | None = None
        self._heard_at: Instant = 0
        self._silent_after_ns = settings.detect_after_ns
        self._heartbeat_at: Instant = 0
        self._paused = False

        self._outbox = Outbox(settings.unacknowledged_max)
        self._inbox = Inbox()
        self._ending: dict[
            int, None
        ] = {}  #: subscriptions that are over and not yet forgotten by the network
        self._control_seq = 0

    @property
    def unacknowledged(self) -> int:
        """How many submitted events wait for their acknowledgement."""
        return len(self._outbox)

    @property
    def turned_away(self) -> int:
        """How many deliveries had passed before."""
        return self._inbox.turned_away

    @property
    def is_ready(self) -> bool:
        """Whether there is a session."""
        return self._broker is not None and not self._over

    def step(self, stimulus: Input, now: Instant) -> list[Effect]:
        """Take one input, and say what is to be done about it."""
        if self._over:
            return [Close(stimulus.connection, "over")] if isinstance(stimulus, Connected) else []
        match stimulus:
            case Received(connection, messages):
                return self._on_received(connection, messages, now)
            case Submit(publications):
                return self._on_submit(publications, now)
            case Consumed(number, count):
                return self._on_consumed(number, count, now)
            case Wake():
                return self._on_wake(now)
            case Open():
                return self._dial()
            case Connected(connection):
                return self._on_connected(connection, now)
            case ConnectFailed(_, reason):
                self._dialling = False
                return [*self._retry(now), Log("info", "cannot reach the broker", {"reason": reason})]
            case Disconnected(connection, reason):
                return self._on_disconnected(connection, reason, now)
            case AddSubscription(number, filter, buffer):
                return self._on_add(number, filter, buffer, now)
            case EndSubscription(number):
                return self._on_end(number, now)
            case Leave():
                return self._on_leave()
            case _:
                assert_never(stimulus)

    def next_deadline(self) -> Instant | None:
        """When the broker must be dialled, greeted by a heartbeat, or given up."""
        if self._over:
            return None
        if self._connection is None:
            return self._dial_at
        given_up_at = self._heard_at + self._silent_after_ns
        if self._broker is None:
            return given_up_at
        return self._heartbeat_at if self._paused else min(self._heartbeat_at, given_up_at)

    # The session

    def _dial(self) -> list[Effect]:
        self._dialling = True
        self._dial_at = None
        return [Connect("", self._settings.broker)]

    def _retry(self, now: Instant) -> list[Effect]:
        """Later, and later each time; the clients of a broker do not all come back at once."""
        pause = min(self._settings.backoff_min_ns << min(self._attempts, 30), self._settings.backoff_max_ns)
        spread = zlib.crc32(f"{self.name}/{self._attempts}".encode()) / 2**32
        self._attempts += 1
        self._dial_at = now + int(pause * (0.5 + spread / 2))
        return []

    def _on_connected(self, connection: int, now: Instant) -> list[Effect]:
        self._dialling = False
        self._connection = connection
        self._session += 1
        self._heard_at = now
        self._silent_after_ns = max(self._settings.detect_after_ns, HELLO_WITHIN_NS)
        settings = self._settings
        hello = Hello(
            self.name,
            Kind.CLIENT,
            settings.incarnation,
            self._session,
            settings.principal,
            settings.heartbeat_ns,
        )
        return [Send(connection, [hello])]

    def _on_disconnected(self, connection: int, reason: str, now: Instant) -> list[Effect]:
        return self._lose(reason, now) if connection == self._connection else []

    def _lose(self, reason: str, now: Instant) -> list[Effect]:
        was_ready = self._broker is not None
        self._connection = self._broker = None
        self._paused = False
        if was_ready:
            self._inbox.begin_doubt()
        self._retry(now)
        return [Away(reason)] if was_ready else []

    def _drop(self, farewell: Farewell, reason: str, now: Instant) -> list[Effect]:
        """Give up the connection from this side."""
        assert self._connection is not None
        parting: list[Effect] = [
            Send(self._connection, [Goodbye(farewell, reason)]),
            Close(self._connection, reason),
        ]
        return parting + self._lose(reason, now)

    def _on_wake(self, now: Instant) -> list[Effect]:
        if self._connection is None:
            due = self._dial_at is not None and now >= self._dial_at and not self._dialling
            return self._dial() if due else []
        if not self._paused and now >= self._heard_at + self._silent_after_ns:
            return self._drop(Farewell.SILENT, "nothing heard from the broker", now)
        if self._broker is not None and now >= self._heartbeat_at:
            self._heartbeat_at = now + self._settings.heartbeat_ns
            return [Send(self._connection, [Heartbeat()])]
        return []

    def _on_leave(self) -> list[Effect]:
        self._over = True
        ended = Ended(Farewell.LEAVING, "left")
        if self._connection is None:
            return [ended]
        goodbye = Goodbye(Farewell.LEAVING, "the client leaves")
        return [Send(self._connection, [goodbye]), Close(self._connection, "left"), ended]

    # What the broker says

    def _on_received(self, connection: int, messages: list[Message], now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        self._heard_at = now
        for message in messages:
            if connection != self._connection or self._over:
                break
            effects += self._on_message(message, now)
        return effects

    def _on_message(self, message: Message, now: Instant) -> list[Effect]:
        match message:
            case Welcome() if self._broker is None:
                return self._on_welcome(message, now)
            case Goodbye(farewell, reason):
                return self._on_goodbye(farewell, reason, now)
            case Deliveries() if self._broker is not None:
                return self._on_deliveries(message)
            case Accepted(upto, duplicates) if self._broker is not None:
                return self._on_accepted(upto, duplicates)
            case Heartbeat():
                return []
            case Confirmed(subscription, partial) if self._broker is not None:
                return self._on_confirmed(subscription, partial)
            case Refused(subscription, problem) if self._broker is not None:
                return self._on_refused(subscription, problem, now)
            case Withdrawn(subscription) if self._broker is not None:
                return self._on_withdrawn(subscription)
            case Rejected(n, problem) if self._broker is not None:
                return self._on_rejected(n, problem)
            case (
                Welcome()
                | Deliveries()
                | Accepted()
                | Confirmed()
                | Refused()
                | Withdrawn()
                | Rejected()
                | Hello()
                | Subscribe()
                | Unsubscribe()
                | Table()
                | Publish()
                | Publications()
            ):
                return self._drop(Farewell.PROTOCOL, f"unexpected {type(message).__name__}", now)
            case _:
                assert_never(message)

    def _on_welcome(self, welcome: Welcome, now: Instant) -> list[Effect]:
        assert self._connection is not None
        problem = heartbeat_problem(welcome.heartbeat_ns)
        if welcome.kind is not Kind.BROKER or welcome.version != VERSION or welcome.session != self._session:
            problem = f"a Welcome by a {welcome.kind}, version {welcome.version}, session {welcome.session}"
        if problem is not None:
            return self._drop(Farewell.PROTOCOL, problem, now)
        self._inbox.learn(welcome.streams)
        self._broker = welcome.node
        self._attempts = 0
        self._heartbeat_at = now + self._settings.heartbeat_ns
        self._silent_after_ns = max(
            self._settings.detect_after_ns, HEARTBEATS_MISSED_MAX * welcome.heartbeat_ns
        )
        effects: list[Effect] = [Ready(welcome.node, welcome.last_number)]
        again: list[Message] = [
            self._subscribe(number, subscription.filter)
            for number, subscription in self._inbox.subscriptions.items()
        ]
        again += [Unsubscribe(self._id(number)) for number in self._ending]
        # What the broker may have had is sent all the same: only its answer tells accepted from rejected.
        again += publishes(self._outbox.waiting())
        if again:
            effects.append(Send(self._connection, again))
        return effects + self._pause_if_full()

    def _on_goodbye(self, farewell: Farewell, reason: str, now: Instant) -> list[Effect]:
        assert self._connection is not None
        closing: list[Effect] = [Close(self._connection, reason)]
        if farewell in FINAL:
            self._over = True
            return [*closing, Ended(farewell, reason)]
        return closing + self._lose(f"{farewell}: {reason}", now)

    # Publishing

    def _on_submit(self, publications: list[Publication], now: Instant) -> list[Effect]:
        self._outbox.submit(publications)
        if self._broker is None or self._connection is None or not publications:
            return []
        return [Send(self._connection, publishes(publications)), *self._resume_if_possible(now)]

    def _on_accepted(self, upto: int, duplicates: tuple[int, ...]) -> list[Effect]:
        highest = self._outbox.accept(upto)
        return [*([Acknowledged(highest, duplicates)] if highest else []), *self._pause_if_full()]

    def _on_rejected(self, n: int, problem: str) -> list[Effect]:
        return [NotAccepted(n, problem)] if self._outbox.reject(n) else []

    # Subscribing

    def _id(self, number: int) -> SubscriptionId:
        return SubscriptionId(self.name, self._settings.incarnation, number)

    def _is_mine(self, subscription: SubscriptionId) -> bool:
        return subscription == self._id(subscription.number)

    def _subscribe(self, number: int, filter: str) -> Subscribe:
        self._control_seq += 1
        vector = (Element(self.name, self._settings.incarnation, self._control_seq),)
        return Subscribe(self._id(number), filter, vector)

    def _on_add(self, number: int, filter: str, buffer: int, now: Instant) -> list[Effect]:
        assert number not in self._inbox.subscriptions, "a number is used once"
        self._inbox.subscriptions[number] = Subscription(filter, buffer)
        if self._broker is None or self._connection is None:
            return []
        return [Send(self._connection, [self._subscribe(number, filter)]), *self._resume_if_possible(now)]

    def _on_confirmed(self, subscription: SubscriptionId, partial: tuple[Partition, ...]) -> list[Effect]:
        mine = self._inbox.subscriptions.get(subscription.number) if self._is_mine(subscription) else None
        if mine is None:
            return []  # it has ended meanwhile
        mine.is_current = True
        if mine.is_confirmed:  # and now again, after a reconnection
            return self._pause_if_full()
        mine.is_confirmed = True
        return [Subscribed(subscription.number, partial), *self._pause_if_full()]

    def _on_refused(self, subscription: SubscriptionId, problem: str, now: Instant) -> list[Effect]:
        if not self._is_mine(subscription) or self._inbox.remove(subscription.number) is None:
            return []
        return [SubscriptionRefused(subscription.number, problem), *self._resume_if_possible(now)]

    def _on_end(self, number: int, now: Instant) -> list[Effect]:
        if self._inbox.remove(number) is None:
            return []
        self._ending[number] = None
        if self._broker is None or self._connection is None:
            return []
        ending = Send(self._connection, [Unsubscribe(self._id(number))])
        return [ending, *self._resume_if_possible(now)]

    def _on_withdrawn(self, subscription: SubscriptionId) -> list[Effect]:
        if not self._is_mine(subscription) or subscription.number not in self._ending:
            return []
        del self._ending[subscription.number]
        return [Unsubscribed(subscription.number), *self._pause_if_full()]

    # Deliveries

    def _on_deliveries(self, message: Deliveries) -> list[Effect]:
        return [*self._inbox.take(message), *self._pause_if_full()]

    @property
    def _room(self) -> int:
        """How many buffers' worth may wait. Answers come as events do: whoever waits for one must go on reading."""
        awaits = len(self._outbox) or self._ending or self._inbox.is_unconfirmed
        return AWAITING_BUFFERS_MAX if awaits else 1

    def _pause_if_full(self) -> list[Effect]:
        if self._paused or self._connection is None or not self._inbox.is_full(1):
            return []
        if not self._inbox.is_full(self._room):
            return []
        self._paused = True
        return [Pause(self._connection)]

    def _on_consumed(self, number: int, count: int, now: Instant) -> list[Effect]:
        self._inbox.consume(number, count)
        return self._resume_if_possible(now)

    def _resume_if_possible(self, now: Instant) -> list[Effect]:
        if not self._paused or self._connection is None or not self._inbox.has_room(self._room):
            return []
        self._paused = False
        self._heard_at = now  # while nothing was read, nothing could be heard
        return [Resume(self._connection)]
