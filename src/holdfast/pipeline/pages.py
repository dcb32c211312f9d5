"""Answers to requests, from ranges of logs: the rows of a page, and how far a number of events goes.

Whether an event is wanted is decided here, where it lies: by the filter, in the language and with the meaning that
subscribers have (contracts.md §2).

A page is limited by its rows and their bytes, and by the bytes that were looked through for it: a filter that hardly
matches gives small pages soon, not large ones late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.errors import FilterError, MalformedEvent
from holdfast.events.packed import unpack_all
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.messages.ticks import Lost, Tick
from holdfast.pipeline.columns import shape_of
from holdfast.pipeline.errors import BadOption, BadRequest, Gap
from holdfast.pipeline.event_columns import EventColumns
from holdfast.pipeline.ranges import Ranges
from holdfast.pipeline.requests import ReachAnswer, ReachRequest, ReadRequest
from holdfast.pipeline.rows import GAP, SILENCE, RowBuilder
from holdfast.storage.records import Records
from holdfast.streams.pubend import read_records
from holdfast.streams.store_events import DAMAGED

__all__ = ["Page", "reach", "read_page"]

LOOKED_BYTES_MAX: Final = 64 << 20  #: looked through for one page
#: So much becomes rows together.
BATCH_ROWS: Final = 8_192
BATCH_BYTES: Final = 4 << 20

_NO_EVENT: Final = (msgspec.MsgspecError, UnicodeDecodeError, MalformedEvent)  #: raised for what is none


class Page(NamedTuple):
    """Record batches of everything up to ``covered``; the last row ends at ``told``."""

    schema: Any
    batches: list[Any]
    covered: Tick
    told: Tick


def read_page(ranges: Ranges, request: ReadRequest) -> Page:
    """The rows that are asked for.

    :raises BadRequest: if that makes no sense.
    :raises Gap: if something is lost, and that is to be a failure.
    :raises NoPubend, NotStable, DiskFailed: as ``Ranges.scan``.
    """
    try:
        shape = shape_of(request.columns, request.attributes)
    except BadOption as error:
        raise BadRequest(str(error)) from error
    incarnation = ranges.incarnation(request.pubend)
    maker = _PageMaker(request, RowBuilder(shape, request.stream, request.pubend, incarnation))
    for piece in ranges.scan(request.pubend, request.after, request.upto):
        if isinstance(piece, Lost):
            maker.lose(piece)
        else:
            maker.take(piece.indexes, Records.of(piece.records))
        if maker.is_full:
            return maker.page()
    return maker.whole_page()


class _PageMaker:
    """One page while it is made, piece by piece of the log.

    Events wait until there are enough of them: they are turned into rows by columns, and pieces are small.
    """

    def __init__(self, request: ReadRequest, rows: RowBuilder) -> None:
        self._request = request
        self._rows = rows
        self._matches = _matcher(request.filter)
        self._covered = request.after
        self._told = request.after if request.told is None else request.told
        self._events_left = request.events
        self._bytes_left = request.bytes
        self._looked = 0  #: bytes
        self._waiting_ticks: list[Tick] = []
        self._waiting: list[Records] = []
        self._waiting_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing more is to be taken."""
        return self._events_left <= 0 or self._bytes_left <= 0 or self._looked >= LOOKED_BYTES_MAX

    def lose(self, lost: Lost) -> None:
        """Ticks that are gone."""
        self._settle()
        self._lose(lost)

    def _lose(self, lost: Lost) -> None:
        request = self._request
        if request.gaps == "fail":
            raise Gap(f"{request.pubend} has lost ({lost.after}, {lost.upto}]: {lost.reason}")
        if request.silence and self._told < lost.after:
            self._rows.add_other(SILENCE, self._told, lost.after)
        if request.gaps == "row":
            self._rows.add_other(GAP, lost.after, lost.upto, lost.reason)
            self._events_left -= 1
        self._covered, self._told = max(self._covered, lost.upto), lost.upto

    def take(self, ticks: Sequence[Tick], records: Records) -> None:
        """Events, as many as there is room for: all at once where that is plain, else one by one."""
        size = records.size
        has_room = (
            len(records) <= self._events_left
            and size <= self._bytes_left
            and self._looked + size <= LOOKED_BYTES_MAX
        )
        if has_room or len(records) == 1:
            self._take(ticks, records, size)
            return
        for i, tick in enumerate(ticks):
            if not self.is_full:
                self._take((tick,), records[i : i + 1], records.lengths[i])

    def _take(self, ticks: Sequence[Tick], records: Records, size: int) -> None:
        self._looked += size
        self._covered = ticks[-1]
        if self._matches is not None:
            picked = _picked(records, self._matches)
            if not picked:
                return
            ticks, records = [ticks[i] for i in picked], Records.of([records[i] for i in picked])
            size = records.size
        self._waiting_ticks += ticks
        self._waiting.append(records)
        self._waiting_bytes += size
        self._events_left -= len(ticks)
        self._bytes_left -= size
        while len(self._waiting_ticks) >= BATCH_ROWS:
            self._make_rows(BATCH_ROWS)
        if self._waiting_bytes >= BATCH_BYTES:
            self._settle()

    def _settle(self) -> None:
        """Make rows of all that waits."""
        if self._waiting_ticks:
            self._make_rows(len(self._waiting_ticks))

    def _make_rows(self, count: int) -> None:
        """Of the first that wait."""
        pieces, over = self._waiting, len(self._waiting_ticks) - count
        self._waiting = []
        if over:
            fits = len(pieces[-1]) - over
            self._waiting.append(pieces[-1][fits:])
            pieces[-1] = pieces[-1][:fits]
        ticks = self._waiting_ticks[:count]
        del self._waiting_ticks[:count]
        self._waiting_bytes = sum(piece.size for piece in self._waiting)
        self._add(ticks, pieces)

    def _add(self, ticks: Sequence[Tick], pieces: Sequence[Records]) -> None:
        try:
            events = EventColumns(ticks, pieces)
        except _NO_EVENT:  # one of them is whole, and not what a pubend writes
            if len(ticks) == 1:
                self._lose(Lost(ticks[0] - 1, ticks[0], DAMAGED))
                return
            half, records = len(ticks) // 2, Records.joined(pieces)
            self._add(ticks[:half], [records[:half]])
            self._add(ticks[half:], [records[half:]])
            return
        self._rows.add_events(self._told, events)
        self._told = ticks[-1]

    def whole_page(self) -> Page:
        """There is nothing more in the range."""
        self._covered = self._request.upto
        return self.page()

    def page(self) -> Page:
        """What there is."""
        self._settle()
        if self._covered == self._request.upto and self._told < self._covered and self._request.silence:
            self._rows.add_other(SILENCE, self._told, self._covered)
            self._told = self._covered
        return Page(self._rows.schema, self._rows.batches(), self._covered, self._told)


def _picked(records: Sequence[bytes], matches: Callable[[Subject], bool]) -> list[int]:
    """The numbers of those that match, or are no events: that is found out when rows are made of them."""
    try:
        events = unpack_all([publication.event for publication in read_records(records)])
    except _NO_EVENT:
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
        for tick, record in zip(piece.indexes, piece.records, strict=True):
            if events and size + len(record) > request.bytes:
                return ReachAnswer(covered, events, size)
            events, size, covered = events + 1, size + len(record), tick
            if events >= request.events:
                return ReachAnswer(covered, events, size)
    return ReachAnswer(request.upto, events, size)
