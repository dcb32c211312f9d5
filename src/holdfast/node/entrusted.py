"""What plain clients have published at this broker: accepted as soon as the first δ nodes beyond have it too.

Accepted is what the first δ+1 nodes beyond its publisher hold, on every way (B0.35). A member is a node itself, and
counts them from its broker on. To a plain client its broker is the first of them, so only δ more are counted, fewer
than a broker counts before it lets go of an event: it would make the client wait for nodes the promise does not need,
and for ever if the last of them, the broker of some subscriber, is down.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from holdfast.messages.publications import Publication
from holdfast.node.segment import Segment
from holdfast.node.station import Station
from holdfast.node.topology import Path

__all__ = ["Entrusted"]

#: Up to which of our own numbers everything on a way is safe, and up to which for good, as ``Holdings`` has it.
Safe = Callable[[Path], tuple[int, int]]


class Entrusted:
    """Segments that began here and are not accepted yet, by the targets they wait for."""

    def __init__(self, delta: int, safe: Safe) -> None:
        self._delta = delta
        self._safe = safe
        self._rows: dict[Station, deque[tuple[int, Segment]]] = {}  #: with our last number for the target
        self._waits: dict[int, int] = {}  #: for how many targets, by the first number of a segment

    def add(self, segment: Segment) -> list[Publication]:
        """Something begins here; what is accepted at once."""
        if not self._delta:
            return segment.batch.publications
        self._waits[segment.first] = len(segment.shares)
        for target, share in segment.shares.items():
            self._rows.setdefault(target, deque()).append((segment.first + share.at[-1], segment))
        return []

    def settle(self) -> list[Publication]:
        """Others have told what they hold; what is accepted now."""
        found: list[Publication] = []
        for target, row in list(self._rows.items()):
            path = target.path
            upto = max(self._safe(path[: self._delta])[0], self._safe(path)[0])
            while row and row[0][0] <= upto:
                found += self._release(row.popleft()[1])
            if not row:
                del self._rows[target]
        return found

    def forget(self, target: Station) -> list[Publication]:
        """A node has left, and nobody waits for it; what is accepted without it."""
        row = self._rows.pop(target, ())
        return [publication for _, segment in row for publication in self._release(segment)]

    def _release(self, segment: Segment) -> list[Publication]:
        """A segment waits for one target less."""
        self._waits[segment.first] -= 1
        if self._waits[segment.first]:
            return []
        del self._waits[segment.first]
        return segment.batch.publications
