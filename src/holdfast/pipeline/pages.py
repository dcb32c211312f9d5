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
from holdfast.pipeline.ranges import Ranges
from holdfast.pipeline.requests import ReachAnswer, ReachRequest, ReadRequest
from holdfast.pipeline.rows import GAP, SILENCE, RowBuilder
from holdfast.streams.pubend import read_records
from holdfast.streams.store_events import DAMAGED

__all__ = ["Page", "reach", "read_page"]

LOOKED_BYTES_MAX: Final = 64 << 20  #: looked through for one page


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
            maker.take(piece.indexes, piece.records)
        if maker.is_full:
            return maker.page()
    return maker.whole_page()


class _PageMaker:
    """One page while it is made, piece by piece of the log."""

    def __init__(self, request: ReadRequest, rows: RowBuilder) -> None:
        self._request = request
        self._rows = rows
        self._matches = _matcher(request.filter)
        self._covered = request.after
        self._told = request.after if request.told is None else request.told
        self._events_left = request.events
        self._bytes_left = request.bytes
        self._looked = 0  #: bytes

    @property
    def is_full(self) -> bool:
        """Whether nothing more is to be taken."""
        return self._events_left <= 0 or self._bytes_left <= 0 or self._looked >= LOOKED_BYTES_MAX

    def lose(self, lost: Lost) -> None:
        """Ticks that are gone."""
        request = self._request
        if request.gaps == "fail":
            raise Gap(f"{request.pubend} has lost ({lost.after}, {lost.upto}]: {lost.reason}")
        if request.silence and self._told < lost.after:
            self._rows.add_other(SILENCE, self._told, lost.after)
        if request.gaps == "row":
            self._rows.add_other(GAP, lost.after, lost.upto, lost.reason)
            self._events_left -= 1
        self._covered = self._told = lost.upto

    def take(self, ticks: Sequence[Tick], records: Sequence[bytes]) -> None:
        """Events, as many as there is room for: all at once where that is plain, else one by one."""
        size = sum(map(len, records))
        has_room = (
            len(records) <= self._events_left
            and size <= self._bytes_left
            and self._looked + size <= LOOKED_BYTES_MAX
        )
        if has_room or len(records) == 1:
            try:
                self._take(ticks, records, size)
                return
            except (msgspec.MsgspecError, MalformedEvent):  # whole, and not what a pubend writes
                if len(records) == 1:
                    self.lose(Lost(ticks[0] - 1, ticks[0], DAMAGED))
                    return
        for tick, record in zip(ticks, records, strict=True):
            if not self.is_full:
                self.take((tick,), (record,))

    def _take(self, ticks: Sequence[Tick], records: Sequence[bytes], size: int) -> None:
        publications = read_records(records)
        events = unpack_all([publication.event for publication in publications])
        self._looked += size
        self._covered = ticks[-1]
        if self._matches is not None:
            matches = self._matches
            picked = [i for i, event in enumerate(events) if matches(Subject(event))]
            if len(picked) < len(events):
                ticks = [ticks[i] for i in picked]
                publications = [publications[i] for i in picked]
                events = [events[i] for i in picked]
                size = sum(len(records[i]) for i in picked)
        if ticks:
            self._rows.add_events([self._told, *ticks[:-1]], ticks, publications, events, size)
            self._told = ticks[-1]
            self._events_left -= len(ticks)
            self._bytes_left -= size

    def whole_page(self) -> Page:
        """There is nothing more in the range."""
        self._covered = self._request.upto
        return self.page()

    def page(self) -> Page:
        """What there is."""
        if self._covered == self._request.upto and self._told < self._covered and self._request.silence:
            self._rows.add_other(SILENCE, self._told, self._covered)
            self._told = self._covered
        return Page(self._rows.schema, self._rows.batches(), self._covered, self._told)


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
