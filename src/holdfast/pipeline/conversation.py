"""A writer of epochs on a socket that waits: what a task of Spark, or its driver, speaks with a broker through.

``client.epoch_writer`` decides; here its effects are carried out, one after the other, on the thread that asks. Between
two questions nobody listens: what has come meanwhile is read with the next one, and a session that was given up in a
long pause is begun anew.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from holdfast.client.epoch_writer import EpochWriter
from holdfast.errors import MalformedFrame
from holdfast.messages.message import Message
from holdfast.messages.session import Heartbeat
from holdfast.overlay.transport import (
    Close,
    Connect,
    Connected,
    ConnectFailed,
    Disconnected,
    Received,
    Send,
    Wake,
)
from holdfast.pipeline.errors import CannotPublish
from holdfast.pipeline.homes import Home
from holdfast.runtime.addresses import words_of
from holdfast.wire.frame import FrameReader, encode_parted, header

__all__ = ["Conversation"]

CONNECT_SECONDS: Final = 5.0
SEND_SECONDS: Final = 30.0
RECEIVE_BYTES: Final = 1 << 16


class Conversation:
    """With one broker. To be left as a context; what was asked for and not waited for may be lost then."""

    def __init__(self, name: str, home: Home) -> None:
        self.writer = EpochWriter(name, time.time_ns(), home.name, str(home.address))
        self._address = home.address
        self._socket: socket.socket | None = None
        self._connection = 0
        self._reader = FrameReader()
        self._frames = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._carry_out(self.writer.leave())
        self._close()

    def wait(self, is_enough: Callable[[], bool]) -> None:
        """Have what is wanted said, and wait until something holds.

        :raises CannotPublish: if the broker will not have it, or does not answer.
        """
        self._listen(0)
        self._step(Wake())
        while not is_enough():
            deadline = self.writer.next_deadline()
            pause = 1.0 if deadline is None else max(0.0, (deadline - time.monotonic_ns()) / 1e9)
            self._listen(min(pause, 1.0))
            self._step(Wake())
            self._check()
        self._check()

    def _check(self) -> None:
        if self.writer.problem is not None:
            raise CannotPublish(self.writer.problem)

    # The writer's world

    def _step(self, stimulus: Any) -> None:
        self._carry_out(self.writer.step(stimulus, time.monotonic_ns()))

    def _carry_out(self, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case Connect(peer):
                    self._connect(peer)
                case Send(connection, messages) if connection == self._connection:
                    self._send(messages)
                case Close(connection) if connection == self._connection:
                    self._close()

    def _connect(self, peer: str) -> None:
        self._connection += 1
        self._reader, self._frames = FrameReader(), 0
        try:
            self._socket = socket.create_connection(self._address, CONNECT_SECONDS)
        except OSError as error:
            self._step(ConnectFailed(peer, words_of(error)))
            return
        self._socket.settimeout(SEND_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._step(Connected(self._connection, peer))

    def _send(self, messages: list[Message]) -> None:
        pieces: list[bytes] = []
        for message in messages:
            for kind, body in encode_parted(message):
                self._frames += not isinstance(message, Heartbeat)
                pieces += (header(kind, self._frames, len(body)), body)
        if self._socket is not None:
            try:
                self._socket.sendall(b"".join(pieces))
            except OSError as error:
                self._lose(words_of(error))

    def _listen(self, seconds: float) -> None:
        """Hear what has come, waiting so long for it to come."""
        if self._socket is None:
            time.sleep(seconds)
            return
        if not select.select([self._socket], [], [], seconds)[0]:
            return
        try:
            data = self._socket.recv(RECEIVE_BYTES)
            messages = self._reader.feed(data)
        except (OSError, MalformedFrame) as error:
            self._lose(words_of(error) if isinstance(error, OSError) else str(error))
            return
        if messages:
            self._step(Received(self._connection, messages))
        if not data:
            self._lose("it has closed the connection")

    def _lose(self, reason: str) -> None:
        self._close()
        self._step(Disconnected(self._connection, reason))

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
