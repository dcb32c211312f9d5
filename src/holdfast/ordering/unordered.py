"""No order: an event passes as it arrives, once; a late one too, as far back as the memory of what passed reaches."""

from __future__ import annotations

from typing import Final

from holdfast.ordering.order import PUBENDS_MAX

__all__ = ["MASK", "WINDOW", "Unordered"]

#: How many ticks below the highest are remembered one by one; older ones are taken for repeats.
WINDOW: Final = 1024

MASK: Final = (1 << WINDOW) - 1


class Unordered:
    """Per pubend the highest tick that passed, and a bit for each of the last ``WINDOW`` ticks up to it."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int]] = {}

    def admits(self, pubend: str, tick: int) -> bool:
        """Whether the tick has not passed, and is not too old to tell."""
        seen = self._seen.get(pubend)
        if seen is None:
            if len(self._seen) >= PUBENDS_MAX:
                self._forget(next(iter(self._seen)))
            self._seen[pubend] = tick, 1
            return True
        if 2 * len(self._seen) > PUBENDS_MAX:
            self._seen[pubend] = self._seen.pop(pubend)  # at the end: the first is the one longest unheard
        highest, bits = seen
        if tick > highest:
            ahead = tick - highest
            self._seen[pubend] = tick, (bits << ahead) & MASK | 1 if ahead < WINDOW else 1
            return True
        behind = highest - tick
        if behind >= WINDOW or bits >> behind & 1:
            return False
        self._seen[pubend] = highest, bits | 1 << behind
        return True

    def _forget(self, pubend: str) -> None:
        del self._seen[pubend]

    def last(self, pubend: str) -> int:
        """The highest tick that passed."""
        return self._seen.get(pubend, (0, 0))[0]

    def highest(self) -> dict[str, int]:
        """The highest tick of each pubend."""
        return {pubend: highest for pubend, (highest, _) in self._seen.items()}
