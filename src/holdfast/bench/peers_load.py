"""The load for brokers of any kind: one process that publishes and receives on raw sockets, whatever is spoken there.

A dialect turns numbers into bytes and bytes into numbers (``Publishing``, ``Receiving``); everything else is the same
for all: the window, the pace, the clock, and the check that each subscriber gets exactly what is due, in order, once.
Every event ends with its number, so whoever has seen the number has the whole event.

Clients written out like this cost a fraction of real ones, and still may be the slower side; so what the load took of
its processor stands beside every figure.
"""

from __future__ import annotations

import re
import select
import socket
import time
from collections.abc import Sequence
from typing import Final, Protocol

from holdfast.bench.network_wire import RECEIVE_BYTES, BenchFailed
from holdfast.bench.pace import read_until
from holdfast.bench.peers_peer import EVENT_BYTES, Run
from holdfast.clock import SECOND

__all__ = [
    "AHEAD",
    "STALL_SECONDS",
    "WRITE_EVENTS",
    "Load",
    "Marked",
    "Publishing",
    "Receiving",
    "body",
    "dialled",
]

#: How an event ends: its number. What stands before is the same in all.
MARK: Final = rb"<(\d{12})>"
NUMBER_BYTES: Final = 14
FILLER: Final = b"x" * (EVENT_BYTES - NUMBER_BYTES)
AHEAD: Final = 4_096  #: events that may be on their way to some subscriber
WRITE_EVENTS: Final = 64  #: how many are sent in one go, at most
BLOCKED_SECONDS: Final = 0.001  #: after which a socket that was full is tried again
STALL_SECONDS: Final = 20.0
ANSWER_SECONDS: Final = 60.0


def body(n: int) -> bytes:
    """The event with this number."""
    return b"%b<%012d>" % (FILLER, n)


def dialled(port: int) -> socket.socket:
    """A connection; it blocks until a load takes it over."""
    connection = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Marked:
    """Cuts what is read into whole events, each with what a dialect wants to know of it.

    ``head`` is an expression for the bytes before an event, with one group. Nothing else can look like an event: what
    is before the number is the same in all of them.
    """

    def __init__(self, head: bytes) -> None:
        self._event = re.compile(head + rb".{%d}" % len(FILLER) + MARK, re.DOTALL)
        self.rest = b""  #: what does not end with a number yet

    def cut(self, data: bytes) -> tuple[list[bytes], list[int]]:
        """The groups and the numbers of the events that are whole now."""
        data = self.rest + data
        found = self._event.findall(data)
        if not found:
            self.rest = data
            return [], []
        self.rest = data[data.rindex(b"<%b>" % found[-1][1]) + NUMBER_BYTES :]
        return [group for group, _ in found], [int(number) for _, number in found]


class Publishing(Protocol):
    """A publisher's end of a connection."""

    socket: socket.socket

    def messages(self, numbers: range) -> bytes:
        """What publishes these events, each to the group that is its number modulo the groups."""

    def acknowledged(self, data: bytes) -> int:
        """How many more events are acknowledged, by what was read.

        :raises BenchFailed: if something is refused.
        """


class Receiving(Protocol):
    """A subscriber's end of a connection."""

    socket: socket.socket

    def taken(self, data: bytes) -> tuple[list[int], bytes]:
        """The numbers of the events that were read, and what acknowledges them."""


