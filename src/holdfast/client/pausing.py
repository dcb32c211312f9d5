"""A member whose application does not keep up stops reading, from everybody events may come from.

What is not read is not heard: while it lasts nobody is taken for silent, and nobody takes us for it, since we go on
saying what we have to say. Whoever is only being met is read from, or would never be met.
"""

from __future__ import annotations

from holdfast.client.ledger import Ledger
from holdfast.clock import Instant
from holdfast.node.node import Node
from holdfast.overlay.transport import Pause, Resume

__all__ = ["Pausing"]


class Pausing:
    """Which connections of a node nothing is read from."""

    def __init__(self, ledger: Ledger, node: Node) -> None:
        self._ledger = ledger
        self._node = node
        self._paused: dict[int, None] | None = None  #: None: reading goes on

    def excuse(self, now: Instant) -> None:
        """Before the node judges who is silent."""
        if self._paused is not None:
            self._node.introductions.excuse(self._paused, now)

    def review(self, now: Instant) -> list[Pause | Resume]:
        """Something was delivered, consumed or opened."""
        if self._paused is None:
            if not self._ledger.is_full:
                return []
            self._paused = {}
        in_session = [each.connection for each in self._node.reach.stations.values() if each.is_open]
        if self._ledger.has_room:
            self.excuse(now)
            paused, self._paused = self._paused, None
            return [Resume(connection) for connection in paused if connection in in_session]
        fresh = [each for each in in_session if each is not None and each not in self._paused]
        self._paused.update(dict.fromkeys(fresh))
        return [Pause(connection) for connection in fresh]
