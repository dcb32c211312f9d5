"""A subscription without async: what has arrived is fetched from the loop's thread, and opened by who takes it.

So items stand on two shelves, and the token is that of the nearer one: after what was taken here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeVar

from holdfast.client import aio
from holdfast.client.aio_committing import EVERY_SECONDS
from holdfast.client.aio_waiting import DEFAULT_TIMEOUT
from holdfast.client.errors import TimedOut
from holdfast.client.item import Item
from holdfast.client.options import Options, check_timeout
from holdfast.client.shelf import Entry, Shelf
from holdfast.client.sync_thread import LoopThread
from holdfast.messages.subscriptions import Partition
from holdfast.messages.ticks import Tick
from holdfast.streams.checkpoint_token import Token

__all__ = ["Subscription", "fetched"]

Taken = TypeVar("Taken")


def fetched(options: Options) -> Options:
    """For the farther shelf: nothing is passed over there, nor raised."""
    return replace(options, silence=True, on_gap="item")


class Subscription:
    """The items of one filter; see ``aio.Subscription``. They are fetched from the thread in batches.

    Invariant: ``_shelf`` is only touched by who holds ``_taking``.
    """

    def __init__(self, thread: LoopThread, subscription: aio.Subscription, options: Options) -> None:
        self._thread = thread
        self._subscription = subscription
        self._fetching = threading.Lock()
        self._taking = threading.Lock()
        self._shelf = Shelf(silence=options.silence, raises_gaps=options.on_gap == "raise")
        self._is_auto = options.acknowledge == "auto"
        self._done: dict[str, Tick] = {}  #: what was taken before more was asked for, and not handed over yet
        self._handed_over_at = time.monotonic()

    @property
    def filter(self) -> str:
        """The canonical text of the filter."""
        return self._subscription.filter

    @property
    def durable(self) -> str | None:
        """Its name; None: it ends when it is left."""
        return self._subscription.durable

    @property
    def partial(self) -> tuple[Partition, ...]:
        """Nothing is owed from behind these, for now."""
        return self._subscription.partial

    def wait_whole(self, timeout: float | None = DEFAULT_TIMEOUT) -> None:
        """Wait until no part of the network is left out.

        :raises NotCovered: naming what cannot be reached in time.
        """
        self._thread.run(self._subscription.wait_whole(timeout))

    # Items

    def get(self, timeout: float | None = DEFAULT_TIMEOUT) -> Item:
        """The next item.

        :raises TimedOut: if there is none in time.
        :raises TakenOver: if another reads it by now, also while items wait here: they are the other's.
        :raises GapFound: with ``on_gap="raise"``, if something is missing here.
        """
        return self._take(Shelf.take, timeout)

    def get_batch(self, timeout: float | None = DEFAULT_TIMEOUT) -> list[Item]:
        """Everything that has arrived, at least one item; with ``on_gap="raise"``, up to the next gap."""
        return self._take(Shelf.take_batch, timeout)

    def batches(self) -> Iterator[list[Item]]:
        """Everything that has arrived, again and again."""
        while True:
            yield self.get_batch(None)

    def _take(self, take: Callable[[Shelf], Taken], timeout: float | None) -> Taken:
        check_timeout(timeout)
        until = None if timeout is None else time.monotonic() + timeout
        if self._is_auto:
            self._ask()
        while True:
            with self._taking:
                self._subscription.refuse_taken_over()
                if self._shelf:
                    return take(self._shelf)
            self._fetch(until, timeout)

    def _fetch(self, until: float | None, timeout: float | None) -> None:
        """Fetch what has arrived, unless another thread has done so meanwhile."""
        wait = None if until is None else until - time.monotonic()
        if not self._fetching.acquire(
            timeout=-1 if wait is None else min(max(0.0, wait), threading.TIMEOUT_MAX)
        ):
            raise TimedOut(f"nothing within {timeout:g} s, while other threads waited too")
        try:
            if not self._shelf:
                wait = None if until is None else until - time.monotonic()
                entries = self._thread.run(self._fetched(self._pop_done(), wait, timeout))
                with self._taking:
                    self._shelf.put(entries)
        finally:
            self._fetching.release()

    async def _fetched(
        self, done: dict[str, Tick], timeout: float | None, asked: float | None
    ) -> list[Entry]:
        self._subscription.be_done_with(done)
        return await self._subscription.get_entries(timeout, asked)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        return self.get(None)

    # The token

    @property
    def token(self) -> Token:
        """After everything that was taken; where to ``start`` another time, to go on from here."""
        with self._taking:
            return self._shelf.token

    def commit(self, upto: Item | Token | None = None, timeout: float | None = DEFAULT_TIMEOUT) -> None:
        """Have the broker keep the place of a durable subscription, on disk; see ``aio.Subscription``.

        :raises TimedOut: if it is not known in time.
        """
        with self._taking:
            places = self._shelf.pop_moved() if upto is None else self._shelf.places_of(upto)
        self._thread.run(self._subscription.commit_places(places, timeout))

    def _ask(self) -> None:
        """Somebody asks for more, and so is done with what was taken; the thread is told from time to time."""
        with self._taking:
            self._done.update(self._shelf.pop_moved())
        now = time.monotonic()
        if self._done and now - self._handed_over_at >= EVERY_SECONDS:
            self._handed_over_at = now
            self._thread.start(self._hand_over(self._pop_done()))

    def _pop_done(self) -> dict[str, Tick]:
        with self._taking:
            done, self._done = self._done, {}
        return done

    async def _hand_over(self, done: dict[str, Tick]) -> None:
        self._subscription.be_done_with(done)

    # Beginning and end

    def __enter__(self) -> Self:
        self._thread.run(self._subscription.__aenter__())
        self._shelf.begin(self._subscription.token)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._taking:
            if error is None:  # who leaves by an error is not done with what it took last
                self._done.update(self._shelf.pop_moved())
            self._shelf.clear()
        self._thread.run(self._leave(kind, error, trace))

    async def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._subscription.be_done_with(self._pop_done())
        await self._subscription.__aexit__(kind, error, trace)

    def unsubscribe(self, timeout: float | None = DEFAULT_TIMEOUT) -> None:
        """End the subscription for good, also if it is durable; then leave the block.

        :raises TimedOut: if it is not known in time that it is over.
        """
        with self._taking:
            self._shelf.clear()
        self._thread.run(self._subscription.unsubscribe(timeout))
