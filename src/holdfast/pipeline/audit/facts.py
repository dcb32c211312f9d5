"""The many lines of one run, sorted by what they are about: what the rules of the local engine ask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from holdfast.pipeline.audit.line import Line
from holdfast.pipeline.audit.plan import Plan, Tagged
from holdfast.pipeline.audit.rematch import Rematch
from holdfast.pipeline.audit.tenure import Key, Tenure

__all__ = ["Delivery", "EventKey", "Facts", "Forward", "Item", "Position", "Published"]

EventKey: TypeAlias = tuple[str, int]  #: publisher and n
Position: TypeAlias = tuple[str, int]  #: pubend and tick

#: Events are matched so many at a time.
_BATCH = 10_000


class Published(NamedTuple):
    """A ``publish`` line."""

    t: float
    node: str
    i: int
    topic: str
    attributes: dict[str, Any]


class Accepted(NamedTuple):
    """An ``accepted`` line."""

    pubend: str
    tick: int
    node: str
    i: int
    t: float


class Delivery(NamedTuple):
    """A ``deliver`` line; they are compared by this order of their fields."""

    i: int
    t: float
    publisher: str
    n: int
    pubend: str
    tick: int
    topic: str
    node: str

    @property
    def event(self) -> EventKey:
        """What was delivered."""
        return self.publisher, self.n


class Item(NamedTuple):
    """A ``silence`` or ``gap`` line: nothing matched in (after, upto], or something may have."""

    i: int
    t: float
    after: int
    upto: int
    node: str
    pubend: str


class Forward(NamedTuple):
    """A ``forward`` line."""

    t: float
    node: str
    i: int
    source: str
    to: str
    event: EventKey


class Facts:
    """What was published, accepted, delivered, told and forwarded in one run."""

    def __init__(self) -> None:
        self.published: dict[EventKey, list[Published]] = defaultdict(list)
        self.accepted: dict[EventKey, list[Accepted]] = defaultdict(list)
        self.delivered: dict[Key, list[Delivery]] = defaultdict(list)
        self.tagged: list[Tagged] = []
        self.told: dict[Key, list[Item]] = defaultdict(list)
        self.forwarded: list[Forward] = []
        self.certain: dict[EventKey, list[int]] = {}  #: the filters that match, as the run numbers them
        self.possible: dict[EventKey, list[int]] = {}
        self.filters: dict[str, int] = {}

    def add(self, line: Line) -> None:
        """Take a line; the fields of its kind are there, for the reader has looked."""
        event: Any = (line.publisher, line.n)
        key: Any = (line.subscriber, line.subscription)
        row: Any = line
        match line.kind:
            case "publish":
                self.published[event].append(Published(row.t, row.node, row.i, row.topic, row.attributes))
            case "accepted":
                self.accepted[event].append(Accepted(row.pubend, row.tick, row.node, row.i, row.t))
            case "deliver":
                self.delivered[key].append(
                    Delivery(row.i, row.t, row.publisher, row.n, row.pubend, row.tick, row.topic, row.node)
                )
                if row.tags:
                    self.tagged.append(Tagged(key, row.i, row.publisher, row.n, row.tags))
            case "silence" | "gap":
                self.told[key].append(Item(row.i, row.t, row.after, row.upto, row.node, row.pubend))
            case "forward":
                self.forwarded.append(Forward(row.t, row.node, row.i, row.source, row.to, event))

    @property
    def publishers(self) -> set[str]:
        """All who published anything."""
        return {publisher for publisher, _ in self.published}

    def settle(self, plan: Plan) -> None:
        """All lines are there: put them in order, and match every event with every filter of the run."""
        for lines in self.published.values():
            lines.sort(key=lambda line: line[:3])
        for receipts in self.accepted.values():
            receipts.sort()
        for deliveries in self.delivered.values():
            deliveries.sort()
        for items in self.told.values():
            items.sort()
        texts = sorted({line.filter or "" for lines in plan.chronicle.asking.values() for line in lines})
        self.filters = {text: place for place, text in enumerate(texts)}
        rematch = Rematch(texts)
        keys = list(self.published)
        for start in range(0, len(keys), _BATCH):
            batch = keys[start : start + _BATCH]
            contents = [(first.topic, first.attributes) for first in map(self.first, batch)]
            for event, (certain, possible) in zip(batch, rematch.matches(contents), strict=True):
                self.certain[event] = certain
                self.possible[event] = possible
        self.positions = self._positions() if plan.is_logged else {}

    def first(self, event: EventKey) -> Published:
        """Its ``publish`` line; of several the first, by time."""
        return self.published[event][0]

    def _positions(self) -> dict[EventKey, Position]:
        """Where each event stands in the logs: receipts say so, and where none does, deliveries; least ones first.

        A receipt for a repeat may not know the tick any more, and says 0.
        """
        found: dict[EventKey, Position] = {}
        for event, receipts in self.accepted.items():
            known = [(line.pubend, line.tick) for line in receipts if line.tick]
            if known:
                found[event] = min(known)
        told: dict[EventKey, Position] = {}
        for line in (line for lines in self.delivered.values() for line in lines):
            if line.tick and line.event not in found:
                position = line.pubend, line.tick
                told[line.event] = min(position, told.get(line.event, position))
        return {**found, **told}

    def of(self, tenure: Tenure) -> Iterator[Delivery]:
        """The deliveries of a tenure, in order."""
        for line in self.delivered.get(tenure.key, ()):
            if tenure.begin_i < line.i < tenure.end_i:
                yield line

    def items_of(self, tenure: Tenure) -> Iterator[Item]:
        """What a tenure was told besides, in order."""
        for line in self.told.get(tenure.key, ()):
            if tenure.begin_i < line.i < tenure.end_i:
                yield line
