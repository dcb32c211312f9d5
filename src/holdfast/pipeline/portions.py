"""A portion of a range of a log: its events under their ticks, as they were logged, and what is lost among them.

Whether an event is wanted is decided here, where it lies: by the filter, in the language and with the meaning that
subscribers have (contracts.md §2). A portion is limited by its events and their bytes, and by the bytes that were
looked through for it: a filter that hardly matches gives small portions soon, not large ones late.

Rows are made of a portion by ``pages``, here or wherever it was sent to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from holdfast.errors import FilterError, MalformedEvent
from holdfast.events.packed import unpack_all
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.expression import Filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.messages.ticks import Lost, Tick
from holdfast.pipeline.alike import Engine
from holdfast.pipeline.dividing import new_engine
from holdfast.pipeline.errors import BadRequest, Gap
from holdfast.pipeline.ranges import Ranges
from holdfast.pipeline.requests import ReachAnswer, ReachRequest, ReadRequest, RecordsRequest
from holdfast.pipeline.sieve import Sieve
from holdfast.storage.records import Records
from holdfast.streams.records import read_records

__all__ = ["NO_EVENT", "Events", "Portion", "reach", "read_portion"]

LOOKED_BYTES_MAX: Final = 64 << 20  #: looked through for one portion
SIEVED_EVENTS: Final = 4_096  #: at a time, where there is a filter
JUDGED_EVENTS: Final = 256  #: of those that pass the sieve, at a time

NO_EVENT: Final = (msgspec.MsgspecError, UnicodeDecodeError, MalformedEvent)  #: raised for what is none


class Events(NamedTuple):
    """Some that follow each other."""

    ticks: Any  #: of numpy
    records: Records


class Portion(NamedTuple):
    """Everything up to ``covered``, in order, of a log in this incarnation."""

    pieces: Sequence[Events | Lost]
    covered: Tick
    incarnation: int


def read_portion(ranges: Ranges, request: ReadRequest | RecordsRequest) -> Portion:
    """What is asked for.

    :raises BadRequest: if the filter is none.
    :raises Gap: if something is lost, and that is to be a failure.
    :raises NoPubend, NotStable, DiskFailed: as ``Ranges.scan``.
    """
    incarnation = ranges.incarnation(request.pubend)
    gathering = _Gathering(request)
    for piece in ranges.scan(request.pubend, request.after, request.upto):
        if isinstance(piece, Lost):
            gathering.lose(piece)
        else:
            gathering.take(Events(np.array(piece.indexes, np.int64), Records.of(piece.records)))
        if gathering.is_full:
            return Portion(gathering.pieces, gathering.covered, incarnation)
    gathering.settle()
    covered = gathering.covered if gathering.is_full else request.upto
    return Portion(gathering.pieces, covered, incarnation)


class _Gathering:
    """One portion while it is gathered, piece by piece of the log.

    With a filter pieces wait until there are enough of them: they are sieved together.
    """

    def __init__(self, request: ReadRequest | RecordsRequest) -> None:
        self.pieces: list[Events | Lost] = []
        self.covered = request.after
        self._request = request
        self._filter = _filter(request.filter)
        self._events_left = request.events
        self._bytes_left = request.bytes
        self._looked = 0  #: bytes
        self._waiting: list[Events] = []
        self._waiting_events = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing more is to be taken."""
        return self._events_left <= 0 or self._bytes_left <= 0 or self._looked >= LOOKED_BYTES_MAX

    def lose(self, lost: Lost) -> None:
        """Ticks that are gone."""
        self.settle()
        if self.is_full:
            return
        if self._request.gaps == "fail":
            raise Gap(f"{self._request.pubend} has lost ({lost.after}, {lost.upto}]: {lost.reason}")
        self.pieces.append(lost)
        self._events_left -= self._request.gaps == "row"
        self.covered = max(self.covered, lost.upto)

    def take(self, events: Events) -> None:
        """Events, as many as there is room for."""
        if self._filter is None:
            self._take(events)
            return
        self._looked += events.records.size
        self._waiting.append(events)
        self._waiting_events += len(events.records)
        if self._waiting_events >= SIEVED_EVENTS or self._looked >= LOOKED_BYTES_MAX:
            self.settle()

    def _take(self, events: Events) -> None:
        """All of them, or those for which there is room; one may be larger than that."""
        ticks, records = events
        if len(records) > self._events_left or records.size > self._bytes_left:
            count = min(self._events_left, bisect_left(records.bounds, records.start + self._bytes_left))
            ticks, records = ticks[:count], records[:count]
        self.pieces.append(Events(ticks, records))
        self.covered = int(ticks[-1])
        self._looked += records.size
        self._events_left -= len(records)
        self._bytes_left -= records.size

    def settle(self) -> None:
        """Take what matches of those that wait."""
        waiting, self._waiting = self._waiting, []
        self._waiting_events = 0
        if not waiting:
            return
        assert self._filter is not None
        ticks = np.concatenate([each.ticks for each in waiting])
        found: list[bytes] = []
        at: list[int] = []
        for number, record in self._filter.matched([each.records for each in waiting]):
            if self._events_left <= 0 or self._bytes_left <= 0:
                break
            at.append(number)
            found.append(record)
            self._events_left -= 1
            self._bytes_left -= len(record)
        if found:
            self.pieces.append(Events(ticks[at], Records.of(found)))
        # What is full ends with the last that was taken: behind it more may match.
        is_cut = self._events_left <= 0 or self._bytes_left <= 0
        self.covered = int(ticks[at[-1]] if is_cut else ticks[-1])


