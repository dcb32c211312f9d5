"""A portion of a range of a log: its events under their ticks, as they were logged, and what is lost among them.

Whether an event is wanted is decided here, where it lies: by the filter, in the language and with the meaning that
subscribers have (contracts.md §2). A portion is limited by its events and their bytes, and by the bytes that were
looked through for it: a filter that hardly matches gives small portions soon, not large ones late.

Rows are made of a portion by ``pages``, here or wherever it was sent to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from holdfast.errors import FilterError, MalformedEvent
from holdfast.events.packed import unpack_all
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.messages.ticks import Lost, Tick
from holdfast.pipeline.errors import BadRequest, Gap
from holdfast.pipeline.ranges import Ranges
from holdfast.pipeline.requests import ReachAnswer, ReachRequest, ReadRequest, RecordsRequest
from holdfast.storage.records import Records
from holdfast.streams.pubend import read_records

__all__ = ["NO_EVENT", "Events", "Portion", "reach", "read_portion"]

LOOKED_BYTES_MAX: Final = 64 << 20  #: looked through for one portion

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
            gathering.take(np.array(piece.indexes, np.int64), Records.of(piece.records))
        if gathering.is_full:
            return Portion(gathering.pieces, gathering.covered, incarnation)
    return Portion(gathering.pieces, request.upto, incarnation)


class _Gathering:
    """One portion while it is gathered, piece by piece of the log."""

    def __init__(self, request: ReadRequest | RecordsRequest) -> None:
        self.pieces: list[Events | Lost] = []
        self.covered = request.after
        self._request = request
        self._matches = _matcher(request.filter)
        self._events_left = request.events
        self._bytes_left = request.bytes
        self._looked = 0  #: bytes

    @property
    def is_full(self) -> bool:
        """Whether nothing more is to be taken."""
        return self._events_left <= 0 or self._bytes_left <= 0 or self._looked >= LOOKED_BYTES_MAX

    def lose(self, lost: Lost) -> None:
        """Ticks that are gone."""
        if self._request.gaps == "fail":
            raise Gap(f"{self._request.pubend} has lost ({lost.after}, {lost.upto}]: {lost.reason}")
        self.pieces.append(lost)
        self._events_left -= self._request.gaps == "row"
        self.covered = max(self.covered, lost.upto)

    def take(self, ticks: Any, records: Records) -> None:
        """Events, as many as there is room for: all at once where that is plain, else one by one."""
        size = records.size
        has_room = (
            len(records) <= self._events_left
            and size <= self._bytes_left
            and self._looked + size <= LOOKED_BYTES_MAX
        )
        if has_room or len(records) == 1:
            self._take(ticks, records)
            return
        for i in range(len(records)):
            if not self.is_full:
                self._take(ticks[i : i + 1], records[i : i + 1])

    def _take(self, ticks: Any, records: Records) -> None:
        self._looked += records.size
        self.covered = int(ticks[-1])
        if self._matches is not None:
            picked = _picked(records, self._matches)
            if not picked:
                return
            ticks, records = ticks[picked], Records.of([records[i] for i in picked])
        self.pieces.append(Events(ticks, records))
        self._events_left -= len(records)
        self._bytes_left -= records.size


def _picked(records: Sequence[bytes], matches: Callable[[Subject], bool]) -> list[int]:
    """The numbers of those that match, or are no events: that is found out when rows are made of them."""
    try:
        events = unpack_all([publication.event for publication in read_records(records)])
    except NO_EVENT:
        return [0] if len(records) == 1 else [i for i, each in enumerate(records) if _picked([each], matches)]
    return [i for i, event in enumerate(events) if matches(Subject(event))]


def _matcher(text: str | None) -> Callable[[Subject], bool] | None:
    if text is None or text.strip() == "#":
        return None
    try:
        return compile_filter(parse_filter(text))
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
