"""The tree of a run, as nobody in it sees it: whole."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["Tree"]


class Tree:
    """Every process with the one above it."""

    def __init__(self, above: Mapping[str, str | None]) -> None:
        self.above = above
        self._paths: dict[tuple[str, str], tuple[str, ...]] = {}

    def path(self, start: str, goal: str) -> tuple[str, ...]:
        """From one node to another, both included."""
        known = self._paths.get((start, goal))
        if known is None:
            up, down = self._to_root(start), self._to_root(goal)
            while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
                up.pop()
                down.pop()
            known = self._paths[start, goal] = (*up, *reversed(down[:-1]))
        return known

    def distance(self, start: str, goal: str) -> int:
        """Hops."""
        return len(self.path(start, goal)) - 1

    def is_edge(self, a: str, b: str) -> bool:
        """Whether two nodes are neighbours."""
        return self.above.get(a) == b or self.above.get(b) == a

    def _to_root(self, node: str) -> list[str]:
        way = [node]
        while len(way) <= len(self.above) and (above := self.above.get(way[-1])) is not None:
            way.append(above)
        return way
