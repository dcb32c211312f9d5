"""What is known of one segment: its zone map, where its blocks begin, and whether it is sealed."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final

from holdfast.storage.block import Head
from holdfast.storage.damage import Damage
from holdfast.storage.files import Files
from holdfast.storage.segment_format import (
    SEGMENT_HEADER_BYTES,
    TRAILER_BYTES,
    Footer,
    footer_bytes_of,
    name_of,
    read_footer,
    seed_of,
)
from holdfast.storage.walk import SCAN_BYTES, Walk

__all__ = ["Segment", "sealed_segment"]

ENTRY_BYTES: Final = 1 << 16  #: from one entry of the sparse index to the next
ENTRY_BLOCKS: Final = 16  #: or so many blocks, where they are small


@dataclass(slots=True)
class Segment:
    """One file of a log. ``end`` is where its stable blocks end; ``last`` stays ``after`` while there are none.

    The writer is the only one to change it, ``end`` after everything else: whoever reads up to ``end`` reads what is
    stable.
    """

    base: int
    seed: int
    end: int = SEGMENT_HEADER_BYTES
    records: int = 0
    first: int = 0
    last: int = 0
    earliest: int = 0
    latest: int = 0
    firsts: array[int] = field(default_factory=lambda: array("Q"))
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    size: int = SEGMENT_HEADER_BYTES  #: of the file
    is_sealed: bool = False
    missing: Damage | None = None  #: what should stand between the segment before and this one
    cut_short: Damage | None = None  #: what should stand behind its end
    _blocks: int = 0  #: since the last entry

    @property
    def after(self) -> int:
        """The last index before it."""
        return self.base - 1

    @property
    def name(self) -> str:
        """Its file."""
        return name_of(self.base)

    def note(self, head: Head, served: int) -> None:
        """A block that is stable now, with so many records that can be served."""
        self._blocks += 1
        if not self.offsets or self._blocks == ENTRY_BLOCKS or head.offset >= self.offsets[-1] + ENTRY_BYTES:
            self._blocks = 0
            self.offsets.append(head.offset)
            self.firsts.append(head.first)  # last: a reader looks here first
        if not self.first:
            self.first, self.earliest, self.latest = head.first, head.time, head.time
        self.earliest = min(self.earliest, head.time)
        self.latest = max(self.latest, head.time)
        self.records += served
        self.last = head.last
        self.size = max(self.size, head.end)
        self.end = head.end

    def entry_before(self, index: int) -> int:
        """An index from which on a look-up of this one has to read, less one."""
        entry = bisect_right(self.firsts, index) - 1
        return self.firsts[entry] - 1 if entry >= 0 else self.after

    def walk(self, files: Files, after: int, window: int = SCAN_BYTES) -> Walk:
        """Through what is stable, from a block at or before the one with the first index above this."""
        entry = bisect_right(self.firsts, after + 1) - 1
        start, above = (
            (self.offsets[entry], self.firsts[entry] - 1)
            if entry >= 0
            else (SEGMENT_HEADER_BYTES, self.after)
        )
        return Walk(
            files,
            self.name,
            self.seed,
            start=start,
            end=self.end,
            above=above,
            through=self.last,
            window=window,
        )

    def footer(self) -> Footer:
        """What seals it."""
        return Footer(
            self.records,
            self.first,
            self.last,
            self.earliest,
            self.latest,
            self.end,
            self.firsts,
            self.offsets,
        )


def sealed_segment(files: Files, identity: bytes, base: int) -> Segment | None:
    """The segment in this file, by its footer; None if it has none that is whole."""
    name = name_of(base)
    size = files.size(name) or 0
    length = (
        footer_bytes_of(files.read(name, size - TRAILER_BYTES, TRAILER_BYTES) or b"")
        if size > TRAILER_BYTES
        else None
    )
    if length is None or length > size:
        return None
    seed = seed_of(identity, base)
    footer = read_footer(files.read(name, size - length, length) or bytes(TRAILER_BYTES), seed)
    if footer is None or footer.end + length != size:
        return None
    records, first, last, earliest, latest, end, firsts, offsets = footer
    zone = (records, first, last, earliest, latest)
    return Segment(base, seed, end, *zone, firsts, offsets, size, is_sealed=True)
