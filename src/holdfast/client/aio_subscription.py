"""A subscription as its application sees it: items, one by one or in batches.

What arrives stays packed until it is taken, and taking is reported to the core, which stops reading from the network
while ``buffer`` items wait here, and is sent no more of streams that are logged: a slow application slows its own
connection, and nobody else's.

A durable subscription is kept by its broker when it is left, and goes on where it was committed. If another comes to
read it, what has not been taken here is dropped: the other one gets it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from holdfast.client.aio_committing import AutoCommits, Commits
from holdfast.client.aio_waiting import DEFAULT_TIMEOUT, Waiters
from holdfast.client.effect import Delivered, Stretch, Subscribed, Upgraded
from holdfast.client.errors import Closed, InvalidOption, NotCovered, TakenOver, TimedOut
from holdfast.client.input import AddSubscription, Commit, Consumed, EndSubscription
from holdfast.client.item import Item
from holdfast.client.options import Options, check_timeout
from holdfast.client.shelf import Entry, Shelf
from holdfast.errors import HoldfastError
from holdfast.messages.subscriptions import Partition
from holdfast.messages.ticks import Tick
from holdfast.streams.checkpoint_token import Token

__all__ = ["Subscriber", "Subscription"]


class Subscriber(Protocol):
    """What a subscription needs of its network."""

    @property
    def is_ready(self) -> bool:
        """Whether there is a session."""

    @property
    def closed(self) -> bool:
        """Whether there will never be one again."""

    def submit(self, stimulus: Any) -> None:
        """Have the core take an input."""

    def enter(self, subscription: Subscription) -> int:
        """Register for effects, and get a number."""

    def forget(self, number: int) -> None:
        """No more effects."""


class Subscription:
    """The items of one filter, from the confirmation on, until the block is left.

    Several tasks may take items; each item goes to one of them.
    """

    def __init__(self, network: Subscriber, filter: str, options: Options) -> None:
        self.filter = filter  #: its canonical text
        self.durable = options.durable  #: its name; None: it ends when it is left
        self.partial: tuple[Partition, ...] = ()  #: nothing is owed from behind these, for now
        self._network = network
        self._options = options
        self._number = 0
        self._confirmed = False
        self._withdrawn = False
        self._ousted: HoldfastError | None = None  #: the network has given it to another, or will not have it
        self._failure: HoldfastError | None = None
        self._shelf = Shelf(silence=options.silence, raises_gaps=options.on_gap == "raise")
        self._taken = self._taken_logged = 0  # and not yet reported
        self._commits = Commits(lambda places, ticket: network.submit(Commit(self._number, places, ticket)))
        self._auto = AutoCommits(self._commits) if options.acknowledge == "auto" else None
        self._changed = Waiters()

    async def __aenter__(self) -> Self:
        if self._number:
            raise Closed("a subscription is entered once; subscribe again")
        self._number = self._network.enter(self)
        options = self._options
        self._network.submit(
            AddSubscription(
                self._number, self.filter, options.buffer, options.durable, options.start_tick, options.token
            )
        )
        try:
            await self._changed.wait_until(
                lambda: self._confirmed or self._failure is not None, options.timeout
            )
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            if options.whole:
                await self.wait_whole(options.timeout)
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
        if self._auto is not None and self._failure is None:
            if error is None:
                self._ask()  # who leaves by an error is not done with what it took last
            ticket = self._auto.flush()
            if waits:
                await self._wait_while_ready(
                    lambda: self._commits.is_done(ticket) or self._failure is not None
                )
        self._end(Closed("the subscription was left"))
        if waits:
            await self._wait_while_ready(lambda: self._withdrawn or self._ousted is not None)

    async def _wait_while_ready(self, holds: Callable[[], bool]) -> None:
        """Give the network the time to answer; if it does not take it, what was asked for happens later."""
        try:
            await self._changed.wait_until(
                lambda: holds() or not self._network.is_ready, self._options.timeout
            )
        except TimedOut:
            return

    def _end(self, failure: HoldfastError, *, for_good: bool = False) -> None:
        if self._failure is None:
            keep = self.durable is not None and not for_good
            self._network.submit(EndSubscription(self._number, keep))
        self._shelf.clear()
        self.fail(failure)

    async def unsubscribe(self, timeout: float | None = DEFAULT_TIMEOUT) -> None:
        """End the subscription for good, also if it is durable; then leave the block.

        :raises TimedOut: if it is not known in time that it is over; it will be, if the network stays open.
        :raises TakenOver: if another client reads it by now: it is not over.
        """
        check_timeout(timeout)
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        self._end(Closed("the subscription was ended"), for_good=True)
        await self._changed.wait_until(
            lambda: self._withdrawn or self._ousted is not None or self._network.closed, timeout
        )
        if self._ousted is not None:
            raise self._ousted.with_traceback(None)
        if not self._withdrawn:
            raise Closed("the network was closed before the subscription was ended")

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

    # Items

    @property
    def is_full(self) -> bool:
        """Whether so much waits to be taken that the client reads nothing more."""
        return self._shelf.plain + self._taken >= self._options.buffer

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        return await self.get(None)

    async def get(self, timeout: float | None = DEFAULT_TIMEOUT) -> Item:
        """The next item.

        :raises TimedOut: if there is none in time.
        :raises TakenOver: if another reads it by now, also while items wait here: they are the other's.
        :raises GapFound: with ``on_gap="raise"``, if something is missing here.
        """
        await self._wait_items(timeout)
        before = self._shelf.plain, self._shelf.logged
        try:
            return self._shelf.take()
        finally:
            self._count_taken(*before)

    async def get_batch(self, timeout: float | None = DEFAULT_TIMEOUT) -> list[Item]:
        """Everything that has arrived, at least one item; with ``on_gap="raise"``, up to the next gap."""
        await self._wait_items(timeout)
        before = self._shelf.plain, self._shelf.logged
        try:
            return self._shelf.take_batch()
        finally:
            self._count_taken(*before)

    async def get_entries(self, timeout: float | None, asked: float | None) -> list[Entry]:
        """The same, not opened, for another shelf, in what is left of the timeout that was asked for."""
        await self._wait_items(timeout, asked)
        before = self._shelf.plain, self._shelf.logged
        entries = self._shelf.pop_all()
        self._count_taken(*before)
        return entries

    def batches(self) -> AsyncIterator[list[Item]]:
        """Everything that has arrived, again and again; the way to take items fast."""
        return _Batches(self)

    async def _wait_items(self, timeout: float | None, asked: float | None = None) -> None:
        if self._auto is not None:
            self._ask()
        if self._shelf:
            return
        self._report_taken()
        await self._changed.wait_until(
            lambda: bool(self._shelf) or self._failure is not None, timeout, asked=asked
        )
        if not self._shelf:
            assert self._failure is not None
            raise self._failure.with_traceback(None)  # it may be raised many times

    def _count_taken(self, plain: int, logged: int) -> None:
        self._taken += plain - self._shelf.plain
        self._taken_logged += logged - self._shelf.logged
        if not self._shelf or (self._taken + self._taken_logged) * 4 >= self._options.buffer:
            self._report_taken()

    def _report_taken(self) -> None:
        taken, self._taken = self._taken, 0
        logged, self._taken_logged = self._taken_logged, 0
        if (taken or logged) and self._failure is None:
            self._network.submit(Consumed(self._number, taken, logged))

    # The token

    @property
    def token(self) -> Token:
        """After everything that was taken; where to ``start`` another time, to go on from here."""
        return self._shelf.token

    async def commit(self, upto: Item | Token | None = None, timeout: float | None = DEFAULT_TIMEOUT) -> None:
        """Have the broker keep the place of a durable subscription, on disk: it goes on from there.

        Of an item's pubend everything up to it is consumed; of a token's all; without either, all that was taken.

        :raises TimedOut: if it is not known in time.
        :raises InvalidOption: if it is neither an item nor a token, or the subscription has no name.
        """
        await self.commit_places(
            self._shelf.pop_moved() if upto is None else self._shelf.places_of(upto), timeout
        )

    async def commit_places(self, places: Mapping[str, Tick], timeout: float | None) -> None:
        """The same for places, by pubend."""
        check_timeout(timeout)
        if self.durable is None:
            raise InvalidOption("durable", "has no name; only a durable subscription is kept")
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        ticket = self._commits.start(places)
        await self._changed.wait_until(
            lambda: self._commits.is_done(ticket) or self._failure is not None, timeout
        )
        if not self._commits.is_done(ticket):
            assert self._failure is not None
            raise self._failure.with_traceback(None)

    def refuse_taken_over(self) -> None:
        """See that nobody else has come to read it, who gets what was not taken here; any thread may ask.

        :raises TakenOver: if somebody has.
        """
        if isinstance(self._failure, TakenOver):
            raise self._failure.with_traceback(None)

    def be_done_with(self, places: Mapping[str, Tick]) -> None:
        """Whoever took items is done with them, up to these places; they are committed if that goes by itself."""
        if self._auto is not None and self._failure is None:
            self._auto.add(places)

    def _ask(self) -> None:
        """Somebody asks for more, and so is done with what was taken."""
        self.be_done_with(self._shelf.pop_moved())

    # What the network says

    def on_delivered(self, effect: Delivered) -> None:
        """Items arrived."""
        if self._failure is None:
            self._shelf.add_delivered(effect)
            self._changed.wake()

    def on_stretch(self, effect: Stretch) -> None:
        """More of a logged stream arrived."""
        if self._failure is None:
            self._shelf.add_stretch(effect)
            self._changed.wake()

    def on_subscribed(self, effect: Subscribed) -> None:
        """The network knows the filter."""
        self.partial = effect.partial
        self._shelf.begin(effect.token, is_consumed=self._options.token is not None)
        self._confirmed = True
        self._changed.wake()

    def on_upgraded(self, effect: Upgraded) -> None:
        """Partitions are over."""
        self.partial = effect.partial
        self._changed.wake()
        if self._options.on_upgrade is not None:
            self._options.on_upgrade(effect.cleared, effect.partial)

    def on_committed(self, ticket: int) -> None:
        """Commits are on disk."""
        self._commits.on_committed(ticket)
        self._changed.wake()

    def on_unsubscribed(self) -> None:
        """The network has forgotten it, or keeps it for later."""
        self._withdrawn = True
        self._network.forget(self._number)
        self._changed.wake()

    def on_state(self) -> None:
        """The network came or went; who waits for it may give up."""
        self._changed.wake()

    def on_ousted(self, failure: HoldfastError) -> None:
        """The network has given it to another, or will not have it; also if it was just being left."""
        self._ousted = failure
        self.fail(failure)

    def fail(self, failure: HoldfastError) -> None:
        """Nothing will arrive any more. What has arrived can still be taken, unless another gets it now."""
        self._failure = self._failure or failure
        if isinstance(self._failure, TakenOver):
            self._shelf.clear()
        if self._auto is not None:
            self._auto.stop()
        self._changed.wake()


class _Batches:
    """Not a generator: one that is left by ``break`` would want to be closed, by a task of its own."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Item]:
        return await self._subscription.get_batch(None)
