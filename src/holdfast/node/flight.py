"""What is on its way to a station: so many bytes of publications, and no more.

A connection is given up when too much waits in it. Who comes back after a while has missed much, and whoever publishes
may be faster than who reads; sent at once it would all wait in the connection, which would be given up, and for ever
so. What a station has got it says in its depth-acknowledgements, and in one more for each ``ACKNOWLEDGE_PARTS``-th of
what may be on its way; then it is sent more. It stays in the queue meanwhile, where it is kept anyway.
"""

from __future__ import annotations

from collections import deque
from typing import Final

__all__ = ["ACKNOWLEDGE_PARTS", "CLIENT_PART", "Flight"]

ACKNOWLEDGE_PARTS: Final = 4

#: To a client, and from it, goes such a part of what may be on its way between brokers: its connection holds less.
CLIENT_PART: Final = 8


class Flight:
    """With one station, since publications are being sent to it."""

    __slots__ = ("_sent", "heard", "is_held_up", "size")

    def __init__(self) -> None:
        self._sent: deque[tuple[int, int]] = deque()  #: by message the last of our numbers, and its bytes
        self.size = 0  #: of what has not arrived, as far as we know
        self.is_held_up = False  #: something was not sent for lack of room, nor is anything behind it
        self.heard = 0  #: bytes that have come from the station since we last acknowledged for their sake

    def send(self, number: int, size: int) -> None:
        """A message goes, up to this of our numbers."""
        self._sent.append((number, size))
        self.size += size

    def arrive(self, upto: int) -> None:
        """The station has got what was sent up to this of our numbers."""
        while self._sent and self._sent[0][0] <= upto:
            self.size -= self._sent.popleft()[1]
