"""After a lapse: which subscriptions may have missed something, and of whom.

Every publisher is in doubt, known here or not, until it has marked up to where it had published, knowing of every
lapse we know of. Until then, what is missing between two of its events is a gap: it may have been for others only,
nobody knows. From then on nothing is missing.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.messages.marks import Answers

__all__ = ["Lapsed"]


class Lapsed:
    """For the subscriptions of one client, on the streams it is a member for."""

    def __init__(self) -> None:
        self._answered: dict[str, None] = {}  #: those whose mark knew of all lapses
        self.known: Answers = {}  #: lapses
        self.subscriptions: dict[int, None] = {}  #: those that were confirmed at the last one

    def begin(self, node: str, last: tuple[int, int], confirmed: Iterable[int]) -> None:
        """A lapse, by the node that noticed: everybody is in doubt again, unless it was known."""
        if self.known.get(node, (0, 0)) < last:
            self.known[node] = last
            self._answered.clear()
            self.subscriptions = dict.fromkeys(confirmed)

    def is_in_doubt(self, publisher: str) -> bool:
        """Whether events of a publisher may be missing."""
        return publisher not in self._answered and bool(self.subscriptions)

    def settle(self, publisher: str, answers: Answers) -> None:
        """A publisher has marked, knowing of some lapses."""
        if all(answers.get(node, (0, 0)) >= last for node, last in self.known.items()):
            self._answered[publisher] = None
