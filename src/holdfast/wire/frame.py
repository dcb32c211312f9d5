"""Frames: length, kind, number, body.

::

    4 bytes   length of what follows, big-endian
    1 byte    kind of message
    4 bytes   number of the frame on this connection and in this direction, from 1
    rest      body (MessagePack)

A frame that cannot be read, is too large, or is not the next one raises ``MalformedFrame`` and nothing else; then
the connection is of no use any more. Numbers are given when a frame is handed to the connection, not before: what
is dropped from a queue leaves no hole.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdfast.errors import MalformedFrame
from holdfast.messages.message import Message
from holdfast.messages.overlay import Relay
from holdfast.messages.publications import PUBLICATIONS_MAX, Deliveries, Publications
from holdfast.wire import durable, overlay, publications, session, staging, subscriptions
from holdfast.wire.durable import Parting

__all__ = [
    "FRAME_BYTES_MAX",
    "HEADER_BYTES",
    "FrameNumbers",
    "FrameReader",
    "encode",
    "encode_parted",
    "header",
]

#: The largest event, with room around it; a peer that announces more is cut off before it can fill our memory.
FRAME_BYTES_MAX: Final = 8 * 1024 * 1024

#: A batch that would make a larger frame is sent as several. A single event is at most about 2 MiB.
FRAME_BYTES_TARGET: Final = 1024 * 1024

_HEADER: Final = struct.Struct(">IBI")
HEADER_BYTES: Final = _HEADER.size
_AFTER_LENGTH: Final = HEADER_BYTES - 4

_pack_header = _HEADER.pack
_unpack_header = _HEADER.unpack_from

_encode_map = msgspec.msgpack.Encoder().encode


def _map_encoder(kind: int) -> tuple[int, Callable[[Any], bytes]]:
    return kind, _encode_map


def _map_decoder(message: type) -> Callable[[bytes | bytearray], Message]:
    return msgspec.msgpack.Decoder(message).decode


_MAPS: Final = {
    **session.KINDS,
    **subscriptions.KINDS,
    **publications.KINDS,
    **overlay.KINDS,
    **durable.KINDS,
    **staging.KINDS,
}
_ENCODERS: Final[dict[type, tuple[int, Callable[[Any], bytes]]]] = {
    **{message: _map_encoder(kind) for kind, message in _MAPS.items()},
    **publications.ENCODERS,
    **overlay.ENCODERS,
    **durable.ENCODERS,
}
_DECODERS: Final[dict[int, Callable[[bytes | bytearray], Message]]] = {
    **{kind: _map_decoder(message) for kind, message in _MAPS.items()},
    **publications.DECODERS,
    **overlay.DECODERS,
    **durable.DECODERS,
}


def _picked(message: Publications | Deliveries | Relay) -> int:
    return len(message.at)


_PARTINGS: Final[dict[type, Parting]] = {
    Publications: Parting(_picked, publications.halves),
    Deliveries: Parting(_picked, publications.halves),
    Relay: Parting(_picked, overlay.halves),
    **durable.PARTINGS,
}


def encode(message: Message) -> tuple[int, bytes]:
    """The kind and the body of a message's frame."""
    kind, encoder = _ENCODERS[type(message)]
    return kind, encoder(message)


def encode_parted(message: Message) -> list[tuple[int, bytes]]:
    """The same as one frame, or as several where one would be too large, or say more than anybody reads."""
    kind, encoder = _ENCODERS[type(message)]
    parting = _PARTINGS.get(type(message))
    if parting is None:
        return [(kind, encoder(message))]
    count = parting.count(message)
    if count <= PUBLICATIONS_MAX:
        body = encoder(message)
        if len(body) <= FRAME_BYTES_TARGET or count < 2:
            return [(kind, body)]
    first, second = parting.halves(message)
    return encode_parted(first) + encode_parted(second)


def header(kind: int, number: int, body_bytes: int) -> bytes:
    """What goes before a body. The number is the frame's own; for a heartbeat that of the last frame before it."""
    return _pack_header(_AFTER_LENGTH + body_bytes, kind, number)


class FrameNumbers:
    """The receiver's side of numbering: each frame is the next one, or the session is over."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = 0

    def check(self, number: int) -> None:
        """Take the next frame's number.

        :raises MalformedFrame: if it is another.
        """
        if number != self.last + 1:
            trouble = "repeats" if number <= self.last else "leaves a hole"
            raise MalformedFrame(f"frame {number} after frame {self.last}: the numbering {trouble}")
        self.last = number

    def check_heartbeat(self, number: int) -> None:
        """A heartbeat names the last frame sent before it: so a loss shows even if nothing else follows.

        :raises MalformedFrame: if that frame has not come.
        """
        if number != self.last:
            raise MalformedFrame(
                f"a heartbeat after frame {number}, but frame {self.last} was the last to come"
            )


class FrameReader:
    """Turns the bytes of one direction of a connection into messages, however they were cut."""

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._numbers = FrameNumbers()
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """The messages completed by these bytes.

        :raises MalformedFrame: at the first frame that is not right; those before it in the same bytes are lost
            with it.
        """
        rest = self._rest
        whole: bytes | bytearray = data
        if rest:
            rest += data
            whole = rest
        messages: list[Message] = []
        numbers = self._numbers
        at, size = 0, len(whole)
        while size - at >= HEADER_BYTES:
            length, kind, number = _unpack_header(whole, at)
            if not _AFTER_LENGTH <= length <= self._frame_bytes_max:
                raise MalformedFrame(self._length_problem(length))
            end = at + 4 + length
            if end > size:
                break
            decoder = _DECODERS.get(kind)
            if decoder is None:
                raise MalformedFrame(f"a frame of the unknown kind {kind}")
            if kind == session.HEARTBEAT:
                numbers.check_heartbeat(number)
            elif number == numbers.last + 1:
                numbers.last = number
            else:
                numbers.check(number)
            try:
                messages.append(decoder(whole[at + HEADER_BYTES : end]))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise MalformedFrame(f"a frame of kind {kind}: {error}") from error
            at = end
        if rest:
            del rest[:at]
        elif at < size:
            rest += data[at:]
        return messages

    def _length_problem(self, length: int) -> str:
        if length > self._frame_bytes_max:
            return f"a frame of {length} bytes, more than {self._frame_bytes_max}"
        return f"a frame of {length} bytes, less than its own header"
