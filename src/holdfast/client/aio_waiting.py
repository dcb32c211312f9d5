"""Waiting for a condition that some callback will bring about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from holdfast.client.errors import TimedOut
from holdfast.client.options import check_timeout

__all__ = ["DEFAULT_TIMEOUT", "Waiters"]

#: Of every call that was not given another, in seconds.
DEFAULT_TIMEOUT: Final = 10.0


class Waiters:
    """Those who wait for something to change; each looks again whenever anything does.

    Cheaper than ``asyncio.Condition`` when nobody waits, which is nearly always, and waking needs no lock.
    """

    __slots__ = ("_futures",)

    def __init__(self) -> None:
        self._futures: list[asyncio.Future[None]] = []

    @property
    def count(self) -> int:
        """How many wait."""
        return len(self._futures)

    def wake(self) -> None:
        """Something changed."""
        if self._futures:
            woken, self._futures = self._futures, []
            for future in woken:
                if not future.done():
                    future.set_result(None)

    async def wait_until(
        self,
        holds: Callable[[], bool],
        timeout: float | None,
        hint: Callable[[], str] = lambda: "",
        *,
        asked: float | None = None,
    ) -> None:
        """Wait until a condition holds; ``timeout`` in seconds, None: for ever. ``hint`` says why it may not.

        ``asked`` is the caller's timeout, where a part of it has passed.

        :raises TimedOut: if it does not in time.
        :raises InvalidOption: if the timeout is no time.
        """
        if holds():
            return
        check_timeout(timeout)
        try:
            async with asyncio.timeout(timeout):
                while not holds():
                    future = asyncio.get_running_loop().create_future()
                    self._futures.append(future)
                    try:
                        await future
                    finally:
                        if future in self._futures:  # nobody woke it: it was cancelled, or its time is up
                            self._futures.remove(future)
        except TimeoutError:
            if not holds():
                raise TimedOut(f"nothing within {timeout if asked is None else asked:g} s{hint()}") from None