class _Outgoing:
    """A socket that does not block, and what it has not taken yet."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self.socket = connected
        self.rest = b""

    def send(self, data: bytes) -> None:
        self.rest += data
        self.flush()

    def flush(self) -> None:
        if self.rest:
            try:
                sent = self.socket.send(self.rest)
            except BlockingIOError:
                return
            except ConnectionError as error:
                raise BenchFailed(str(error)) from error
            self.rest = self.rest[sent:]


class _Subscriber:
    """A receiving end, and the next number due there."""

    def __init__(self, name: str, end: Receiving, first: int) -> None:
        self.name = name
        self.end = end
        self.due = first

    def take(self, data: bytes, step: int) -> tuple[list[int], bytes]:
        numbers, answer = self.end.taken(data)
        after = self.due + step * len(numbers)
        if numbers != list(range(self.due, after, step)):
            raise BenchFailed(f"{self.name}: {numbers[0]} … {numbers[-1]} came where {self.due} was due")
        self.due = after
        return numbers, answer


class Load:
    """A publisher, and subscribers of which number ``i`` gets the events whose numbers are ``i`` modulo ``groups``."""

    def __init__(self, publisher: Publishing, receivers: Sequence[Receiving], groups: int) -> None:
        assert len(receivers) % groups == 0
        self.publisher = publisher
        self._groups = groups
        self._each = len(receivers) // groups  #: deliveries of an event
        self._next = 0
        self._subscribers = [
            _Subscriber(f"subscriber {i}", end, i % groups) for i, end in enumerate(receivers)
        ]
        self._out = _Outgoing(publisher.socket)
        self._ends: dict[int, tuple[_Subscriber, _Outgoing]] = {}
        self._blocked: list[_Outgoing] = []
        self._epoll = select.epoll()
        self._epoll.register(publisher.socket, select.EPOLLIN)
        for subscriber in self._subscribers:
            end = subscriber.end.socket
            self._ends[end.fileno()] = (subscriber, _Outgoing(end))
            self._epoll.register(end, select.EPOLLIN)
        self._acknowledged = 0
        self._received = 0
        self._heard = 0.0
        self._sent_at: dict[int, int] = {}
        self._latencies_ns: list[int] = []

    def run(self, seconds: float, window: int) -> Run:
        """Publish as fast as the window and the subscribers allow, for so long; then wait for the rest."""
        first = self._next
        began = self._heard = time.perf_counter()
        while (now := time.perf_counter()) - began < seconds or not self._is_done():
            room = self._room(window) if now - began < seconds else 0
            if room > 0 and not self._blocked:
                self._publish(min(room, WRITE_EVENTS))
                room -= WRITE_EVENTS
            self._read(0 if room > 0 and not self._blocked else 0.1)
            self._check_heard()
        events = self._next - first
        return Run(events, events * self._each, self._heard - began)

    def run_paced(self, per_second: float, seconds: float) -> list[int]:
        """Publish events one by one at a steady rate; how long each delivery took, in ns."""
        self._latencies_ns = []
        at = time.monotonic_ns()
        for _ in range(max(1, round(per_second * seconds))):
            at += round(SECOND / per_second)
            read_until(at, self._epoll, lambda: self._read(0))
            self._sent_at[self._next] = time.monotonic_ns()
            self._publish(1)
        self._heard = time.perf_counter()
        while not self._is_done():
            self._read(0.1)
            self._check_heard()
        self._sent_at.clear()
        return self._latencies_ns

    def _is_done(self) -> bool:
        return self._acknowledged == self._next and self._received == self._next * self._each

    def _room(self, window: int) -> int:
        room = window - (self._next - self._acknowledged)
        if self._each:
            room = min(room, AHEAD - (self._next - self._received // self._each))
        return room

    def _publish(self, count: int) -> None:
        numbers = range(self._next, self._next + count)
        self._next += count
        self._send(self._out, self.publisher.messages(numbers))

    def _send(self, out: _Outgoing, data: bytes) -> None:
        out.send(data)
        if out.rest and out not in self._blocked:
            self._blocked.append(out)

    def _read(self, timeout: float) -> None:
        for out in self._blocked:
            out.flush()
        self._blocked = [out for out in self._blocked if out.rest]
        for descriptor, _ in self._epoll.poll(min(timeout, BLOCKED_SECONDS) if self._blocked else timeout):
            if descriptor == self.publisher.socket.fileno():
                self._acknowledged += self.publisher.acknowledged(_data(self.publisher.socket))
            else:
                self._take(*self._ends[descriptor])
            self._heard = time.perf_counter()

    def _take(self, subscriber: _Subscriber, out: _Outgoing) -> None:
        data = _data(out.socket)
        arrived = time.monotonic_ns()
        numbers, answer = subscriber.take(data, self._groups)
        self._received += len(numbers)
        if answer:
            self._send(out, answer)
        if self._sent_at:
            self._latencies_ns += [arrived - self._sent_at[n] for n in numbers]

    def _check_heard(self) -> None:
        if time.perf_counter() - self._heard > STALL_SECONDS:
            raise BenchFailed(
                f"nothing came for {STALL_SECONDS:g} s: {self._next - self._acknowledged} events are not acknowledged, "
                f"{self._next * self._each - self._received} deliveries are missing"
            )

    def close(self) -> None:
        """Hang up."""
        self._epoll.close()
        self.publisher.socket.close()
        for _, out in self._ends.values():
            out.socket.close()


def _data(connected: socket.socket) -> bytes:
    try:
        data = connected.recv(RECEIVE_BYTES)
    except ConnectionError as error:
        raise BenchFailed(str(error)) from error
    if not data:
        raise BenchFailed("the server has closed a connection")
    return data
