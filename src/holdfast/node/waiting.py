"""What waits in a queue, found without a look at all of it: acknowledgements come often, and a queue may be long.

Our own numbers rise along the queue, so what is safe for a target is a prefix of what waits for it. How far everything
of another node's has been discarded is told by the lowest of its numbers that is still queued; of those a heap is kept,
from which the gone are dropped when they come to its top.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from holdfast.node.segment import Segment
from holdfast.node.station import Station

__all__ = ["LowestNumbers", "Rows"]


class Rows:
    """By target the segments that have a share for it, in order."""

    def __init__(self) -> None:
        self._rows: dict[Station, deque[Segment]] = {}

    def add(self, target: Station, segment: Segment) -> None:
        """A segment waits for a target, behind those that wait for it."""
        self._rows.setdefault(target, deque()).append(segment)

    def targets(self) -> list[Station]:
        """For whom anything waits, or did."""
        return list(self._rows)

    def take(self, target: Station, upto: int, kept: bool = False) -> Iterator[Segment]:
        """Those of which everything for a target has a number up to this one; they do not wait for it any more."""
        row = self._rows[target]
        while row:
            share = (row[0].kept if kept else row[0].shares).get(target)
            if share is not None and row[0].first + share.at[-1] > upto:
                return
            segment = row.popleft()
            if share is not None:
                yield segment
        del self._rows[target]

    def forget(self, target: Station) -> None:
        """Nothing is for it any more."""
        self._rows.pop(target, None)


class LowestNumbers:
    """Of every life of a node that numbered something queued, the lowest of these numbers; and the caps of [B0.38]."""

    def __init__(self, reach: int) -> None:
        self._reach = reach  #: nobody farther away is told of our holdings, so nobody asks for theirs
        self._numbers: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self._caps: dict[str, list[tuple[int, int, int]]] = {}

    def add(self, segment: Segment) -> None:
        """A segment is queued."""
        for life, number in segment.lowest():
            self.add_number(life, number, segment)
        for node, cap in segment.caps.items():
            if self._is_near(node, segment):
                heappush(self._caps.setdefault(node, []), (*cap, segment.first))

    def add_number(self, life: tuple[str, int], number: int, segment: Segment) -> None:
        """A life of a node gave a number to something in a segment; of those, the latest life is asked for."""
        if not self._is_near(life[0], segment):
            return
        heap = self._numbers.get(life)
        if heap is None:
            lives = [each for each in self._numbers if each[0] == life[0]]
            if any(each > life for each in lives):
                return
            for each in lives:
                del self._numbers[each]
            heap = self._numbers[life] = []
        heappush(heap, (number, segment.first))

    def _is_near(self, node: str, segment: Segment) -> bool:
        return any(step.node == node for step in segment.trail.steps[-self._reach :])

    def of(self, node: str, life: int, queued: Collection[int]) -> int | None:
        """The lowest number of one life of a node; None if nothing it numbered is queued."""
        heap = self._numbers.get((node, life), [])
        _sift(heap, queued)
        while heap and heap[0][1] not in queued:
            heappop(heap)
        if not heap:
            self._numbers.pop((node, life), None)
        return heap[0][0] if heap else None

    def cap(self, node: str, queued: Collection[int]) -> tuple[int, int] | None:
        """The lowest mark a node that was bypassed had when something still queued came, with the life it is of."""
        heap = self._caps.get(node, [])
        _sift(heap, queued)
        while heap and heap[0][2] not in queued:
            heappop(heap)
        if not heap:
            self._caps.pop(node, None)
        return heap[0][:2] if heap else None


def _sift(heap: list[Any], queued: Collection[int]) -> None:
    """Where one stays on top for long many below it are gone: they are dropped when they are more than the others."""
    if len(heap) > 4 * len(queued) + 16:
        heap[:] = [each for each in heap if each[-1] in queued]
        heapify(heap)
