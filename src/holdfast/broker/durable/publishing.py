"""Publishers of a broker, on their way to a pubend and back [design.md §2].

A pubend of the broker's own is asked at once. Another one is asked by letters, which may be lost, repeated and
overtaken: what has no answer is kept and sent again, from the first, and the pubend knows what it has had.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final
from zlib import crc32

from holdfast.broker.durable.names import pubend_name
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


def pubend_for(stream: Stream, publisher: str, here: str) -> str:
    """The pubend a publisher's events go to: always the same one, so that they stay in order."""
    if stream.order is Order.TOTAL:
        return pubend_name(stream.name, stream.sequencer or here, 0)
    return pubend_name(stream.name, here, crc32(publisher.encode()) % stream.pubends)


class Errand:
    """What one publisher has under way to one pubend."""

    def __init__(self) -> None:
        self.unanswered: deque[Publication] = deque()
        self._sent = 0  #: so many of those were sent
        self._last = BEGIN  #: the number sent before the next
        self.repeat_at: Instant = 0

    def add(self, publications: Sequence[Publication]) -> None:
        """More is to be logged; what its publisher sends again is under way, or it has not heard the answer."""
        last = self.unanswered[-1].n if self.unanswered else 0
        if publications[0].n > last:
            self.unanswered += publications
            return
        waiting = {each.n: each for each in (*publications, *self.unanswered)}
        if len(waiting) > len(self.unanswered):
            self.unanswered = deque(waiting[n] for n in sorted(waiting))
            self.restart()

    def restart(self) -> None:
        """Begin again with the first that has no answer."""
        self._sent = 0
        self._last = BEGIN

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
            self.unanswered.popleft()
            self._sent = max(0, self._sent - 1)
        self.repeat_at = now + REPEAT_NS


class Errands:
    """All publishers, all pubends elsewhere. ``post`` sends a letter, ``answer`` tells a publisher here."""

    def __init__(
        self, here: str, post: Callable[[str, Requests], None], answer: Callable[[Answers], None]
    ) -> None:
        self._here = here
        self._post = post
        self._answer = answer
        self._errands: dict[tuple[str, str], Errand] = {}

    @property
    def count(self) -> int:
        """How many events have no answer."""
        return sum(len(errand.unanswered) for errand in self._errands.values())

    def publish(self, pubend: str, publisher: str, publications: Sequence[Publication], now: Instant) -> None:
        """A publisher's events for a pubend elsewhere."""
        errand = self._errands.setdefault((pubend, publisher), Errand())
        errand.add(publications)
        self._send(pubend, errand, now)

    def _send(self, pubend: str, errand: Errand, now: Instant) -> None:
        while True:
            previous, publications = errand.next_requests(now)
            if not publications:
                return
            self._post(pubend, Requests("", self._here, pubend, previous, Batch(publications)))

    def on_answers(self, answers: Answers, now: Instant) -> None:
        """What became of requests."""
        errand = self._errands.get((answers.pubend, answers.publisher))
        if errand is None:
            return
        runs = (*answers.logged, *answers.repeats)
        refused = {n for n, _ in answers.refused}
        news = {
            each.n
            for each in errand.unanswered
            if each.n in refused or any(run.n <= each.n < run.n + run.length for run in runs)
        }
        if news:
            self._answer(_about(answers, news))
        errand.answered(news, now)
        if answers.hole is not None and errand.unanswered:
            errand.restart()
            self._send(answers.pubend, errand, now)
        if not errand.unanswered:
            del self._errands[answers.pubend, answers.publisher]

    def repeat(self, now: Instant) -> None:
        """What has waited for long is sent again."""
        for (pubend, _), errand in self._errands.items():
            if errand.unanswered and now >= errand.repeat_at:
                errand.restart()
                self._send(pubend, errand, now)


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
        tuple(each for each in answers.refused if each[0] in numbers),
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
