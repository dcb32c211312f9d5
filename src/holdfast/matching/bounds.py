"""Buckets sorted by a cut, in blocks: every bound below or above a value, and no other is looked at.

One sorted list would move a million pointers for an insertion in its middle; blocks of a few hundred move a few
hundred. A block that grows too large is halved; an empty one leaves.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Any, Final

from holdfast.filters.region import Cut
from holdfast.matching.posting import Bucket, Entry

__all__ = ["Bounds"]

_BLOCK_MAX: Final = 512


class Bounds:
    """A sorted mapping from cuts to buckets."""

    __slots__ = ("_blocks", "_buckets", "_lasts")

    def __init__(self) -> None:
        self._buckets: dict[Cut, Bucket] = {}
        self._blocks: list[list[Cut]] = []
        self._lasts: list[Cut] = []  # the greatest cut of each block

    def __len__(self) -> int:
        return len(self._buckets)

    def get(self, cut: Cut) -> Bucket | None:
        """The bucket at a cut, if there is one."""
        return self._buckets.get(cut)

    def __setitem__(self, cut: Cut, bucket: Bucket) -> None:
        assert cut not in self._buckets
        self._buckets[cut] = bucket
        if not self._blocks:
            self._blocks.append([cut])
            self._lasts.append(cut)
            return
        i = min(bisect_left(self._lasts, cut), len(self._blocks) - 1)
        block = self._blocks[i]
        insort(block, cut)
        self._lasts[i] = block[-1]
        if len(block) > _BLOCK_MAX:
            half = len(block) // 2
            self._blocks[i : i + 1] = [block[:half], block[half:]]
            self._lasts[i : i + 1] = [block[half - 1], block[-1]]

    def __delitem__(self, cut: Any) -> None:
        del self._buckets[cut]
        i = bisect_left(self._lasts, cut)
        block = self._blocks[i]
        del block[bisect_left(block, cut)]
        if block:
            self._lasts[i] = block[-1]
        else:
            del self._blocks[i]
            del self._lasts[i]

    def collect_upto(self, cut: Cut, found: list[list[Entry]]) -> None:
        """Add the entries of every bucket at or below a cut."""
        buckets = self._buckets
        for block in self._blocks:
            if block[-1] <= cut:
                for bound in block:
                    found.append(buckets[bound].entries)
            else:
                for k in range(bisect_right(block, cut)):
                    found.append(buckets[block[k]].entries)
                return

    def collect_above(self, cut: Cut, found: list[list[Entry]]) -> None:
        """Add the entries of every bucket above a cut."""
        buckets = self._buckets
        for i in range(bisect_right(self._lasts, cut), len(self._blocks)):
            block = self._blocks[i]
            for k in range(bisect_right(block, cut) if block[0] <= cut else 0, len(block)):
                found.append(buckets[block[k]].entries)
