"""What neighbours have told each other of pubends and not taken in yet: so many bytes of events, and no more.

A connection is given up when too much waits in it. Whoever logs faster than a neighbour reads, or answers it all it has
missed, must not do that to it: so a neighbour says from time to time how much it has taken in on the session
(``Taken``), and is told the next events when there is room. What it is not told it is told later, or asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from holdfast.messages.message import Message
from holdfast.messages.ticks import Items, Taken
from holdfast.node.breach import Breach

__all__ = ["Flows"]

#: It says so whenever it has taken in such a part of what may be on its way.
TAKEN_PARTS: Final = 16


@dataclass(slots=True)
class _Flow:
    """With one neighbour, on one session, in bytes of events."""

    told: int = 0  #: by us
    taken: int = 0  #: of that, by it
    heard: int = 0  #: from it
    said: int = 0  #: of that, that we have taken it in


class Flows:
    """With all neighbours that are there."""

    def __init__(self, bytes_max: int, say: Callable[[str, Message], None]) -> None:
        self._bytes_max = bytes_max
        self._say = say
        self._flows: dict[str, _Flow] = {}

    def _of(self, neighbour: str) -> _Flow:
        flow = self._flows.get(neighbour)
        if flow is None:
            flow = self._flows[neighbour] = _Flow()
        return flow

    def room(self, neighbour: str) -> int:
        """For how many more bytes there is; one event may go beyond it."""
        flow = self._of(neighbour)
        return self._bytes_max - (flow.told - flow.taken)

    def on_told(self, neighbour: str, items: Items) -> None:
        """We have told it something."""
        self._of(neighbour).told += _weight(items)

    def on_heard(self, neighbour: str, items: Items) -> None:
        """It has told us something, and we have taken it in."""
        flow = self._of(neighbour)
        flow.heard += _weight(items)
        if flow.heard - flow.said > self._bytes_max // TAKEN_PARTS:
            flow.said = flow.heard
            self._say(neighbour, Taken(flow.heard))

    def on_taken(self, neighbour: str, taken: int) -> None:
        """It has taken in so much.

        :raises Breach: if that is more than it was told, or less than it had.
        """
        flow = self._of(neighbour)
        if not flow.taken <= taken <= flow.told:
            raise Breach(f"taken {taken} bytes, after {flow.taken}, of {flow.told}")
        flow.taken = taken

    def on_gone(self, neighbour: str) -> None:
        """The session is over, and all that was on its way."""
        self._flows.pop(neighbour, None)


def _weight(items: Items) -> int:
    return sum([len(each.event) for each in items.publications if each is not None])
