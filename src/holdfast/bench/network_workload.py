"""What is published and who wants it: events of 418 bytes, filters, and beforehand what each subscriber is owed.

Three shapes. *Fan-out*: subscribers in four groups, each event for one group, so 25 deliveries an event to a hundred
subscribers. *Stream*: everything for everybody. *Content*: thousands of subscriptions with equality and ranges, dealt
out to a hundred connections, about five of which match an event (``predicate_workload``).

A pool of different events is published over and over under new numbers. The broker cannot know that, and what matches
each of them is worked out only once, by the pure engine.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from holdfast.bench.network_sink import Due, due
from holdfast.bench.network_wire import PUBLISHER, publish_body
from holdfast.bench.predicate_workload import PredicateWorkload
from holdfast.events.event import Event
from holdfast.events.packed import pack
from holdfast.events.value import Value
from holdfast.filters.expression import Filter
from holdfast.filters.parse import parse_filter
from holdfast.matching.hashed import HashedIndex
from holdfast.messages.publications import Publication

__all__ = ["EVENT_BYTES", "GROUPS", "SEED", "Owed", "Segment", "Shape", "Workload", "order", "padded"]

SEED: Final = 20_261_115
EVENT_BYTES: Final = 418  #: of an event with its publisher and number, as it stands in a frame
FRAME_EVENTS: Final = 64  #: how many a publisher puts into one frame
FIRST_NUMBER: Final = 1_000_000  #: so that all numbers have the same length
POOL: Final = 1_000
GROUPS: Final = 4
MATCHES: Final = 5.0

#: The connections that get an event, each with its subscriptions that match.
Owed = list[tuple[int, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Shape:
    """A workload by its name, so that another process can make the same."""

    kind: str  #: fan-out, stream or content
    connections: int
    subscriptions: int

    @staticmethod
    def from_text(text: str) -> Shape:
        """Read what ``str`` writes."""
        kind, connections, subscriptions = text.split(":")
        return Shape(kind, int(connections), int(subscriptions))

    def __str__(self) -> str:
        return f"{self.kind}:{self.connections}:{self.subscriptions}"

    def workload(self) -> Workload:
        """The same every time."""
        rng = random.Random(SEED)
        if self.kind == "content":
            return _content(rng, self.subscriptions, self.connections)
        group = " WHERE group = 'g{}'" if self.kind == "fan-out" else ""
        filters = [[parse_filter(f"orders/#{group.format(i % GROUPS)}")] for i in range(self.connections)]
        return Workload(filters, [order(rng, i) for i in range(POOL)])


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of events to be published in one go, and what follows from it."""

    bodies: list[tuple[int, bytes]]  #: kinds and bodies of the frames
    numbers: list[int]  #: of the last event of each frame
    deliveries: list[int]  #: how many each frame causes
    rows: list[list[Due]]  #: what each connection is owed
    events: int


class Workload:
    """Subscriptions by connection, and events with what they match."""

    def __init__(self, filters: Sequence[Sequence[Filter]], events: Sequence[Event]) -> None:
        self.filters = [[str(each) for each in own] for own in filters]
        self.packed = [padded(event) for event in events]
        self.owed = _owed(filters, events)  #: by event of the pool
        self._next = 0

    def fresh(self) -> Workload:
        """The same, numbered from the beginning."""
        again = copy.copy(self)
        again._next = 0
        return again

    @property
    def matches(self) -> float:
        """How many connections get an event."""
        return sum(map(len, self.owed)) / len(self.owed)

    def segment(self, events: int, frame_events: int = FRAME_EVENTS) -> Segment:
        """The next events."""
        segment = Segment([], [], [], [[] for _ in self.filters], events)
        for done in range(0, events, frame_events):
            self._add_frame(segment, min(frame_events, events - done))
        return segment

    def _add_frame(self, segment: Segment, size: int) -> None:
        first = FIRST_NUMBER + self._next
        places = [(self._next + i) % len(self.packed) for i in range(size)]
        self._next += size
        segment.bodies.append(publish_body(first, [self.packed[i] for i in places]))
        segment.numbers.append(first + size - 1)
        segment.deliveries.append(sum(len(self.owed[i]) for i in places))
        for n, i in enumerate(places, start=first):
            made: dict[tuple[int, ...], Due] = {}
            for connection, subscriptions in self.owed[i]:
                row = made.get(subscriptions)
                if row is None:
                    row = made[subscriptions] = due(subscriptions, PUBLISHER, n)
                segment.rows[connection].append(row)


def _owed(filters: Sequence[Sequence[Filter]], events: Sequence[Event]) -> list[Owed]:
    index = HashedIndex()
    owners: list[tuple[int, int]] = []
    for connection, own in enumerate(filters):
        for number, filter in enumerate(own, start=1):
            slot = index.add(filter)
            assert slot == len(owners)
            owners.append((connection, number))
    owed: list[Owed] = []
    for slots in index.match(events):
        shares: dict[int, tuple[int, ...]] = {}
        for slot in slots:
            connection, number = owners[slot]
            shares[connection] = (*shares.get(connection, ()), number)
        owed.append(list(shares.items()))
    return owed


def padded(event: Event, size: int = EVENT_BYTES) -> bytes:
    """An event packed, with a payload that brings it to its size in a frame, unless it is larger already."""
    payload = event.payload
    while True:
        packed = pack(Event(event.topic, event.attributes, payload))
        short = size - len(msgspec.msgpack.encode(Publication(PUBLISHER, FIRST_NUMBER, packed)))
        if short <= 0:
            return packed
        payload += bytes(short)  # the length may come to need another byte: then one too many stays


def order(rng: random.Random, i: int) -> Event:
    """An event for the group that is ``i`` modulo ``GROUPS``."""
    attributes: dict[str, Value] = {
        "group": f"g{i % GROUPS}",
        "symbol": f"S{rng.randrange(1_000):03}",
        "price": round(rng.uniform(50, 400), 2),
        "quantity": rng.randrange(1, 1_000),
        "side": rng.choice(("buy", "sell")),
        "urgent": rng.random() < 0.1,
    }
    return Event("orders/eu", attributes)


def _content(rng: random.Random, subscriptions: int, connections: int) -> Workload:
    drawn = PredicateWorkload(rng, subscriptions=subscriptions, matches=MATCHES)
    filters: list[list[Filter]] = [[] for _ in range(connections)]
    for i in range(subscriptions):
        filters[i % connections].append(drawn.filter())
    return Workload(filters, [drawn.event() for _ in range(POOL)])
