"""The tree of a run: who hangs on whom, and the ways between them."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["Tree"]


class Tree:
    """Every process with the one above it; the root has None."""

    def __init__(self, above: Mapping[str, str | None]) -> None:
        self.above = above
        self._upwards: dict[str, list[str]] = {}

    def way(self, start: str, goal: str) -> list[str]:
        """From one to the other, both included: up to where their ways to the root meet, and down again."""
        up, down = self._to_root(start), self._to_root(goal)
        met = set(down)
        turn = next((i for i, node in enumerate(up) if node in met), None)
        if turn is None:
            return []  # not of one tree
        return up[:turn] + down[: down.index(up[turn]) + 1][::-1]

    def _to_root(self, node: str) -> list[str]:
        if node not in self._upwards:
            way = [node]
            while (above := self.above.get(way[-1])) is not None and above not in way:
                way.append(above)
            self._upwards[node] = way
        return self._upwards[node]
