"""The two ends of a segment file: the header it begins with, and the footer that seals it.

::

    header   magic "HFsegmnt" · version u32 · log identity 16 bytes · base u64 · CRC u32                      40 bytes
    blocks   …
    footer   records u64 · first u64 · last u64 · earliest time i64 · latest time i64 · end of the blocks u64
             · entries u32 · entries × (first index u64, offset u64) · CRC u32 · footer bytes u32 · magic "HFsealed"

The file is named after ``base``, which is one more than the last index before it: where the segment before ends
earlier, something is missing between them, and we know what. The footer is read from the end of the file. Its zone
map tells others whether they need the segment; its entries, one for every 64 KiB or 16 blocks, where to begin. A
footer is written only when all blocks are stable, and nothing is ever written behind it.
"""

from __future__ import annotations

from array import array
from struct import Struct
from typing import Final, NamedTuple

from google_crc32c import extend, value

from holdfast.errors import EnvironmentsFault

__all__ = [
    "SEGMENT_HEADER_BYTES",
    "TRAILER_BYTES",
    "Footer",
    "SegmentHeader",
    "UnknownFormat",
    "base_of",
    "footer_bytes_of",
    "name_of",
    "read_footer",
    "read_segment_header",
    "seed_of",
]

VERSION: Final = 1
_MAGIC: Final = b"HFsegmnt"
_SEALED: Final = b"HFsealed"
_SUFFIX: Final = ".segment"
_HEADER: Final = Struct("<8sI16sQ")
_CRC: Final = Struct("<I")
_FOOTER: Final = Struct("<QQQqqQI")
_TRAILER: Final = Struct("<II8s")
_BASE: Final = Struct("<Q")
SEGMENT_HEADER_BYTES: Final = _HEADER.size + _CRC.size
TRAILER_BYTES: Final = _TRAILER.size


class UnknownFormat(EnvironmentsFault):
    """A whole file of ours in a format version this program does not know."""

    def __init__(self, name: str, version: int) -> None:
        super().__init__(
            f"{name}: expected format version {VERSION}, found {version}; a newer Holdfast wrote it"
        )
        self.name = name
        self.version = version


class SegmentHeader(NamedTuple):
    """Which log, and where in it."""

    identity: bytes
    base: int

    def encode(self) -> bytes:
        """As it stands at the beginning of the file."""
        fields = _HEADER.pack(_MAGIC, VERSION, *self)
        return fields + _CRC.pack(value(fields))


class Footer(NamedTuple):
    """What a sealed segment holds, and where to begin reading it."""

    records: int
    first: int
    last: int
    earliest: int
    latest: int
    end: int
    firsts: array[int]
    offsets: array[int]

    def encode(self, seed: int) -> bytes:
        """As it stands at the end of the file."""
        *zone, firsts, offsets = self
        entries = array("Q", [number for pair in zip(firsts, offsets, strict=True) for number in pair])
        fields = _FOOTER.pack(*zone, len(firsts)) + Struct(f"<{len(entries)}Q").pack(*entries)
        return fields + _TRAILER.pack(extend(seed, fields), len(fields) + TRAILER_BYTES, _SEALED)


def read_segment_header(data: bytes, name: str) -> SegmentHeader | None:
    """The header these bytes of a file begin with; None if they do not, or it is broken.

    :raises UnknownFormat: if it is whole and of another version.
    """
    if len(data) < SEGMENT_HEADER_BYTES:
        return None
    fields = data[: _HEADER.size]
    magic, version, identity, base = _HEADER.unpack(fields)
    if magic != _MAGIC or _CRC.unpack_from(data, _HEADER.size)[0] != value(fields):
        return None
    if version != VERSION:
        raise UnknownFormat(name, version)
    return SegmentHeader(identity, base)


def footer_bytes_of(trailer: bytes) -> int | None:
    """How long the footer is, by the last bytes of a file; None if it is not sealed."""
    if len(trailer) != TRAILER_BYTES:
        return None
    _, length, magic = _TRAILER.unpack(trailer)
    return length if magic == _SEALED and length >= _FOOTER.size + TRAILER_BYTES else None


def read_footer(data: bytes, seed: int) -> Footer | None:
    """The footer that is all of these bytes; None if it is broken."""
    fields = data[:-TRAILER_BYTES]
    crc, _, _ = _TRAILER.unpack(data[-TRAILER_BYTES:])
    if len(fields) < _FOOTER.size or crc != extend(seed, fields):
        return None
    records, first, last, earliest, latest, end, entries = _FOOTER.unpack_from(fields)
    numbers = Struct(f"<{2 * entries}Q").unpack_from(fields, _FOOTER.size)
    firsts, offsets = array("Q", numbers[::2]), array("Q", numbers[1::2])
    return Footer(records, first, last, earliest, latest, end, firsts, offsets)


def seed_of(identity: bytes, base: int) -> int:
    """Where the checksums of one segment of one log start from."""
    seed: int = value(identity + _BASE.pack(base))
    return seed


def name_of(base: int) -> str:
    """The file of the segment with this base."""
    return f"{base:020d}{_SUFFIX}"


def base_of(name: str) -> int | None:
    """The base of the segment in this file; None if the name is not a segment's."""
    digits = name.removesuffix(_SUFFIX)
    return int(digits) if name == digits + _SUFFIX and len(digits) == 20 and digits.isdecimal() else None
