"""Surveying a segment that has no footer: what is stable in it, what is damaged, and where its torn tail begins.

Blocks are taken as they come, and wait until something shows that they were stable: a later block's ``synced``, or
the manifest. Whatever is broken below that mark was whole once, and is damage. What still waits at the end of the
file was written by the last commit: whole blocks, perhaps, and then perhaps something torn. Zeros behind all that, up
to the end of the file, are room that was prepared for commits to come, and nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.storage.block import Batch, Broken, Head
from holdfast.storage.damage import Cut, Damage
from holdfast.storage.files import Files
from holdfast.storage.segment import Segment
from holdfast.storage.walk import Walk

__all__ = ["Survey", "scrub"]


class _Found(NamedTuple):
    """A block, or what stands in place of one; so many of its records are ``served``."""

    head: Head | Broken
    served: int
    broken: tuple[Broken, ...]

    @property
    def end(self) -> int:
        return self.head.end if isinstance(self.head, Head) else self.head.offset + self.head.length


class Survey:
    """Of one segment from its ``end`` on, which it moves over everything that is stable.

    ``mark`` is an offset up to which the file is known to have been stable, ``through`` the last index it may hold.
    ``last`` says that this is the last segment: only there can a tail be torn.
    """

    def __init__(self, files: Files, segment: Segment, *, mark: int, through: int, last: bool) -> None:
        self.segment = segment
        self.damages: list[Damage] = []
        self.mark = mark
        size = files.size(segment.name) or 0
        segment.size = size
        self._size = size
        self._through = through
        self._waiting: deque[_Found] = deque()
        for found in self._found(files):
            self._waiting.append(found)
            if isinstance(found.head, Head):
                self.mark = max(self.mark, found.head.synced)
            self._settle(self.mark)
        if last:
            self._split_at_mark()
            self._drop_room(files)
        else:
            self._settle(size)
            self._judge_end()

    def take_unsynced(self) -> Cut | None:
        """Count the whole batches at the end in, whether they are stable or not; what is torn behind them."""
        for _ in range(self._whole_blocks()):
            self._take(self._waiting.popleft())
        if not self._waiting:
            return None
        heads = [found.head for found in self._waiting if isinstance(found.head, Head)]
        offset = self._waiting[0].head.offset
        first, last = (heads[0].first, heads[-1].last) if heads else (0, 0)
        return Cut(self.segment.name, offset, self._size - offset, first, last)

    def _whole_blocks(self) -> int:
        """How many blocks wait before the first batch of which a part is missing."""
        whole = 0
        for count, found in enumerate(self._waiting, 1):
            if found.broken:
                break
            if isinstance(found.head, Head) and not found.head.more:
                whole = count
        return whole

    def _found(self, files: Files) -> Iterator[_Found]:
        segment = self.segment
        walk = Walk(
            files,
            segment.name,
            segment.seed,
            start=segment.end,
            end=self._size,
            above=segment.last,
            through=self._through,
        )
        for head in walk.heads():
            if isinstance(head, Broken):
                yield _Found(head, 0, (head,))
            else:
                items = list(walk.content(head))
                broken = tuple(item for item in items if isinstance(item, Broken))
                yield _Found(
                    head, sum(len(item.indexes) for item in items if isinstance(item, Batch)), broken
                )

    def _settle(self, mark: int) -> None:
        while self._waiting and self._waiting[0].end <= mark:
            self._take(self._waiting.popleft())

    def _split_at_mark(self) -> None:
        """Damage below the mark and a torn tail above it may look like one broken stretch."""
        if self._waiting and self._waiting[0].head.offset < self.mark:
            found = self._waiting.popleft()
            assert isinstance(found.head, Broken), "a commit ends where a block does"
            below = found.head._replace(length=self.mark - found.head.offset)
            above = Broken(self.mark, found.end - self.mark, 0, 0, below.problem)
            self._take(_Found(below, 0, (below,)))
            self._waiting.appendleft(_Found(above, 0, (above,)))

    def _drop_room(self, files: Files) -> None:
        """What was prepared and not used yet is no part of the segment."""
        if self._waiting and isinstance(self._waiting[-1].head, Broken):
            offset = self._waiting[-1].head.offset
            if not (files.read(self.segment.name, offset) or b"").strip(b"\0"):
                self._waiting.pop()
                self._size = self.segment.size = offset

    def _take(self, found: _Found) -> None:
        self.damages += [Damage(self.segment.name, *broken) for broken in found.broken]
        if isinstance(found.head, Head):
            self.segment.note(found.head, found.served)
        else:
            self.segment.last = max(self.segment.last, found.head.last)
            self.segment.end = found.end

    def _judge_end(self) -> None:
        """The end of a segment that others follow: it should have had a footer."""
        if self.segment.last < self._through:
            self._ends_early()
        elif not any(damage.offset + damage.length == self._size for damage in self.damages):
            self.damages.append(Damage(self.segment.name, self._size, 0, 0, 0, "the footer is missing"))

    def _ends_early(self) -> None:
        segment = self.segment
        lost = (segment.last + 1, self._through) if segment.last < self._through else (0, 0)
        damage = Damage(segment.name, self._size, 0, *lost, "the file ends early")
        self.damages.append(damage)
        if damage.loses_records:
            segment.cut_short = damage
            segment.last = damage.last


def scrub(files: Files, segment: Segment) -> Iterator[Damage]:
    """Everything that is broken among the blocks of a segment whose footer is whole."""
    walk = segment.walk(files, 0)
    for found in walk.heads():
        for item in (found,) if isinstance(found, Broken) else walk.content(found):
            if isinstance(item, Broken):
                yield Damage(segment.name, *item)
