"""The streams of a network, at a client: which one a topic belongs to, and so which way an event goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from holdfast.errors import MalformedEvent
from holdfast.events.event import DEFAULT_LIMITS, Limits
from holdfast.events.packed import PackedReader
from holdfast.events.topic import topic_levels
from holdfast.filters.topic import parse_pattern
from holdfast.messages.publications import Publication
from holdfast.messages.streams import Guarantee, StreamOrder

__all__ = ["Sorted", "StreamMap"]

#: Topics whose stream is remembered; forgotten all at once when there are this many.
TOPICS_MAX: Final = 10_000


@dataclass(slots=True)
class Sorted:
    """Events by the way they go, each in its order."""

    reliable: dict[str, list[Publication]] = field(default_factory=dict)  #: by stream
    best_effort: list[Publication] = field(default_factory=list)
    refused: list[tuple[int, str, str]] = field(default_factory=list)  #: as in ``Rejected``


class StreamMap:
    """The streams of a network, and the limits of its events."""

    def __init__(self, streams: Sequence[StreamOrder], limits: Limits = DEFAULT_LIMITS) -> None:
        self.streams = tuple(streams)
        self._read = PackedReader(limits).read
        #: their names
        self.reliable = frozenset(each.stream for each in streams if each.guarantee is Guarantee.RELIABLE)
        self._durable = frozenset(each.stream for each in streams if each.guarantee is Guarantee.DURABLE)
        self._patterns = [
            (parse_pattern(pattern), each.stream) for each in streams for pattern in each.topics
        ]
        self._known: dict[str, str | None] = {}

    def sort(self, publications: Sequence[Publication]) -> Sorted:
        """Where each event belongs. What a member relays is checked here, or nowhere."""
        found = Sorted()
        for publication in publications:
            try:
                topic = self._read(publication.event).topic
            except MalformedEvent as problem:
                found.refused.append((publication.n, str(problem), "event"))
                continue
            stream = self.stream_of(topic)
            if stream is None:
                found.refused.append((publication.n, f"no stream has the topic {topic!r}", "event"))
            elif stream in self._durable:
                why = f"the stream {stream!r} is durable, and its events are published by plain clients only"
                found.refused.append((publication.n, why, ""))
            elif stream in self.reliable:
                found.reliable.setdefault(stream, []).append(publication)
            else:
                found.best_effort.append(publication)
        return found

    def stream_of(self, topic: str) -> str | None:
        """The stream a topic belongs to; None: it belongs to none."""
        if topic in self._known:
            return self._known[topic]
        levels = topic_levels(topic)
        found = next((stream for pattern, stream in self._patterns if pattern.matches(levels)), None)
        if len(self._known) >= TOPICS_MAX:
            self._known.clear()
        self._known[topic] = found
        return found
