"""A subscription as its application sees it: items, one by one or in batches.

What arrives stays packed until it is taken, and taking is reported to the core, which stops reading from the network
while ``buffer`` items wait here: a slow application slows its own connection, and nobody else's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from holdfast.client.aio_waiting import DEFAULT_TIMEOUT, Waiters
from holdfast.client.effect import Delivered, Upgraded
from holdfast.client.errors import Closed, GapFound, NotCovered, TimedOut
from holdfast.client.input import AddSubscription, Consumed, EndSubscription
from holdfast.client.item import Gap, TaggedEvent
from holdfast.errors import HoldfastError
from holdfast.events.event import Event
from holdfast.events.packed import unpack
from holdfast.messages.publications import Publication, Tag
from holdfast.messages.subscriptions import Partition

__all__ = ["OnGap", "OnUpgrade", "Subscriber", "Subscription"]

OnGap = Literal["item", "raise"]

#: Called when partitions are over: with those, and those that are left.
OnUpgrade = Callable[[tuple[Partition, ...], tuple[Partition, ...]], None]


class Subscriber(Protocol):
    """What a subscription needs of its network."""

    @property
    def is_ready(self) -> bool:
        """Whether there is a session."""

    def submit(self, stimulus: Any) -> None:
        """Have the core take an input."""

    def enter(self, subscription: Subscription) -> int:
        """Register for effects, and get a number."""

    def forget(self, number: int) -> None:
        """No more effects."""


def opened(item: Arrived) -> Event | Gap:
    """What the application gets."""
    if isinstance(item, Publication):
        return unpack(item.event).event(item.publisher, item.n)
    if isinstance(item, Gap):
        return item
    publication, tags = item
    return TaggedEvent.of(unpack(publication.event).event(publication.publisher, publication.n), tags)


#: What waits to be taken: still packed, with its tags where there are any.
Arrived = Publication | Gap | tuple[Publication, tuple[Tag, ...]]


def _with_tags(effect: Delivered) -> list[Arrived]:
    return [
        (item, copy.tags) if isinstance(item, Publication) and copy is not None and copy.tags else item
        for item, copy in zip(effect.items, effect.copies, strict=True)
    ]


class Subscription:
    """The items of one filter, from the confirmation on, until the block is left.

    Several tasks may take items; each item goes to one of them.
    """

    def __init__(
        self,
        network: Subscriber,
        filter: str,
        *,
        buffer: int,
        on_gap: OnGap,
        timeout: float | None,
        whole: bool = False,
        on_upgrade: OnUpgrade | None = None,
    ) -> None:
        self.filter = filter  #: its canonical text
        self.partial: tuple[Partition, ...] = ()  #: nothing is owed from behind these, for now
        self._whole = whole
        self._on_upgrade = on_upgrade
        self._network = network
        self._buffer = buffer
        self._raises_gaps = on_gap == "raise"
        self._timeout = timeout
        self._number = 0
        self._confirmed = False
        self._withdrawn = False
        self._failure: HoldfastError | None = None
        self._waiting: deque[Arrived] = deque()
        self._taken = 0  # and not yet reported
        self._changed = Waiters()

    async def __aenter__(self) -> Self:
        if self._number:
            raise Closed("a subscription is entered once; subscribe again")
        self._number = self._network.enter(self)
        self._network.submit(AddSubscription(self._number, self.filter, self._buffer))
        try:
            await self._changed.wait_until(
                lambda: self._confirmed or self._failure is not None, self._timeout
            )
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            if self._whole:
                await self.wait_whole(self._timeout)
        except TimedOut as error:
            self._end(Closed("the subscription was not confirmed"))
            raise TimedOut(f"no confirmation of {self.filter!r}: {error}") from None
        except BaseException:
            self._end(Closed("the subscription was not confirmed"))
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        waits = error is None and self._failure is None and self._network.is_ready
        self._end(Closed("the subscription was left"))
        if waits:
            await self._wait_withdrawn()

    async def _wait_withdrawn(self) -> None:
        """Give the network the time to forget us; if it does not take it, the core sees to it later."""
        try:
            await self._changed.wait_until(
                lambda: self._withdrawn or not self._network.is_ready, self._timeout
            )
        except TimedOut:
            return

    def _end(self, failure: HoldfastError) -> None:
        if self._failure is None:
            self._network.submit(EndSubscription(self._number))
        self._waiting.clear()
        self.fail(failure)

    async def wait_whole(self, timeout: float | None = DEFAULT_TIMEOUT) -> None:
        """Wait until no part of the network is left out: from then on everything is owed.

        :raises NotCovered: naming what cannot be reached in time.
        """
        try:
            await self._changed.wait_until(lambda: not self.partial or self._failure is not None, timeout)
        except TimedOut:
            raise NotCovered(self.filter, self.partial) from None
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    @property
    def is_full(self) -> bool:
        """Whether so much waits to be taken that the client reads nothing more."""
        return len(self._waiting) + self._taken >= self._buffer

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event | Gap:
        if not self._waiting:
            await self._wait_items(None)
        return self._take()

    async def get(self, timeout: float | None = DEFAULT_TIMEOUT) -> Event | Gap:
        """The next item.

        :raises TimedOut: if there is none in time.
        :raises GapFound: with ``on_gap="raise"``, if something is missing here.
        """
        if not self._waiting:
            await self._wait_items(timeout)
        return self._take()

    async def get_batch(self, timeout: float | None = DEFAULT_TIMEOUT) -> list[Event | Gap]:
        """Everything that has arrived, at least one item; with ``on_gap="raise"``, up to the next gap."""
        if not self._waiting:
            await self._wait_items(timeout)
        if self._raises_gaps:
            return self._batch_to_gap()
        batch = [opened(item) for item in self._waiting]
        self._taken += len(batch)
        self._waiting.clear()
        self._report_taken()
        return batch

    def batches(self) -> AsyncIterator[list[Event | Gap]]:
        """Everything that has arrived, again and again; the way to take items fast."""
        return _Batches(self)

    async def _wait_items(self, timeout: float | None) -> None:
        self._report_taken()
        await self._changed.wait_until(lambda: bool(self._waiting) or self._failure is not None, timeout)
        if not self._waiting:
            assert self._failure is not None
            raise self._failure.with_traceback(None)  # it may be raised many times

    def _take(self) -> Event | Gap:
        item = self._waiting.popleft()
        self._taken += 1
        if not self._waiting or self._taken * 4 >= self._buffer:
            self._report_taken()
        if self._raises_gaps and isinstance(item, Gap):
            raise GapFound(item)
        return opened(item)

    def _batch_to_gap(self) -> list[Event | Gap]:
        batch = [self._take()]  # raises, if the gap is the first
        while self._waiting and not isinstance(self._waiting[0], Gap):
            batch.append(self._take())
        return batch

    def _report_taken(self) -> None:
        taken, self._taken = self._taken, 0
        if taken and self._failure is None:
            self._network.submit(Consumed(self._number, taken))

    def on_delivered(self, effect: Delivered) -> None:
        """Items arrived."""
        if self._failure is None:
            self._waiting += effect.items if not any(effect.copies) else _with_tags(effect)
            self._changed.wake()

    def on_subscribed(self, partial: tuple[Partition, ...]) -> None:
        """The network knows the filter."""
        self.partial = partial
        self._confirmed = True
        self._changed.wake()

    def on_upgraded(self, effect: Upgraded) -> None:
        """Partitions are over."""
        self.partial = effect.partial
        self._changed.wake()
        if self._on_upgrade is not None:
            self._on_upgrade(effect.cleared, effect.partial)

    def on_unsubscribed(self) -> None:
        """The network has forgotten it."""
        self._withdrawn = True
        self._network.forget(self._number)
        self._changed.wake()

    def on_state(self) -> None:
        """The network came or went; who waits for it may give up."""
        self._changed.wake()

    def fail(self, failure: HoldfastError) -> None:
        """Nothing will arrive any more; what has arrived can still be taken."""
        self._failure = self._failure or failure
        self._changed.wake()


class _Batches:
    """Not a generator: one that is left by ``break`` would want to be closed, by a task of its own."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Event | Gap]:
        return await self._subscription.get_batch(None)