class _Filter:
    """What of a portion is wanted."""

    def __init__(self, wanted: Filter) -> None:
        self._sieve = Sieve(wanted)
        self._matches = compile_filter(wanted)

    def matched(self, pieces: Sequence[Records]) -> Iterator[tuple[int, bytes]]:
        """Those that match, with their numbers; and those that are no events: rows are not made of them later."""
        records = new_engine(pieces)
        sure, maybe = self._sieve.passed(records)
        yield from merge(((number, records.record(number)) for number in sure), self._judged(records, maybe))

    def _judged(self, records: Engine, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        for start in range(0, len(numbers), JUDGED_EVENTS):
            some = numbers[start : start + JUDGED_EVENTS]
            found = [records.record(number) for number in some]
            for i in self._picked(found):
                yield some[i], found[i]

    def _picked(self, records: Sequence[bytes]) -> list[int]:
        try:
            events = unpack_all([publication.event for publication in read_records(records)])
        except NO_EVENT:
            if len(records) == 1:
                return [0]
            return [i for i, each in enumerate(records) if self._picked([each])]
        return [i for i, event in enumerate(events) if self._matches(Subject(event))]


def _filter(text: str | None) -> _Filter | None:
    if text is None or text.strip() == "#":
        return None
    try:
        return _Filter(parse_filter(text))
    except FilterError as error:
        raise BadRequest(f"the filter: {error}") from error


def reach(ranges: Ranges, request: ReachRequest) -> ReachAnswer:
    """How far so many events go, whatever is in them; a gap counts for one. The first may be larger than all may be.

    :raises NoPubend, NotStable, DiskFailed: as ``Ranges.scan``.
    """
    events = size = 0
    covered = request.after
    for piece in ranges.scan(request.pubend, request.after, request.upto):
        if isinstance(piece, Lost):
            events, covered = events + 1, piece.upto
            if events >= request.events:
                return ReachAnswer(covered, events, size)
            continue
        for tick, length in zip(piece.indexes, Records.of(piece.records).lengths, strict=True):
            if events and size + length > request.bytes:
                return ReachAnswer(covered, events, size)
            events, size, covered = events + 1, size + length, tick
            if events >= request.events:
                return ReachAnswer(covered, events, size)
    return ReachAnswer(request.upto, events, size)
