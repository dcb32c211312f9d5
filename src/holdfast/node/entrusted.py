"""What plain clients have published at this broker: accepted when it is safe, or as soon as all who can hold it do.

Accepted is what the first δ+1 nodes beyond its publisher hold, on every way (B0.35). A member is a node itself, and
counts them from its broker on. To a plain client its broker is the first of them, so δ more are enough, one less than a
broker counts before it lets go of an event. That one is waited for all the same while it is known to live: the event
has come farther then when its publisher hears of it, and is not so soon overtaken by what that publishes elsewhere. If
nobody knows that it lives the promise is kept without it, or one subscriber's broker that is down would stop them all.
"""

from __future__ import annotations

from collections import deque

from holdfast.events.value import INT_MAX
from holdfast.messages.publications import Publication
from holdfast.node.holdings import Holdings
from holdfast.node.segment import Segment
from holdfast.node.station import Station
from holdfast.node.topology import Path

__all__ = ["Entrusted"]


class Entrusted:
    """Segments that began here and are not accepted yet, by the targets they wait for."""

    def __init__(self, delta: int, holdings: Holdings) -> None:
        self._delta = delta
        self._holdings = holdings
        self._rows: dict[Station, deque[tuple[int, Segment]]] = {}  #: with our last number for the target
        self._waits: dict[int, int] = {}  #: for how many targets, by the first number of a segment

    def add(self, segment: Segment) -> None:
        """Something begins here."""
        self._waits[segment.first] = len(segment.shares)
        for target, share in segment.shares.items():
            self._rows.setdefault(target, deque()).append((segment.first + share.at[-1], segment))

    def settle(self) -> list[Publication]:
        """Others may have told what they hold; what is accepted now."""
        found: list[Publication] = []
        for target, row in list(self._rows.items()):
            upto = self._accepted_on(target.path)
            while row and row[0][0] <= upto:
                found += self._release(row.popleft()[1])
            if not row:
                del self._rows[target]
        return found

    def _accepted_on(self, path: Path) -> int:
        """Up to which of our own numbers everything on a way is accepted."""
        safe, _ = self._holdings.safe(path)
        near, far = path[: self._delta], path[self._delta :]
        if not any(map(self._holdings.is_doubted, far)):
            return safe
        return max(safe, self._holdings.safe(near)[0]) if near else INT_MAX

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
