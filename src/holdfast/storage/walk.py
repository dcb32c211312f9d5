"""Walking through the blocks of a segment: from header to header, and past what is broken to the next that is whole.

A header that is not where one should be means damage or a torn write. The walk then looks for the next place where a
header's magic stands and its checksum fits; the checksum knows the log, the segment and the offset, so nothing else
passes for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.errors import EnvironmentsFault
from holdfast.storage.block import (
    HEADER_BYTES,
    MAGIC,
    MORE,
    Batch,
    Broken,
    Head,
    head_at,
    records_at,
    salvage,
)
from holdfast.storage.files import Files

__all__ = ["SCAN_BYTES", "FileGone", "Walk"]

_COMMON: Final = MAGIC[:3]  #: what every header begins with
assert MORE.startswith(_COMMON)

SCAN_BYTES: Final = 1 << 20  #: read at once when a whole log is read


class FileGone(EnvironmentsFault):
    """A segment is not there any more: it was chopped, or somebody removed it."""


class Walk:
    """Through one segment, from a block's ``start`` to ``end``.

    ``above`` is an index below all that follow, ``through`` the last that may stand there; they bound what is lost.
    """

    def __init__(
        self,
        files: Files,
        name: str,
        seed: int,
        *,
        start: int,
        end: int,
        above: int,
        through: int = 0,
        window: int = SCAN_BYTES,
    ) -> None:
        self._files = files
        self._name = name
        self._seed = seed
        self._start = start
        self._end = end
        self._above = above
        self._through = through
        self._window = window
        self._data = b""
        self._data_at = start

    def heads(self) -> Iterator[Head | Broken]:
        """Every block whose header is whole, in order, and what lies between them."""
        offset, above = self._start, self._above
        while offset < self._end:
            head = self._head(offset, above)
            if head is None:
                head = self._next_head(offset + 1, above)
                stop, last = (head.offset, head.first - 1) if head else (self._end, self._through)
                yield _broken(offset, stop, above, last)
            if head is None:
                return
            yield head
            offset, above = head.end, head.last

    def content(self, head: Head) -> Iterator[Batch | Broken]:
        """The records of a block and, if not all of it is whole, what is lost between them."""
        data, at = self._at(head.offset, head.size)
        batch = records_at(data, at, head)
        if batch is None:
            yield from salvage(data, at, head)
        else:
            yield batch

    def _head(self, offset: int, above: int) -> Head | None:
        data, at = self._at(offset, HEADER_BYTES)
        head = head_at(data, at, seed=self._seed, offset=offset)
        return head if head and above < head.first <= head.last and head.end <= self._end else None

    def _next_head(self, offset: int, above: int) -> Head | None:
        while offset + HEADER_BYTES <= self._end:
            data, at = self._at(offset, HEADER_BYTES)
            hit = data.find(_COMMON, at)
            if hit < 0:
                offset += max(1, len(data) - at - len(_COMMON) + 1)
            elif head := self._head(offset + hit - at, above):
                return head
            else:
                offset += hit - at + 1
        return None

    def _at(self, offset: int, length: int) -> tuple[bytes, int]:
        """Bytes read ahead, and the place in them where an offset of the file stands with this much behind it."""
        at = offset - self._data_at
        if at < 0 or at + length > len(self._data):
            wanted = min(max(length, self._window), self._end - offset)
            data = self._files.read(self._name, offset, wanted)
            if data is None:
                raise FileGone(f"{self._name} is gone")
            self._data, self._data_at, at = data, offset, 0
        return self._data, at


def _broken(offset: int, stop: int, above: int, last: int) -> Broken:
    problem = "no whole block where one should begin"
    if last <= above:
        return Broken(offset, stop - offset, 0, 0, problem)
    return Broken(offset, stop - offset, above + 1, last, problem)
