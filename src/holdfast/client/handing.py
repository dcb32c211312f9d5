"""What a member publishes on best-effort streams: handed to a broker, and again to another if that one is lost.

The broker is its own, or whoever stands in for it. What was handed over twice is turned away at the edges.
"""

from __future__ import annotations

from collections import deque

from holdfast.client.outbox import publishes
from holdfast.messages.publications import Accepted, Publication
from holdfast.node.station import Station
from holdfast.overlay.transport import Send

__all__ = ["Handing"]


class Handing:
    """Events that no broker has answered, in the order of their numbers."""

    def __init__(self) -> None:
        self._row: deque[Publication] = deque()
        self._to: Station | None = None  #: who has been given all of them

    def add(self, publications: list[Publication]) -> list[Send]:
        """More are published."""
        self._row += publications
        return self._send(publications)

    def hand_to(self, brokers: list[Station]) -> list[Send]:
        """These brokers are open, the nearest first: whoever has been given the events goes on, or the first does."""
        if self._to in brokers:
            return []
        self._to = brokers[0] if brokers else None
        return self._send(list(self._row))

    def _send(self, publications: list[Publication]) -> list[Send]:
        if self._to is None or not publications:
            return []
        assert self._to.connection is not None
        return [Send(self._to.connection, publishes(publications))]

    def on_gone(self, station: Station) -> None:
        """A session is over, and with it what was handed over on it and not answered."""
        if self._to is station:
            self._to = None

    def accept(self, accepted: Accepted) -> list[int]:
        """A broker has them up to a number; those it has not answered before."""
        numbers: list[int] = []
        while self._row and self._row[0].n <= accepted.upto:
            numbers.append(self._row.popleft().n)
        return numbers

    def reject(self, n: int) -> None:
        """One is not accepted."""
        self._row = deque(publication for publication in self._row if publication.n != n)
