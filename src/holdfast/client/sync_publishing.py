"""Publishing from a thread, at a rate: events are handed to the loop's thread in bursts.

A switch between two threads costs as much as many events. So a sender switches only when the window is full, and then
waits until half of it is free; meanwhile the loop takes whatever has gathered.
"""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType
from typing import Self

from holdfast.client import aio
from holdfast.client.aio_publishing import Attributes, packed_event
from holdfast.client.aio_waiting import DEFAULT_TIMEOUT, Waiters
from holdfast.client.errors import Closed
from holdfast.client.sync_thread import LoopThread
from holdfast.identity import EventId

__all__ = ["Publisher", "Sent"]


class Sent:
    """An event on its way; see ``aio.Sent``."""

    __slots__ = ("_publisher", "handed")

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self.handed: aio.Sent | Exception | None = (
            None  #: what the loop made of it; None: not handed over yet
        )

    @property
    def id(self) -> EventId:
        """The identity of the event."""
        return self._publisher.thread.run(self._wait_handed()).id

    def receipt(self, timeout: float | None = DEFAULT_TIMEOUT) -> aio.Receipt:
        """Wait until the event is accepted.

        :raises Refused: if it never will be.
        :raises Unknown: if that is not known in time.
        """
        return self._publisher.thread.run(self._receipt(timeout))

    async def _receipt(self, timeout: float | None) -> aio.Receipt:
        return await (await self._wait_handed()).receipt(timeout)

    async def _wait_handed(self) -> aio.Sent:
        await self._publisher.changed.wait_until(lambda: self.handed is not None, DEFAULT_TIMEOUT)
        if isinstance(self.handed, Exception):
            raise self.handed.with_traceback(None)
        assert self.handed is not None
        return self.handed


class Publisher:
    """Publishes without waiting for each receipt; see ``aio.Publisher``.

    Invariant: while ``_handing`` holds anything, a task in the loop is taking it.
    """

    def __init__(self, thread: LoopThread, publisher: aio.Publisher) -> None:
        self.thread = thread
        self.changed = Waiters()  #: in the loop: something was handed over
        self._publisher = publisher
        self._lock = threading.Lock()
        self._is_handing = False
        self._handing: deque[tuple[Sent, bytes, int | None]] = deque()
        self._failure: Exception | None = None

    def send(
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

        An error of an earlier event, a number that was used before among them, is raised by the next call.
        """
        packed = packed_event(topic, attributes, payload, content_type)
        self.thread.refuse_ended()  # else nobody would take it, nor say so
        if len(self._handing) + self._publisher.unsettled >= self._publisher.window:
            self.thread.run(self._wait_room(timeout))
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        sent = Sent(self)
        with self._lock:
            self._handing.append((sent, packed, n))
            starts, self._is_handing = not self._is_handing, True
        if starts:
            self.thread.start(self._hand_over())
        return sent

    def flush(self, timeout: float | None = DEFAULT_TIMEOUT) -> None:
        """Wait until everything sent is accepted."""
        self.thread.run(self._flush(timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.thread.run(self._leave(kind, error, trace))

    # In the loop's thread

    async def _hand_over(self) -> None:
        while True:
            with self._lock:
                if not self._handing:
                    self._is_handing = False
                    break
            while self._handing:
                sent, packed, n = self._handing.popleft()
                try:
                    sent.handed = await self._publisher.send_packed(packed, n, None)
                except Exception as error:  # a bug too: nobody else would tell the sender
                    sent.handed = error
                    self._failure = self._failure or error
            self.changed.wake()
        self.changed.wake()

    async def _wait_room(self, timeout: float | None) -> None:
        await self.changed.wait_until(lambda: not self._handing, timeout)
        await self._publisher.wait_unsettled(self._publisher.window // 2, timeout)

    async def _flush(self, timeout: float | None) -> None:
        await self.changed.wait_until(lambda: not self._is_handing, timeout)
        await self._publisher.flush(timeout)
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    async def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self._flush(self._publisher.timeout)
        finally:
            self._failure = self._failure or Closed("the publisher was closed")
            await self._publisher.__aexit__(kind, self._failure, trace)
