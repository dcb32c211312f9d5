"""What is on its way to the disk: so many bytes of events, and no more [issue 5 §3, flow control].

A disk may be slower than all publishers together, and may stand still for seconds. Whoever publishes while too much
waits is not read from until half of it is written: its events stay with it, in order, and nothing is sent twice. Of
those who are not read from nothing can be heard, so they are not silent.

Others are served as ever: whoever only subscribes, or publishes what is not logged. What brokers ask for while too much
waits is passed over, and they ask again by themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.messages.publications import Publication
from holdfast.overlay.transport import Pause, Resume
from holdfast.streams.storing import AppendEvents

__all__ = ["Throttle"]


class Throttle:
    """Of all logs of a broker together."""

    def __init__(self, bytes_max: int, emit: Callable[[Any], None]) -> None:
        self._bytes_max = bytes_max
        self._emit = emit
        self.waiting = 0  #: bytes of events
        self._appends: dict[str, deque[int]] = {}  #: the bytes of each, by log, those not known to be on disk
        self.paused: dict[int, None] = {}  #: the connections of clients that are not read from

    @property
    def is_full(self) -> bool:
        """Whether too much waits."""
        return self.waiting > self._bytes_max

    # What waits

    def on_append(self, append: AppendEvents) -> None:
        """Something is given to the disk."""
        size = _size(append.publications)
        self._appends.setdefault(append.pubend, deque()).append(size)
        self.waiting += size

    def on_stable(self, log: str, appends: int) -> None:
        """The oldest of a log are on disk."""
        waiting = self._appends[log]
        for _ in range(appends):
            self.waiting -= waiting.popleft()

    def on_refused(self, log: str) -> None:
        """None of those that wait is written any more."""
        self.waiting -= sum(self._appends.pop(log, ()))

    def on_held(self, publications: Sequence[Publication]) -> None:
        """Events wait until their log may be written."""
        self.waiting += _size(publications)

    def on_opened(self, publications: Sequence[Publication]) -> None:
        """It may: they are given to the disk next."""
        self.waiting -= _size(publications)

    # Who waits

    def slow_down(self, connection: int | None) -> None:
        """A client has published something to be logged: it is not read from for a while if too much waits."""
        if self.is_full and connection is not None and connection not in self.paused:
            self.paused[connection] = None
            self._emit(Pause(connection))

    def go_on(self) -> None:
        """Read from all of them again, if there is room."""
        if self.paused and self.waiting <= self._bytes_max // 2:
            for connection in self.paused:
                self._emit(Resume(connection))
            self.paused.clear()

    def on_gone(self, connection: int) -> None:
        """It is over."""
        self.paused.pop(connection, None)


def _size(publications: Sequence[Publication]) -> int:
    return sum([len(publication.event) for publication in publications])
