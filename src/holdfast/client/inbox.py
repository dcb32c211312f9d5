"""What reaches a client's subscriptions: past the edge, with gaps where something may be missing, and counted.

After an interruption the first event of a publisher shows by its number whether something may be missing since;
the gap is announced to every subscription that was confirmed when the session broke. That is so for each stream by
itself: one may be far behind another, and an event of one tells nothing of the others. On streams that survive that a
lapse does the same (``lapsed``), until the publisher has marked up to where it had published. What was delivered
and not consumed is bounded: past a subscription's buffer the inbox is full, and the client stops reading.

A publisher that goes from broker to broker may overtake its own events. On a reliable stream in order such a late one
cannot be delivered any more, and is announced: a gap of one event, to those it was for.

Of reliable streams a subscription gets nothing before its confirmation [B0.26]. None of that is owed (R0.31), and only
the confirmation says behind which partitions it may have been published: the tags are right from there on (I11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from holdfast.client.acknowledging import Acknowledging
from holdfast.client.doubt import Doubts
from holdfast.client.effect import Delivered
from holdfast.client.item import Gap
from holdfast.client.lapsed import Lapsed
from holdfast.client.reading import Reading
from holdfast.filters.parse import parse_filter
from holdfast.filters.topic import TopicPattern, parse_pattern
from holdfast.messages.marks import is_mark, read_mark
from holdfast.messages.publications import Copy, Deliveries, Publication
from holdfast.messages.streams import Guarantee, Order, StreamOrder
from holdfast.messages.subscriptions import Partition
from holdfast.ordering.edge import new_edge
from holdfast.ordering.order import Edge
from holdfast.ordering.watchful import Watchful

__all__ = ["BEYOND_DELTA", "OVERTAKEN", "Inbox", "Subscription"]

#: Why a gap is there: the session broke; more failed together than the network survives; it came behind a later one.
DISCONNECTED: Final = "disconnected"
BEYOND_DELTA: Final = "beyond delta"
OVERTAKEN: Final = "overtaken"


@dataclass(slots=True)
class Subscription:
    """One subscription, seen from the client."""

    filter: str
    buffer: int
    is_confirmed: bool = False
    is_current: bool = False  #: confirmed on this session: the network knows it, or knows it again
    marks: dict[str, int] = field(default_factory=dict)  #: by stream: what had passed when it was confirmed
    waiting: int = 0  #: delivered and not consumed, of streams that are not logged
    #: what the application was told it was confirmed without, and is still
    partial: tuple[Partition, ...] = ()
    reading: Reading = field(default_factory=Reading)  #: of streams that are logged
    acknowledging: Acknowledging = field(default_factory=Acknowledging)
    _pattern: TopicPattern | None = None

    @property
    def pattern(self) -> TopicPattern:
        """The topics it asks for."""
        if self._pattern is None:
            self._pattern = parse_filter(self.filter).pattern
        return self._pattern


class Inbox:
    """The subscriptions of a client, by the client's own numbers."""

    def __init__(self) -> None:
        self.subscriptions: dict[int, Subscription] = {}
        self._full: dict[int, Subscription] = {}  #: those with a whole buffer waiting; asked at every batch
        self.turned_away = 0  #: deliveries that had passed before
        self._orders: dict[str, Order] = {}
        self._reliable: frozenset[str] = frozenset()
        self._kept: frozenset[str] = frozenset()  #: streams of which a broken session loses nothing
        self._topics: dict[str, list[TopicPattern]] = {}  #: by stream, of those that may lose something
        self._edges: dict[str, Edge] = {}  #: by stream
        self._doubts: dict[str, Doubts] = {}  #: by stream: one may be far behind another
        self._doubt_reason = DISCONNECTED  #: of the last one
        self._lapsed = Lapsed()

    def take(self, message: Deliveries, *, is_returned: bool = False) -> list[Delivered]:
        """What each subscription gets of a message, in the order they first get something.

        ``is_returned``: their publisher had lost its memory, was given them back, and sends them again. It is a node
        of the overlay itself, and those of one life are never late: what we have not had was not for us then.
        """
        edge = self._edges.get(message.stream) or self._new_edge(message.stream)
        is_kept = message.stream in self._kept
        doubts = self._doubts.get(message.stream)
        lapsed = self._lapsed if is_kept and self._lapsed.subscriptions else None
        publications = message.batch.publications
        copies = message.copies
        found: dict[int, Delivered] = {}
        for place, (i, numbers) in enumerate(zip(message.at, message.subscriptions, strict=True)):
            publication = publications[i]
            if is_kept and is_mark(publication):
                self._take_mark(publication, found)
                continue
            before = self._last_kept(publication.publisher) if lapsed is not None else 0
            if not edge.admits(publication.publisher, publication.n):
                self.turned_away += 1
                if (
                    isinstance(edge, Watchful)
                    and not is_returned
                    and edge.misses(publication.publisher, publication.n)
                ):
                    waiting = self._waiting_for(message.stream, edge, publication, numbers)
                    self._add_overtaken(publication, waiting, found)
                continue
            if doubts is not None and publication.publisher in doubts:
                self._end_doubt(doubts, publication, numbers, found)
            elif lapsed is not None and lapsed.is_in_doubt(publication.publisher):
                self._add_lapse(publication.publisher, before, publication.n - 1, found)
            copy = copies[place] if copies is not None else None
            for number in numbers:
                self._add(found, number, publication, copy)
        if message.stream in self._reliable:
            found = {
                number: each for number, each in found.items() if self.subscriptions[number].is_confirmed
            }
        for number, delivered in found.items():
            subscription = self.subscriptions[number]
            subscription.waiting += len(delivered.items)
            if subscription.waiting >= subscription.buffer:
                self._full[number] = subscription
        return list(found.values())

    def confirm(self, number: int) -> None:
        """The network knows a subscription: from here on it gets everything."""
        subscription = self.subscriptions[number]
        subscription.is_confirmed = True
        subscription.marks = {
            stream: edge.mark() for stream, edge in self._edges.items() if isinstance(edge, Watchful)
        }

    def learn(self, streams: Sequence[StreamOrder], kept: frozenset[str] = frozenset()) -> None:
        """The orders of the streams, as the broker has them; an edge that stands keeps its own.

        ``kept`` are those of which nothing is lost with a session: about them there is no doubt.
        """
        self._orders = {each.stream: each.order for each in streams}
        self._topics = {
            each.stream: [parse_pattern(text) for text in each.topics]
            for each in streams
            if each.stream not in kept and each.guarantee is not Guarantee.DURABLE
        }
        self._reliable = frozenset(each.stream for each in streams if each.guarantee is Guarantee.RELIABLE)
        self._kept = kept

    def _new_edge(self, stream: str) -> Edge:
        guarantee = Guarantee.RELIABLE if stream in self._reliable else Guarantee.BEST_EFFORT
        edge = self._edges[stream] = new_edge(self._orders.get(stream, Order.FIFO), guarantee)
        return edge

    def _highest(self) -> dict[str, dict[str, int]]:
        """The highest tick that passed of each publisher, on each stream that may lose something.

        Of who was not heard on a stream yet: the highest on any.
        """
        passed = {stream: edge.highest() for stream, edge in self._edges.items() if stream not in self._kept}
        anywhere: dict[str, int] = {}
        for each in passed.values():
            for pubend, tick in each.items():
                anywhere[pubend] = max(tick, anywhere.get(pubend, 0))
        return {stream: {**anywhere, **passed.get(stream, {})} for stream in {**self._topics, **passed}}

    def _add(
        self, found: dict[int, Delivered], number: int, item: Publication | Gap, copy: Copy | None
    ) -> None:
        delivered = found.get(number)
        if delivered is None:
            if number not in self.subscriptions:
                return  # it has ended meanwhile
            delivered = found[number] = Delivered(number, [], [])
        delivered.items.append(item)
        delivered.copies.append(copy)

    # Buffers

    def consume(self, number: int, count: int) -> None:
        """The application has taken items."""
        subscription = self.subscriptions.get(number)
        if subscription is not None:
            subscription.waiting -= count
            assert subscription.waiting >= 0, "no more can be consumed than was delivered"
            if subscription.waiting < subscription.buffer:
                self._full.pop(number, None)

    def remove(self, number: int) -> Subscription | None:
        """A subscription is over; None if there is none."""
        self._full.pop(number, None)
        return self.subscriptions.pop(number, None)

    def is_full(self, buffers: int) -> bool:
        """Whether for some subscription so many buffers' worth wait."""
        return any(each.waiting >= buffers * each.buffer for each in self._full.values())

    def has_room(self, buffers: int) -> bool:
        """Whether for all not even half of that waits: reading goes on only then, so that it does not stop and go."""
        return all(2 * each.waiting <= buffers * each.buffer for each in self.subscriptions.values())

    @property
    def is_unconfirmed(self) -> bool:
        """Whether a subscription waits for its confirmation."""
        return not all(each.is_current for each in self.subscriptions.values())

    # Gaps

    def begin_doubt(self, reason: str = DISCONNECTED, *, is_forgotten: bool = True) -> None:
        """From here on events may be missed: until a publisher is heard again, nobody knows how many.

        ``is_forgotten``: the network may have forgotten the subscriptions too.
        """
        self._doubt_reason = reason
        for stream, highest in self._highest().items():
            confirmed = [
                number
                for number, each in self.subscriptions.items()
                if each.is_confirmed and self._may_match(each, stream)
            ]
            self._doubts.setdefault(stream, Doubts()).begin(highest, confirmed)
        for each in self.subscriptions.values():
            each.is_current = each.is_current and not is_forgotten

    def _may_match(self, subscription: Subscription, stream: str) -> bool:
        """Whether a subscription may get events of a stream; of one whose topics nobody told, it may."""
        topics = self._topics.get(stream)
        return not topics or any(subscription.pattern.overlaps(each) for each in topics)

    def _end_doubt(
        self,
        doubts: Doubts,
        publication: Publication,
        numbers: tuple[int, ...],
        found: dict[int, Delivered],
    ) -> None:
        current = {number: each.is_current for number, each in self.subscriptions.items()}
        for number, after in doubts.hear(publication.publisher, publication.n, numbers, current):
            if publication.n > after + 1:
                gap = Gap(publication.publisher, after, publication.n - 1, self._doubt_reason)
                self._add(found, number, gap, None)

    def _waiting_for(
        self, stream: str, edge: Watchful, late: Publication, numbers: tuple[int, ...]
    ) -> list[int]:
        """Those that were there already when a late one was overtaken."""
        return [
            number
            for number in numbers
            if (each := self.subscriptions.get(number)) is not None
            and late.n > edge.stood(late.publisher, each.marks.get(stream, 0))
        ]

    def _add_overtaken(self, late: Publication, numbers: Sequence[int], found: dict[int, Delivered]) -> None:
        """A late one was not delivered; several in a row are one gap."""
        gap = Gap(late.publisher, late.n - 1, late.n, OVERTAKEN)
        for number in numbers:
            items = found[number].items if number in found else []
            before = items[-1] if items else None
            if isinstance(before, Gap) and before == Gap(gap.pubend, before.after, gap.after, OVERTAKEN):
                items[-1] = replace(before, upto=gap.upto)
            else:
                self._add(found, number, gap, None)

    def begin_lapse(self, node: str, last: tuple[int, int]) -> None:
        """More have failed together than the network survives: a lapse, by the node that noticed."""
        confirmed = (number for number, each in self.subscriptions.items() if each.is_confirmed)
        self._lapsed.begin(node, last, confirmed)

    def _last_kept(self, publisher: str) -> int:
        return max(
            (self._edges[stream].last(publisher) for stream in self._kept if stream in self._edges), default=0
        )

    def _take_mark(self, publication: Publication, found: dict[int, Delivered]) -> None:
        """Up to here the publisher has published: what has not come will not."""
        publisher, mark = publication.publisher, read_mark(publication)
        for node, last in mark.answers.items():
            self.begin_lapse(node, last)  # it may have overtaken what tells so
        if self._lapsed.is_in_doubt(publisher):
            self._add_lapse(publisher, self._last_kept(publisher), mark.upto, found)
            if mark.upto:
                for stream in self._kept:
                    edge = self._edges.get(stream) or self._new_edge(stream)
                    if isinstance(edge, Watchful):
                        edge.skip(publisher, mark.upto)
                    else:
                        edge.admits(publisher, mark.upto)
            self._lapsed.settle(publisher, mark.answers)

    def _add_lapse(self, publisher: str, after: int, upto: int, found: dict[int, Delivered]) -> None:
        if upto > after:
            for number in self._lapsed.subscriptions:
                self._add(found, number, Gap(publisher, after, upto, BEYOND_DELTA), None)
