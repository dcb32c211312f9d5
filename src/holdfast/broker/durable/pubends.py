"""The pubends of a broker, and its publishers on their way to a pubend, here or elsewhere [BZA §2; design.md §2].

A publisher's events go to one pubend, at its home, wherever it hands them in; it is made when the first of them comes.
It takes events once the network knows it, and once whoever may know more of it than its own log has been heard.

A publisher that goes from broker to broker, and repeats what it has no answer for, may have asked from several. So
what is known at once is answered to whoever asked, and what gets to the disk is told here, if the publisher is, and to
the broker that asked last; whoever else has asked will ask again, and is told where it was logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from holdfast.broker.clients import Clients
from holdfast.broker.durable.names import owner_in, pubend_filter, pubend_name, stream_in
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
from holdfast.node.breach import brief
from holdfast.overlay.transport import Log, Send
from holdfast.routing.port import ClientPort
from holdfast.streams.pubend import Answer, Hole, Kept, Receipt, Refusal, Request
from holdfast.streams.storing import AppendEvents

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["OnSafe", "Pubends", "Recall"]

#: So long a pubend waits at its start for brokers that may know more of it than its log does.
HEAR_WITHIN_NS: Final = 2 * SECOND

#: So long nothing is given up while a part of the network, which may have subscribers, cannot be reached.
CUT_OFF_MAX_NS: Final = 60 * SECOND

#: How a publisher's port is told that its events are on disk, or were refused.
OnSafe = Callable[[ClientPort, Iterable[Sequence[int]]], None]

#: How a publisher's port is told to come again, and why.
Recall = Callable[[ClientPort, str], None]


class Pubends:
    """Those that are here, by name."""

    def __init__(
        self,
        plane: DurablePlane,
        brokers: Sequence[str],
        clients: Clients,
        counters: Counters,
        on_safe: OnSafe,
        recall: Recall,
    ) -> None:
        self._plane = plane
        self._brokers = frozenset(brokers)
        self._clients = clients
        self._counters = counters
        self._on_safe = on_safe
        self._recall = recall
        self.own: dict[str, OwnPubend] = {}
        self._errands = Errands(plane.name, plane.letters.post, self._tell, self._call_again)
        self._open_at: dict[str, Instant] = {}  #: pubends that wait for reports, and until when

    @property
    def unanswered(self) -> int:
        """How many events wait for a pubend elsewhere."""
        return self._errands.count

    def unanswered_by_owner(self) -> dict[str, int]:
        """The same, by the broker it is at."""
        return self._errands.by_owner()

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
        self._plane.announce(
            pubend_filter(own.core.name), lambda is_whole: self._on_known(own, is_whole=is_whole)
        )

    def _on_known(self, own: OwnPubend, *, is_whole: bool) -> None:
        """Whoever can be reached knows a pubend: those who have subscribers are waited for.

        Those beyond a partition may have had some before the pubend was: until they are heard of nothing is given up.
        """
        if is_whole:
            own.cut_off_until = 0
        elif not own.is_announced:
            own.cut_off_until = self._plane.now + CUT_OFF_MAX_NS
        if own.is_announced:
            self._expect(own)
            return
        own.is_announced = True
        if not own.minima.reports:
            own.unheard |= self._expect(own)  # they may know an earlier one of this name
        own.course.is_known = True
        self._plane.letters.on_new(own.course)
        self._open_at[own.core.name] = self._plane.now + HEAR_WITHIN_NS
        if not own.unheard:
            self.open(own)

    def _expect(self, own: OwnPubend) -> dict[str, None]:
        """Wait for whoever has subscribers, and is not waited for yet."""
        known = {report.shb for report in own.minima.reports}
        found = [shb for shb in self._plane.hosts_for(own.stream.name) if shb not in known]
        for shb in found:
            self._plane.saving.add(own.expect(shb))
        return dict.fromkeys(found)

    def open(self, own: OwnPubend) -> None:
        """Whoever could know more of a pubend than its log was heard: it takes events."""
        if not own.is_announced:
            return
        own.unheard.clear()
        own.be_first()
        self._plane.touch(own.course)
        self._open_at.pop(own.core.name, None)
        held, own.held = own.held, []
        self._plane.throttle.on_opened(held)
        for publication in held:
            self._log(own, [Request(BEGIN, publication)], 0, None)  # nothing was refused yet
        early, own.early = own.early, {}
        for publisher, origin in early:  # whoever asked from elsewhere has it all, and is asked for it
            self._reply(own, [Hole(publisher, own.core.last_number(publisher))], origin)

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
        home: str,
    ) -> None:
        """A client's events, all of one stream, and what is in them.

        ``home`` is the broker they are logged at, unless the stream is in total order.
        """
        pubend = pubend_for(stream, port.name, home)
        if owner_in(pubend) != self._plane.name:
            self._publish_elsewhere(pubend, port, publications)
            return
        own = self.own.get(pubend) or self.create(pubend, stream)
        if own.is_open:
            own.origins.pop(port.name, None)
            self._append(own, own.take(publications, contents, self._plane.clock, port.heard), None)
        else:
            self._log(own, [Request(BEGIN, each) for each in publications], port.heard, None)
        self._plane.throttle.slow_down(port.connection)

    def _publish_elsewhere(self, pubend: str, port: ClientPort, publications: list[Publication]) -> None:
        owner = owner_in(pubend)
        if self._brokers and owner not in self._brokers and owner not in self._plane.brokers:
            reason = f"the home of {port.name} is {owner!r}, and no broker of this network is called so"
            here = self._plane.name
            self._tell(Answers(here, here, pubend, 0, port.name, refused=_refusals(publications, reason)))
        else:
            self._errands.publish(pubend, port.name, publications, port.heard, self._plane.now)

    def _log(self, own: OwnPubend, requests: Sequence[Request], heard: int, origin: str | None) -> None:
        for _, publication in requests:
            if origin is None:
                own.origins.pop(publication.publisher, None)
            else:
                own.origins[publication.publisher] = origin
        if own.failure is not None:
            reason = own.failure
            self._reply(own, [Refusal(each.publisher, each.n, reason) for _, each in requests], origin)
        elif own.is_open:
            self._append(own, own.publish(requests, self._plane.clock, heard), origin)
        elif origin is None:
            held = [publication for _, publication in requests]
            own.held += held
            self._plane.throttle.on_held(held)
        else:
            own.early |= {(each.publisher, origin): None for _, each in requests}

    def _append(
        self, own: OwnPubend, outcome: tuple[AppendEvents | None, Sequence[Answer]], origin: str | None
    ) -> None:
        append, answers = outcome
        if append is not None:
            self._plane.emit(append)
        self._reply(own, answers, origin)

    def _reply(self, own: OwnPubend, answers: Sequence[Answer], origin: str | None) -> None:
        """What can be said at once, to whoever asked."""
        for publisher, part in _parted(answers):
            letter = self._as_letter(own, publisher, origin or self._plane.name, part)
            if origin is None:
                self._tell(letter)
            else:
                self._plane.letters.post(letter)

    def answer(self, own: OwnPubend, answers: Sequence[Answer]) -> None:
        """What became of events on their way to the disk, to their publishers, wherever these may be."""
        for publisher, part in _parted(answers):
            self._tell(self._as_letter(own, publisher, self._plane.name, part))
            origin = own.origins.get(publisher)
            if origin is not None:
                self._plane.letters.post(self._as_letter(own, publisher, origin, part))

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
            tuple(Rejected(each.n, each.reason, each.code) for each in answers if isinstance(each, Refusal)),
            holes[0] if holes else None,
        )

    def _tell(self, answers: Answers) -> None:
        """Tell a publisher here."""
        port = self._clients.get(answers.publisher)
        if port is None:
            return
        runs = (*answers.logged, *answers.repeats)
        if port.connection is not None:
            messages: list[Message] = [*answers.refused]
            if runs:
                messages.append(Logged(answers.pubend, answers.incarnation, answers.logged, answers.repeats))
            if messages:
                self._plane.emit(Send(port.connection, messages))
        self._counters.rejected += len(answers.refused)
        logged = [range(run.n, run.n + run.length) for run in runs]
        self._on_safe(port, [*logged, sorted(each.n for each in answers.refused)])

    # Elsewhere

    def on_requests(self, letter: Requests) -> None:
        """Publishers at another broker publish here.

        :raises MalformedEvent: if an event cannot be read; nothing is logged then.
        """
        own = self.own.get(letter.pubend) or self._create_for(letter)
        if own is None or self._plane.throttle.is_full:
            return
        for publication in letter.batch.publications:
            unpack(publication.event)  # whoever reads the log trusts it
        pairs = zip(letter.previous, letter.batch.publications, strict=True)
        self._log(own, [Request(*pair) for pair in pairs], letter.heard, letter.origin)

    def _create_for(self, letter: Requests) -> OwnPubend | None:
        """The first event for a pubend of ours comes by letter; None: there can be no such pubend.

        That is said if it would be ours; whether somebody else has logged an event only that one knows.
        """
        pubend, here = letter.pubend, self._plane.name
        stream = self._plane.streams.get(stream_in(pubend))
        if stream is not None and pubend in _names(stream, here):
            return self.create(pubend, stream)
        fields = {"pubend": brief(pubend), "from": letter.origin}
        self._plane.emit(Log("warning", "events for a pubend that is not here", fields))
        if owner_in(pubend) == here:
            reason = f"{here} has no pubend {brief(pubend)}: the brokers are configured differently"
            requests = letter.batch.publications
            for publisher in dict.fromkeys(each.publisher for each in requests):
                refused = _refusals([each for each in requests if each.publisher == publisher], reason)
                self._plane.letters.post(Answers(letter.origin, here, pubend, 0, publisher, refused=refused))
        return None

    def on_answers(self, letter: Answers) -> None:
        """A pubend elsewhere has answered."""
        self._errands.on_answers(letter, self._plane.now)

    # Coming and going

    def forget(self, publisher: str) -> None:
        """A publisher is gone from here, or has come again: it will repeat what it has no answer for."""
        self._errands.forget(publisher)

    def _call_again(self, publisher: str) -> None:
        self.forget(publisher)
        port = self._clients.get(publisher)
        if port is not None:
            self._recall(port, "there was no room for all that waits for another broker, and is again")


def _parted(answers: Sequence[Answer]) -> Iterator[tuple[str, list[Answer]]]:
    """By publisher, and as many as fit in a message."""
    found: dict[str, list[Answer]] = {}
    for answer in answers:
        found.setdefault(answer.publisher, []).append(answer)
    for publisher, each in found.items():
        for first in range(0, len(each), PUBLICATIONS_MAX):
            yield publisher, each[first : first + PUBLICATIONS_MAX]


def _names(stream: Stream, here: str) -> list[str]:
    """What the pubends of a stream may be called here; that of total order is there from the start, or elsewhere."""
    return (
        []
        if stream.order is Order.TOTAL
        else [pubend_name(stream.name, here, k) for k in range(stream.pubends)]
    )


def _refusals(publications: Sequence[Publication], reason: str) -> tuple[Rejected, ...]:
    return tuple(Rejected(each.n, reason) for each in publications)
