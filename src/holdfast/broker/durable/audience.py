"""Everybody who reads, as the streams see them: who wants which event, and how they are spoken to (``hosted.Desk``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.broker.durable.network import Network
from holdfast.broker.durable.reader import Reader
from holdfast.broker.settings import Settings
from holdfast.broker.statistics import Counters
from holdfast.events.event import Content
from holdfast.events.packed import unpack
from holdfast.filters.subject import Subject
from holdfast.matching.engine import new_index
from holdfast.messages.durable import Portion
from holdfast.messages.publications import Publication
from holdfast.overlay.transport import Trace

__all__ = ["Audience"]

#: So many answers of the matching engine are remembered as readers; then all are forgotten.
ANSWERS_MAX: Final = 10_000


class Audience:
    """The readers by their numbers."""

    def __init__(self, settings: Settings, network: Network, counters: Counters) -> None:
        self._settings = settings
        self._network = network
        self._counters = counters
        self.readers: dict[int, Reader] = {}
        self.gaps: dict[str, int] = {}  #: that were told, by reason
        self._index = new_index()
        self._slots: dict[int, int] = {}  #: by reader
        self._by_slot: dict[int, int] = {}
        self._answers: dict[tuple[int, ...], list[int]] = {}  #: for the slots that match, the readers

    def add(self, reader: Reader) -> None:
        """One more."""
        self.readers[reader.number] = reader
        slot = self._index.add(reader.filter)
        self._slots[reader.number] = slot
        self._by_slot[slot] = reader.number
        self._answers.clear()

    def remove(self, reader: Reader) -> None:
        """One less."""
        slot = self._slots.pop(reader.number)
        del self._by_slot[slot]
        self._answers.clear()
        self._index.remove(slot)
        del self.readers[reader.number]

    def emit(self, effect: object) -> None:
        """Have something done."""
        self._network.emit(effect)

    def matches(self, events: Sequence[Content]) -> list[list[int]]:
        """For each event the readers it is for, ascending; of events that are for the same ones, the same list."""
        if not self._slots or not events:
            return [[] for _ in events]
        if len(self._answers) > ANSWERS_MAX:
            self._answers.clear()
        by_slot, answers = self._by_slot, self._answers
        matches = []
        for slots in self._index.match(events):
            key = tuple(slots)
            found = answers.get(key)
            if found is None:
                found = answers[key] = sorted([by_slot[slot] for slot in slots])
            matches.append(found)
        return matches

    def accepted(self, reader: Reader, publications: Sequence[Publication]) -> list[int]:
        """The positions of what one reader wants."""
        contents = (unpack(publication.event) for publication in publications)
        return [i for i, content in enumerate(contents) if reader.accepts(Subject(content))]

    def on_delivered(self, reader: Reader, portion: Portion) -> None:
        """Something was sent to a client."""
        self._counters.delivered += len(portion.at)
        if portion.lost_through:
            for gaps in (reader.gaps, self.gaps):
                gaps[portion.reason] = gaps.get(portion.reason, 0) + 1
        if self._settings.trace_forwards:
            for i in portion.at:
                publisher, n = portion.batch.publications[i].id
                copy = {"from": self._settings.name, "to": reader.port.name if reader.port else ""}
                self.emit(Trace("forward", {**copy, "publisher": publisher, "n": n, "again": False}))
