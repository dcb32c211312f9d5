"""Pages of the lake: rows of one row group, as a log reader would have given them.

Every row says where the one before it in the answer ended, so that an answer covers its range whatever was filtered
out of it. The columns that are only shown are read last, and not at all if nothing is chosen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from holdfast.messages.ticks import Tick
from holdfast.pipeline.columns import Shape, arrow_schema, shape_of
from holdfast.pipeline.errors import Gap
from holdfast.pipeline.lake.parquet import ParquetRows
from holdfast.pipeline.lake.selecting import Chosen
from holdfast.pipeline.pages import Page
from holdfast.pipeline.ranges import End
from holdfast.pipeline.requests import ReadRequest
from holdfast.pipeline.rows import EVENT, GAP, SILENCE, RowBuilder

__all__ = ["NOT_HERE", "PageMaker"]

#: Why there is a gap where a table does not go.
NOT_HERE: Final = "not in the lake"
_PLACES: Final = shape_of(("kind", "after", "tick", "reason"))
_TICK: Final = shape_of(("tick",))


class PageMaker:
    """Makes one page: of the first row group that has to be read, and of what was passed over before it."""

    def __init__(self, request: ReadRequest, until: Tick, shape: Shape, end: End) -> None:
        """Of a request, up to ``until``; ``end`` is how far the table goes."""
        self._request = request
        self._until = until
        self._shape = shape
        self._end = end
        self._others = RowBuilder(shape, request.stream, request.pubend, end.incarnation)
        self._batches: list[Any] = []
        self._told = request.after if request.told is None else request.told

    def page(self, groups: Iterator[tuple[ParquetRows, int]], chosen: Chosen) -> Page:
        """The page."""
        after = self._request.after
        if after < self._end.first:
            covered = min(self._end.first, self._until)
            self._lose(after, covered, NOT_HERE)
            return self._finished(covered)
        for rows, group in groups:
            self._take(rows, group, chosen)
            return self._finished(min(rows.last_tick(group), self._until))
        return self._finished(self._until)

    def _take(self, rows: ParquetRows, group: int, chosen: Chosen) -> None:
        kinds_there = rows.zones(group)["kind"]
        if chosen.is_all and kinds_there.least == kinds_there.greatest == EVENT:
            self._take_all(rows, group)
        else:
            self._take_some(rows, group, chosen)

    def _take_all(self, rows: ParquetRows, group: int) -> None:
        """Events and nothing else, and all are wanted: no row has to be looked at."""
        ticks = rows.read(group, _TICK)["tick"].to_numpy()
        begin, stop = (int(each) for each in ticks.searchsorted((self._request.after, self._until), "right"))
        if begin < stop:
            said = [self._told, *ticks[begin : stop - 1].tolist()]
            self._batches.append(self._events(rows.read(group, self._shape), range(begin, stop), said))
            self._told = int(ticks[stop - 1])

    def _take_some(self, rows: ParquetRows, group: int, chosen: Chosen) -> None:
        request = self._request
        places = rows.read(group, _PLACES)
        kinds, afters, ticks, reasons = (places[name].to_pylist() for name in _PLACES.columns)
        begin = bisect_right(ticks, request.after)
        stop = bisect_right(ticks, self._until)
        if stop < len(ticks) and kinds[stop] != EVENT and afters[stop] < self._until:
            stop += 1  # a gap, or a silence, that goes on beyond the range
        answers = None if chosen.is_all else chosen.of(rows, group)
        picked: list[int] = []
        said: list[Tick] = []
        columns: dict[str, Any] = {}

        def flush() -> None:
            if picked:
                if not columns:
                    columns.update(rows.read(group, self._shape))
                self._batches.append(self._events(columns, picked, said))
                picked.clear()
                said.clear()

        for i in range(begin, stop):
            if kinds[i] == EVENT:
                if answers is None or answers[i]:
                    picked.append(i)
                    said.append(self._told)
                    self._told = ticks[i]
            elif kinds[i] == GAP:
                flush()
                self._lose(max(afters[i], request.after), min(ticks[i], self._until), reasons[i] or "")
        flush()

    def _events(self, columns: dict[str, Any], picked: Sequence[int], said: Sequence[Tick]) -> Any:
        """Rows of events, each of which begins where the one before it in the answer ended."""
        is_run = picked[-1] - picked[0] + 1 == len(picked)
        arrays = []
        for name in self._shape.columns:
            if name == "after":
                arrays.append(pa.array(said, pa.int64()))
            elif is_run:
                arrays.append(columns[name].slice(picked[0], len(picked)))
            else:
                arrays.append(columns[name].take(pa.array(picked)))
        return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(self._shape))

    def _lose(self, after: Tick, upto: Tick, reason: str) -> None:
        request = self._request
        if request.gaps == "fail":
            raise Gap(f"{request.pubend} has lost ({after}, {upto}]: {reason}")
        if request.silence and self._told < after:
            self._others.add_other(SILENCE, self._told, after)
        if request.gaps == "row":
            self._others.add_other(GAP, after, upto, reason)
        self._told = upto
        self._flush_others()

    def _flush_others(self) -> None:
        self._batches += self._others.batches()

    def _finished(self, covered: Tick) -> Page:
        if covered == self._request.upto and self._told < covered and self._request.silence:
            self._others.add_other(SILENCE, self._told, covered)
            self._told = covered
            self._flush_others()
        return Page(arrow_schema(self._shape), self._batches, covered, self._told)
