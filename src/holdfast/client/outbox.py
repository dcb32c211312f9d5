"""What a client has submitted and not yet heard of: kept, in order, to be sent again after a reconnection.

Of a session's events so many bytes at most have been sent and not answered; the others wait here, where they are kept
anyway. On their way to a broker that is slower than they come they would make its connection look dead.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator

from holdfast.messages.message import Message
from holdfast.messages.publications import Batch, Publication, Publish, parts_of

__all__ = ["Outbox", "publishes"]


class Outbox:
    """Events by number, ascending. Those that were answered stay in the row until what came before is answered."""

    def __init__(self, unacknowledged_max: int, sent_bytes_max: int) -> None:
        self._unacknowledged_max = unacknowledged_max
        self._sent_bytes_max = sent_bytes_max
        self._last_submitted = 0
        self._row: deque[Publication] = deque()
        self._rejected: set[int] = set()  #: of those in the row
        self._accepted: set[int] = set()  #: of those in the row, behind one that has no answer
        self._unsent: deque[Publication] = deque()  #: of those in the row, what this session has not brought
        self._sent_upto = 0  #: the last number it has brought
        self._sent_bytes = 0  #: of what it has brought, and has no answer
        #: Above a number, of which refusals of good events we had heard when we submitted: those up to another.
        self._heard: list[tuple[int, int]] = [(0, 0)]

    def __len__(self) -> int:
        return len(self._row) - len(self._rejected) - len(self._accepted)

    def submit(self, publications: list[Publication]) -> None:
        """Keep what is about to be sent."""
        for publication in publications:
            assert publication.n > self._last_submitted, "numbers increase over all submissions"
            self._last_submitted = publication.n
        self._row += publications
        assert len(self) <= self._unacknowledged_max, "the caller keeps the window"

    def begin(self) -> None:
        """A session begins: it has brought nothing yet."""
        self._unsent = deque(self.waiting())
        self._sent_upto = self._sent_bytes = 0

    def due(self, submitted: list[Publication] | None = None) -> list[Publication]:
        """What this session is to bring now, in order; ``submitted`` was just now."""
        if submitted:
            size = sum([len(publication.event) for publication in submitted])
            if not self._unsent and self._sent_bytes + size <= self._sent_bytes_max:
                self._sent_upto = submitted[-1].n
                self._sent_bytes += size
                return submitted
            self._unsent += submitted
        due: list[Publication] = []
        while self._unsent and self._sent_bytes < self._sent_bytes_max:
            publication = self._unsent.popleft()
            if publication.n not in self._rejected:
                due.append(publication)
                self._sent_upto = publication.n
                self._sent_bytes += len(publication.event)
        return due

    def hear(self, n: int) -> None:
        """A good event is refused: what is submitted from now on knows that, and what was before does not."""
        above, heard = self._heard[-1]
        if n > heard:
            if above == self._last_submitted:
                self._heard.pop()
            self._heard.append((self._last_submitted, n))

    def by_heard(self, publications: list[Publication]) -> Iterator[tuple[int, list[Publication]]]:
        """Parts of what is to be sent, each with what we had heard."""
        row = self._row
        while len(self._heard) > 1 and (not row or row[0].n > self._heard[1][0]):
            del self._heard[0]
        end = len(publications)
        parts: list[tuple[int, list[Publication]]] = []
        for above, heard in reversed(self._heard):
            first = bisect_right(publications, above, hi=end, key=_number)
            if first < end:
                parts.append((heard, publications[first:end]))
            end = first
        return reversed(parts)

    def waiting(self) -> list[Publication]:
        """What has no answer yet."""
        answered = self._rejected | self._accepted
        return [publication for publication in self._row if publication.n not in answered]

    def accept(self, upto: int) -> int:
        """Forget everything up to a number; the highest that was accepted by this, 0 if none."""
        row, sent_upto = self._row, self._sent_upto
        highest = size = 0
        while row and row[0].n <= upto:
            publication = row.popleft()
            if (n := publication.n) in self._rejected:
                self._rejected.remove(n)
                continue
            highest = n
            if n <= sent_upto:
                size += len(publication.event)
        self._sent_bytes -= size
        while self._unsent and self._unsent[0].n <= upto:
            self._unsent.popleft()
        return highest

    def accept_each(self, numbers: Iterable[int]) -> int:
        """These are accepted, whatever came before; the highest number up to which nothing waits, as ``accept``.

        Each has been submitted, and none was answered before.
        """
        self._accepted.update(numbers)
        row, accepted, rejected = self._row, self._accepted, self._rejected
        highest = 0
        while row and ((n := row[0].n) in accepted or n in rejected):
            row.popleft()
            if n in accepted:
                accepted.remove(n)
                highest = n
            else:
                rejected.remove(n)
        return highest

    def reject(self, n: int) -> bool:
        """One will not be accepted; False if nobody waits for it."""
        place = bisect_left(self._row, n, key=_number)
        waits = place < len(self._row) and self._row[place].n == n
        if not waits or n in self._rejected or n in self._accepted:
            return False
        self._rejected.add(n)
        if n <= self._sent_upto:
            self._sent_bytes -= len(self._row[place].event)
        row, rejected = self._row, self._rejected
        while row and row[0].n in rejected:  # nothing may be accepted for hours
            rejected.remove(row.popleft().n)
        return True


def _number(publication: Publication) -> int:
    return publication.n


def publishes(publications: list[Publication], home: str = "", heard: int = 0) -> list[Message]:
    """Publications as messages none of which is large; ``home``, if they are not logged where they are sent.

    When they were submitted we had ``heard`` of refusals up to a number.
    """
    return [Publish(Batch(part), home, heard) for part in parts_of(publications)]
