"""Holdfast itself, with raw sockets at the other end like all its peers.

Publishers put what they send at once into one frame, as the client does; subscribers give credit when half of it is
used, and acknowledge four times a second, as the client does by itself. Brokers want to hear from clients, so these
say something between turns.
"""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Final

import msgspec

import holdfast
from holdfast.bench.network_sink import Published
from holdfast.bench.network_wire import RECEIVE_BYTES, BenchFailed
from holdfast.bench.peers_holdfast_brokers import (
    ON_DISK,
    PHB,
    SHB,
    Brokers,
    attributes,
    payload,
)
from holdfast.bench.peers_load import dialled
from holdfast.bench.peers_peer import OnDisk, Usage
from holdfast.bench.peers_process import Server
from holdfast.bench.peers_raw import FAN, RawPeer, Space
from holdfast.clock import SECOND
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Acknowledge, Credit
from holdfast.messages.message import Message
from holdfast.messages.publications import Accepted, Batch, Publication, Publish
from holdfast.messages.session import Heartbeat, Hello, Kind
from holdfast.messages.subscriptions import Resume, Subscribe
from holdfast.wire.frame import HEADER_BYTES, encode, header
from holdfast.wire.session import HEARTBEAT

__all__ = ["Holdfast", "HoldfastPublisher", "HoldfastReceiver"]

FIRST: Final = 1_000_000  #: number of the first event, so that all have the same length
CREDIT: Final = 8_192
ACKNOWLEDGE_SECONDS: Final = 0.25
HEARTBEAT_NS: Final = 60 * SECOND  #: the longest a broker allows
WELCOME, CONFIRMED, ACCEPTED, PORTION, LOGGED = 2, 17, 33, 104, 110
_HEADER: Final = struct.Struct(">IBI")

_decode_accepted = msgspec.msgpack.Decoder(Accepted).decode
#: A portion as it stands in a frame; the decoder passes over what events hold.
_decode_portion = msgspec.msgpack.Decoder(
    tuple[int, str, int, int, int, str, list[tuple[int, Published]]]
).decode


class Holdfast(RawPeer):
    """A publisher-hosting and a subscriber-hosting broker, a durable stream for each workload."""

    name = "Holdfast"

    def __init__(self) -> None:
        super().__init__()
        self._brokers: Brokers | None = None
        self._connections: list[_Connection] = []

    def missing(self) -> None:
        """Nothing."""

    def version(self) -> str:
        """As installed."""
        return holdfast.__version__

    def on_disk_statement(self) -> OnDisk:
        """What the receipt promises."""
        return ON_DISK

    @property
    def brokers(self) -> Brokers:
        """While they run."""
        assert self._brokers is not None
        return self._brokers

    def serve(self, folder: Path) -> Server:
        """Both; the first is for everything but the fan-out's subscribers."""
        self._brokers = Brokers(folder)
        return self._brokers.servers[PHB]

    def stop(self) -> None:
        """The load, then both brokers."""
        self._connections.clear()
        super().stop()
        if self._brokers is not None:
            self._brokers.servers[SHB].stop()
            self._brokers = None

    def process_ids(self) -> list[int]:
        """Of both brokers."""
        return self.brokers.process_ids()

    def usage(self) -> Usage:
        """Of both brokers."""
        return self.brokers.usage()

    def rest(self) -> None:
        """A heartbeat on every connection."""
        for connection in self._connections:
            if connection.socket.fileno() >= 0:  # the one who is away has hung up
                connection.socket.send(connection.frame(Heartbeat()))

    def create(self, port: int, space: Space) -> None:
        """Nothing: the streams stand in the network file."""

    def publisher(self, port: int, space: Space) -> HoldfastPublisher:
        """At the broker that logs."""
        publisher = HoldfastPublisher(_Connection(port, f"{space.name}-publisher"), space)
        self._connections.append(publisher.connection)
        return publisher

    def receiver(self, port: int, space: Space, number: int) -> HoldfastReceiver:
        """At the other broker if it is one of many."""
        at = self.brokers.servers[SHB].port if space is FAN else port
        receiver = HoldfastReceiver(_Connection(at, f"{space.name}-{number}"), space, number)
        self._connections.append(receiver.connection)
        return receiver


