"""Rows that are to be saved, and what may be done once they are.

Everything that is to be saved in one step of the broker is one transaction, and while one is on its way the next
gathers: under load many acknowledgements share one sync (R1.31). A disk that was full is asked again.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.storage.tables import Change
from holdfast.streams.storing import Save

__all__ = ["Saving"]


class Saving:
    """One transaction at a time."""

    def __init__(self) -> None:
        self._number = 0
        self._changes: dict[tuple[str, str], Change] = {}  #: the latest of each row
        self._then: list[Callable[[], None]] = []
        self._under_way: tuple[list[Change], list[Callable[[], None]]] | None = None
        self._is_refused = False
        self.problem: str | None = None  #: why the last transaction was refused, if it was
        self.failure: str | None = None  #: nothing can be saved any more, and why

    @property
    def is_idle(self) -> bool:
        """Whether everything is saved."""
        return self._under_way is None and not self._changes and not self._then

    def add(self, *changes: Change, then: Callable[[], None] | None = None) -> None:
        """Have rows saved, and something done after; changes without rows wait for all before them."""
        for change in changes:
            self._changes[change.table, change.key] = change
        if then is not None:
            self._then.append(then)

    def next_save(self) -> Save | None:
        """What is to be saved now."""
        if self._under_way is not None or self._is_refused or self.failure is not None:
            return None
        if not self._changes and not self._then:
            return None
        self._number += 1
        self._under_way = list(self._changes.values()), self._then
        self._changes, self._then = {}, []
        return Save(self._number, self._under_way[0])

    def on_saved(self, number: int) -> None:
        """The last transaction is on disk."""
        assert number == self._number
        assert self._under_way is not None
        _, then = self._under_way
        self._under_way = self.problem = None
        for each in then:
            each()

    def on_failed(self, reason: str, *, is_final: bool) -> bool:
        """It is not; what it was for waits, for room or for ever. Whether that is news."""
        assert self._under_way is not None
        changes, then = self._under_way
        self._under_way = None
        self._changes = {**{(each.table, each.key): each for each in changes}, **self._changes}
        self._then = then + self._then
        self._is_refused = True
        is_news, self.problem = self.problem is None, reason
        if is_final:
            self.failure = reason
        return is_news

    def try_again(self) -> None:
        """There may be room by now."""
        self._is_refused = False
