"""A block: the records of one batch, framed and summed once, each of them still checkable by itself.

::

    header   magic "HFbk" or "HFbm" · count u32 · body bytes u32 · synced u32 · first u64 · last u64 · time i64
             · CRC of the table u32 · CRC of body and table u32 · CRC of the header u32                 52 bytes
    body     the records, one after the other
    table    count × index u64, then count × length u32, then count × CRC u32                       16 a record

Little-endian; every CRC is a CRC32C. A reader checks the header and then body and table at once, at the speed of
memory. Only if that fails does it look closer: with the table whole each record is judged by its own CRC, so a flipped
bit costs one record, and its index is known. With the table broken the header says which indexes are lost.

The header's CRC starts from the segment's seed (its log and its base) and the block's offset: bytes that look like a
block but stand elsewhere, an older file's or a payload that contains one, are none. ``synced`` is the offset up to
which the segment was stable when this block was written: what is broken below the highest ``synced`` was once whole,
so it is damage; what is broken above it may never have been acknowledged, so it is a torn tail.

A batch that is too large for one block stands in several, one behind the other, written at once; all but the last have
the magic "HFbm": more of the same batch follows. A tail that was torn within a batch is cut off before it, so that a
batch is there as a whole, or not at all: that is how an epoch of many events becomes visible in one step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import le
from struct import Struct
from typing import Final, NamedTuple

from google_crc32c import extend, value

from holdfast.errors import CallersFault
from holdfast.storage.records import Records, column

__all__ = ["HEADER_BYTES", "INDEX_MAX", "RECORD_BYTES", "Batch", "Head", "InvalidBatch", "encode", "head_at"]

MAGIC: Final = b"HFbk"
MORE: Final = b"HFbm"  #: of a block that is not the last of its batch
_FIELDS: Final = Struct("<4sIIIQQqII")
_CRC: Final = Struct("<I")
_OFFSET: Final = Struct("<Q")
HEADER_BYTES: Final = _FIELDS.size + _CRC.size
_INDEX_BYTES: Final = 8
_LENGTH_BYTES: Final = 4
RECORD_BYTES: Final = 16  #: of the table, for each record
INDEX_MAX: Final = (1 << 63) - 1
BATCH_BYTES_MAX: Final = 1 << 28


class InvalidBatch(CallersFault):
    """Records that cannot be appended: out of order, below what is there, or too many bytes."""


class Batch(NamedTuple):
    """Records that were written together, in order; ``time`` is the writer's, in nanoseconds."""

    indexes: Sequence[int]
    records: Sequence[bytes]
    time: int = 0

    @property
    def size(self) -> int:
        """Of all records, in bytes."""
        return self.records.size if isinstance(self.records, Records) else sum(map(len, self.records))

    def checked(self, above: int) -> Batch:
        """Itself, if it can be appended after this index.

        :raises InvalidBatch: if not.
        """
        indexes = self.indexes
        if len(indexes) != len(self.records):
            raise InvalidBatch(f"{len(indexes)} indexes for {len(self.records)} records")
        if not indexes or indexes[0] <= above or indexes[-1] > INDEX_MAX:
            found = f"{indexes[0]} to {indexes[-1]}" if indexes else "none"
            raise InvalidBatch(f"expected indexes above {above} and up to {INDEX_MAX}, found {found}")
        ascends = isinstance(indexes, range) and indexes.step > 0
        if not ascends and any(map(le, indexes[1:], indexes)):
            raise InvalidBatch("indexes must strictly increase")
        if self.size > BATCH_BYTES_MAX:
            raise InvalidBatch(f"more than {BATCH_BYTES_MAX} bytes in one batch")
        return self


class Head(NamedTuple):
    """What a block's header says."""

    offset: int
    records: int
    body_bytes: int
    synced: int
    first: int
    last: int
    time: int
    table_crc: int
    content_crc: int
    more: bool = False  #: the next block is of the same batch

    @property
    def size(self) -> int:
        """Of the whole block."""
        return HEADER_BYTES + RECORD_BYTES * self.records + self.body_bytes

    @property
    def end(self) -> int:
        """Where the next block begins."""
        return self.offset + self.size


def encode(
    batch: Batch, *, seed: int, offset: int, synced: int, more: bool = False
) -> tuple[Head, bytes, bytes]:
    """A batch, or a part of one that has ``more``, as the block that stands at this offset.

    What its header says, the header, and all that follows it.
    """
    indexes, records, time = batch
    count = len(records)
    lengths = list(map(len, records))
    table = _table(count).pack(*indexes, *lengths, *map(value, records))
    content = b"".join((*records, table))
    body_bytes = len(content) - len(table)
    head = Head(
        offset, count, body_bytes, synced, indexes[0], indexes[-1], time, value(table), value(content), more
    )
    fields = _FIELDS.pack(MORE if more else MAGIC, *head[1:-1])
    return head, fields + _CRC.pack(_header_crc(fields, seed, offset)), content


def head_at(data: bytes, at: int, *, seed: int, offset: int) -> Head | None:
    """The header in these bytes, which stands at an offset of its file; None if there is none, or it is broken."""
    fields = data[at : at + _FIELDS.size]
    if fields[:4] not in (MAGIC, MORE) or len(data) < at + HEADER_BYTES:
        return None
    if _CRC.unpack_from(data, at + _FIELDS.size)[0] != _header_crc(fields, seed, offset):
        return None
    return Head(offset, *_FIELDS.unpack(fields)[1:])._replace(more=fields[:4] == MORE)


def records_at(data: bytes, at: int, head: Head) -> Batch | None:
    """The records of a block that begins here and is here as a whole; None if not all of it is as it was written."""
    content = data[at + HEADER_BYTES : at + head.size]
    if value(content) != head.content_crc:
        return None
    table, count = head.body_bytes, head.records
    lengths = table + _INDEX_BYTES * count
    indexes = column("Q", content[table:lengths])
    records = Records(content, column("I", content[lengths : lengths + _LENGTH_BYTES * count]), size=table)
    return Batch(indexes, records, head.time)


class Broken(NamedTuple):
    """Records of a block that are not as they were written: where, and which."""

    offset: int
    length: int
    first: int
    last: int
    problem: str


def salvage(data: bytes, at: int, head: Head) -> Iterator[Batch | Broken]:
    """What can be had of a block whose content is broken, in order."""
    count = head.records
    body = at + HEADER_BYTES
    table = data[body + head.body_bytes : at + head.size]
    if value(table) != head.table_crc:
        yield Broken(head.offset, head.size, head.first, head.last, "a block's table is broken")
        return
    numbers = _table(count).unpack(table)
    good: list[tuple[int, bytes]] = []
    places = pairwise(accumulate(numbers[count : 2 * count], initial=0))
    for index, (start, end), crc in zip(numbers[:count], places, numbers[2 * count :], strict=True):
        record = data[body + start : body + end]
        if value(record) == crc:
            good.append((index, record))
            continue
        if good:
            yield _batch(good, head.time)
            good = []
        yield Broken(head.offset + HEADER_BYTES + start, end - start, index, index, "a record is broken")
    if good:
        yield _batch(good, head.time)


def _batch(records: list[tuple[int, bytes]], time: int) -> Batch:
    return Batch([index for index, _ in records], [record for _, record in records], time)


def _header_crc(fields: bytes, seed: int, offset: int) -> int:
    crc: int = extend(extend(seed, _OFFSET.pack(offset)), fields)
    return crc


@lru_cache(maxsize=4096)
def _table(count: int) -> Struct:
    return Struct(f"<{count}Q{count}I{count}I")