class _Connection:
    """A client's connection, in session; whatever comes is cut into frames."""

    def __init__(self, port: int, name: str) -> None:
        self.name = name
        self.socket = dialled(port)
        self._sent = 0
        self._rest = b""
        self.socket.sendall(self.frame(Hello(name, Kind.CLIENT, 1, 1, "anonymous", HEARTBEAT_NS)))
        self.wait(WELCOME)

    def frame(self, message: Message) -> bytes:
        """The next one; whoever makes it sends it, before any other."""
        kind, content = encode(message)
        self._sent += kind != HEARTBEAT
        return header(kind, self._sent, len(content)) + content

    def frames(self, data: bytes) -> list[tuple[int, bytes]]:
        """The kinds and bodies of those that are whole now, without heartbeats."""
        data = self._rest + data
        found: list[tuple[int, bytes]] = []
        at = 0
        while len(data) - at >= HEADER_BYTES:
            length, kind, _ = _HEADER.unpack_from(data, at)
            end = at + 4 + length
            if end > len(data):
                break
            if kind != HEARTBEAT:
                found.append((kind, data[at + HEADER_BYTES : end]))
            at = end
        self._rest = data[at:]
        return found

    def wait(self, kind: int) -> None:
        """Wait for a frame of this kind, which must be the next; nothing of what follows is lost."""
        while not (found := self.frames(b"")):
            data = self.socket.recv(RECEIVE_BYTES)
            if not data:
                raise BenchFailed(f"{self.name}: the broker has closed the connection")
            self._rest += data
        for its_kind, content in reversed(found[1:]):
            self._rest = header(its_kind, 0, len(content)) + content + self._rest
        if found[0][0] != kind:
            raise BenchFailed(f"{self.name}: {found[0][1]!r} came where a frame of kind {kind} was due")


class HoldfastPublisher:
    """Everything that is sent at once is one frame; everything up to a number is accepted."""

    def __init__(self, connection: _Connection, space: Space) -> None:
        self.connection = connection
        self.socket = connection.socket
        marker = payload(0)
        self._around = [
            pack(make_event(space.name, attributes(group), marker, time=time.time_ns())).split(marker)
            for group in range(space.groups)
        ]
        self._accepted = 0

    def messages(self, numbers: range) -> bytes:
        """What publishes events."""
        name, around, groups = self.connection.name, self._around, len(self._around)
        return self.connection.frame(
            Publish(
                Batch([Publication(name, FIRST + n, payload(n).join(around[n % groups])) for n in numbers])
            )
        )

    def acknowledged(self, data: bytes) -> int:
        """How many more are."""
        before = self._accepted
        for kind, content in self.connection.frames(data):
            if kind == ACCEPTED:
                self._accepted = _decode_accepted(content).upto - FIRST + 1
            elif kind != LOGGED:
                raise BenchFailed(f"{self.connection.name}: {content!r}")
        return self._accepted - before


class HoldfastReceiver:
    """A durable subscription; portions are acknowledged from time to time, all up to where the last one ends."""

    def __init__(self, connection: _Connection, space: Space, number: int) -> None:
        self.connection = connection
        self.socket = connection.socket
        self._used = 0  #: of the credit
        self._places: dict[str, int] = {}
        self._acknowledged = time.monotonic()
        name = connection.name
        filter = f"{space.name} WHERE group = 'g{number % space.groups}'" if space.groups > 1 else space.name
        subscribe = Subscribe(SubscriptionId(name, 1, 1), filter, (), resume=Resume(CREDIT, durable=name))
        self.socket.sendall(connection.frame(subscribe))
        connection.wait(CONFIRMED)

    def taken(self, data: bytes) -> tuple[list[int], bytes]:
        """What came, and what acknowledges it."""
        numbers: list[int] = []
        for kind, content in self.connection.frames(data):
            if kind != PORTION:
                raise BenchFailed(f"{self.connection.name}: {content!r}")
            _, pubend, _, upto, lost_through, reason, rows = _decode_portion(content)
            if reason:
                raise BenchFailed(f"{self.connection.name}: lost up to {lost_through}, {reason}")
            numbers += [publication.n - FIRST for _, publication in rows]
            self._places[pubend] = upto
        self._used += len(numbers)
        return numbers, self._answer()

    def _answer(self) -> bytes:
        answer = b""
        if self._used >= CREDIT // 2:
            answer = self.connection.frame(Credit(1, self._used))
            self._used = 0
        now = time.monotonic()
        if now - self._acknowledged >= ACKNOWLEDGE_SECONDS:
            answer += self.connection.frame(Acknowledge(1, self._places))
            self._acknowledged = now
        return answer
