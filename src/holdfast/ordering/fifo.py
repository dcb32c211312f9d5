"""FIFO: the ticks of a pubend pass in increasing order; one number per pubend is all the memory it takes."""

from __future__ import annotations

__all__ = ["Fifo"]


class Fifo:
    """What is not above everything that passed before is late or a repeat, and is turned away."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def admits(self, pubend: str, tick: int) -> bool:
        """Whether the tick is above all that passed."""
        if tick <= self._last.get(pubend, 0):
            return False
        self._last[pubend] = tick
        return True

    def highest(self) -> dict[str, int]:
        """The last tick of each pubend."""
        return dict(self._last)
