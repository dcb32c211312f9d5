"""Publishing, one at a time or many in flight, and how each event's fate becomes known.

Events go out in the order of their numbers and are acknowledged in that order, so whatever waits stands in one queue.
An event whose caller stopped waiting stays there: it is still on its way, and asking again under its number finds it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from holdfast.client.aio_waiting import DEFAULT_TIMEOUT, Waiters
from holdfast.client.effect import Acknowledged, NotAccepted, Placed
from holdfast.client.errors import Closed, InvalidOption, TakenOver, TimedOut, Unknown
from holdfast.client.numbers import Numbers
from holdfast.client.options import check_timeout
from holdfast.client.refusal import event_refusal
from holdfast.errors import HoldfastError
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.events.value import Value
from holdfast.identity import EventId
from holdfast.messages.durable import Run
from holdfast.messages.publications import PUBLICATIONS_MAX, Publication

__all__ = ["Attributes", "Outbox", "Publisher", "Receipt", "Sent", "packed_event"]

Attributes = Mapping[str, Value | None] | None

#: How many events whose fate somebody stopped waiting for are remembered, to be asked for again.
UNKNOWN_MAX: Final = 10_000


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """The event is accepted, as this tick of this pubend; ``duplicate``: it had been before.

    On streams that are not logged the pubend is the publisher and the tick its number. A tick of 0: it was logged so
    long ago that nobody knows where.
    """

    pubend: str
    tick: int
    duplicate: bool


def packed_event(topic: str, attributes: Attributes, payload: bytes, content_type: str) -> bytes:
    """An event published now.

    :raises InvalidEvent: if it breaks a rule.
    """
    return pack(make_event(topic, attributes, payload, content_type, time=time.time_ns()))


class Sent:
    """An event on its way. Awaiting it gives its receipt; nobody has to."""

    __slots__ = ("_outbox", "_publisher", "_waiters", "n", "outcome")

    def __init__(self, outbox: Outbox, n: int, publisher: Publisher | None) -> None:
        self.n = n
        self.outcome: Receipt | HoldfastError | None = None  #: None: not known yet
        self._outbox = outbox
        self._publisher = publisher
        self._waiters: Waiters | None = None  # made when somebody waits: most never do

    @property
    def id(self) -> EventId:
        """The identity of the event."""
        return EventId(self._outbox.name, self.n)

    def __await__(self) -> Generator[Any, None, Receipt]:
        return self.receipt().__await__()

    async def receipt(self, timeout: float | None = DEFAULT_TIMEOUT) -> Receipt:
        """Wait until the event is accepted.

        :raises Refused: if it never will be.
        :raises Unknown: if that is not known in time.
        """
        return await self.receipt_in_rest(timeout, timeout)

    async def receipt_in_rest(self, timeout: float | None, asked: float | None) -> Receipt:
        """The same in what is left of the timeout that was asked for."""
        if self.outcome is None:
            self._waiters = self._waiters or Waiters()
            try:
                await self._waiters.wait_until(
                    lambda: self.outcome is not None, timeout, self._outbox.hint, asked=asked
                )
            except TimedOut as error:
                raise Unknown(self.id, str(error)) from None
            finally:
                if self.outcome is None:
                    self._outbox.remember(self)
        if isinstance(self.outcome, Receipt):
            return self.outcome
        assert self.outcome is not None
        raise self.outcome.with_traceback(None)

    def settle(self, outcome: Receipt | HoldfastError) -> None:
        """The event's fate is known."""
        self.outcome = outcome
        if self._publisher is not None:
            self._publisher.on_settled(outcome)
        if self._waiters is not None:
            self._waiters.wake()


