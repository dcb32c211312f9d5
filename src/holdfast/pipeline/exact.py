"""An event's bytes, as they stand in the log, out of the columns of its row.

The columns have all that anybody asks for, but not quite every byte: times are exact to the microsecond, and whoever
packed an event may have done it in his own way. What is missing is the *rest* of the row: the nanoseconds of its time,
a checksum over all, and, should the columns not give the very bytes, the bytes. So whoever is fed from a table gets
what was published, or hears that it is damaged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Any, Final
from zlib import crc32

import msgspec
import numpy as np

from holdfast.errors import EnvironmentsFault
from holdfast.events.packed import PackedEvent
from holdfast.events.value import Value
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Tick
from holdfast.streams.records import record_of

__all__ = ["NotExact", "publication_of", "rest_of", "rests_of"]

_HEAD: Final = Struct("<HI")  #: nanoseconds, checksum
_MICROSECOND: Final = 1_000
_CRC_MASK: Final = 0xFFFF_FFFF

#: of a ``PackedEvent`` that was read: as ``packed.pack`` makes it
_packed: Final = msgspec.msgpack.Encoder().encode


class NotExact(EnvironmentsFault):
    """A row from which what was published cannot be had: it is damaged."""


def rest_of(tick: Tick, publication: Publication, event: PackedEvent) -> bytes:
    """What a row lacks of an event; ``event`` is the publication's, read."""
    head = _HEAD.pack((event.time or 0) % _MICROSECOND, _checksum(tick, publication))
    return head if _packed(event) == publication.event else head + publication.event


def rests_of(ticks: Any, records: Sequence[bytes], times: Any | None) -> Any:
    """The same of many events that were packed as we pack them, from their records: a matrix of bytes.

    ``ticks`` and ``times``, in nanoseconds, are of numpy.
    """
    sums = np.fromiter(map(crc32, records, (ticks & _CRC_MASK).tolist()), "<u4", len(records))
    rests = np.zeros((len(records), _HEAD.size), np.uint8)
    if times is not None:
        rests[:, :2] = (times % _MICROSECOND).astype("<u2").view(np.uint8).reshape(-1, 2)
    rests[:, 2:] = sums.view(np.uint8).reshape(-1, 4)
    return rests


def publication_of(
    tick: Tick,
    publisher: str,
    n: int,
    topic: str,
    attributes: Mapping[str, Value],
    content_type: str,
    payload: bytes,
    microseconds: int | None,
    rest: bytes,
) -> Publication:
    """The event of a row, as it was logged; the attributes are in the order of the row's Variant.

    :raises NotExact: if the row is damaged.
    """
    if len(rest) < _HEAD.size:
        raise NotExact(f"the rest of the row of {publisher} {n} is too short")
    nanoseconds, checksum = _HEAD.unpack_from(rest)
    packed = rest[_HEAD.size :]
    if not packed:
        scalars = {name: value for name, value in attributes.items() if not isinstance(value, bytes)}
        binary = {name: value for name, value in attributes.items() if isinstance(value, bytes)}
        time = None if microseconds is None else microseconds * _MICROSECOND + nanoseconds
        packed = _packed(PackedEvent(topic, scalars, binary, content_type, payload, time))
    publication = Publication(publisher, n, packed)
    if _checksum(tick, publication) != checksum:
        raise NotExact(f"the row of {publisher} {n} is not what was logged: its checksum is another")
    return publication


def _checksum(tick: Tick, publication: Publication) -> int:
    return crc32(record_of(publication), tick & _CRC_MASK)
