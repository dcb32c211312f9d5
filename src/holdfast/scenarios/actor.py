"""A publisher or subscriber of a scenario: a client with an application that does what the script says.

It wraps the client's core and is driven like one, by the simulator and by real processes alike; its first input
is ``Wake``. It writes the client's side of the trace [contracts.md §5]: a ``Trace`` effect always comes before
the effect it announces, so that a line is written before what it tells can be seen outside.

A publisher that cannot reach its broker goes on publishing into its client, up to
``Settings.unacknowledged_max`` events, and then waits. A subscriber that reconnects elsewhere does so as another
client, which goes on from the subscriber's own record. A publisher that knows several brokers goes from one to the
next, and keeps its home.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.client.effect import (
    Acknowledged,
    Away,
    Committed,
    Delivered,
    Ended,
    NotAccepted,
    Ousted,
    Placed,
    Ready,
    Stretch,
    Subscribed,
    SubscriptionRefused,
    Unsubscribed,
    Upgraded,
)
from holdfast.client.input import AddSubscription, EndSubscription, Leave, Open, SetHome, Submit
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
    Dwell,
    Wish,
)
from holdfast.scenarios.actor_lines import asking, subscribed, upgraded
from holdfast.scenarios.actor_plug import Plug
from holdfast.scenarios.actor_publishing import Publishing
from holdfast.scenarios.actor_reading import Reading
from holdfast.scenarios.actor_receipts import Receipts
from holdfast.scenarios.actor_record import Records
from holdfast.streams.checkpoint_token import Token

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
        home: str = "",
        wishes: Sequence[Wish] = (),
        records: Mapping[str, Token] | None = None,
        buffer: int = BUFFER_ITEMS,
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._window = settings.unacknowledged_max
        self._buffer = buffer
        self._core = ClientCore(settings) if membership is None else MemberCore(settings, membership)
        self._is_started = False
        self._home = home  #: of an earlier life; "": it had none
        self._wishes = list(wishes)  #: to be subscribed to at the start, as an earlier life was
        self._tokens = dict(records or {})  #: and where its durable subscriptions had come to
        self._subscriptions: dict[int, _Subscription] = {}
        self._last_subscription = 0
        self._publishing = Publishing(settings.name, first_number)
        self._receipts = Receipts(settings.name)
        self._records = Records(settings.name)
        self._reading = Reading(settings.name, self._records)
        self._leaving: int | None = None  #: the ticket of who waits for that
        self._plug = Plug()
        self._was_lost = False  #: the session, not by the script's doing
        self._reconnecting: list[int] = []  #: tickets

    # How it is

    @property
    def is_connected(self) -> bool:
        """Whether there is a session with a broker."""
        return self._core.is_ready

    @property
    def is_unplugged(self) -> bool:
        """Whether the script has disconnected it."""
        return self._plug.is_out

    @property
    def is_settled(self) -> bool:
        """Connected, and everything subscribed to is confirmed."""
        return self.is_connected and all(
            each.is_confirmed or each.is_ending for each in self._subscriptions.values()
        )

    @property
    def quiet(self) -> bool:
        """No Publish is running, nothing is unacknowledged, nothing waits to be read."""
        is_published = self._publishing.is_idle and not self._core.unacknowledged
        return is_published and self._reading.is_idle and self._records.is_acknowledged

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
        is_open = not self._publishing.is_idle and self._core.unacknowledged < self._window
        publishing = self._publishing.next_due() if is_open else None
        dues = (self._core.next_deadline(), self._reading.due, self._records.due, publishing)
        return min((due for due in dues if due is not None), default=None)

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        """Take one input, and say what is to be done about it."""
        effects: list[Any] = []
        self._on_input(stimulus, now, effects)
        self._reading.go_on(now, self._core, effects)
        for commit in self._records.settle(now, effects):
            self._ask(commit, now, effects)
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
            case Connected():
                self._hear(self._plug.on_connected(stimulus, effects), now, effects)
            case ConnectFailed():
                self._hear(self._plug.on_connect_failed(stimulus), now, effects)
            case Disconnected(connection):
                self._plug.on_disconnected(connection)
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
            case DoReconnect(ticket, broker):
                self._reconnect(ticket, broker, now, effects)
            case DoLeave(ticket, at_once):
                self._publishing.stop()
                self._leaving = ticket
                if at_once:
                    self._leave(now, effects)
            case _:
                self._ask(stimulus, now, effects)

    def _start(self, now: Instant, effects: list[Any]) -> None:
        self._is_started = True
        if self._home:
            self._ask(SetHome(self._home), now, effects)
        self._ask(Open(), now, effects)
        for wish in self._wishes:
            self._subscribe(wish, None, now, effects)

    def _leave(self, now: Instant, effects: list[Any]) -> None:
        assert self._leaving is not None
        ticket, self._leaving = self._leaving, None
        self._ask(Leave(), now, effects)
        effects.append(Done(ticket))

    # The client's core, and what it says

    def _hear(self, stimulus: Connected | ConnectFailed | None, now: Instant, effects: list[Any]) -> None:
        if stimulus is not None:
            self._ask(stimulus, now, effects)

    def _ask(self, stimulus: Any, now: Instant, effects: list[Any]) -> None:
        done = self._core.step(stimulus, now)
        if self._settings.others and self._home != self._core.ledger.home:
            self._home = self._core.ledger.home
            effects.append(Dwell(self._home))  # before anything is sent there
        for effect in done:
            self._on_effect(effect, now, effects)

    def _on_effect(self, effect: Any, now: Instant, effects: list[Any]) -> None:
        match effect:
            case Delivered(number):
                self._reading.on_delivered(self._subscriptions[number].wish.subscription, effect)
            case Stretch(number):
                self._reading.on_stretch(self._subscriptions[number].wish.subscription, effect)
            case Committed(number, ticket):
                self._records[number].on_committed(ticket)
            case Placed():
                self._receipts.on_placed(effect)
            case Acknowledged(upto):
                effects += self._receipts.on_accepted(upto)
            case NotAccepted(n, problem):
                self._receipts.on_refused(n)
                effects.append(Log("warning", f"event {n} is not accepted: {problem}", {}))
            case Subscribed(number, partial, token):
                self._records[number].begin(token)
                self._on_subscribed(number, partial, effects)
            case Upgraded(number, cleared, partial):
                self._reading.go_on(now, self._core, effects)  # what came before it is handed over before it
                wish = self._subscriptions[number].wish
                effects.append(upgraded(self.name, wish, cleared, partial))
            case Ousted(number, reason) if not self._subscriptions[number].is_ending:
                self._come_back(number, reason, now, effects)
            case SubscriptionRefused(number, problem) | Ousted(number, problem):
                refused = self._close(number)
                effects.append(Log("error", f"{refused.wish.subscription} is refused: {problem}", {}))
                _done(refused, effects)
            case Unsubscribed(number):
                ended = self._close(number)
                effects.append(asking("unsubscribed", self.name, ended.wish))
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
            case Connect():
                self._plug.connect(effect, effects)
            case Close(connection):
                self._plug.on_disconnected(connection)
                effects.append(effect)
            case _:
                effects.append(effect)

    # Publishing

    def _publish(self, now: Instant, effects: list[Any]) -> None:
        room = self._window - self._core.unacknowledged
        taken, done = self._publishing.take_due(now, room, effects)
        if taken:
            self._receipts.await_for(publication.n for publication in taken)
            self._ask(Submit(taken), now, effects)
            effects += done

    # Subscribing

    def _subscribe(self, wish: Wish, ticket: int | None, now: Instant, effects: list[Any]) -> None:
        effects.append(asking("subscribe", self.name, wish))
        self._add(_Subscription(wish, ticket), self._tokens.pop(wish.subscription, None), now, effects)

    def _add(self, subscription: _Subscription, token: Token | None, now: Instant, effects: list[Any]) -> int:
        self._last_subscription += 1
        number, wish = self._last_subscription, subscription.wish
        self._subscriptions[number] = subscription
        self._records.open(number, wish, token)
        durable = f"{self.name}/{wish.subscription}" if wish.durable else None
        self._ask(AddSubscription(number, wish.filter, self._buffer, durable, None, token), now, effects)
        return number

    def _come_back(self, number: int, reason: str, now: Instant, effects: list[Any]) -> None:
        """Nobody else reads under our names: it was begun at two brokers, and goes on from where we stand."""
        subscription = self._subscriptions[number].wish.subscription
        self._tokens |= {
            name: token for name, token in self._records.tokens().items() if name == subscription
        }
        self._reading.forget(number)
        ousted = self._close(number)
        effects.append(Log("info", f"{subscription} is ousted, and comes back: {reason}", {}))
        self._subscribe(ousted.wish, ousted.ticket, now, effects)

    def _close(self, number: int) -> _Subscription:
        self._records.close(number)
        return self._subscriptions.pop(number)

    def _on_subscribed(self, number: int, partial: tuple[Partition, ...], effects: list[Any]) -> None:
        confirmed = self._subscriptions[number]
        confirmed.is_confirmed = True
        effects.append(subscribed(self.name, confirmed.wish, partial))
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
        effects.append(asking("unsubscribe", self.name, ending.wish))
        self._records.close(number)
        if (dropped := self._reading.forget(number)) is not None:
            self._ask(dropped, now, effects)
        self._ask(EndSubscription(number), now, effects)

    # The plug

    def _unplug(self, now: Instant, effects: list[Any]) -> None:
        for disconnected in self._plug.take_out(effects):
            self._ask(disconnected, now, effects)

    def _reconnect(self, ticket: int, broker: str | None, now: Instant, effects: list[Any]) -> None:
        if broker is not None and broker != self._settings.broker:
            self._reconnecting.append(ticket)
            self._move(broker, now, effects)
            return
        self._plug.put_in(effects)
        if self.is_connected:
            effects.append(Done(ticket))
        else:
            self._reconnecting.append(ticket)

    def _move(self, broker: str, now: Instant, effects: list[Any]) -> None:
        """Go on at another broker as another client, which knows what stands in the records, and nothing else."""
        self._unplug(now, effects)
        self._plug.put_in_elsewhere()
        self._tokens = self._records.tokens()
        before = [self._close(number) for number in list(self._subscriptions)]
        self._reading.forget_all()
        incarnation = self._settings.incarnation + 1
        self._settings = replace(self._settings, broker=broker, incarnation=incarnation)
        self._core = ClientCore(self._settings)
        self._ask(Open(), now, effects)
        for each in before:
            if each.is_ending:
                self._end_again(each, now, effects)
            else:
                self._subscribe(each.wish, each.ticket, now, effects)

    def _end_again(self, ending: _Subscription, now: Instant, effects: list[Any]) -> None:
        """What was to end, and is not known to have, may be known by its name only."""
        number = self._add(ending, None, now, effects)
        self._ask(EndSubscription(number), now, effects)


def _done(subscription: _Subscription, effects: list[Any]) -> None:
    if subscription.ticket is not None:
        effects.append(Done(subscription.ticket))
        subscription.ticket = None
