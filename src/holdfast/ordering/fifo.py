"""FIFO: the ticks of a pubend pass in increasing order; one number per pubend is all the memory it takes."""

from __future__ import annotations

from holdfast.ordering.order import PUBENDS_MAX

__all__ = ["Fifo"]


class Fifo:
    """What is not above everything that passed before is late or a repeat, and is turned away."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def admits(self, pubend: str, tick: int) -> bool:
        """Whether the tick is above all that passed."""
        last = self._last.get(pubend)
        if last is None:
            if len(self._last) >= PUBENDS_MAX:
                del self._last[next(iter(self._last))]
        elif tick <= last:
            return False
        elif 2 * len(self._last) > PUBENDS_MAX:
            del self._last[pubend]  # and in again at the end: the first is the one longest unheard
        self._last[pubend] = tick
        return True

    def last(self, pubend: str) -> int:
        """The last tick that passed."""
        return self._last.get(pubend, 0)

    def highest(self) -> dict[str, int]:
        """The last tick of each pubend."""
        return dict(self._last)
