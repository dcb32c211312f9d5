"""The frames of the overlay [KJ]: publications with the way they came, and what nodes tell each other of it.

A ``Relay`` is the hot path of a reliable stream. Its publications are the pieces of the batch, written once for all who
get them (``wire.publications``); what they have in common stands once, before them::

    Relay           [ stream, trail, tags, again, refill, returned, subscriptions, [ publication … ] ]
    trail           [ [ [node, incarnation or nil] … ], [ [number …] … ] ]
    subscriptions   nil, or for every publication a list of the receiver's own numbers

Every column has a number, and the subscriptions a list, for every publication, or the frame is malformed: whoever
handles a relay may pick from its columns by position. All other messages are maps, so that a later version may add
fields; those of ``messages.subscriptions`` that only the overlay knows are here too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec

from holdfast.messages.overlay import (
    Confirmations,
    DepthAck,
    Join,
    Lapse,
    Leave,
    Missing,
    Need,
    Present,
    Ready,
    Relay,
    Told,
    Trail,
)
from holdfast.messages.publications import PUBLICATIONS_MAX, Batch, Publication, Tag
from holdfast.messages.subscriptions import (
    PARTITIONS_MAX,
    Cleared,
    Crossed,
    Heal,
    Healed,
    Lore,
    Upgraded,
    UpgradeTaken,
)
from holdfast.wire.primitives import NIL, array_header
from holdfast.wire.publications import encoded_pieces

__all__ = ["DECODERS", "ENCODERS", "KINDS", "halves"]

#: Those without events in them, encoded as maps like all control messages.
KINDS: Final = {
    49: DepthAck,
    50: Confirmations,
    51: Join,
    52: Leave,
    53: Told,
    54: Ready,
    55: Need,
    56: Lore,
    57: Heal,
    58: Healed,
    59: Upgraded,
    60: UpgradeTaken,
    61: Cleared,
    62: Crossed,
    63: Lapse,
    64: Missing,
    65: Present,
}

_encode = msgspec.msgpack.Encoder().encode

_BOUNDED: Final = msgspec.Meta(max_length=PUBLICATIONS_MAX)
_decode_relay = msgspec.msgpack.Decoder(
    tuple[
        str,
        Trail,
        Annotated[tuple[Tag, ...], msgspec.Meta(max_length=PARTITIONS_MAX)],
        bool,
        bool,
        bool,
        Annotated[list[tuple[int, ...]], _BOUNDED] | None,
        Annotated[list[Publication], _BOUNDED],
    ]
).decode

_EIGHT: Final = array_header(8)
_NO_TAGS: Final = array_header(0)
_FLAGS: Final = {flag: _encode(flag) for flag in (False, True)}


def encode_relay(message: Relay) -> bytes:
    """What one node gets of a batch, with the way it came."""
    at = message.at
    assert all(len(column) == len(at) for column in message.trail.numbers)
    lists = message.subscriptions
    assert lists is None or len(lists) == len(at)
    pieces = encoded_pieces(message.batch)
    return b"".join(
        [
            _EIGHT,
            _encode(message.stream),
            _encode(message.trail),
            _encode(message.tags) if message.tags else _NO_TAGS,
            _FLAGS[message.again],
            _FLAGS[message.refill],
            _FLAGS[message.returned],
            NIL if lists is None else _encode(lists),
            array_header(len(at)),
            *map(pieces.__getitem__, at),
        ]
    )


def decode_relay(body: bytes | bytearray) -> Relay:
    """What a node sends of a batch.

    :raises msgspec.DecodeError: also if a column or the subscriptions are too short or too long.
    """
    stream, trail, tags, again, refill, returned, lists, publications = _decode_relay(body)
    count = len(publications)
    passed = sum(step.incarnation is not None for step in trail.steps)
    if len(trail.numbers) != passed or any(len(column) != count for column in trail.numbers):
        raise msgspec.ValidationError(f"the trail is not one of {passed} columns of {count} numbers")
    if lists is not None and len(lists) != count:
        raise msgspec.ValidationError(f"subscriptions for {len(lists)} of {count} publications")
    return Relay(stream, Batch(publications), range(count), trail, tags, lists, again, refill, returned)


def halves(message: Relay) -> tuple[Relay, Relay]:
    """The same in two messages, for frames that are half as large."""
    middle = (len(message.at) + 1) // 2
    return _part(message, 0, middle), _part(message, middle, len(message.at))


def _part(message: Relay, start: int, end: int) -> Relay:
    lists = message.subscriptions
    return Relay(
        message.stream,
        message.batch,
        message.at[start:end],
        Trail(message.trail.steps, [column[start:end] for column in message.trail.numbers]),
        message.tags,
        None if lists is None else lists[start:end],
        message.again,
        message.refill,
        message.returned,
    )


#: Message class to kind and encoder; kind to decoder.
ENCODERS: Final[dict[type, tuple[int, Callable[[Any], bytes]]]] = {Relay: (48, encode_relay)}
DECODERS: Final[dict[int, Callable[[bytes | bytearray], Relay]]] = {48: decode_relay}
