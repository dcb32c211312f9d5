"""The order in which a subscriber sees a stream, and the edge that keeps it.

The edge stands where events reach a subscriber. It remembers, per pubend, which ticks have passed, and turns away
what has: so nothing is delivered twice, whatever was sent again on the way. What else it turns away is the order's.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["PUBENDS_MAX", "Edge"]

#: An edge remembers so many pubends; then it forgets the one it has not heard of for longest.
PUBENDS_MAX = 1_000_000


class Edge(Protocol):
    """What passes to the subscriber."""

    def admits(self, pubend: str, tick: int) -> bool:
        """Whether this tick may pass; if so it has passed."""

    def last(self, pubend: str) -> int:
        """The highest tick of a pubend that has passed; 0 if none has."""

    def highest(self) -> dict[str, int]:
        """The highest tick that has passed, by pubend; a copy."""
