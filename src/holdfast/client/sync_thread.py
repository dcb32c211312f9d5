"""A thread with an event loop in it: what stands between the client without async and ``client.aio``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from holdfast.client.errors import Closed

__all__ = ["LoopThread"]

Result = TypeVar("Result")


class LoopThread:
    """A thread with an event loop in it, until ``end``."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._has_ended = False
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def start(self, coroutine: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Run a coroutine in the thread.

        :raises Closed: if the thread has ended.
        """
        with self._lock:
            try:
                self.refuse_ended()
            except Closed:
                coroutine.close()
                raise
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def refuse_ended(self) -> None:
        """See that there is a loop.

        :raises Closed: if the thread has ended.
        """
        if self._has_ended:
            raise Closed("the network was closed")

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """What a coroutine gives, run in the thread.

        :raises Closed: if the thread ends before the coroutine.
        """
        future = self.start(coroutine)
        try:
            return future.result()
        except CancelledError:
            raise Closed("the network was closed") from None
        except BaseException:
            future.cancel()  # Ctrl-C: nobody waits for it any more
            raise

    def end(self) -> None:
        """Stop the loop and wait for the thread; whoever still waits for something hears ``Closed``."""
        with self._lock:
            if self._has_ended:
                return
            self._has_ended = True
            last = asyncio.run_coroutine_threadsafe(self._cancel_all(), self._loop)
        last.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cancel_all(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
