"""Reading a log: by index, or forwards in batches, with every hole said in its place.

A view knows the segments and reads their files; it needs nothing of the writer, and may live in another process. What
was chopped and what is damaged comes in its place among the batches: nobody who reads on can take a hole for silence.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeGuard

from holdfast.storage.block import INDEX_MAX, Batch, Broken
from holdfast.storage.damage import Damage, DamagedRecord
from holdfast.storage.files import Files
from holdfast.storage.segment import Segment
from holdfast.storage.walk import SCAN_BYTES, FileGone

__all__ = ["Chopped", "Item", "LogView"]

LOOK_UP_BYTES: Final = 1 << 16  #: read at once to find a single record
RECENT_BLOCKS: Final = 32  #: kept decoded for those who look up one record after the other


@dataclass(frozen=True, slots=True)
class Chopped:
    """Records up to this index were dropped on purpose."""

    through: int


#: What a scan comes upon.
Item = Batch | Damage | Chopped


class LogView:
    """The segments of a log, read by one thread; ``missing_at_end`` is what was lost behind the last of them."""

    def __init__(
        self, files: Files, segments: list[Segment], chopped: int, missing_at_end: Damage | None = None
    ) -> None:
        self._files = files
        self._recent: deque[Batch] = deque(maxlen=RECENT_BLOCKS)
        self.segments = segments
        self.chopped = chopped
        self.missing_at_end = missing_at_end

    @property
    def last_index(self) -> int:
        """The highest index that was ever stable, served or lost; 0 if there was none."""
        lost = self.missing_at_end.last if self.missing_at_end else 0
        return max(self.chopped, self.segments[-1].last if self.segments else 0, lost)

    @property
    def first_index(self) -> int | None:
        """The lowest index that can be read; None if there is none."""
        for item in self.scan(0):
            if isinstance(item, Batch):
                return item.indexes[0]
        return None

    @property
    def size(self) -> int:
        """Of all segment files, in bytes."""
        return sum(segment.size for segment in self.segments)

    def read(self, index: int) -> bytes | None:
        """The record with this index; None if there is none, or it was chopped.

        :raises DamagedRecord: if it stands, or may have stood, where the log is damaged.
        """
        batch = self.batch_with(index)
        if batch is None:
            return None
        at = bisect_left(batch.indexes, index)
        return batch.records[at] if batch.indexes[at] == index else None

    def batch_with(self, index: int) -> Batch | None:
        """The records among which one with this index stands, if there is one; for who reads its neighbours next.

        :raises DamagedRecord: as ``read``.
        """
        if index <= self.chopped:
            return None
        for batch in self._recent:
            if batch.indexes[0] <= index <= batch.indexes[-1]:
                return batch
        segment = bisect_left(self.segments, index, key=_last)
        # From the entry of the sparse index on: who goes backwards will want the blocks before this one.
        entry = self.segments[segment].entry_before(index) if segment < len(self.segments) else index
        for item in self._items(max(min(entry, index - 1), self.chopped), index, LOOK_UP_BYTES):
            if isinstance(item, Damage) and item.first <= index <= item.last:
                raise DamagedRecord(index, item)
            if isinstance(item, Batch):
                self._recent.appendleft(item)
                if item.indexes[0] <= index <= item.indexes[-1]:
                    return item
        return None

    def scan(self, after: int = 0, through: int = INDEX_MAX, window: int = SCAN_BYTES) -> Iterator[Item]:
        """Everything above one index up to another, in order; ``window`` bytes are read at once.

        It ends at what was stable when it came there; continue with another scan after the last index.
        """
        for item in self._items(after, through, window):
            if isinstance(item, Batch):
                item = _trimmed(item, max(after, self.chopped), through)
                if item.indexes:
                    yield item
            else:
                yield item

    def _items(self, after: int, through: int, window: int) -> Iterator[Item]:
        """As ``scan``, in whole blocks."""
        if after < self.chopped:
            after = self.chopped
            yield Chopped(after)
        for segment in self.segments[bisect_right(self.segments, after, key=_last) :]:
            if _is_met(segment.missing, after, through):
                yield _clipped(segment.missing, after)
            if segment.after >= through:
                return
            try:
                for item in self._segment_items(segment, after, through, window):
                    after = item.indexes[-1] if isinstance(item, Batch) else item.last
                    yield item
            except FileGone:
                gone = Damage(
                    segment.name, 0, 0, max(after, segment.after) + 1, segment.last, "the file is gone"
                )
                after = max(after, self.chopped, segment.last)
                yield Chopped(self.chopped) if self.chopped >= gone.last else gone
            if _is_met(segment.cut_short, after, through):
                yield _clipped(segment.cut_short, after)
        if _is_met(self.missing_at_end, after, through):
            yield _clipped(self.missing_at_end, after)

    def _segment_items(
        self, segment: Segment, after: int, through: int, window: int
    ) -> Iterator[Batch | Damage]:
        walk = segment.walk(self._files, after, window)
        for found in walk.heads():
            if found.last <= after:
                continue
            if found.first > through:
                return
            for item in (found,) if isinstance(found, Broken) else walk.content(found):
                if isinstance(item, Batch):
                    yield item
                elif after < item.last and item.first <= through:
                    yield _clipped(Damage(segment.name, *item), after)


def _last(segment: Segment) -> int:
    return segment.last


def _is_met(damage: Damage | None, after: int, through: int) -> TypeGuard[Damage]:
    return damage is not None and after < damage.last and damage.first <= through


def _clipped(damage: Damage, after: int) -> Damage:
    return replace(damage, first=max(damage.first, after + 1))


def _trimmed(batch: Batch, after: int, through: int) -> Batch:
    indexes, records, time = batch
    if indexes[0] > after and indexes[-1] <= through:
        return batch
    start, stop = bisect_right(indexes, after), bisect_right(indexes, through)
    return Batch(indexes[start:stop], records[start:stop], time)
