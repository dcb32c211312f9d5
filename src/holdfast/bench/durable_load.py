"""The load on durable brokers: one process that publishes and receives, on raw connections.

*Closed loop*, for throughput: at most ``window`` events are not accepted, and at most ``AHEAD`` on their way to some
subscriber. *Paced*, for latency: an event leaves when its time has come, whatever has become of those before it. Either
way a run ends when everything is accepted and every delivery that was due has come, and fails if something else does.
"""

from __future__ import annotations

import random
import select
import time
from collections.abc import Callable, Sequence
from typing import Final

from holdfast.bench.durable_reception import FIRST, Reception
from holdfast.bench.durable_wire import Publisher, Subscriber
from holdfast.bench.network_load import Run
from holdfast.bench.network_wire import PUBLISHER, BenchFailed, publish_body
from holdfast.bench.network_workload import GROUPS, SEED, order, padded
from holdfast.bench.pace import read_until
from holdfast.clock import SECOND

__all__ = ["AHEAD", "EVERYTHING", "WINDOW", "DurableLoad", "group_filter", "subscribe_groups"]

WINDOW: Final = 512  #: events that are not accepted
AHEAD: Final = 8_192  #: events on their way to some subscriber
FRAME_EVENTS: Final = 64  #: how many a publisher puts into one frame
POOL: Final = 1_000
EVERYTHING: Final = "orders/#"


def group_filter(group: int) -> str:
    """What one of four groups wants: every fourth event."""
    return f"orders/# WHERE group = 'g{group}'"


def subscribe_groups(port: int, count: int) -> list[Subscriber]:
    """Subscribers in four groups, so that each event is for a quarter of them."""
    found = [Subscriber(port, f"sink-{i}", FIRST + i % GROUPS, GROUPS) for i in range(count)]
    for i, subscriber in enumerate(found):
        subscriber.subscribe(group_filter(i % GROUPS))
    for subscriber in found:
        subscriber.wait_confirmed()
    return found


class DurableLoad(Reception):
    """A publisher, and subscribers, ``fan_out`` of which get each event."""

    def __init__(self, publisher: Publisher, subscribers: Sequence[Subscriber], fan_out: int) -> None:
        super().__init__(subscribers)
        rng = random.Random(SEED)
        self.publisher = publisher
        self._pool = [padded(order(rng, i)) for i in range(POOL)]
        self._fan_out = fan_out
        self._rest = b""  #: of a frame the socket has not taken whole
        self._wants_to_write = False
        self._add(publisher)

    def _say_alive(self) -> None:
        if not self._rest:  # else the publisher is in the middle of a frame
            super()._say_alive()

    def _come(self) -> int:
        return super()._come() + self.publisher.upto

    def _missing(self) -> str:
        return f"everything is accepted up to {self.publisher.upto - FIRST + 1}, and {super()._missing()}"

    # The closed loop

    def run(self, seconds: float, window: int = WINDOW) -> Run:
        """Publish for so long, as fast as the windows allow, and wait for everything.

        :raises BenchFailed: if anything is lost, repeated, or out of order.
        """
        first, began = self.next, time.perf_counter()
        until = began + seconds
        self._publish(lambda: time.perf_counter() < until, window)
        events = self.next - first
        return Run(events, events * self._fan_out, time.perf_counter() - began)

    def publish(self, events: int, window: int = WINDOW) -> None:
        """Publish so many, or a few more, as fast as the windows allow, and wait for everything.

        :raises BenchFailed: as ``run``.
        """
        upto = self.next + events
        self._publish(lambda: self.next < upto, window)

    def _publish(self, may_go_on: Callable[[], bool], window: int) -> None:
        self._begin()
        size = min(FRAME_EVENTS, window)
        base = self.next - 1
        owed = self._received - self.next * self._fan_out  # then received - owed is what has come of these
        while may_go_on():
            while self._rest or (
                self.next - 1 - max(self.publisher.upto, base) + size <= window
                and self.next * self._fan_out + owed - self._received <= AHEAD * self._fan_out
            ):
                self._rest = self._rest or self._frame(size)
                if not self._write():
                    break
            self._want_to_write(bool(self._rest))
            self._read(1.0)
        self.wait_current()

    def _frame(self, size: int) -> bytes:
        first = self.next
        self.next += size
        events = [self._pool[(n - FIRST) % POOL] for n in range(first, first + size)]
        return self.publisher.frame(*publish_body(first, events))

    def _write(self) -> bool:
        """Send what is left of a frame; whether nothing is any more."""
        try:
            sent = self.publisher.socket.send(self._rest)
        except BlockingIOError:
            return False
        except ConnectionError as error:
            raise BenchFailed(f"{PUBLISHER}: {error}") from error
        self._rest = self._rest[sent:]
        return not self._rest

    def _want_to_write(self, wanted: bool) -> None:
        if wanted != self._wants_to_write:
            self._wants_to_write = wanted
            mask = select.EPOLLIN | (select.EPOLLOUT if wanted else 0)
            self._epoll.modify(self.publisher.socket, mask)

    def wait_current(self) -> None:
        """Wait until everything is accepted, and everybody has everything.

        :raises BenchFailed: as ``run``.
        """
        self._begin()
        while self._rest and not self._write():
            self._read(0.001)
        self._want_to_write(False)
        while self.publisher.upto < self.next - 1 or self.is_behind():
            self._read(1.0)

    # Paced

    def run_paced(self, per_second: float, seconds: float) -> list[int]:
        """Publish events one by one at a steady rate; how long each delivery took, in ns.

        :raises BenchFailed: if anything is lost, repeated, or out of order.
        """
        upto = self.next + max(1, round(per_second * seconds))
        sent_at: dict[int, int] = {}
        self._time(sent_at)
        self.pace(per_second, lambda: self.next < upto, sent_at.__setitem__)
        self.wait_current()
        return self._timed()

    def pace(
        self,
        per_second: float,
        may_go_on: Callable[[], bool],
        note: Callable[[int, int], None] | None = None,
    ) -> None:
        """Publish events one by one at a steady rate, and receive what comes meanwhile.

        ``note`` gets each number, and when it is sent, in ns.
        """
        self._begin()
        at = time.monotonic_ns()
        while may_go_on():
            at += round(SECOND / per_second)
            frame = self._frame(1)
            read_until(at, self._epoll, lambda: self._read(0))
            if note is not None:
                note(self.next - 1, time.monotonic_ns())
            self._rest = frame
            while not self._write():
                self._read(0)
