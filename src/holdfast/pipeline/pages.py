"""Answers to requests, from ranges of logs: the rows of a page, and how far a number of events goes.

Whether an event is wanted is decided here, where it lies: by the filter, in the language and with the meaning that
subscribers have (contracts.md §2).

A page is limited by its rows and their bytes, and by the bytes that were looked through for it: a filter that hardly
matches gives small pages soon, not large ones late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.errors import FilterError, MalformedEvent
from holdfast.events.packed import PackedEvent, unpack
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Lost, Tick
from holdfast.pipeline.columns import shape_of
from holdfast.pipeline.errors import BadOption, BadRequest, Gap
from holdfast.pipeline.ranges import Ranges
from holdfast.pipeline.requests import ReachAnswer, ReachRequest, ReadRequest
from holdfast.pipeline.rows import GAP, SILENCE, RowBuilder
from holdfast.streams.pubend import read_record
from holdfast.streams.store_events import DAMAGED

__all__ = ["Page", "reach", "read_page"]

BATCH_ROWS: Final = 8_192
BATCH_BYTES: Final = 4 << 20
LOOKED_BYTES_MAX: Final = 64 << 20  #: looked through for one page


class Page(NamedTuple):
    """Record batches of everything up to ``covered``; the last row ends at ``told``."""

    schema: Any
    batches: list[Any]
    covered: Tick
    told: Tick


class _Event(NamedTuple):
    """One record, read."""

    tick: Tick
    publication: Publication
    event: PackedEvent
    bytes: int  #: of the record


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
    matches = _matcher(request.filter)
    incarnation = ranges.incarnation(request.pubend)
    rows = RowBuilder(shape, request.stream, request.pubend, incarnation)
    batches: list[Any] = []
    covered, told = request.after, request.after if request.told is None else request.told
    events_left, bytes_left, looked = request.events, request.bytes, 0
    for item in _read(ranges, request):
        if isinstance(item, Lost):
            covered = item.upto
            if request.gaps == "fail":
                problem = f"{request.pubend} has lost ({item.after}, {item.upto}]: {item.reason}"
                raise Gap(problem)
            if request.silence and told < item.after:
                rows.add_other(SILENCE, told, item.after)
            if request.gaps == "row":
                rows.add_other(GAP, item.after, item.upto, item.reason)
                events_left -= 1
            told = item.upto
        else:
            tick, publication, event, size = item
            covered = tick
            looked += size
            if matches is None or matches(Subject(event)):
                rows.add_event(told, tick, publication, event)
                told = tick
                events_left -= 1
                bytes_left -= size
        if len(rows) >= BATCH_ROWS or rows.bytes >= BATCH_BYTES:
            batches.append(rows.batch())
        if events_left <= 0 or bytes_left <= 0 or looked >= LOOKED_BYTES_MAX:
            break
    else:
        covered = request.upto
    if covered == request.upto and told < covered and request.silence:
        rows.add_other(SILENCE, told, covered)
        told = covered
    if len(rows):
        batches.append(rows.batch())
    return Page(rows.schema, batches, covered, told)


def _matcher(text: str | None) -> Callable[[Subject], bool] | None:
    if text is None or text.strip() == "#":
        return None
    try:
        return compile_filter(parse_filter(text))
    except FilterError as error:
        raise BadRequest(f"the filter: {error}") from error


def _read(ranges: Ranges, request: ReadRequest) -> Iterator[_Event | Lost]:
    for piece in ranges.scan(request.pubend, request.after, request.upto):
        if isinstance(piece, Lost):
            yield piece
            continue
        for tick, record in zip(piece.indexes, piece.records, strict=True):
            yield _event(tick, record)


def _event(tick: Tick, record: bytes) -> _Event | Lost:
    try:
        publication = read_record(record)
        return _Event(tick, publication, unpack(publication.event), len(record))
    except (msgspec.MsgspecError, MalformedEvent):  # whole, and not what a pubend writes
        return Lost(tick - 1, tick, DAMAGED)


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
