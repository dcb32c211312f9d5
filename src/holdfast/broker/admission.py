"""Where events enter the network: what a publisher hands in is read once, in full, and refused here or nowhere.

Everything behind this point may trust an event's bytes. A publisher's numbers increase; one that is not above the last
was sent again, and is acknowledged as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import lt

import msgspec

from holdfast.broker.durable.names import is_reserved
from holdfast.broker.settings import Stream
from holdfast.errors import MalformedEvent
from holdfast.events.event import Limits
from holdfast.events.packed import PackedEvent, PackedReader
from holdfast.events.topic import topic_levels
from holdfast.events.value import INT_MAX
from holdfast.filters.topic import parse_pattern
from holdfast.messages.publications import Batch, Publication, Rejected
from holdfast.messages.streams import Guarantee
from holdfast.node.breach import Breach, brief
from holdfast.routing.port import ClientPort

__all__ = ["Admission", "Admitted", "Entrance"]


class Admitted(msgspec.Struct):
    """The events of one stream out of a publisher's batch."""

    stream: str
    batch: Batch
    events: list[PackedEvent]


class Admission(msgspec.Struct):
    """What became of a publisher's batch. A Struct, since one is made per batch: no dataclass is made as fast."""

    admitted: list[Admitted]
    duplicates: list[int]
    rejected: list[Rejected]


class Entrance:
    """Reads, checks and sorts what publishers hand in."""

    #: Topics whose stream is remembered; forgotten all at once when there are this many.
    TOPICS_MAX = 10_000

    def __init__(self, streams: tuple[Stream, ...], limits: Limits) -> None:
        self._reader = PackedReader(limits)
        self._logged = {each.name for each in streams if each.guarantee is Guarantee.DURABLE}
        self._patterns = [
            (parse_pattern(pattern), stream.name) for stream in streams for pattern in stream.topics
        ]
        self._stream_of: dict[str, str | None] = {}

    def admit(self, port: ClientPort, publications: list[Publication]) -> Admission:
        """Take a publisher's batch.

        :raises Breach: if its numbers do not increase.
        """
        return self._admit_all(port, publications) or self._admit_each(port, publications)

    def _admit_all(self, port: ClientPort, publications: list[Publication]) -> Admission | None:
        """A batch of new events of one stream, all well, as nearly all batches are; None if it is another."""
        numbers = [publication.n for publication in publications]
        is_new = port.last_number < numbers[0] and numbers[-1] <= INT_MAX
        if not is_new or not all(map(lt, numbers, numbers[1:])):
            return None
        events = self._reader.read_all([publication.event for publication in publications])
        if events is None:
            return None
        streams = {self._stream_of.get(topic) for topic in {event.topic for event in events}}
        stream = streams.pop()
        if stream is None or streams:
            return None
        port.last_number = numbers[-1]
        return Admission([Admitted(stream, Batch(publications), events)], [], [])

    def _admit_each(self, port: ClientPort, publications: list[Publication]) -> Admission:
        numbers = [publication.n for publication in publications]
        if not all(map(lt, numbers, numbers[1:])):
            raise Breach("numbers that do not increase in one message")
        admission = Admission([], [], [])
        stream_of = self._stream_of
        read = self._reader.read
        kept: list[Publication] = []
        events: list[PackedEvent] = []
        current: str | None = None
        last = port.last_number
        logged = self._logged
        for publication in publications:
            n = publication.n
            is_old = not last < n <= INT_MAX
            if is_old and (not logged or not 1 <= n <= INT_MAX):
                self._take_old(port, n, admission)
                continue
            try:
                event = read(publication.event)
            except MalformedEvent as problem:
                self._reject(port, n, str(problem), admission)
                last = max(last, n)
                continue
            topic = event.topic
            stream = stream_of[topic] if topic in stream_of else self._find_stream(topic)
            if is_old and stream not in logged:  # what a log has, only the log knows
                self._take_old(port, n, admission)
                continue
            last = max(last, n)
            if stream is None:
                self._reject(port, n, f"no stream has the topic {topic!r}", admission)
                continue
            if stream != current:
                kept, events = [], []
                admission.admitted.append(Admitted(stream, Batch(kept), events))
                current = stream
            kept.append(publication)
            events.append(event)
        port.last_number = last
        return admission

    def problem_in(self, stream: str, events: Sequence[bytes]) -> str | None:
        """Why not all of these may enter as events of a stream, if they may not: which is the first, and why."""
        for data in events:
            try:
                event = self._reader.read(data)
            except MalformedEvent as problem:
                return brief(str(problem))
            topic = event.topic
            found = self._stream_of[topic] if topic in self._stream_of else self._find_stream(topic)
            if found != stream:
                whose = "no stream has it" if found is None else f"it is of the stream {found}"
                return f"the topic {brief(topic)!r} is not of the stream {stream}: {whose}"
        return None

    def _reject(self, port: ClientPort, n: int, problem: str, admission: Admission) -> None:
        admission.rejected.append(Rejected(n, problem, "event"))
        port.reject(n, brief(problem))

    def _take_old(self, port: ClientPort, n: int, admission: Admission) -> None:
        """What was sent again gets the answer it got before."""
        if not 1 <= n <= INT_MAX:
            admission.rejected.append(Rejected(n, f"the number {n} is outside 1 to 2^63-1", "event"))
        elif n in port.rejected:
            admission.rejected.append(Rejected(n, port.rejected[n], "event"))
        else:
            admission.duplicates.append(n)

    def _find_stream(self, topic: str) -> str | None:
        levels = topic_levels(topic)
        found = next((stream for pattern, stream in self._patterns if pattern.matches(levels)), None)
        if is_reserved(levels):
            found = None
        if len(self._stream_of) >= self.TOPICS_MAX:
            self._stream_of.clear()
        self._stream_of[topic] = found
        return found
