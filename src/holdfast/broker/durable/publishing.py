"""Publishers of a broker, on their way to a pubend and back [design.md §2].

A pubend of the broker's own is asked at once. Another one, the sequencer's or that of a publisher whose home is
elsewhere, is asked by letters, which may be lost, repeated and overtaken: what has no answer is kept and sent again,
from the first, and the pubend knows what it has had.

What is kept is bounded. What does not fit is not taken, nor is anything behind it, so that no event overtakes another;
its publisher still has it, and is asked to come again when there is room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final
from zlib import crc32

from holdfast.broker.durable.names import owner_in, pubend_name
from holdfast.broker.settings import Stream
from holdfast.clock import SECOND, Instant
from holdfast.messages.durable import BEGIN, Answers, Requests, Run
from holdfast.messages.publications import Batch, Publication
from holdfast.messages.streams import Order

__all__ = ["Errand", "Errands", "pubend_for"]

#: What has no answer for so long is sent again.
REPEAT_NS: Final = SECOND

#: One letter carries so many requests.
REQUESTS_MAX: Final = 500

#: So much waits for one pubend, of one publisher; and of all together. An event takes more memory than its bytes.
ERRAND_BYTES_MAX: Final = 64 << 20
ERRANDS_BYTES_MAX: Final = 256 << 20
EVENT_OVERHEAD: Final = 200


def pubend_for(stream: Stream, publisher: str, home: str) -> str:
    """The pubend a publisher's events go to: always the same one, so that they stay in order."""
    if stream.order is Order.TOTAL:
        return pubend_name(stream.name, stream.sequencer or home, 0)
    return pubend_name(stream.name, home, crc32(publisher.encode()) % stream.pubends)


class Errand:
    """What one publisher has under way to one pubend."""

    def __init__(self) -> None:
        self.unanswered: deque[Publication] = deque()
        self.size = 0  #: of those, in memory
        self.heard = 0  #: up to which number its publisher has heard of refusals
        self.is_full = False  #: something did not fit, and what came behind it was not taken either
        self._sent = 0  #: so many of those were sent
        self._last = BEGIN  #: the number sent before the next
        #: The hole that was filled last, and the first that had no answer then.
        self._filled: tuple[int, int] | None = None
        self.repeat_at: Instant = 0

    def add(self, publications: Sequence[Publication]) -> None:
        """More is to be logged; what its publisher sends again is under way, or it has not heard the answer."""
        last = self.unanswered[-1].n if self.unanswered else 0
        if publications[0].n > last:
            self.unanswered += publications
            self.size += sum(map(_size, publications))
            return
        waiting = {each.n: each for each in (*publications, *self.unanswered)}
        if len(waiting) > len(self.unanswered):
            self.unanswered = deque(waiting[n] for n in sorted(waiting))
            self.size = sum(map(_size, self.unanswered))
            self.restart()

    def restart(self) -> None:
        """Begin again with the first that has no answer."""
        self._sent = 0
        self._last = BEGIN
        self._filled = None

    def fill(self, hole: int) -> bool:
        """Begin again, since something is missing behind a number; False: every letter behind it says so."""
        found = (hole, self.unanswered[0].n)
        if self._filled == found:
            return False
        self.restart()
        self._filled = found
        return True

    def next_requests(self, now: Instant) -> tuple[list[int], list[Publication]]:
        """What is to be sent now, each with the number before it."""
        publications = list(islice(self.unanswered, self._sent, self._sent + REQUESTS_MAX))
        if not publications:
            return [], []
        previous = [self._last, *(each.n for each in publications[:-1])]
        self._sent += len(publications)
        self._last = publications[-1].n
        self.repeat_at = now + REPEAT_NS
        return previous, publications

    def answered(self, numbers: set[int], now: Instant) -> None:
        """These have their answers."""
        while self.unanswered and self.unanswered[0].n in numbers:
            self.size -= _size(self.unanswered.popleft())
            self._sent = max(0, self._sent - 1)
        self.repeat_at = now + REPEAT_NS


