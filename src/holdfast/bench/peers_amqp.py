"""As much of AMQP 0-9-1 as a publisher with confirms and a consumer need, by hand.

A connection has one channel. Methods are named by class and method number, as in the specification.
"""

from __future__ import annotations

import struct
from typing import Final

from holdfast.bench.network_wire import RECEIVE_BYTES, BenchFailed
from holdfast.bench.peers_load import dialled

__all__ = ["Amqp", "content_head", "method_frame"]

FRAME_BYTES_MAX: Final = 131_072
CHANNEL: Final = 1
METHOD, HEADER, BODY, END = 1, 2, 3, 0xCE
PERSISTENT: Final = 2

_Method = tuple[int, int]
START, START_OK, TUNE, TUNE_OK, OPEN, OPEN_OK = (10, 10), (10, 11), (10, 30), (10, 31), (10, 40), (10, 41)
CHANNEL_OPEN, CHANNEL_OPEN_OK = (20, 10), (20, 11)
DECLARE, DECLARE_OK, BIND, BIND_OK = (50, 10), (50, 11), (50, 20), (50, 21)
QOS, QOS_OK, CONSUME, CONSUME_OK = (60, 10), (60, 11), (60, 20), (60, 21)
PUBLISH: Final = (60, 40)
SELECT, SELECT_OK = (85, 10), (85, 11)


def _short_text(text: str) -> bytes:
    """A short string."""
    return bytes([len(text)]) + text.encode()


def _long_text(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _frame(kind: int, channel: int, content: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(content)) + content + bytes([END])


def method_frame(method: _Method, arguments: bytes, channel: int = CHANNEL) -> bytes:
    """A method with its arguments."""
    return _frame(METHOD, channel, struct.pack(">HH", *method) + arguments)


def content_head(exchange: str, key: str, size: int) -> bytes:
    """What stands before the body of a persistent message of this size; behind it stands the end of a frame."""
    publish = method_frame(PUBLISH, b"\0\0" + _short_text(exchange) + _short_text(key) + b"\0")
    header = _frame(HEADER, CHANNEL, struct.pack(">HHQHB", 60, 0, size, 0x1000, PERSISTENT))
    return publish + header + struct.pack(">BHI", BODY, CHANNEL, size)


class Amqp:
    """A connection with an open channel; it blocks until a load takes over its socket."""

    def __init__(self, port: int) -> None:
        self.socket = dialled(port)
        self._rest = b""
        self.socket.sendall(b"AMQP\x00\x00\x09\x01")
        self._wait(START)
        login = _short_text("PLAIN") + _long_text(b"\0guest\0guest") + _short_text("en_US")
        self._send(START_OK, _long_text(b"") + login, channel=0)
        self._wait(TUNE)
        self._send(TUNE_OK, struct.pack(">HIH", CHANNEL, FRAME_BYTES_MAX, 0), channel=0)  # 0: no heartbeats
        self._send(OPEN, _short_text("/") + b"\0\0", channel=0)
        self._wait(OPEN_OK)
        self._ask(CHANNEL_OPEN, b"\0", CHANNEL_OPEN_OK)

    def confirm(self) -> None:
        """Have what is published on this channel confirmed."""
        self._ask(SELECT, b"\0", SELECT_OK)

    def declare(self, queue: str, kind: str) -> None:
        """Make a durable queue of a kind."""
        table = _short_text("x-queue-type") + b"S" + _long_text(kind.encode())
        self._ask(DECLARE, b"\0\0" + _short_text(queue) + b"\x02" + _long_text(table), DECLARE_OK)

    def bind(self, queue: str, exchange: str, key: str) -> None:
        """Have a queue get what is published to an exchange under a key."""
        names = _short_text(queue) + _short_text(exchange) + _short_text(key)
        self._ask(BIND, b"\0\0" + names + b"\0" + _long_text(b""), BIND_OK)

    def consume(self, queue: str, ahead: int) -> None:
        """Get what is in a queue, up to so many messages unacknowledged."""
        self._ask(QOS, struct.pack(">IHB", 0, ahead, 0), QOS_OK)
        names = _short_text(queue) + _short_text("me")
        self._ask(CONSUME, b"\0\0" + names + b"\0" + _long_text(b""), CONSUME_OK)

    def _ask(self, method: _Method, arguments: bytes, answer: _Method) -> None:
        self._send(method, arguments)
        self._wait(answer)

    def _send(self, method: _Method, arguments: bytes, channel: int = CHANNEL) -> None:
        self.socket.sendall(method_frame(method, arguments, channel))

    def _wait(self, method: _Method) -> None:
        """Wait for the next frame, which must be this method."""
        while len(self._rest) < 7 or len(self._rest) < self._frame_bytes():
            data = self.socket.recv(RECEIVE_BYTES)
            if not data:
                raise BenchFailed(f"RabbitMQ has closed the connection where {method} was due")
            self._rest += data
        size = self._frame_bytes()
        content, self._rest = self._rest[7 : size - 1], self._rest[size:]
        if struct.unpack_from(">HH", content) != method:
            raise BenchFailed(f"RabbitMQ answers {content!r} where {method} was due")

    def _frame_bytes(self) -> int:
        return int(struct.unpack_from(">I", self._rest, 3)[0]) + 8
