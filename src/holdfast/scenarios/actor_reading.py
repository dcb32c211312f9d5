"""How the application of a scenario takes what its client received: at once, or one item at a time when it is slow.

What it takes is written to the trace and reported to the client as consumed; what a slow application has not
taken counts against the buffer of its subscription, so that it is not sent more than it can hold. Of streams that are
logged it keeps a record of how far it has come (``actor_record``).
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from holdfast.client.effect import Delivered, Stretch
from holdfast.client.input import Consumed
from holdfast.client.item import Gap
from holdfast.client.member import MemberCore
from holdfast.client.protocol import ClientCore
from holdfast.clock import Instant
from holdfast.events.packed import unpack
from holdfast.messages.publications import Copy, Publication
from holdfast.overlay.transport import Trace
from holdfast.scenarios.actor_record import Records
from holdfast.streams.checkpoint_token import Place, Token

__all__ = ["Reading"]


class _Waiting(NamedTuple):
    """Something to be read; ``item`` is None for silence. ``place`` is where that leads to in a logged stream."""

    number: int
    subscription: str
    item: Publication | Gap | None
    copy: Copy | None = None
    pubend: str = ""
    place: Place | None = None


class Reading:
    """Items between the client and the application, in the order of their delivery."""

    def __init__(self, subscriber: str, records: Records) -> None:
        self._subscriber = subscriber
        self._records = records
        self._per_event_ns = 0
        self._busy_until: Instant = 0
        #: Bounded by the buffers of the subscriptions: past them no more is sent, or read.
        self._items: deque[_Waiting] = deque()

    @property
    def is_idle(self) -> bool:
        """Whether the application has taken everything."""
        return not self._items

    @property
    def waiting(self) -> int:
        """How many items wait to be taken."""
        return len(self._items)

    @property
    def due(self) -> Instant | None:
        """When the application takes the next item."""
        return self._busy_until if self._items else None

    def become_slow(self, per_event_ns: int) -> None:
        """From now on the application takes so long for each item."""
        self._per_event_ns = per_event_ns
        if not per_event_ns:
            self._busy_until = 0

    def on_delivered(self, subscription: str, delivered: Delivered) -> None:
        """The client has items for a subscription."""
        for item, copy in zip(delivered.items, delivered.copies, strict=True):
            self._items.append(_Waiting(delivered.number, subscription, item, copy))

    def on_stretch(self, subscription: str, stretch: Stretch) -> None:
        """A subscription goes on in a logged stream."""
        number, pubend, incarnation = stretch.number, stretch.pubend, stretch.incarnation
        self._records[number].begin(Token({pubend: Place(incarnation, stretch.after)}))

        def wait(item: Publication | Gap | None, tick: int) -> None:
            place = Place(incarnation, tick)
            self._items.append(_Waiting(number, subscription, item, pubend=pubend, place=place))

        if (gap := stretch.gap) is not None:
            wait(gap, gap.upto)
        for publication, tick in zip(stretch.publications, stretch.ticks, strict=True):
            wait(publication, tick)
        wait(None, stretch.upto)

    def forget(self, number: int) -> Consumed | None:
        """Drop what waits for a subscription that ends; what the client is to be told of that."""
        dropped = [item for item in self._items if item.number == number]
        self._items = deque(item for item in self._items if item.number != number)
        return _consumed(number, dropped)

    def forget_all(self) -> None:
        """Drop everything: there is another client."""
        self._items.clear()

    def go_on(self, now: Instant, core: ClientCore | MemberCore, effects: list[Any]) -> None:
        """Take what the application has time for now."""
        taken: dict[int, list[_Waiting]] = {}
        while self._items and self._busy_until <= now:
            waiting = self._items.popleft()
            taken.setdefault(waiting.number, []).append(waiting)
            effects += self._read(waiting)
            if self._per_event_ns and waiting.item is not None:
                self._busy_until = now + self._per_event_ns
        self._records.remember(now, effects)
        for number, items in taken.items():
            if (consumed := _consumed(number, items)) is not None:
                effects += core.step(consumed, now)

    def _read(self, waiting: _Waiting) -> list[Trace]:
        item, place, pubend = waiting.item, waiting.place, waiting.pubend
        if place is None:
            return [self._gap(waiting.subscription, item) if isinstance(item, Gap) else self._event(waiting)]
        record = self._records[waiting.number]
        if item is None:
            record.read_silence(pubend, place)
            return []
        if isinstance(item, Gap):
            return record.read_gap(item, place.incarnation)
        record.read_event(pubend, place)
        return [self._event(waiting)]

    def _gap(self, subscription: str, gap: Gap) -> Trace:
        asked = {"subscriber": self._subscriber, "subscription": subscription}
        told = {"pubend": gap.pubend, "after": gap.after, "upto": gap.upto, "reason": gap.reason}
        return Trace("gap", {**asked, **told})

    def _event(self, waiting: _Waiting) -> Trace:
        event = waiting.item
        assert isinstance(event, Publication)
        tags = waiting.copy.tags if waiting.copy is not None else ()
        return Trace(
            "deliver",
            {
                "subscriber": self._subscriber,
                "subscription": waiting.subscription,
                "publisher": event.publisher,
                "n": event.n,
                "topic": unpack(event.event).topic,
                "pubend": event.publisher if waiting.place is None else waiting.pubend,
                "tick": event.n if waiting.place is None else waiting.place.tick,
                "tags": [
                    {"lead": tag.lead, "incarnation": tag.incarnation, "seq": tag.number, "bar": tag.bar}
                    for tag in tags
                ],
            },
        )


def _consumed(number: int, items: list[_Waiting]) -> Consumed | None:
    """Events of logged streams count against a credit of their own, gaps and silence there against none."""
    count = sum(each.place is None for each in items)
    logged = sum(each.place is not None and isinstance(each.item, Publication) for each in items)
    return Consumed(number, count, logged) if count or logged else None