class Errands:
    """All publishers, all pubends elsewhere.

    ``post`` sends a letter, ``answer`` tells a publisher here, and ``recall`` asks one to send everything again.
    """

    def __init__(
        self,
        here: str,
        post: Callable[[Requests], None],
        answer: Callable[[Answers], None],
        recall: Callable[[str], None],
    ) -> None:
        self._here = here
        self._post = post
        self._answer = answer
        self._recall = recall
        self._errands: dict[str, dict[str, Errand]] = {}  #: by publisher and pubend
        self._size = 0  #: of all of them

    @property
    def count(self) -> int:
        """How many events have no answer."""
        return sum(len(errand.unanswered) for _, _, errand in self._all())

    def by_owner(self) -> dict[str, int]:
        """How many wait for each broker."""
        found: dict[str, int] = {}
        for _, pubend, errand in self._all():
            owner = owner_in(pubend)
            found[owner] = found.get(owner, 0) + len(errand.unanswered)
        return found

    def _all(self) -> Iterator[tuple[str, str, Errand]]:
        for publisher, errands in self._errands.items():
            for pubend, errand in errands.items():
                yield publisher, pubend, errand

    def publish(
        self, pubend: str, publisher: str, publications: Sequence[Publication], heard: int, now: Instant
    ) -> None:
        """A publisher's events for a pubend elsewhere."""
        errand = self._errands.setdefault(publisher, {}).setdefault(pubend, Errand())
        errand.heard = heard
        before, more = errand.size, sum(map(_size, publications))
        errand.is_full |= before + more > ERRAND_BYTES_MAX or self._size + more > ERRANDS_BYTES_MAX
        if not errand.is_full:
            errand.add(publications)
            self._size += errand.size - before
            self._send(pubend, errand, now)

    def _send(self, pubend: str, errand: Errand, now: Instant) -> None:
        while True:
            previous, publications = errand.next_requests(now)
            if not publications:
                return
            batch = Batch(publications)
            self._post(Requests(owner_in(pubend), self._here, pubend, previous, batch, errand.heard))

    def on_answers(self, answers: Answers, now: Instant) -> None:
        """What became of requests."""
        publisher, pubend = answers.publisher, answers.pubend
        errand = self._errands.get(publisher, {}).get(pubend)
        if errand is None:
            return
        runs = (*answers.logged, *answers.repeats)
        refused = {each.n for each in answers.refused}
        news = {
            each.n
            for each in errand.unanswered
            if each.n in refused or any(run.n <= each.n < run.n + run.length for run in runs)
        }
        if news:
            self._answer(_about(answers, news))
        before = errand.size
        errand.answered(news, now)
        self._size += errand.size - before
        if answers.hole is not None and errand.unanswered and errand.fill(answers.hole):
            self._send(pubend, errand, now)
        if not errand.unanswered and not errand.is_full:
            del self._errands[publisher][pubend]
            if not self._errands[publisher]:
                del self._errands[publisher]

    def repeat(self, now: Instant) -> None:
        """What has waited for long is sent again; and who had more than there was room for may come again."""
        for _, pubend, errand in self._all():
            if errand.unanswered and now >= errand.repeat_at:
                errand.restart()
                self._send(pubend, errand, now)
        if self._size <= ERRANDS_BYTES_MAX // 2:
            full = [(publisher, errand.size) for publisher, _, errand in self._all() if errand.is_full]
            for publisher in dict.fromkeys(each for each, size in full if size <= ERRAND_BYTES_MAX // 2):
                self._recall(publisher)

    def forget(self, publisher: str) -> None:
        """It is gone, or has come again and will send again whatever it has no answer for."""
        for errand in self._errands.pop(publisher, {}).values():
            self._size -= errand.size


def _size(publication: Publication) -> int:
    return len(publication.event) + EVENT_OVERHEAD


def _about(answers: Answers, numbers: set[int]) -> Answers:
    """The part of answers that is about these."""
    return Answers(
        answers.to,
        answers.origin,
        answers.pubend,
        answers.incarnation,
        answers.publisher,
        _cut(answers.logged, numbers),
        _cut(answers.repeats, numbers),
        tuple(each for each in answers.refused if each.n in numbers),
    )


def _cut(runs: Sequence[Run], numbers: set[int]) -> tuple[Run, ...]:
    """Runs without those numbers nobody waits for."""
    found: list[Run] = []
    for n, tick, length in runs:
        inside = sorted(each for each in numbers if n <= each < n + length)
        if len(inside) == length:
            found.append(Run(n, tick, length))
        else:
            found += [Run(each, tick and tick + each - n, 1) for each in inside]
    return tuple(found)
