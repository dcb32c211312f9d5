"""Duplicates, found by the numbers of nearby nodes alone [KJ §5.4].

A node remembers the highest number it has seen of every node in the vectors that reach it; those are the nodes within
3δ+1 hops, however many publishers there are beyond. A copy is a duplicate if any node's number in it was seen before:
two legitimate copies have a node in common.

A node that lost its memory numbers anew, in its next incarnation. What its earlier life numbered is judged by the
marks of that life and not by those of the next: a false alarm would be a loss, while a repeat that slips through is
caught at the edge [B0.8, B0.17].
"""

from __future__ import annotations

from typing import Final

from holdfast.messages.overlay import Trail
from holdfast.node.trails import is_increasing, numbered

__all__ = ["LIVES_MAX", "Marks"]

#: So many lives of a node are remembered.
LIVES_MAX: Final = 4


class Marks:
    """highSeq [KJ Fig 5]: by node and incarnation the highest number seen."""

    def __init__(self) -> None:
        self._highest: dict[str, dict[int, int]] = {}

    def __len__(self) -> int:
        return len(self._highest)

    def of(self, node: str, incarnation: int) -> int:
        """The highest number seen of one life of a node; 0 if none was."""
        return self._highest.get(node, {}).get(incarnation, 0)

    def latest(self, node: str) -> tuple[int, int]:
        """The latest life of a node that was seen, and its highest number; (0, 0) if none was."""
        lives = self._highest.get(node)
        return (0, 0) if not lives else max(lives.items())

    def new(self, trail: Trail, count: int) -> list[int]:
        """Which publications of a batch are no duplicates, by position; then all of it has been seen.

        :raises ValueError: if a column does not have ``count`` numbers, or they do not increase.
        """
        columns = numbered(trail)
        is_new = True
        for step, column in columns:
            if len(column) != count or not is_increasing(column):
                raise ValueError(f"the numbers of {step.node} do not increase")
            assert step.incarnation is not None
            is_new = is_new and (count == 0 or column[0] > self.of(step.node, step.incarnation))
        found = list(range(count)) if is_new else self._new_of(trail, count)
        for step, column in columns:
            if count:
                assert step.incarnation is not None
                self._see(step.node, step.incarnation, column[-1])
        return found

    def _new_of(self, trail: Trail, count: int) -> list[int]:
        new = [True] * count
        for step, column in numbered(trail):
            assert step.incarnation is not None
            highest = self.of(step.node, step.incarnation)
            for i, number in enumerate(column):
                if number > highest:
                    break
                new[i] = False
        return [i for i in range(count) if new[i]]

    def _see(self, node: str, incarnation: int, number: int) -> None:
        lives = self._highest.setdefault(node, {})
        if number > lives.get(incarnation, 0):
            lives[incarnation] = number
            if len(lives) > LIVES_MAX:
                del lives[min(lives)]

    def forget(self, node: str) -> None:
        """A node has left for good."""
        self._highest.pop(node, None)
