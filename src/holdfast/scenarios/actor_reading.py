"""How the application of a scenario takes what its client received: at once, or one item at a time when it is slow.

What it takes is written to the trace and reported to the client as consumed; what a slow application has not
taken counts against the buffer of its subscription, so a client stops reading when its application does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from holdfast.client.input import Consumed
from holdfast.client.item import Gap
from holdfast.client.member import MemberCore
from holdfast.client.protocol import ClientCore
from holdfast.clock import Instant
from holdfast.events.packed import unpack
from holdfast.messages.publications import Copy, Publication
from holdfast.overlay.transport import Trace

__all__ = ["Reading"]


class Reading:
    """Items between the client and the application, in the order of their delivery."""

    def __init__(self, subscriber: str, core: ClientCore | MemberCore) -> None:
        self._subscriber = subscriber
        self._core = core
        self._per_event_ns = 0
        self._busy_until: Instant = 0
        #: Bounded by the buffers of the subscriptions: past them the client stops reading.
        self._items: deque[tuple[int, str, Publication | Gap, Copy | None]] = deque()

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

    def on_delivered(
        self,
        number: int,
        subscription: str,
        items: Sequence[Publication | Gap],
        copies: Sequence[Copy | None] | None,
    ) -> None:
        """The client has items for a subscription."""
        for position, item in enumerate(items):
            self._items.append((number, subscription, item, copies[position] if copies else None))

    def forget(self, number: int, now: Instant, effects: list[Any]) -> None:
        """Drop what waits for a subscription that ends."""
        kept = deque(item for item in self._items if item[0] != number)
        dropped = len(self._items) - len(kept)
        self._items = kept
        if dropped:
            effects += self._core.step(Consumed(number, dropped), now)

    def go_on(self, now: Instant, effects: list[Any]) -> None:
        """Take what the application has time for now."""
        consumed: dict[int, int] = {}
        while self._items and self._busy_until <= now:
            number, subscription, item, copy = self._items.popleft()
            effects.append(self._line(subscription, item, copy))
            consumed[number] = consumed.get(number, 0) + 1
            if self._per_event_ns:
                self._busy_until = now + self._per_event_ns
        for number, count in consumed.items():
            effects += self._core.step(Consumed(number, count), now)

    def _line(self, subscription: str, item: Publication | Gap, copy: Copy | None) -> Trace:
        if isinstance(item, Gap):
            return Trace(
                "gap",
                {
                    "subscriber": self._subscriber,
                    "subscription": subscription,
                    "pubend": item.pubend,
                    "after": item.after,
                    "upto": item.upto,
                    "reason": item.reason,
                },
            )
        tags = copy.tags if copy is not None else ()
        return Trace(
            "deliver",
            {
                "subscriber": self._subscriber,
                "subscription": subscription,
                "publisher": item.publisher,
                "n": item.n,
                "topic": unpack(item.event).topic,
                "pubend": item.publisher,
                "tick": item.n,
                "tags": [
                    {"lead": tag.lead, "incarnation": tag.incarnation, "seq": tag.number, "bar": tag.bar}
                    for tag in tags
                ],
            },
        )
