"""One client's connection to its network: it drives the core, and brings each effect to those who wait for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from holdfast.client import effect as effects
from holdfast.client.aio_publishing import Attributes, Outbox, Publisher, Receipt, packed_event
from holdfast.client.aio_subscription import Subscription
from holdfast.client.aio_waiting import DEFAULT_TIMEOUT, Waiters
from holdfast.client.errors import Closed, InvalidOption, TakenOver, TimedOut, Unreachable
from holdfast.client.input import Leave, Open, SetHome, Submit
from holdfast.client.newcomer import Newcomer
from holdfast.client.numbers import Numbers
from holdfast.client.options import Acknowledging, OnGap, OnUpgrade, Options, Start, check_name, check_timeout
from holdfast.client.port import Dial, Listen, Port
from holdfast.client.protocol import ClientCore
from holdfast.client.refusal import refusal
from holdfast.client.settings import Settings
from holdfast.errors import HoldfastError
from holdfast.filters.parse import parse_filter
from holdfast.filters.text import filter_text
from holdfast.messages.session import Farewell

__all__ = ["Network", "State"]

SILENT: Final = "no answer"  #: why there is no session before anything is known of it
_LOGGER: Final = logging.getLogger("holdfast.client")


class State(StrEnum):
    """Where a client stands with its network."""

    CONNECTING = "connecting"
    READY = "ready"
    AWAY = "away"  #: the session is lost; the client keeps trying
    CLOSED = "closed"


class Network:
    """A connection to a network, kept up until it is closed; ``connect`` makes one."""

    def __init__(
        self, settings: Settings, numbers: Numbers, dial: Dial, url: str, listen: Listen | None = None
    ) -> None:
        self.name = settings.name
        self.url = url
        self.state = State.CONNECTING
        self.broker = ""  #: the name of the broker, once known
        self.reason = SILENT  #: why there is no session, where there is none
        self._numbers = numbers
        self._home = ""  #: as the application has set it
        self._failure: HoldfastError | None = None
        self._subscriptions: dict[int, Subscription] = {}
        self._last_subscription = 0
        self._changed = Waiters()
        self._outbox = Outbox(
            settings.name,
            numbers,
            settings.unacknowledged_max,
            lambda batch: self.submit(Submit(batch)),
            self._why_not,
        )
        self._core = ClientCore(settings) if settings.is_member is False else Newcomer(settings)
        self._port: Port = dial(self._core, application=self._on_effect, log=self._on_log)
        self._listen = listen
        self._watch: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether there is a session with a broker now."""
        return self.state is State.READY

    @property
    def home(self) -> str:
        """The broker that logs what is published here, wherever the client is connected; "": none yet.

        It is the first that an event is sent to. A process that goes on under a name, and may repeat what an earlier
        one has published, sets it to the home that one had, before it publishes.

        :raises InvalidOption: if it is set, and something has been published.
        """
        return self._home or self._core.ledger.home

    @home.setter
    def home(self, broker: str) -> None:
        check_name("home", broker)
        if broker != self.home:
            if self._numbers.last:
                raise InvalidOption("home", f"is {self.home or 'chosen'!r}: something has been published")
            self._home = broker
            self.submit(SetHome(broker))

    @property
    def is_member(self) -> bool:
        """Whether the client is a node of the network, which reaches past its broker."""
        return isinstance(self._core, Newcomer) and self._core.is_member

    @property
    def closed(self) -> bool:
        """Whether the connection is over, by ``close`` or for another reason; it does not come back."""
        return self.state is State.CLOSED

    async def wait_while(self, state: State, timeout: float | None = DEFAULT_TIMEOUT) -> None:
        """Wait as long as the client stands so with its network; ``reason`` says why it is away.

        :raises TimedOut: if that does not change in time.
        """
        await self._changed.wait_until(lambda: self.state is not state, timeout)

    async def open(self, timeout: float | None = DEFAULT_TIMEOUT) -> None:
        """Connect for the first time; called by ``connect``.

        :raises Unreachable: if there is no session in time.
        :raises InvalidOption: if the address to listen at cannot be had, or the network has no clients as nodes.
        """
        await self._port.start()
        self._watch = asyncio.create_task(self._watch_port())
        try:
            self.submit(Open(await self._listen_for_others()))
            await self._changed.wait_until(lambda: self.state is not State.CONNECTING, timeout)
            self._refuse_closed()
        except TimedOut as error:
            reason = self._why_not_open()  # closing has reasons of its own
            await self.close()
            raise Unreachable(self.url, f"{reason} ({error})") from None
        except BaseException:
            await self.close()
            raise

    def _why_not_open(self) -> str:
        if self._core.stranger is None:
            return self.reason
        seen = "" if self.reason == SILENT else f"; {self.reason}"
        return f"whoever is at {self._core.stranger} has not answered as a broker of Holdfast does{seen}"

    async def _listen_for_others(self) -> str | None:
        if self._listen is None:
            return None
        try:
            return await self._listen(self._port)
        except OSError as error:
            raise InvalidOption("listen", f"cannot be had: {error}") from None

    async def close(self, timeout: float | None = DEFAULT_TIMEOUT) -> None:
        """Say goodbye. Subscriptions end; of events that are still on their way nothing more becomes known."""
        try:
            if not self.closed:
                self._outbox.flush()
                self.submit(Leave())
                await self._changed.wait_until(lambda: self.closed, timeout)
        finally:
            self._end(Closed("the network was closed"))
            await self._port.stop()
            if self._watch is not None:
                await self._watch

    async def publish(
        self,
        topic: str,
        attributes: Attributes = None,
        payload: bytes = b"",
        *,
        content_type: str = "",
        n: int | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Receipt:
        """Publish an event and wait until it is accepted.

        ``n`` is its number, above all used before; without, the client gives it one.

        :raises InvalidEvent: if it breaks a rule.
        :raises Refused: if the network will never accept it.
        :raises Unknown: if it is not known in time whether it is accepted; ``n=error.id.n`` asks again.
        :raises TimedOut: if it could not even be sent in time.
        """
        check_timeout(timeout)
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        packed = packed_event(topic, attributes, payload, content_type)
        sent = await self._outbox.put(packed, n, timeout)
        return await sent.receipt_in_rest(None if until is None else until - loop.time(), timeout)

    def publisher(self, *, window: int = 512, timeout: float | None = DEFAULT_TIMEOUT) -> Publisher:
        """Publish with up to ``window`` events on their way; ``timeout`` is for the last of them, on leaving."""
        self._refuse_closed()
        return Publisher(self._outbox, window, timeout)

    def subscribe(
        self,
        filter: str,
        *,
        durable: str | None = None,
        start: Start = "now",
        buffer: int = 1000,
        on_gap: OnGap = "item",
        silence: bool = False,
        acknowledge: Acknowledging = "manual",
        whole: bool = False,
        on_upgrade: OnUpgrade | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Subscription:
        """Subscribe, in an ``async with``: entering waits for the confirmation, leaving unsubscribes.

        Where parts of the network cannot be reached the confirmation is partial, and is upgraded when they can be:
        ``on_upgrade`` is called then. ``whole`` waits for that.

        On streams that are logged: a subscription with a ``durable`` name is kept when it is left, goes on where it
        was committed, and is ended by ``unsubscribe``; ``acknowledge="auto"`` commits by the way. A new one begins
        at ``start``: now, at the earliest event there is, at a time, or behind a token. ``silence`` asks to be told
        where nothing matched.

        :raises FilterError: at once, if the filter is none; so is InvalidOption.
        :raises TimedOut: on entering, if there is no confirmation in time.
        :raises NotCovered: on entering, with ``whole``, if it is still partial then.
        :raises TokenAhead: on entering, if the network has never come to the token.
        :raises OtherFilter: on entering, if the durable name has another filter.
        :raises Refused: on entering, if the broker will not have it.
        """
        return self.subscription(
            filter,
            Options(buffer, on_gap, silence, durable, start, acknowledge, whole, on_upgrade, timeout),
        )

    def subscription(self, filter: str, options: Options) -> Subscription:
        """The same, with options that are checked."""
        self._refuse_closed()
        return Subscription(self, filter_text(parse_filter(filter)), options)

    # What publishers and subscriptions call

    def submit(self, stimulus: Any) -> None:
        """Have the core take an input."""
        self._port.submit(stimulus)

    def enter(self, subscription: Subscription) -> int:
        """Register a subscription for effects, and number it."""
        self._refuse_closed()
        self._last_subscription += 1
        self._subscriptions[self._last_subscription] = subscription
        return self._last_subscription

    def forget(self, number: int) -> None:
        """No more effects for a subscription."""
        self._subscriptions.pop(number, None)

    def _refuse_closed(self) -> None:
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    def _why_not(self) -> str:
        """What may keep acknowledgements from coming, for an error's text."""
        if not self.is_ready:
            return f"; there is no session: {self.reason}"
        if self.home not in ("", self.broker):
            return f"; events are logged at {self.home}, which {self.broker} may not reach"
        full = [repr(each.filter) for each in self._subscriptions.values() if each.is_full]
        if full:
            return f"; this client does not read while the buffer of {', '.join(full)} is full: take items"
        return ""

    # What the core says

    def _on_effect(self, effect: Any) -> None:
        match effect:
            case effects.Delivered(number):
                if number in self._subscriptions:
                    self._subscriptions[number].on_delivered(effect)
            case effects.Stretch(number):
                if number in self._subscriptions:
                    self._subscriptions[number].on_stretch(effect)
            case effects.Placed():
                self._outbox.on_placed(effect)
            case effects.Acknowledged():
                self._outbox.on_acknowledged(effect)
            case effects.NotAccepted():
                self._outbox.on_not_accepted(effect)
            case effects.Ready(broker, last_number):
                self.broker = broker
                self._numbers.raise_floor(last_number)
                self._become(State.READY)
            case effects.Away(reason):
                self.reason = reason
                self._become(State.AWAY)
            case effects.Ended(farewell, reason):
                self._end(self._error(farewell, reason))
            case effects.Unsuited(problem):
                self._end(InvalidOption("member" if self._listen is None else "listen", problem))
            case effects.Subscribed(number):
                if number in self._subscriptions:
                    self._subscriptions[number].on_subscribed(effect)
            case effects.Committed(number, ticket):
                if number in self._subscriptions:
                    self._subscriptions[number].on_committed(ticket)
            case effects.Upgraded(number):
                if number in self._subscriptions:
                    self._subscriptions[number].on_upgraded(effect)
            case effects.SubscriptionRefused(number):
                if number in self._subscriptions:
                    refused = self._subscriptions.pop(number)
                    refused.on_ousted(refusal(effect, refused.filter))
            case effects.Ousted(number, reason):
                if number in self._subscriptions:
                    ousted = self._subscriptions.pop(number)
                    ousted.on_ousted(TakenOver(self.name, durable=ousted.durable, reason=reason))
            case effects.Unsubscribed(number):
                if number in self._subscriptions:
                    self._subscriptions[number].on_unsubscribed()
            case _:
                raise AssertionError(f"an effect of the kind {type(effect).__name__}")

    def _error(self, farewell: Farewell, reason: str) -> HoldfastError:
        if farewell is Farewell.LEAVING:
            return Closed("the network was closed")
        if farewell is Farewell.TAKEN_OVER:
            return TakenOver(self.name)
        return Unreachable(self.url, f"the broker ended the session: {farewell}, {reason}")

    def _become(self, state: State) -> None:
        self.state = state
        self._changed.wake()
        for subscription in self._subscriptions.values():
            subscription.on_state()

    def _end(self, error: HoldfastError) -> None:
        if self._failure is None:
            self._failure = error
            self._outbox.end(error)
            for subscription in self._subscriptions.values():
                subscription.fail(error)
            self._become(State.CLOSED)
            self._subscriptions.clear()

    def _on_log(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        if self.state is State.CONNECTING:
            self.reason = f"{text}: {fields['reason']}" if "reason" in fields else text
        _LOGGER.log(logging.getLevelNamesMapping()[level.upper()], "%s %s", text, dict(fields))

    async def _watch_port(self) -> None:
        """A driver that fails must not leave anybody waiting."""
        try:
            await self._port.wait_stopped()
        except HoldfastError as error:
            self._end(error)
