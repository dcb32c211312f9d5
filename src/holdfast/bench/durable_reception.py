"""Subscribers in one process, whose connections are read as things come; whoever waits in vain is told.

Every subscriber checks what it gets (``durable_wire``); here is only who has to be read, and who misses something.
"""

from __future__ import annotations

import select
import time
from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.bench.closing import Closing
from holdfast.bench.durable_wire import Line, Subscriber
from holdfast.bench.network_load import STALL_SECONDS
from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.network_workload import FIRST_NUMBER
from holdfast.messages.session import Heartbeat

__all__ = ["FIRST", "Reception"]

FIRST: Final = FIRST_NUMBER  #: the first event's number; it is for group 0, the next one for group 1


class Reception(Closing):
    """Some subscribers, each of which may come and go; all events before ``next`` are for them, each for its own."""

    def __init__(self, subscribers: Sequence[Subscriber]) -> None:
        self.next = FIRST
        self.subscribers: list[Subscriber] = []
        self._received = 0
        self._epoll = select.epoll()
        self._lines: dict[int, Line] = {}
        self._progress = 0  #: a number that grows with whatever comes
        self._progressed = time.perf_counter()  #: when it last did
        self.join(subscribers)

    def join(self, subscribers: Sequence[Subscriber]) -> None:
        """Receive with these too."""
        for subscriber in subscribers:
            self._add(subscriber)
        self.subscribers += subscribers

    def leave(self, subscribers: Sequence[Subscriber]) -> None:
        """These hang up."""
        for subscriber in subscribers:
            self._epoll.unregister(subscriber.socket)
            del self._lines[subscriber.socket.fileno()]
            self.subscribers.remove(subscriber)
            subscriber.close()

    def _add(self, line: Line) -> None:
        line.start()
        self._lines[line.socket.fileno()] = line
        self._epoll.register(line.socket, select.EPOLLIN)

    def take(self, events: int, sent_at: Mapping[int, int]) -> list[int]:
        """Wait for so many events that somebody else publishes; how long each delivery took, in ns.

        :raises BenchFailed: if anything is lost, repeated, or out of order.
        """
        self._begin()
        self._time(sent_at)
        self.next += events
        while self.is_behind():
            self._read(1.0)
        return self._timed()

    def is_behind(self, events: int = 0) -> bool:
        """Whether somebody misses more than so many of the events published."""
        return any(each.due < self.next - events for each in self.subscribers)

    def read_for(self, seconds: float) -> None:
        """Only receive, for so long."""
        self._begin()
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            self._read(left)

    def _begin(self) -> None:
        """Whatever was before, it may take its time from now on; and nobody is taken for dead."""
        self._progressed = time.perf_counter()
        self._say_alive()

    def _say_alive(self) -> None:
        for line in self._lines.values():
            line.send(Heartbeat())

    def _time(self, sent_at: Mapping[int, int]) -> None:
        for line in self._lines.values():
            line.sent_at, line.latencies_ns = sent_at, []

    def _timed(self) -> list[int]:
        for line in self._lines.values():
            line.sent_at = None
        return [latency for subscriber in self.subscribers for latency in subscriber.latencies_ns]

    def _read(self, timeout: float) -> None:
        for descriptor, events in self._epoll.poll(timeout):
            if events & ~select.EPOLLOUT:
                self._received += self._lines[descriptor].on_readable()
        now, progress = time.perf_counter(), self._come()
        if progress != self._progress:
            self._progress, self._progressed = progress, now
        elif now - self._progressed > STALL_SECONDS:
            raise BenchFailed(f"nothing came for {STALL_SECONDS:g} s: {self._missing()}")

    def _come(self) -> int:
        return self._received

    def _missing(self) -> str:
        behind = [each.name for each in self.subscribers if each.due < self.next]
        return f"of {self.next - FIRST} events {len(behind)} subscribers miss something: {behind[:3]}"

    def close(self) -> None:
        """Hang up."""
        self._epoll.close()
        for line in self._lines.values():
            line.close()
