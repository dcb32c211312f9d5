"""The load: one process that publishes and receives, on raw connections and without an event loop of anybody's.

*Closed loop*, for throughput: at most ``WINDOW`` events are on their way between the publisher and the last of their
subscribers, so the broker is never short of work and never has to drop any. *Paced*, for latency: an event leaves when
its time has come, whatever has become of those before it. Either way a run ends when every delivery that was due has
come and everything is acknowledged, and fails if something else does.
"""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.bench.closing import Closing
from holdfast.bench.network_sink import Acknowledgements, Receiver, Sink
from holdfast.bench.network_wire import PUBLISHER, BenchFailed, RawConnection
from holdfast.bench.network_workload import Segment, Workload
from holdfast.bench.pace import read_until
from holdfast.clock import SECOND
from holdfast.identity import SubscriptionId
from holdfast.messages.session import Heartbeat
from holdfast.messages.subscriptions import Unsubscribe

__all__ = ["WINDOW", "Load", "Run"]

WINDOW: Final = 4_096  #: events on their way
STALL_SECONDS: Final = 20.0  #: nothing came for so long: something is lost


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took."""

    events: int
    deliveries: int
    seconds: float

    @property
    def events_per_second(self) -> float:
        """Published, matched and received by everybody."""
        return self.events / self.seconds

    @property
    def deliveries_per_second(self) -> float:
        """Received by somebody."""
        return self.deliveries / self.seconds


class Load(Closing):
    """A publisher and the subscribers of a workload; sinks may listen elsewhere than the publisher publishes."""

    def __init__(self, workload: Workload, port: int, sink_port: int | None = None) -> None:
        self.workload = workload
        self._publisher = RawConnection(port, PUBLISHER)
        self.subscribers = [
            RawConnection(sink_port or port, f"sink-{i}") for i in range(len(workload.filters))
        ]
        self.subscribing_seconds = self._subscribe()
        for connection in (self._publisher, *self.subscribers):
            connection.start()
        self._acknowledgements = Acknowledgements(
            PUBLISHER, self._publisher.socket, self._publisher.received_frames
        )
        self.sinks = [Sink(each.name, each.socket, each.received_frames) for each in self.subscribers]
        self._epoll = select.epoll()
        self._receivers: dict[int, Receiver] = {}
        for receiver in (self._acknowledgements, *self.sinks):
            self._receivers[receiver.socket.fileno()] = receiver
            self._epoll.register(receiver.socket, select.EPOLLIN)
        self._idle: list[Sink] = []
        self._rest = b""  #: of a frame the socket has not taken whole
        self._wants_to_write = False

    def _subscribe(self) -> float:
        began = time.perf_counter()
        for connection, filters in zip(self.subscribers, self.workload.filters, strict=True):
            connection.subscribe(filters)
        for connection, filters in zip(self.subscribers, self.workload.filters, strict=True):
            connection.wait_confirmed(len(filters))
        return time.perf_counter() - began

    def stop_reading(self, sink: Sink) -> None:
        """Leave a sink alone: nothing is read there, and nothing is waited for."""
        self._epoll.unregister(sink.socket)
        self._idle.append(sink)

    # The closed loop

    def run(self, events: int) -> Run:
        """Publish so many events as fast as the window allows.

        :raises BenchFailed: if anything is lost, repeated, or out of order.
        """
        segment = self.workload.segment(events)
        frames = self._prepared(segment)
        total = sum(segment.deliveries)
        slack = WINDOW * total / events
        owed = received = i = 0
        began = heard = time.perf_counter()
        while received < total or self._acknowledgements.upto < segment.numbers[-1]:
            while self._rest or (i < len(frames) and owed - received < slack):
                if not self._rest:
                    self._rest = frames[i]
                    owed += segment.deliveries[i]
                    i += 1
                if not self._write():
                    break
            self._want_to_write(bool(self._rest))
            taken = self._read(1.0)
            received += taken
            heard = self._check_heard(heard, taken)
        return Run(events, total, heard - began)

    def _prepared(self, segment: Segment, sent_at: dict[int, int] | None = None) -> list[bytes]:
        for connection in (self._publisher, *self.subscribers):
            connection.send([Heartbeat()])
        for sink, rows in zip(self.sinks, segment.rows, strict=True):
            sink.expect(rows, sent_at)
        return [self._publisher.frame(kind, body) for kind, body in segment.bodies]

    def _write(self) -> bool:
        """Send what is left of a frame; whether nothing is any more."""
        try:
            sent = self._publisher.socket.send(self._rest)
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
            self._epoll.modify(self._publisher.socket, mask)

    def _read(self, timeout: float) -> int:
        taken = 0
        for descriptor, events in self._epoll.poll(timeout):
            if events & ~select.EPOLLOUT:
                taken += self._receivers[descriptor].on_readable()
        return taken

    def _check_heard(self, heard: float, taken: int) -> float:
        now = time.perf_counter()
        if taken:
            return now
        if now - heard > STALL_SECONDS:
            missing = sum(sink.missing for sink in self.sinks)
            raise BenchFailed(
                f"nothing came for {STALL_SECONDS:g} s: {missing} deliveries are missing, "
                f"and everything is acknowledged up to {self._acknowledgements.upto}"
            )
        return heard

    # Paced

    def run_paced(self, per_second: float, seconds: float) -> None:
        """Publish events one by one at a steady rate; the sinks then know how long each delivery took.

        :raises BenchFailed: if anything is lost, repeated, or out of order.
        """
        segment = self.workload.segment(max(1, round(per_second * seconds)), frame_events=1)
        sent_at: dict[int, int] = {}
        frames = self._prepared(segment, sent_at)
        self._pace(frames, segment.numbers, sent_at, round(SECOND / per_second))
        heard = time.perf_counter()
        while any(sink.missing for sink in self.sinks if sink not in self._idle):
            heard = self._check_heard(heard, self._read(1.0))

    def _pace(
        self, frames: Sequence[bytes], numbers: Sequence[int], sent_at: dict[int, int], every_ns: int
    ) -> None:
        at = time.monotonic_ns()
        for frame, n in zip(frames, numbers, strict=True):
            at += every_ns
            read_until(at, self._epoll, lambda: self._read(0))
            sent_at[n] = time.monotonic_ns()
            self._rest = frame
            while not self._write():
                self._read(0)

    # The end

    def finish(self) -> None:
        """See that nothing comes after what was due: a withdrawal is confirmed only behind everything else.

        :raises BenchFailed: if something does.
        """
        for connection in self.subscribers:
            connection.send([Unsubscribe(SubscriptionId(connection.name, 1, 1))])
        heard = time.perf_counter()
        while not all(sink.is_finished for sink in self.sinks):
            self._read(1.0)
            self._check_heard(heard, 0)

    def close(self) -> None:
        """Hang up."""
        self._epoll.close()
        for connection in (self._publisher, *self.subscribers):
            connection.close()
