"""The log and the lake as one: whatever the log has is read there, and what it has lost, in the lake.

The log is asked first, and is always asked for gaps. Where it has one, the table is looked at: what was there before it
went is there still. So a range is read whole though the log gives up some of it between planning and reading, or while
it is read; and what is in neither is a gap, as it would be without a lake.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.pipeline.columns import arrow_schema, shape_of
from holdfast.pipeline.errors import Gap, NotStable
from holdfast.pipeline.lake.ranges import LakeRanges
from holdfast.pipeline.origin import Origin
from holdfast.pipeline.pages import Page
from holdfast.pipeline.ranges import End
from holdfast.pipeline.requests import ReachAnswer, ReachRequest, ReadRequest
from holdfast.pipeline.rows import GAP, SILENCE, RowBuilder
from holdfast.streams.pubend_names import stream_in

__all__ = ["AutoRanges", "joined_ends"]

_PLACES = ("kind", "after", "tick", "reason")


class _Lost(NamedTuple):
    """The first gap of a page, and the batches before it."""

    before: list[Any]
    after: Tick
    upto: Tick
    reason: str


def joined_ends(log: dict[str, End], lake: dict[str, End]) -> dict[str, End]:
    """How far both go together."""
    found = dict(lake)
    for pubend, end in log.items():
        other = lake.get(pubend, end)
        found[pubend] = End(end.incarnation, min(end.first, other.first), max(end.last, other.last))
    return dict(sorted(found.items()))


class AutoRanges:
    """The pubends of one broker, in its log and in the lake."""

    def __init__(self, log: Origin, lake: LakeRanges) -> None:
        self._log = log
        self._lake = lake
        self._horizon: dict[str, Tick] = {}  #: by pubend: up to here the log is known to have lost something

    def ends(self, stream: str) -> dict[str, End]:
        """How far the log goes."""
        return self._log.ends(stream)

    def page(self, request: ReadRequest) -> Page:
        """Rows, from one of the two; raises what they do."""
        horizon = self._horizon.get(request.pubend, ORIGIN)
        if request.after < horizon and self._is_in_lake(request.pubend, request.after):
            return self._from_lake(request, horizon)
        columns = tuple(dict.fromkeys((*request.columns, *_PLACES)))
        try:
            page = self._log.page(msgspec.structs.replace(request, columns=columns, gaps="row"))
        except NotStable:
            # A log that was restored from a backup may end before the table does.
            if self._is_in_lake(request.pubend, request.after, request.upto):
                return self._lake.page(request)
            raise
        lost = _first_gap(page)
        if lost is None:
            return _shown(page, request)
        if lost.after > request.after:
            return _shown(_before(page, lost, request), request)
        self._horizon[request.pubend] = lost.upto
        return self._filled(request, lost)

    def reach(self, request: ReachRequest) -> ReachAnswer:
        """How far so many events go."""
        horizon = self._log_first(request.pubend)
        end = self._lake_end(request.pubend, horizon)
        if end is None or not end.first <= request.after < min(horizon, end.last):
            return self._log.reach(request)
        upto = min(horizon, end.last, request.upto)
        there = self._lake.reach(msgspec.structs.replace(request, upto=upto))
        events, size = request.events - there.events, request.bytes - there.bytes
        if there.covered == request.upto or there.covered < upto or events <= 0 or size <= 0:
            return there
        rest = msgspec.structs.replace(request, after=there.covered, events=events, bytes=size)
        here = self._log.reach(rest)
        return ReachAnswer(here.covered, here.events + there.events, here.bytes + there.bytes)

    def _filled(self, request: ReadRequest, lost: _Lost) -> Page:
        """The log has lost what comes next: it is in the lake, or gone."""
        end = self._lake_end(request.pubend, lost.upto)
        upto = lost.upto
        if end is not None and request.after < end.last:
            if end.first <= request.after:
                return self._from_lake(request, lost.upto)
            upto = min(lost.upto, end.first)
        if request.gaps == "fail":
            raise Gap(f"{request.pubend} has lost ({lost.after}, {upto}]: {lost.reason}")
        shape = shape_of(request.columns, request.attributes)
        rows = RowBuilder(shape, request.stream, request.pubend, 0 if end is None else end.incarnation)
        told = request.after if request.told is None else request.told
        if request.silence and told < lost.after:
            rows.add_other(SILENCE, told, lost.after)
        if request.gaps == "row":
            rows.add_other(GAP, lost.after, upto, lost.reason)
        return Page(rows.schema, rows.batches(), upto, upto)

    def _from_lake(self, request: ReadRequest, horizon: Tick) -> Page:
        end = self._lake_end(request.pubend, horizon)
        assert end is not None
        return self._lake.page(request, min(request.upto, horizon, end.last))

    def _lake_end(self, pubend: str, upto: Tick) -> End | None:
        """How far the lake goes; it is looked at again if that may be farther by now."""
        end = self._lake.has(pubend)
        if end is None or end.last < upto:
            self._lake.look()
            end = self._lake.has(pubend)
        return end

    def _is_in_lake(self, pubend: str, after: Tick, upto: Tick | None = None) -> bool:
        """Whether what comes after a tick is there, or all up to another."""
        end = self._lake.has(pubend)
        return (
            end is not None
            and end.first <= after
            and (after < end.last if upto is None else upto <= end.last)
        )

    def _log_first(self, pubend: str) -> Tick:
        found = self._log.ends(stream_in(pubend))
        return found[pubend].first if pubend in found else ORIGIN


def _first_gap(page: Page) -> _Lost | None:
    for i, batch in enumerate(page.batches):
        at = pc.index(batch.column("kind"), GAP).as_py()
        if at >= 0:
            before = [*page.batches[:i], *([batch.slice(0, at)] if at else [])]
            after, upto, reason = (batch.column(name)[at].as_py() for name in ("after", "tick", "reason"))
            return _Lost(before, after, upto, reason)
    return None


def _before(page: Page, lost: _Lost, request: ReadRequest) -> Page:
    """What is before a gap; silence right before it is left to what comes in its place."""
    told = request.after if request.told is None else request.told
    batches = lost.before
    if batches:
        last = batches[-1]
        told = last.column("tick")[-1].as_py()
        if last.column("kind")[-1].as_py() == SILENCE:
            told = last.column("after")[-1].as_py()
            batches = [*batches[:-1], last.slice(0, last.num_rows - 1)]
    return Page(page.schema, batches, lost.after, told)


def _shown(page: Page, request: ReadRequest) -> Page:
    """With the columns that were asked for."""
    schema = arrow_schema(shape_of(request.columns, request.attributes))
    batches = [
        pa.RecordBatch.from_arrays([batch.column(name) for name in request.columns], schema=schema)
        for batch in page.batches
    ]
    return Page(schema, batches, page.covered, page.told)
