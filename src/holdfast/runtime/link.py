"""One TCP connection: bytes to messages on the way in, messages to bytes on the way out.

Messages to be sent queue up as frames, and a flush at the end of the driver's turn hands all of them to the
transport in one write. Frames get their numbers only then. When the transport holds enough, frames wait here. One
turn may bring more than ``buffer_bytes_max``, and that is no fault of the peer's; but if so much still waits after
``slow_ns``, or ever ``BURST_BUFFERS_MAX`` times as much, it is too slow: what waited is dropped, and the next frame it
will read is a ``Goodbye`` that says so. It has ``linger_ns`` to read it.

To close, we send what there is, shut down our direction, and go on reading, to nowhere, until the peer has closed
too: a socket closed with unread bytes in it would reset the connection, and the peer might never see the Goodbye.

``cut`` is the black hole of ``runtime.faults``: nothing passes in either direction, not even the end of the
connection, but frames keep their numbers, so that after healing the first one to pass shows the hole.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol, cast

from holdfast.clock import SECOND, Instant
from holdfast.errors import MalformedFrame
from holdfast.messages.message import Message
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello, Kind, Welcome
from holdfast.overlay.slowness import (
    BROKER_BUFFER_BYTES,
    BURST_BUFFERS_MAX,
    CLIENT_BUFFER_BYTES,
    LINGER_NS,
    SLOW_NS,
)
from holdfast.runtime import clock
from holdfast.runtime.addresses import Address
from holdfast.wire.frame import HEADER_BYTES, FrameReader, encode_parted, header
from holdfast.wire.session import HEARTBEAT

__all__ = ["Link", "LinkLimits", "Owner"]

#: What the transport holds before frames wait in our own queue; also the most that is handed over at a time.
TRANSPORT_BYTES: Final = 256 * 1024

#: A stranger who has not completed one frame in so many bytes is not one of us.
FIRST_FRAME_BYTES_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """How much a peer may leave unread, and how long we wait for it when we part."""

    client_buffer_bytes_max: int = CLIENT_BUFFER_BYTES
    broker_buffer_bytes_max: int = BROKER_BUFFER_BYTES
    slow_ns: int = SLOW_NS
    linger_ns: int = LINGER_NS


class Owner(Protocol):
    """Whoever is told what happens on a link: a driver."""

    def on_open(self, link: Link) -> None:
        """The connection stands."""

    def on_named(self, link: Link) -> None:
        """The peer has said who it is: ``link.node``."""

    def on_messages(self, link: Link, messages: list[Message], size: int) -> None:
        """Messages arrived, in order, in so many bytes."""

    def on_lost(self, link: Link, reason: str, farewell: Farewell | None) -> None:
        """Nothing comes any more and nothing is sent; called once, and never after ``close``.

        ``farewell``: we gave the peer up, and told it so.
        """

    def on_gone(self, link: Link) -> None:
        """The socket is closed; always the last call."""


class Link(asyncio.Protocol):
    """A connection with one peer; if we dialled, ``peer`` is whom and ``dialled`` where."""

    def __init__(
        self, owner: Owner, connection: int, peer: str | None, dialled: str | None, limits: LinkLimits
    ) -> None:
        self.connection = connection
        self.peer = peer
        self.dialled = dialled
        self.node: str | None = None  #: who the peer says it is, once it has
        self.address = "?"
        self.arrived: list[Message] | None = None  #: the driver's: what came in this turn
        self.queued_bytes = 0
        self.buffer_bytes_max = (
            limits.client_buffer_bytes_max if peer is None else limits.broker_buffer_bytes_max
        )
        self.cut = False
        self._behind_since: Instant | None = None  #: more than that has waited ever since
        self._limits = limits
        self._owner = owner
        self._reader = FrameReader()
        self._queue: deque[tuple[int, bytes]] = deque()
        self._fresh: list[Message] = []  #: put, and not encoded yet
        self._number = 0  #: of the last frame handed to the transport
        self._greeted = False  #: a first message was read
        self._first_bytes = 0  #: read before that
        self._read_bytes = 0  #: since the last complete message
        self._writable = False
        self._closing = False  #: our side is done: the owner is told nothing more but ``on_gone``
        self._ended = False  #: our direction is shut down
        self._peer_ended = False  #: and the peer's
        self._gone = False
        self._holed = False  #: something was swallowed while cut, on its way in or out
        self._unreported: str | None = None  #: how the connection ended while cut
        self._linger: asyncio.TimerHandle | None = None

    @property
    def name(self) -> str:
        """The peer as a log should call it."""
        return self.node or self.peer or "?"

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is connected."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=TRANSPORT_BYTES)
        self._writable = True
        peername = transport.get_extra_info("peername")
        if isinstance(peername, tuple):
            self.address = str(Address(*peername[:2]))
        self._owner.on_open(self)

    def data_received(self, data: bytes) -> None:
        """Bytes arrived; after our side has closed they are read only to be thrown away."""
        if self._closing:
            return
        self._read_bytes += len(data)
        try:
            messages = self._reader.feed(data)
            if not self._greeted:
                self._check_first(data, messages)
        except MalformedFrame as error:
            self.drop(Farewell.PROTOCOL, str(error))
            return
        if self.cut:
            self._holed = self._holed or any(type(message) is not Heartbeat for message in messages)
        elif messages:
            size, self._read_bytes = self._read_bytes, 0
            self._owner.on_messages(self, messages, size)

    def eof_received(self) -> bool:
        """The peer is done; we are too, as soon as what is on its way has gone."""
        self._peer_ended = True
        self._lose("closed by the peer")
        return not self._ended  # False: asyncio closes the socket

    def pause_writing(self) -> None:
        """The transport holds enough."""
        self._writable = False

    def resume_writing(self) -> None:
        """The peer has read some of it."""
        self._writable = True
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        if self._gone:
            return
        self._gone = True
        self._lose(f"connection lost: {exc}" if exc else "connection lost")
        self._closing = True
        self._fresh.clear()
        self._queue.clear()
        self.queued_bytes = 0
        if self._linger is not None:
            self._linger.cancel()
        if not self.cut or self._unreported is None:
            self._owner.on_gone(self)

    # What the driver calls.

    def put(self, messages: Iterable[Message]) -> None:
        """Queue messages; they leave with the next ``flush``."""
        if self._closing:
            return
        self._fresh += messages

    def _encode(self) -> None:
        """Make frames of what was put, only now: they are written while they are still in the processor's cache."""
        fresh, self._fresh = self._fresh, []
        for message in fresh:
            for frame in encode_parted(message):
                self._queue.append(frame)
                self.queued_bytes += HEADER_BYTES + len(frame[1])

    def flush(self) -> None:
        """Hand to the transport what it takes; drop the peer if too much is left for too long."""
        self._encode()
        while self._queue and (self._writable or self.cut) and not self._gone:
            self._transport.write(self._next_bytes())
        if self._closing:
            self._end()
        elif self.queued_bytes > self.buffer_bytes_max:
            self._fall_behind()
        else:
            self._behind_since = None

    def _fall_behind(self) -> None:
        now = clock.now()
        if self._behind_since is None:
            self._behind_since = now
        has_lasted = now - self._behind_since >= self._limits.slow_ns
        if has_lasted or self.queued_bytes > BURST_BUFFERS_MAX * self.buffer_bytes_max:
            self.drop(Farewell.TOO_SLOW, f"more than {self.buffer_bytes_max} bytes were waiting to be read")

    def pause(self) -> None:
        """Read nothing until ``resume``."""
        if not self._closing:
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if not self._closing:
            self._transport.resume_reading()

    def drop(self, farewell: Farewell, reason: str) -> None:
        """Give the peer up: what waits is forgotten, the reason is the last it hears, the owner is told."""
        self._fresh.clear()
        self._queue.clear()
        self.queued_bytes = 0
        self.put([Goodbye(farewell, reason)])
        self._lose(f"{farewell}: {reason}", farewell)

    def close(self) -> None:
        """Part: ``flush`` sends what is queued, and closes; the owner hears nothing more but ``on_gone``."""
        if self._closing:
            return
        self._closing = True
        if self._gone or self.cut:
            return
        self._transport.resume_reading()
        linger = self._limits.linger_ns / SECOND
        self._linger = asyncio.get_running_loop().call_later(linger, self._transport.abort)

    def abort(self) -> None:
        """Close at once; ``on_gone`` follows."""
        self._closing = True
        self.cut = False
        if self._gone:
            self._owner.on_gone(self)
        else:
            self._transport.abort()

    def heal(self) -> None:
        """Let everything pass again, and tell what was hidden while the link was cut."""
        if not self.cut:
            return
        self.cut = False
        if self._closing:
            if self._unreported is not None:
                self._owner.on_lost(self, self._unreported, None)
            self.abort()
        elif self._holed:
            self._lose("frames were lost while the link was cut")

    def _end(self) -> None:
        """Shut down our direction once everything is handed over; close once the peer has done the same."""
        if self._queue or self._ended or self._gone or self.cut:
            return
        self._ended = True
        if self._peer_ended:
            self._transport.close()
            return
        try:
            self._transport.write_eof()
        except OSError:  # the peer has reset the connection, and asyncio has not noticed yet
            self._transport.abort()

    def _next_bytes(self) -> bytes:
        parts: list[bytes] = []
        queue, number, size = self._queue, self._number, 0
        while queue and size < TRANSPORT_BYTES:
            kind, body = queue.popleft()
            if kind != HEARTBEAT:
                number += 1
            parts += (header(kind, number, len(body)), body)
            size += HEADER_BYTES + len(body)
        self.queued_bytes -= size
        if self.cut:
            self._holed = self._holed or number != self._number
            parts.clear()
        self._number = number
        return b"".join(parts)

    def _check_first(self, data: bytes, messages: list[Message]) -> None:
        if not messages:
            self._first_bytes += len(data)
            if self._first_bytes > FIRST_FRAME_BYTES_MAX:
                raise MalformedFrame(f"no complete frame in the first {FIRST_FRAME_BYTES_MAX} bytes")
            return
        self._greeted = True
        first = messages[0]
        if isinstance(first, Hello | Welcome):
            self.node = first.node
            if first.kind is Kind.BROKER:
                self.buffer_bytes_max = self._limits.broker_buffer_bytes_max
            self._owner.on_named(self)

    def _lose(self, reason: str, farewell: Farewell | None = None) -> None:
        if self._closing:
            return
        if self.cut:
            self._unreported = reason
            self._closing = True
            return
        self._owner.on_lost(self, reason, farewell)
        self.close()
        self.flush()
