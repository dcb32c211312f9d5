"""The other end of a broker's connections, as bare as it can be: a socket, and frames made beforehand.

A load that decodes, queues and schedules like a real client would be measured together with the broker. So publishers
here send bytes that were encoded before the clock was started. Whoever needs an answer before that (to a Hello, to a
Subscribe) waits for it; what comes while the clock runs is the business of ``network_sink``.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from typing import Final

from holdfast.clock import SECOND
from holdfast.errors import HoldfastError
from holdfast.identity import SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.publications import Batch, Publication, Publish
from holdfast.messages.session import Heartbeat, Hello, Kind, Welcome
from holdfast.messages.subscriptions import Confirmed, Subscribe
from holdfast.wire.frame import FrameReader, encode, header
from holdfast.wire.session import HEARTBEAT

__all__ = ["ANSWER_SECONDS", "PUBLISHER", "RECEIVE_BYTES", "BenchFailed", "RawConnection", "publish_body"]

#: The name under which every raw publisher comes.
PUBLISHER: Final = "publisher"

RECEIVE_BYTES: Final = 256 * 1024
ANSWER_SECONDS: Final = 300.0  #: how long a broker may take to confirm a hundred thousand subscriptions
#: The longest a broker allows. Raw connections send one before each run, and no run takes so long.
HEARTBEAT_NS: Final = 60 * SECOND


class BenchFailed(HoldfastError):
    """A run lost, repeated or reordered something, or was refused: its figures mean nothing."""


class RawConnection:
    """One client's connection, in session with its broker; it blocks until ``start``."""

    def __init__(self, port: int, name: str) -> None:
        self.name = name
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received_frames = 0
        self._sent_frames = 0
        self._reader = FrameReader()
        self._waiting: list[Message] = []
        self.send([Hello(name, Kind.CLIENT, 1, 1, "anonymous", HEARTBEAT_NS)])
        answer = self.receive()
        if not isinstance(answer, Welcome):
            raise BenchFailed(f"{name}: expected a Welcome, got {answer}")

    def send(self, messages: Iterable[Message]) -> None:
        """Send, and wait until the socket has taken it all."""
        self.socket.sendall(b"".join([self.frame(*encode(message)) for message in messages]))

    def frame(self, kind: int, body: bytes) -> bytes:
        """The next frame of this connection; whoever makes it sends it, before any other."""
        self._sent_frames += kind != HEARTBEAT
        return header(kind, self._sent_frames, len(body)) + body

    def receive(self) -> Message:
        """The next message that is no heartbeat.

        :raises BenchFailed: if the broker hangs up.
        """
        while not self._waiting:
            data = self.socket.recv(RECEIVE_BYTES)
            if not data:
                raise BenchFailed(f"{self.name}: the broker has closed the connection")
            arrived = [each for each in self._reader.feed(data) if not isinstance(each, Heartbeat)]
            self._waiting += arrived
            self.received_frames += len(arrived)
        return self._waiting.pop(0)

    def subscribe(self, filters: Sequence[str]) -> None:
        """Ask for subscriptions, numbered from 1; ``wait_confirmed`` waits for the answers."""
        self.send(
            Subscribe(SubscriptionId(self.name, 1, number), filter, ())
            for number, filter in enumerate(filters, start=1)
        )

    def wait_confirmed(self, count: int) -> None:
        """Wait for the confirmations of so many subscriptions."""
        for _ in range(count):
            answer = self.receive()
            if not isinstance(answer, Confirmed) or answer.partial:
                raise BenchFailed(f"{self.name}: expected a whole confirmation, got {answer}")

    def start(self) -> None:
        """Stop blocking; what comes from now on is the sink's."""
        if self._waiting:
            raise BenchFailed(f"{self.name}: {self._waiting[0]} before anything was published")
        self.socket.setblocking(False)

    def close(self) -> None:
        """Hang up."""
        self.socket.close()


def publish_body(first: int, events: Sequence[bytes]) -> tuple[int, bytes]:
    """Kind and body of a frame that publishes packed events under the numbers from ``first`` on."""
    batch = Batch([Publication(PUBLISHER, first + i, event) for i, event in enumerate(events)])
    return encode(Publish(batch))
