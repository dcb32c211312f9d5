"""The frames events travel in: the hot path of the wire.

A publication is encoded once per batch, however many receivers pick it; a frame is then put together from those
pieces::

    Publish         [ home, [ publication … ] ]
    Publications    [ stream, [ [copy, publication] … ] ]
    Deliveries      [ stream, [ [subscriptions, copy, publication] … ] ]
    publication     [ publisher, n, event as bytes ]

Reading makes no Python object per event but those the broker works with, and never looks into an event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import msgspec

from holdfast.messages.publications import (
    PUBLICATIONS_MAX,
    Accepted,
    Batch,
    Copy,
    Deliveries,
    Publication,
    Publications,
    Publish,
    Rejected,
)
from holdfast.wire.primitives import NIL, array_header

__all__ = ["DECODERS", "ENCODERS", "KINDS", "encoded_pieces", "halves"]

#: Those without events in them, encoded as maps like all control messages.
KINDS: Final = {33: Accepted, 34: Rejected}

_encode = msgspec.msgpack.Encoder().encode

_BOUNDED: Final = msgspec.Meta(max_length=PUBLICATIONS_MAX)
_decode_publish = msgspec.msgpack.Decoder(
    tuple[str, Annotated[int, msgspec.Meta(ge=0)], Annotated[list[Publication], _BOUNDED]]
).decode
_decode_publications = msgspec.msgpack.Decoder(
    tuple[str, Annotated[list[tuple[Copy | None, Publication]], _BOUNDED]]
).decode
_decode_deliveries = msgspec.msgpack.Decoder(
    tuple[str, Annotated[list[tuple[tuple[int, ...], Copy | None, Publication]], _BOUNDED]]
).decode

PLAIN_PAIR: Final = b"\x92" + NIL

#: What stands before a plain delivery, by the subscriptions it is for; those of one or a few repeat.
_prefixes: dict[tuple[int, ...], bytes] = {}
PREFIXES_MAX: Final = 10_000
REMEMBERED_MAX: Final = 8


def encoded_pieces(batch: Batch) -> list[bytes]:
    """The publications of a batch, each written once for all who get it."""
    if batch.encoded is None:
        batch.encoded = list(map(_encode, batch.publications))
    return batch.encoded


def _prefix(subscriptions: tuple[int, ...]) -> bytes:
    made = b"\x93" + _encode(subscriptions) + NIL
    if len(subscriptions) <= REMEMBERED_MAX:
        if len(_prefixes) >= PREFIXES_MAX:
            _prefixes.clear()
        _prefixes[subscriptions] = made
    return made


def encode_publish(message: Publish) -> bytes:
    """A publisher's batch, whole."""
    pieces = encoded_pieces(message.batch)
    return b"".join(
        [b"\x93", _encode(message.home), _encode(message.heard), array_header(len(pieces)), *pieces]
    )


def encode_publications(message: Publications) -> bytes:
    """What one neighbour gets of a batch."""
    pieces = encoded_pieces(message.batch)
    parts = [b"\x92", _encode(message.stream), array_header(len(message.at))]
    if message.copies is None:
        for i in message.at:
            parts += (PLAIN_PAIR, pieces[i])
    else:
        for i, copy in zip(message.at, message.copies, strict=True):
            parts += (b"\x92", _encode(copy), pieces[i])
    return b"".join(parts)


def encode_deliveries(message: Deliveries) -> bytes:
    """What one subscriber gets of a batch.

    Subscribers with the same filter get the same; they stand next to each other, so that one look back is enough.
    """
    batch = message.batch
    said = message.stream, message.at, message.subscriptions
    if batch.last is not None and batch.last[0] == said and batch.last[1] is message.copies:
        return batch.last[2]
    pieces = encoded_pieces(batch)
    parts = [b"\x92", _encode(message.stream), array_header(len(message.at))]
    add = parts.append
    if message.copies is None:
        known = _prefixes.get
        for i, subscriptions in zip(message.at, message.subscriptions, strict=True):
            add(known(subscriptions) or _prefix(subscriptions))
            add(pieces[i])
    else:
        for i, subscriptions, copy in zip(message.at, message.subscriptions, message.copies, strict=True):
            parts += (b"\x93", _encode(subscriptions), _encode(copy), pieces[i])
    body = b"".join(parts)
    batch.last = said, message.copies, body
    return body


def halves(message: Publications | Deliveries) -> tuple[Publications | Deliveries, Publications | Deliveries]:
    """The same in two messages, for frames that are half as large."""
    middle = (len(message.at) + 1) // 2
    return _part(message, 0, middle), _part(message, middle, len(message.at))


def _part(message: Publications | Deliveries, start: int, end: int) -> Publications | Deliveries:
    at = message.at[start:end]
    copies = None if message.copies is None else message.copies[start:end]
    if isinstance(message, Publications):
        return Publications(message.stream, message.batch, at, copies)
    return Deliveries(message.stream, message.batch, at, message.subscriptions[start:end], copies)


def _copies(read: list[Copy | None]) -> Sequence[Copy | None] | None:
    return None if all(copy is None for copy in read) else read


def decode_publish(body: bytes | bytearray) -> Publish:
    """A publisher's batch."""
    home, heard, publications = _decode_publish(body)
    return Publish(Batch(publications), home, heard)


def decode_publications(body: bytes | bytearray) -> Publications:
    """A neighbour's batch."""
    stream, rows = _decode_publications(body)
    batch = Batch([row[1] for row in rows])
    return Publications(stream, batch, range(len(rows)), _copies([row[0] for row in rows]))


def decode_deliveries(body: bytes | bytearray) -> Deliveries:
    """A subscriber's batch."""
    stream, rows = _decode_deliveries(body)
    batch = Batch([row[2] for row in rows])
    return Deliveries(
        stream, batch, range(len(rows)), [row[0] for row in rows], _copies([row[1] for row in rows])
    )


#: Message class to kind and encoder; kind to decoder.
ENCODERS: Final[dict[type, tuple[int, Callable[[Any], bytes]]]] = {
    Publish: (32, encode_publish),
    Publications: (35, encode_publications),
    Deliveries: (36, encode_deliveries),
}
DECODERS: Final[dict[int, Callable[[bytes | bytearray], Publish | Publications | Deliveries]]] = {
    32: decode_publish,
    35: decode_publications,
    36: decode_deliveries,
}
