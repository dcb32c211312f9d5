"""FIFO that can tell what is late from what is a repeat, as far back as its memory reaches.

For streams that promise to deliver everything: what comes behind a later event of its publisher cannot be delivered any
more, but nobody has to be left in the belief that it was. Who came after that later event was promised nothing before
it, so the edge knows where each publisher stood when somebody came.
"""

from __future__ import annotations

from holdfast.ordering.unordered import MASK, WINDOW, Unordered

__all__ = ["Watchful"]


class Watchful(Unordered):
    """Lets pass what is above everything that passed before, and remembers the rest one by one."""

    def __init__(self) -> None:
        super().__init__()
        self._mark = 0
        #: By pubend: the mark under which something passed, and what had passed before that; one for each such mark.
        self._stood: dict[str, list[tuple[int, int]]] = {}

    def admits(self, pubend: str, tick: int) -> bool:
        """Whether the tick is above all that passed."""
        last = self.last(pubend)
        if tick <= last:
            return False
        if self._mark:
            self._note(pubend, last)
        return super().admits(pubend, tick)

    def misses(self, pubend: str, tick: int) -> bool:
        """Whether a tick that was turned away had never passed; from now on it counts as if it had."""
        return super().admits(pubend, tick)

    def skip(self, pubend: str, upto: int) -> None:
        """Nobody waits for anything up to a tick."""
        self.admits(pubend, upto)
        highest, bits = self._seen[pubend]
        self._seen[pubend] = highest, bits | MASK << highest - upto & MASK

    def mark(self) -> int:
        """Somebody came, and gets what passes from here on: a mark by which that is known."""
        self._mark += 1
        return self._mark

    def stood(self, pubend: str, mark: int) -> int:
        """The highest tick that had passed at a mark, 0 being before everything; or one too old to be missed."""
        if not mark:
            return 0
        return next(
            (before for under, before in self._stood.get(pubend, ()) if under >= mark), self.last(pubend)
        )

    def _note(self, pubend: str, last: int) -> None:
        stood = self._stood.get(pubend)
        if stood is None:
            self._stood[pubend] = [(self._mark, last)]
        elif stood[-1][0] != self._mark:
            stood.append((self._mark, last))
            while stood[1][1] <= last - WINDOW:
                del stood[0]

    def _forget(self, pubend: str) -> None:
        super()._forget(pubend)
        self._stood.pop(pubend, None)
