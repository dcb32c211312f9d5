"""FIFO that can tell what is late from what is a repeat, as far back as its memory reaches.

For streams that promise to deliver everything: what comes behind a later event of its publisher cannot be delivered any
more, but nobody has to be left in the belief that it was.
"""

from __future__ import annotations

from holdfast.ordering.unordered import MASK, Unordered

__all__ = ["Watchful"]


class Watchful(Unordered):
    """Lets pass what is above everything that passed before, and remembers the rest one by one."""

    def admits(self, pubend: str, tick: int) -> bool:
        """Whether the tick is above all that passed."""
        return tick > self.last(pubend) and super().admits(pubend, tick)

    def misses(self, pubend: str, tick: int) -> bool:
        """Whether a tick that was turned away had never passed; from now on it counts as if it had."""
        return super().admits(pubend, tick)

    def skip(self, pubend: str, upto: int) -> None:
        """Nobody waits for anything up to a tick."""
        super().admits(pubend, upto)
        highest, bits = self._seen[pubend]
        self._seen[pubend] = highest, bits | MASK << highest - upto & MASK