class Outbox:
    """All events of one client that are on their way.

    Invariant: ``_pending`` is in the order of numbers, and none of its outcomes is known.
    """

    def __init__(
        self,
        name: str,
        numbers: Numbers,
        pending_max: int,
        submit: Callable[[list[Publication]], None],
        hint: Callable[[], str],
    ) -> None:
        self.name = name
        self.hint = hint  #: why acknowledgements may not come, if there is a reason
        self._numbers = numbers
        self._pending_max = pending_max
        self._submit = submit
        self._loop = asyncio.get_running_loop()
        self._queue: list[Publication] = []  # of this turn, to be submitted at its end
        self._pending: deque[Sent] = deque()
        self._refused: dict[int, NotAccepted] = {}  # numbers in _pending
        self._placed: dict[int, Receipt] = {}  # numbers that are logged and not acknowledged yet
        self._unknown: dict[int, Sent] = {}
        self._room = Waiters()
        self._ended: HoldfastError | None = None

    async def put(
        self, packed: bytes, n: int | None, timeout: float | None, publisher: Publisher | None = None
    ) -> Sent:
        """Send an event as soon as there is room for it."""
        if isinstance(n, int) and (sent := self._known_as(n)) is not None:
            return sent
        if len(self._pending) >= self._pending_max:
            await self._room.wait_until(lambda: len(self._pending) < self._pending_max, timeout, self.hint)
        if self._ended is not None:
            raise self._ended.with_traceback(None)
        number = self._numbers.next_number() if n is None else self._numbers.use(n)
        sent = Sent(self, number, publisher)
        self._pending.append(sent)
        if publisher is not None:
            publisher.on_sent(sent)
        if not self._queue:
            self._loop.call_soon(self.flush)
        self._queue.append(Publication(self.name, number, packed))
        return sent

    def flush(self) -> None:
        """Hand over what this turn has gathered."""
        if self._queue and self._ended is None:
            gathered, self._queue = self._queue, []
            self._submit(gathered)

    def remember(self, sent: Sent) -> None:
        """Somebody stopped waiting for this one, and may ask again."""
        self._unknown[sent.n] = sent
        if len(self._unknown) > UNKNOWN_MAX:
            del self._unknown[next(iter(self._unknown))]

    def _known_as(self, n: int) -> Sent | None:
        """The event that went out under this number and is asked for again; what it holds was decided then."""
        sent = self._unknown.get(n)
        if sent is not None and isinstance(sent.outcome, Receipt):
            sent.outcome = msgspec.structs.replace(sent.outcome, duplicate=True)
        return sent

    def on_acknowledged(self, effect: Acknowledged) -> None:
        """Settle everything up to a number."""
        duplicates = frozenset(effect.duplicates)
        pending, upto, name, refused = self._pending, effect.upto, self.name, self._refused
        placed, self._placed = self._placed, {}
        while pending and pending[0].n <= upto:
            sent = pending.popleft()
            if refused and sent.n in refused:
                sent.settle(event_refusal(refused.pop(sent.n), sent.id))
            else:
                receipt = placed.pop(sent.n, None) if placed else None
                sent.settle(receipt or Receipt(name, sent.n, sent.n in duplicates))
        if placed:
            self._placed = {n: receipt for n, receipt in placed.items() if n > upto}
        self._settle_refused_head()
        self._room.wake()

    def on_placed(self, effect: Placed) -> None:
        """Events are logged; the first that is said of one counts, since what is sent again is a repeat."""
        for runs, is_repeat in ((effect.runs, False), (effect.repeats, True)):
            for run in runs:
                self._place(effect.pubend, run, is_repeat=is_repeat)

    def _place(self, pubend: str, run: Run, *, is_repeat: bool) -> None:
        first, tick, count = run
        if self._pending and first <= self._pending[-1].n:
            for i in range(min(count, PUBLICATIONS_MAX)):
                self._placed.setdefault(first + i, Receipt(pubend, tick + i if tick else 0, is_repeat))

    def on_not_accepted(self, effect: NotAccepted) -> None:
        """An event is refused; it is settled in its turn."""
        self._refused[effect.n] = effect
        self._settle_refused_head()
        self._room.wake()

    def _settle_refused_head(self) -> None:
        while self._refused and self._pending and self._pending[0].n in self._refused:
            sent = self._pending.popleft()
            sent.settle(event_refusal(self._refused.pop(sent.n), sent.id))

    def end(self, error: HoldfastError) -> None:
        """Nothing will become known any more; who was taken over is told that first of all."""
        self._ended = error
        while self._pending:
            sent = self._pending.popleft()
            sent.settle(error if isinstance(error, TakenOver) else Unknown(sent.id, str(error)))
        self._room.wake()


class Publisher:
    """Publishes without waiting for each receipt, with at most ``window`` events on their way.

    The first event that is refused ends it: every later call raises that error, and so does leaving the block.
    """

    def __init__(self, outbox: Outbox, window: int, timeout: float | None) -> None:
        if not isinstance(window, int) or window < 1:
            raise InvalidOption("window", f"is {window!r}; expected a number of events from 1")
        check_timeout(timeout)
        self._outbox = outbox
        self.window = window
        self.timeout = timeout
        self._unsettled: deque[Sent] = deque()
        self._changed = Waiters()
        self._failure: HoldfastError | None = None

    async def send(
        self,
        topic: str,
        attributes: Attributes = None,
        payload: bytes = b"",
        *,
        content_type: str = "",
        n: int | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Sent:
        """Send an event; wait only while the window is full.

        :raises TimedOut: if it is full for too long; then the event was not sent.
        """
        return await self.send_packed(packed_event(topic, attributes, payload, content_type), n, timeout)

    async def send_packed(self, packed: bytes, n: int | None, timeout: float | None) -> Sent:
        """The same for an event made by ``packed_event``."""
        if len(self._unsettled) >= self.window:
            await self._changed.wait_until(
                lambda: len(self._unsettled) < self.window, timeout, self._outbox.hint
            )
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        return await self._outbox.put(packed, n, timeout, self)

    @property
    def unsettled(self) -> int:
        """How many events are on their way."""
        return len(self._unsettled)

    async def wait_unsettled(self, most: int, timeout: float | None) -> None:
        """Wait until no more than so many are.

        :raises TimedOut: if it takes too long.
        """
        await self._changed.wait_until(lambda: len(self._unsettled) <= most, timeout, self._outbox.hint)

    def on_sent(self, sent: Sent) -> None:
        """An event of ours is on its way."""
        self._unsettled.append(sent)

    async def flush(self, timeout: float | None = DEFAULT_TIMEOUT) -> None:
        """Wait until everything sent is accepted.

        :raises Refused: if an event was refused.
        :raises Unknown: naming the first event that is not accepted in time.
        """
        try:
            await self.wait_unsettled(0, timeout)
        except TimedOut as error:
            raise Unknown(self._unsettled[0].id, str(error)) from None
        finally:
            self._remember()
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    def _remember(self) -> None:
        """Nobody waits for what is on its way; it may be asked for again."""
        for sent in self._unsettled:
            self._outbox.remember(sent)

    def on_settled(self, outcome: Receipt | HoldfastError) -> None:
        """The fate of the oldest event on its way is known."""
        self._unsettled.popleft()
        if self._failure is None and not isinstance(outcome, Receipt):
            self._failure = outcome
        self._changed.wake()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self.flush(self.timeout)
        finally:
            self._remember()
            self._failure = self._failure or Closed("the publisher was closed")
