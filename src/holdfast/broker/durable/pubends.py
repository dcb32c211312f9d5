"""The pubends of a broker, and its publishers on their way to a pubend, here or elsewhere [BZA §2; design.md §2].

A publisher's events go to one pubend, which is made when the first of them comes. It takes events once the network
knows it, and once whoever may know more of it than its own log has been heard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from holdfast.broker.clients import Clients
from holdfast.broker.durable.names import pubend_filter
from holdfast.broker.durable.own import OwnPubend, runs_of
from holdfast.broker.durable.publishing import Errands, pubend_for
from holdfast.broker.settings import Stream
from holdfast.broker.statistics import Counters
from holdfast.clock import SECOND, Instant
from holdfast.events.event import Content
from holdfast.events.packed import unpack
from holdfast.messages.durable import BEGIN, Answers, Logged, Requests
from holdfast.messages.message import Message
from holdfast.messages.publications import PUBLICATIONS_MAX, Publication, Rejected
from holdfast.messages.streams import Order
from holdfast.overlay.transport import Send
from holdfast.routing.port import ClientPort
from holdfast.streams.pubend import Answer, Hole, Kept, Receipt, Refusal, Request
from holdfast.streams.storing import AppendEvents

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["Pubends"]

#: So long a pubend waits at its start for brokers that may know more of it than its log does.
HEAR_WITHIN_NS: Final = 2 * SECOND

#: How a publisher's port is told that its events are on disk, or were refused.
OnSafe = Callable[[ClientPort, Iterable[int]], None]


class Pubends:
    """Those that are here, by name."""

    def __init__(self, plane: DurablePlane, clients: Clients, counters: Counters, on_safe: OnSafe) -> None:
        self._plane = plane
        self._clients = clients
        self._counters = counters
        self._on_safe = on_safe
        self.own: dict[str, OwnPubend] = {}
        self._errands = Errands(plane.name, self._request, self._tell)
        self._open_at: dict[str, Instant] = {}  #: pubends that wait for reports, and until when

    @property
    def unanswered(self) -> int:
        """How many events wait for a pubend elsewhere."""
        return self._errands.count

    # Making them

    def create(self, pubend: str, stream: Stream) -> OwnPubend:
        """A pubend begins: it is saved and made known before it takes events."""
        plane = self._plane
        course = plane.course(pubend)
        course.is_own = True
        own = self.own[pubend] = OwnPubend(course, stream, Kept(created=plane.clock - 1), None, ())
        plane.saving.add(own.row(), then=lambda: self.make_known(own))
        return own

    def make_known(self, own: OwnPubend) -> None:
        """Announce a pubend of ours."""
        self._plane.announce(pubend_filter(own.core.name), lambda: self._on_known(own))

    def _on_known(self, own: OwnPubend) -> None:
        """Everybody knows a pubend: those who have subscribers are waited for."""
        if own.is_announced:
            return
        own.is_announced = True
        if not own.minima.reports:
            for shb in self._plane.hosts_for(own.stream.name):
                self._plane.saving.add(own.expect(shb))
                own.unheard[shb] = None  # it may know an earlier one of this name
        own.course.is_known = True
        self._plane.letters.on_new(own.course)
        self._open_at[own.core.name] = self._plane.now + HEAR_WITHIN_NS
        if not own.unheard:
            self.open(own)

    def open(self, own: OwnPubend) -> None:
        """Whoever could know more of a pubend than its log was heard: it takes events."""
        if not own.is_announced:
            return
        own.unheard.clear()
        own.be_first()
        self._plane.touch(own.course)
        self._open_at.pop(own.core.name, None)
        held, own.held = own.held, []
        for request, origin in held:
            self._log(own, [request], origin)

    def repeat(self) -> None:
        """From time to time: whatever has waited long enough."""
        for pubend in [each for each, at in self._open_at.items() if self._plane.now >= at]:
            self.open(self.own[pubend])
        self._errands.repeat(self._plane.now)

    # Publishing

    def publish(
        self,
        port: ClientPort,
        stream: Stream,
        publications: list[Publication],
        contents: Sequence[Content],
    ) -> None:
        """A client's events, all of one stream, and what is in them."""
        here = self._plane.name
        pubend = pubend_for(stream, port.name, here)
        if stream.order is Order.TOTAL and stream.sequencer not in (None, here):
            self._errands.publish(pubend, port.name, publications, self._plane.now)
            return
        own = self.own.get(pubend) or self.create(pubend, stream)
        if own.is_open:
            own.origins[port.name] = None
            self._append(own, *own.take(publications, contents, self._plane.clock))
        else:
            self._log(own, [Request(BEGIN, each) for each in publications], None)

    def _log(self, own: OwnPubend, requests: Sequence[Request], origin: str | None) -> None:
        for request in requests:
            own.origins[request.publication.publisher] = origin
        if own.failure is not None:
            reason = own.failure
            self.answer(own, [Refusal(each.publisher, each.n, reason) for _, each in requests])
        elif own.is_open:
            self._append(own, *own.publish(requests, self._plane.clock))
        else:
            own.held += [(request, origin) for request in requests]

    def _append(self, own: OwnPubend, append: AppendEvents | None, answers: Sequence[Answer]) -> None:
        if append is not None:
            self._plane.emit(append)
        self.answer(own, answers)

    def answer(self, own: OwnPubend, answers: Sequence[Answer]) -> None:
        """Answers of a pubend of ours, to publishers here or to the broker they are at."""
        by_publisher: dict[str, list[Answer]] = {}
        for answer in answers:
            by_publisher.setdefault(answer.publisher, []).append(answer)
        for publisher, found in by_publisher.items():
            origin = own.origins.get(publisher)
            for first in range(0, len(found), PUBLICATIONS_MAX):
                part = found[first : first + PUBLICATIONS_MAX]
                letter = self._as_letter(own, publisher, origin or self._plane.name, part)
                if origin is None:
                    self._tell(letter)
                else:
                    self._plane.letters.post(letter)

    def _as_letter(self, own: OwnPubend, publisher: str, to: str, answers: Sequence[Answer]) -> Answers:
        receipts = [each for each in answers if isinstance(each, Receipt)]
        holes = [each.last for each in answers if isinstance(each, Hole)]
        return Answers(
            to,
            self._plane.name,
            own.core.name,
            own.core.incarnation,
            publisher,
            runs_of([each for each in receipts if not each.is_repeat]),
            runs_of([each for each in receipts if each.is_repeat]),
            tuple((each.n, each.reason) for each in answers if isinstance(each, Refusal)),
            holes[0] if holes else None,
        )

    def _tell(self, answers: Answers) -> None:
        """Tell a publisher here."""
        port = self._clients.get(answers.publisher)
        if port is None:
            return
        runs = (*answers.logged, *answers.repeats)
        if port.connection is not None:
            messages: list[Message] = [Rejected(n, reason) for n, reason in answers.refused]
            if runs:
                messages.append(Logged(answers.pubend, answers.incarnation, answers.logged, answers.repeats))
            if messages:
                self._plane.emit(Send(port.connection, messages))
        self._counters.rejected += len(answers.refused)
        refused = [n for n, _ in answers.refused]
        self._on_safe(port, chain(*(range(run.n, run.n + run.length) for run in runs), refused))

    # Elsewhere

    def _request(self, pubend: str, letter: Requests) -> None:
        """Requests for a pubend elsewhere."""
        way = self._plane.ways.get(pubend)
        if way is not None:
            to = way.subscription.subscriber
            self._plane.letters.post(Requests(to, self._plane.name, pubend, letter.previous, letter.batch))

    def on_requests(self, letter: Requests) -> None:
        """Publishers at another broker publish here.

        :raises MalformedEvent: if an event cannot be read; nothing is logged then.
        """
        own = self.own.get(letter.pubend)
        if own is None:
            return
        for publication in letter.batch.publications:
            unpack(publication.event)  # whoever reads the log trusts it
        pairs = zip(letter.previous, letter.batch.publications, strict=True)
        self._log(own, [Request(*pair) for pair in pairs], letter.origin)

    def on_answers(self, letter: Answers) -> None:
        """A pubend elsewhere has answered."""
        self._errands.on_answers(letter, self._plane.now)
