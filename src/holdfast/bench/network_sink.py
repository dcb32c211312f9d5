"""Where deliveries end: a raw receiver that decodes every one of them and knows beforehand which must come.

What matching says of the published events is worked out before the clock is started, as the very rows a sink will
decode; the rows of a frame are then compared with the next ones due, all at once and in C. One publisher sends in the
order of its numbers, so what a sink gets is fully determined: a loss, a repetition, a delivery out of order or for the
wrong subscription, each is a difference.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from holdfast.bench.network_wire import RECEIVE_BYTES, BenchFailed
from holdfast.messages.publications import Accepted
from holdfast.messages.session import Goodbye
from holdfast.wire.frame import HEADER_BYTES
from holdfast.wire.session import HEARTBEAT

__all__ = ["Acknowledgements", "Due", "Receiver", "Sink", "due"]

_HEADER: Final = struct.Struct(">IBI")
#: The kinds of frames that come here, as ``wire`` has them.
GOODBYE, WITHDRAWN, ACCEPTED, DELIVERIES = 4, 20, 33, 36


class Published(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The identity of a delivered event; the decoder passes over its content, which follows."""

    publisher: str
    n: int


class Due(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One delivery, as it stands in a frame."""

    subscriptions: tuple[int, ...]
    copy: None
    publication: Published

    def __str__(self) -> str:
        return f"{self.publication.publisher}#{self.publication.n} for {list(self.subscriptions)}"


_decode_deliveries = msgspec.msgpack.Decoder(tuple[str, list[Due]]).decode
_decode_accepted = msgspec.msgpack.Decoder(Accepted).decode
_decode_goodbye = msgspec.msgpack.Decoder(Goodbye).decode


def due(subscriptions: tuple[int, ...], publisher: str, n: int) -> Due:
    """The delivery of an event for these subscriptions."""
    return Due(subscriptions, None, Published(publisher, n))


class Receiver:
    """Cuts what arrives on a raw connection into frames, whose numbers must go up by one."""

    def __init__(self, name: str, connected: socket.socket, received_frames: int) -> None:
        self.name = name
        self.socket = connected
        self._frames = received_frames
        self._arrived_ns = 0  #: when what was read last was there
        self._rest = b""

    def on_readable(self) -> int:
        """Read once; how many deliveries came.

        :raises BenchFailed: at anything that was not due.
        """
        data = self.socket.recv(RECEIVE_BYTES)
        self._arrived_ns = time.monotonic_ns()
        if not data:
            raise BenchFailed(f"{self.name}: the broker has closed the connection")
        if self._rest:
            data = self._rest + data
        taken = at = 0
        size = len(data)
        view = memoryview(data)
        while size - at >= HEADER_BYTES:
            length, kind, number = _HEADER.unpack_from(data, at)
            end = at + 4 + length
            if end > size:
                break
            if kind != HEARTBEAT:
                self._frames += 1
                if number != self._frames:
                    raise BenchFailed(f"{self.name}: frame {number} came in the place of {self._frames}")
                taken += self.on_frame(kind, view[at + HEADER_BYTES : end])
            at = end
        self._rest = data[at:]
        return taken

    def on_frame(self, kind: int, body: memoryview) -> int:
        """Take a frame; how many deliveries it holds."""
        if kind == GOODBYE:
            raise BenchFailed(f"{self.name}: the broker says goodbye: {_decode_goodbye(body).reason}")
        raise BenchFailed(f"{self.name}: a frame of kind {kind}, which was not due")


class Sink(Receiver):
    """A subscriber's end. If it is told when each number was sent, it notes how long each delivery took."""

    def __init__(self, name: str, connected: socket.socket, received_frames: int) -> None:
        super().__init__(name, connected, received_frames)
        self.is_finished = False  #: a subscription was withdrawn, and everything sent before that has come
        self.sent_at: Mapping[int, int] | None = None  #: in ns, by number
        self.latencies_ns: list[int] = []
        self._due: Sequence[Due] = ()
        self._at = 0

    @property
    def missing(self) -> int:
        """How many deliveries are still due."""
        return len(self._due) - self._at

    def expect(self, rows: Sequence[Due], sent_at: Mapping[int, int] | None = None) -> None:
        """What is due from now on; what was due before must have come."""
        assert not self.missing
        self._due = rows
        self._at = 0
        self.sent_at = sent_at
        self.latencies_ns = []

    def on_frame(self, kind: int, body: memoryview) -> int:
        """Compare a frame of deliveries with those due."""
        if kind == WITHDRAWN:
            self.is_finished = True
            return 0
        if kind != DELIVERIES:
            return super().on_frame(kind, body)
        _, rows = _decode_deliveries(body)
        after = self._at + len(rows)
        if rows != self._due[self._at : after]:
            raise BenchFailed(f"{self.name}: {self._difference(rows)}")
        self._at = after
        if self.sent_at is not None:
            arrived = self._arrived_ns
            self.latencies_ns += [arrived - self.sent_at[row.publication.n] for row in rows]
        return len(rows)

    def _difference(self, rows: list[Due]) -> str:
        wanted = self._due[self._at : self._at + len(rows)]
        for got, due_now in zip(rows, wanted, strict=False):
            if got != due_now:
                return f"{got} came where {due_now} was due"
        return f"{rows[len(wanted)]} came when nothing was due any more"


class Acknowledgements(Receiver):
    """A publisher's end: everything must be accepted, and nothing of it known before."""

    def __init__(self, name: str, connected: socket.socket, received_frames: int) -> None:
        super().__init__(name, connected, received_frames)
        self.upto = 0  #: everything up to this number is accepted

    def on_frame(self, kind: int, body: memoryview) -> int:
        """Take an acknowledgement."""
        if kind != ACCEPTED:
            return super().on_frame(kind, body)
        accepted = _decode_accepted(body)
        if accepted.duplicates:
            raise BenchFailed(f"{self.name}: {accepted.duplicates} were taken for duplicates")
        self.upto = accepted.upto
        return 0
