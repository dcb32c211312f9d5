"""Pages of rows, made of portions of a log.

Rows are made by columns, many at a time, and the pieces of a portion are small: so events wait until there are enough
of them. What is lost among them is told in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from holdfast.messages.ticks import Lost, Tick
from holdfast.pipeline.columns import Shape, shape_of
from holdfast.pipeline.errors import BadOption, BadRequest, Gap
from holdfast.pipeline.event_columns import EventColumns
from holdfast.pipeline.portions import NO_EVENT, Events, Portion, read_portion
from holdfast.pipeline.ranges import Ranges
from holdfast.pipeline.requests import ReadRequest
from holdfast.pipeline.rows import GAP, SILENCE, RowBuilder
from holdfast.storage.records import Records
from holdfast.streams.store_events import DAMAGED

__all__ = ["BATCH_ROWS", "Page", "read_page", "rows_of"]

#: So much becomes rows together.
BATCH_ROWS: Final = 8_192
BATCH_BYTES: Final = 4 << 20


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
    shape = _shape(request)
    return _made(read_portion(ranges, request), request, shape)


def rows_of(portion: Portion, request: ReadRequest) -> Page:
    """The rows of a portion of what is asked for.

    :raises BadRequest, Gap: as ``read_page``.
    """
    return _made(portion, request, _shape(request))


def _shape(request: ReadRequest) -> Shape:
    try:
        return shape_of(request.columns, request.attributes)
    except BadOption as error:
        raise BadRequest(str(error)) from error


def _made(portion: Portion, request: ReadRequest, shape: Shape) -> Page:
    rows = RowBuilder(shape, request.stream, request.pubend, portion.incarnation)
    maker = _PageMaker(request, rows)
    for piece in portion.pieces:
        if isinstance(piece, Lost):
            maker.lose(piece)
        else:
            maker.take(piece)
    return maker.page(portion.covered)


class _PageMaker:
    """One page while it is made."""

    def __init__(self, request: ReadRequest, rows: RowBuilder) -> None:
        self._request = request
        self._rows = rows
        self._told = request.after if request.told is None else request.told
        self._waiting: list[Events] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0

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
        self._told = lost.upto

    def take(self, events: Events) -> None:
        """Events, as many as become rows together at a time."""
        while self._waiting_rows + len(events.records) > BATCH_ROWS:
            fits = BATCH_ROWS - self._waiting_rows
            self._wait(Events(events.ticks[:fits], events.records[:fits]))
            self._settle()
            events = Events(events.ticks[fits:], events.records[fits:])
        self._wait(events)
        if self._waiting_bytes >= BATCH_BYTES:
            self._settle()

    def _wait(self, events: Events) -> None:
        if len(events.records):
            self._waiting.append(events)
            self._waiting_rows += len(events.records)
            self._waiting_bytes += events.records.size

    def _settle(self) -> None:
        """Make rows of all that waits."""
        waiting, self._waiting = self._waiting, []
        self._waiting_rows = self._waiting_bytes = 0
        if waiting:
            self._add(np.concatenate([each.ticks for each in waiting]), [each.records for each in waiting])

    def _add(self, ticks: Any, pieces: Sequence[Records]) -> None:
        try:
            events = EventColumns(ticks, pieces)
        except NO_EVENT:  # one of them is whole, and not what a pubend writes
            if len(ticks) == 1:
                tick = int(ticks[0])
                self._lose(Lost(tick - 1, tick, DAMAGED))
                return
            half, records = len(ticks) // 2, Records.joined(pieces)
            self._add(ticks[:half], [records[:half]])
            self._add(ticks[half:], [records[half:]])
            return
        self._rows.add_events(self._told, events)
        self._told = int(ticks[-1])

    def page(self, covered: Tick) -> Page:
        """What there is, up to here."""
        self._settle()
        if covered == self._request.upto and self._told < covered and self._request.silence:
            self._rows.add_other(SILENCE, self._told, covered)
            self._told = covered
        return Page(self._rows.schema, self._rows.batches(), covered, self._told)
