"""What a broker is held against: the same bytes moved by as little Python as can move them.

The bare fan-out loop takes the frames a publisher sends a broker and hands out the frames a broker sends, one write per
receiver for whatever one read brought. It does no matching, which was computed beforehand; it checks nothing, keeps no
sessions and bounds no buffer. The bare echo sends back what it gets.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Final, cast

import msgspec

from holdfast.bench.network_wire import PUBLISHER
from holdfast.bench.network_workload import Workload
from holdfast.messages.message import Message
from holdfast.messages.publications import Accepted
from holdfast.messages.session import Hello, Kind, Welcome
from holdfast.messages.subscriptions import Confirmed, Subscribe, Unsubscribe, Withdrawn
from holdfast.wire.frame import HEADER_BYTES, FrameReader, encode, header
from holdfast.wire.primitives import array_header

__all__ = ["Echo", "FanOut", "Targets", "precomputed"]

#: For each event of the pool: which sinks get it, each with what goes before the publication in a frame.
Targets = list[list[tuple[int, bytes]]]

_HEADER: Final = struct.Struct(">IBI")
_PUBLISH, _DELIVERIES = 32, 36
_split = msgspec.msgpack.Decoder(tuple[str, list[msgspec.Raw]]).decode


def precomputed(workload: Workload) -> Targets:
    """The matching of a workload, as the bare loop needs it; equal prefixes are the same object."""
    prefixes: dict[tuple[int, ...], bytes] = {}
    for owed in workload.owed:
        for _, subscriptions in owed:
            if subscriptions not in prefixes:
                prefixes[subscriptions] = b"\x93" + msgspec.msgpack.encode(subscriptions) + b"\xc0"
    return [[(sink, prefixes[subscriptions]) for sink, subscriptions in owed] for owed in workload.owed]


class FanOut(asyncio.Protocol):
    """One connection of the bare loop: a sink's or the publisher's, as its Hello says."""

    def __init__(self, targets: Targets, sinks: dict[int, FanOut]) -> None:
        self.rows: list[bytes] = [b""]  #: of the next frame; before them room for its head
        self._targets = targets
        self._sinks = sinks
        self._reader: FrameReader | None = FrameReader()
        self._number = 0
        self._rest = b""
        self._next = 0  #: the place in the pool of the next event published

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody connects."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """From a publisher, once it has said so: events. From others: what they say before and after."""
        if self._reader is None:
            self._hand_out(self._rest + data if self._rest else data)
            return
        for message in self._reader.feed(data):
            self._answer(message)

    def _answer(self, message: Message) -> None:
        match message:
            case Hello(node=name):
                if name == PUBLISHER:
                    self._reader = None
                else:
                    self._sinks[int(name.rpartition("-")[2])] = self
                self._send(Welcome("bare", Kind.BROKER, 1, message.session, message.heartbeat_ns))
            case Subscribe(subscription):
                self._send(Confirmed(subscription))
            case Unsubscribe(subscription):
                self._send(Withdrawn(subscription))

    def _send(self, message: Message) -> None:
        kind, body = encode(message)
        self._number += 1
        self._transport.write(header(kind, self._number, len(body)) + body)

    def _hand_out(self, data: bytes) -> None:
        at, size = 0, len(data)
        upto = 0
        touched: list[FanOut] = []
        with memoryview(data) as view:
            while size - at >= HEADER_BYTES:
                length, kind, _ = _HEADER.unpack_from(data, at)
                end = at + 4 + length
                if end > size:
                    break
                if kind == _PUBLISH:
                    _, publications = _split(view[at + HEADER_BYTES : end])
                    upto = self._gather(publications, touched)
                at = end
        self._rest = data[at:]
        for sink in touched:
            sink.flush()
        if upto:
            self._send(Accepted(upto))

    def _gather(self, publications: list[msgspec.Raw], touched: list[FanOut]) -> int:
        targets, sinks, pool = self._targets, self._sinks, len(self._targets)
        for publication in publications:
            prefix = row = b""
            for target, its_prefix in targets[self._next]:
                if its_prefix is not prefix:  # in fan-out all are the same, and the row is made once
                    prefix = its_prefix
                    row = prefix + bytes(publication)
                sink = sinks[target]
                if len(sink.rows) == 1:
                    touched.append(sink)
                sink.rows.append(row)
            self._next = (self._next + 1) % pool
        return cast(int, msgspec.msgpack.decode(publications[-1])[1])

    def flush(self) -> None:
        """Write what was gathered, as one frame."""
        rows, self.rows = self.rows, [b""]
        head = b"\x92\xa7default" + array_header(len(rows) - 1)
        self._number += 1
        rows[0] = header(_DELIVERIES, self._number, len(head) + sum(map(len, rows))) + head
        self._transport.write(b"".join(rows))


class Echo(asyncio.Protocol):
    """Sends back what it gets."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody connects."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Send it back."""
        self._transport.write(data)
