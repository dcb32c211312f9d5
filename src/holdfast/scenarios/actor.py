"""A publisher or subscriber of a scenario: a client with an application that does what the script says.

It wraps the client's core and is driven like one, by the simulator and by real processes alike; its first input
is ``Wake``. It writes the client's side of the trace [contracts.md §5]: a ``Trace`` effect always comes before
the effect it announces, so that a line is written before what it tells can be seen outside.

A publisher that cannot reach its broker goes on publishing into its client, up to
``Settings.unacknowledged_max`` events, and then waits. Disconnect, in a script, takes the plug out: the client
knows that its session is lost and dials again, and the actor keeps that back until Reconnect.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.client.effect import (
    Acknowledged,
    Away,
    Delivered,
    Ended,
    NotAccepted,
    Ready,
    Subscribed,
    SubscriptionRefused,
    Unsubscribed,
    Upgraded,
)
from holdfast.client.input import AddSubscription, EndSubscription, Leave, Open, Submit
from holdfast.client.member import MemberCore
from holdfast.client.protocol import ClientCore
from holdfast.client.settings import Settings
from holdfast.clock import Instant
from holdfast.messages.subscriptions import Partition
from holdfast.node.settings import NodeSettings
from holdfast.overlay.transport import (
    Close,
    Connect,
    Connected,
    ConnectFailed,
    Disconnected,
    Log,
    Trace,
    Wake,
)
from holdfast.scenarios.actor_commands import (
    DoDisconnect,
    DoLeave,
    Done,
    DoPublish,
    DoReconnect,
    DoSlow,
    DoSubscribe,
    DoUnsubscribe,
    Wish,
)
from holdfast.scenarios.actor_publishing import Publishing
from holdfast.scenarios.actor_reading import Reading

__all__ = ["BUFFER_ITEMS", "Actor"]

#: How many items of a subscription may wait for a slow application before the client stops reading.
BUFFER_ITEMS: Final = 1_000


@dataclass(slots=True)
class _Subscription:
    wish: Wish
    ticket: int | None  #: of what the script waits for: the subscribing or the unsubscribing
    is_confirmed: bool = False
    is_ending: bool = False


class Actor:
    """One life of a client of a scenario."""

    def __init__(
        self,
        settings: Settings,
        membership: NodeSettings | None = None,
        *,
        first_number: int = 1,
        wishes: Sequence[Wish] = (),
    ) -> None:
        self.name = settings.name
        self._window = settings.unacknowledged_max
        self._core = ClientCore(settings) if membership is None else MemberCore(settings, membership)
        self._is_started = False
        self._wishes = list(wishes)  #: to be subscribed to at the start, as an earlier life was
        self._subscriptions: dict[int, _Subscription] = {}
        self._last_subscription = 0
        self._publishing = Publishing(settings.name, first_number)
        self._unaccepted: deque[int] = deque()
        self._reading = Reading(settings.name, self._core)
        self._leaving: int | None = None  #: the ticket of who waits for that

        # The plug.
        self._connections: dict[int, None] = {}
        self._was_lost = False  #: the session, not by the script's doing
        self.is_unplugged = False  #: by the script, until it says Reconnect
        self._dials: list[Connect] = []  #: kept back while unplugged
        self._reconnecting: list[int] = []  #: tickets

    # How it is

    @property
    def is_connected(self) -> bool:
        """Whether there is a session with a broker."""
        return self._core.is_ready

    @property
    def is_settled(self) -> bool:
        """Connected, and everything subscribed to is confirmed."""
        return self.is_connected and all(
            each.is_confirmed or each.is_ending for each in self._subscriptions.values()
        )

    @property
    def quiet(self) -> bool:
        """No Publish is running, nothing is unacknowledged, nothing waits to be read."""
        return self._publishing.is_idle and not self._core.unacknowledged and self._reading.is_idle

    def status(self) -> dict[str, Any]:
        """For the trace's ``status`` line: what can be written as JSON."""
        return {
            "tables": {"subscriptions": [each.wish.subscription for each in self._subscriptions.values()]},
            "queues": {"unacknowledged": self._core.unacknowledged, "unread": self._reading.waiting},
            "connections": {"broker": self.is_connected},
        }

    # Being driven

    def next_deadline(self) -> Instant | None:
        """When something is due: in the client, for the application, or of a Publish that may go on."""
        due = self._core.next_deadline()
        if self._reading.due is not None and (due is None or self._reading.due < due):
            due = self._reading.due
        if not self._publishing.is_idle and self._core.unacknowledged < self._window:
            next_due = self._publishing.next_due()
            if due is None or (next_due is not None and next_due < due):
                due = next_due
        return due

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        """Take one input, and say what is to be done about it."""
        effects: list[Any] = []
        self._on_input(stimulus, now, effects)
        self._reading.go_on(now, effects)
        if not self._publishing.is_idle:
            self._publish(now, effects)
        if self._leaving is not None and not self._core.unacknowledged:
            self._leave(now, effects)
        return effects

    def _on_input(self, stimulus: Any, now: Instant, effects: list[Any]) -> None:
        match stimulus:
            case Wake():
                if not self._is_started:
                    self._start(now, effects)
                else:
                    self._ask(stimulus, now, effects)
            case Connected(connection, peer):
                self._on_connected(connection, peer, now, effects)
            case Disconnected(connection):
                self._connections.pop(connection, None)
                self._ask(stimulus, now, effects)
            case DoPublish():
                if self._leaving is None:
                    self._publishing.start(stimulus, now)
            case DoSubscribe(wish, ticket):
                self._subscribe(wish, ticket, now, effects)
            case DoUnsubscribe(subscription, ticket):
                self._unsubscribe(subscription, ticket, now, effects)
            case DoSlow(per_event_ns):
                self._reading.become_slow(per_event_ns)
            case DoDisconnect():
                self._unplug(now, effects)
            case DoReconnect(ticket):
                self._plug(ticket, effects)
            case DoLeave(ticket, at_once):
                self._publishing.stop()
                self._leaving = ticket
                if at_once:
                    self._leave(now, effects)
            case _:
                self._ask(stimulus, now, effects)

    def _start(self, now: Instant, effects: list[Any]) -> None:
        self._is_started = True
        self._ask(Open(), now, effects)
        for wish in self._wishes:
            self._subscribe(wish, None, now, effects)

    def _leave(self, now: Instant, effects: list[Any]) -> None:
        assert self._leaving is not None
        ticket, self._leaving = self._leaving, None
        self._ask(Leave(), now, effects)
        effects.append(Done(ticket))

    # The client's core, and what it says

    def _ask(self, stimulus: Any, now: Instant, effects: list[Any]) -> None:
        for effect in self._core.step(stimulus, now):
            self._on_effect(effect, now, effects)

    def _on_effect(self, effect: Any, now: Instant, effects: list[Any]) -> None:
        match effect:
            case Delivered(number, items, copies):
                subscription = self._subscriptions[number].wish.subscription
                self._reading.on_delivered(number, subscription, items, copies)
            case Acknowledged(upto):
                self._on_acknowledged(upto, effects)
            case NotAccepted(n, problem):
                self._unaccepted.remove(n)
                effects.append(Log("warning", f"event {n} is not accepted: {problem}", {}))
            case Subscribed(number, partial):
                self._on_subscribed(number, partial, effects)
            case Upgraded(number, cleared, partial):
                fields = {
                    "subscriber": self.name,
                    "subscription": self._subscriptions[number].wish.subscription,
                    "cleared": _partitions(cleared),
                    "partial": _partitions(partial),
                }
                effects.append(Trace("upgraded", fields))
            case SubscriptionRefused(number, problem):
                refused = self._subscriptions.pop(number)
                effects.append(Log("error", f"{refused.wish.subscription} is refused: {problem}", {}))
                _done(refused, effects)
            case Unsubscribed(number):
                ended = self._subscriptions.pop(number)
                effects.append(self._line("unsubscribed", ended.wish))
                _done(ended, effects)
            case Ready():
                if self._was_lost:
                    effects.append(Trace("reconnect", {"nodes": [self.name]}))
                    self._was_lost = False
                effects += map(Done, self._reconnecting)
                self._reconnecting.clear()
            case Ended(farewell, reason):
                effects.append(Log("info", f"ended: {farewell}, {reason}", {}))
            case Away(reason):
                effects.append(Log("info", f"away: {reason}", {}))
                if not self.is_unplugged:  # what the script did is the master's to write
                    effects.append(Trace("disconnect", {"nodes": [self.name]}))
                    self._was_lost = True
            case Connect() if self.is_unplugged:
                self._dials.append(effect)
            case Close(connection):
                self._connections.pop(connection, None)
                effects.append(effect)
            case _:
                effects.append(effect)

    def _line(self, kind: str, wish: Wish) -> Trace:
        fields = {
            "subscriber": self.name,
            "subscription": wish.subscription,
            "filter": wish.text,
            "durable": False,
        }
        return Trace(kind, fields)

    # Publishing

    def _publish(self, now: Instant, effects: list[Any]) -> None:
        room = self._window - self._core.unacknowledged
        taken, done = self._publishing.take_due(now, room, effects)
        if taken:
            self._unaccepted += [publication.n for publication in taken]
            self._ask(Submit(taken), now, effects)
            effects += done

    def _on_acknowledged(self, upto: int, effects: list[Any]) -> None:
        waiting = self._unaccepted
        while waiting and waiting[0] <= upto:
            n = waiting.popleft()
            fields = {"publisher": self.name, "n": n, "pubend": self.name, "tick": n}
            effects.append(Trace("accepted", fields))

    # Subscribing

    def _subscribe(self, wish: Wish, ticket: int | None, now: Instant, effects: list[Any]) -> None:
        self._last_subscription += 1
        number = self._last_subscription
        self._subscriptions[number] = _Subscription(wish, ticket)
        effects.append(self._line("subscribe", wish))
        self._ask(AddSubscription(number, wish.filter, BUFFER_ITEMS), now, effects)

    def _on_subscribed(self, number: int, partial: tuple[Partition, ...], effects: list[Any]) -> None:
        confirmed = self._subscriptions[number]
        confirmed.is_confirmed = True
        line = self._line("subscribed", confirmed.wish)
        effects.append(Trace("subscribed", {**line.fields, "partial": _partitions(partial)}))
        _done(confirmed, effects)

    def _unsubscribe(self, name: str, ticket: int, now: Instant, effects: list[Any]) -> None:
        numbers = [
            number
            for number, each in self._subscriptions.items()
            if each.wish.subscription == name and not each.is_ending
        ]
        if not numbers:
            effects += [Log("warning", f"there is no subscription {name}", {}), Done(ticket)]
            return
        [number] = numbers
        ending = self._subscriptions[number]
        _done(ending, effects)  # nobody waits for the confirmation any more
        ending.is_ending, ending.ticket = True, ticket
        effects.append(self._line("unsubscribe", ending.wish))
        self._reading.forget(number, now, effects)
        self._ask(EndSubscription(number), now, effects)

    # The plug

    def _on_connected(self, connection: int, peer: str | None, now: Instant, effects: list[Any]) -> None:
        if self.is_unplugged:
            effects.append(Close(connection, "disconnected by the script"))
            if peer is not None:
                self._ask(ConnectFailed(peer, "disconnected by the script"), now, effects)
            return
        self._connections[connection] = None
        self._ask(Connected(connection, peer), now, effects)

    def _unplug(self, now: Instant, effects: list[Any]) -> None:
        self.is_unplugged = True
        connections, self._connections = self._connections, {}
        for connection in connections:
            effects.append(Close(connection, "disconnected by the script"))
            self._ask(Disconnected(connection, "disconnected by the script"), now, effects)

    def _plug(self, ticket: int, effects: list[Any]) -> None:
        self.is_unplugged = False
        if self.is_connected:
            effects.append(Done(ticket))
            return
        self._reconnecting.append(ticket)
        effects += self._dials
        self._dials = []


def _partitions(partitions: Sequence[Partition]) -> list[dict[str, Any]]:
    return [
        {
            "lead": each.lead,
            "incarnation": each.incarnation,
            "seq": each.number,
            "fragment": list(each.fragment),
        }
        for each in partitions
    ]


def _done(subscription: _Subscription, effects: list[Any]) -> None:
    if subscription.ticket is not None:
        effects.append(Done(subscription.ticket))
        subscription.ticket = None
