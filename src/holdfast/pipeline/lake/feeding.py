"""The lake as a broker reads it, for those who are behind its logs (``streams.store_lake``).

A row group is read at a time and some of them are kept, so that who reads on does not read it again; its rows become
events as they are asked for. Nothing is pinned: a table is read as of one version, and again if a file is gone
meanwhile, since another has the same rows.

Damage is never served. Pages have checksums, and each event has its own (``exact``); a file, or a row group of it, that
cannot be read is lost, and is named. A table that is not there, or a disk that does not answer, is no loss: it may come
back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from holdfast.errors import HoldfastError
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Lost, Tick
from holdfast.pipeline.columns import REST
from holdfast.pipeline.exact import NotExact, publication_of
from holdfast.pipeline.lake.errors import DamagedFile
from holdfast.pipeline.lake.ranges import LakeRanges, Watch
from holdfast.pipeline.requests import ReadRequest
from holdfast.pipeline.rows import EVENT
from holdfast.pipeline.variant_reading import VariantReader
from holdfast.streams.pubend_names import stream_in
from holdfast.streams.store_events import DAMAGED
from holdfast.streams.store_lake import LakePage, LakeUnreadable

__all__ = ["LakeFeed"]

#: So many row groups are kept, of whatever pubends.
GROUPS_MAX: Final = 4
#: A page ends when its events have so many bytes.
PAGE_BYTES_MAX: Final = 8 << 20

_AT_ONCE: Final = 100  #: rows become events

_PLACES: Final = ("kind", "after", "tick", "reason")
_OF_EVENTS: Final = ("publisher", "n", "topic", "attributes", "content_type", "payload", "time", REST)


class LakeFeed:
    """The tables in a folder, one for each stream, as a ``Lake``.

    ``watch`` is told which file is about to be read, and up to which tick: one that is damaged may be the end of us.
    """

    def __init__(self, folder: Path, watch: Watch | None = None) -> None:
        self._folder = folder
        self._watch = watch
        self._tables: dict[str, LakeRanges] = {}
        self._groups: list[_Group] = []  #: the one that was used last is the last
        self._variants = VariantReader()

    def page(self, pubend: str, after: Tick, upto: Tick, limit: int) -> LakePage:
        """What the table has of some of (after, upto], from its beginning, with at most ``limit`` events.

        :raises LakeUnreadable: if that cannot be said now.
        """
        try:
            found = self._kept(pubend, after) or self._read(pubend, after, upto)
        except DamagedFile as damage:
            covered = min(upto, damage.upto)
            return LakePage(covered, lost=[Lost(after, covered, DAMAGED)], damages=[str(damage)])
        except HoldfastError as error:
            raise LakeUnreadable(str(error)) from error
        except (OSError, pa.ArrowException) as error:
            raise LakeUnreadable(f"{self._folder}: {error}") from error
        return found if isinstance(found, LakePage) else found.page(after, upto, limit, self._variants)

    def _kept(self, pubend: str, after: Tick) -> _Group | None:
        for group in self._groups:
            if group.pubend == pubend and group.after <= after < group.covered:
                self._groups.remove(group)
                self._groups.append(group)
                return group
        return None

    def _read(self, pubend: str, after: Tick, upto: Tick) -> _Group | LakePage:
        """The row group that has what comes after a tick; or what there is to say where the table has nothing."""
        stream = stream_in(pubend)
        table = self._tables.get(stream)
        if table is None:
            table = self._tables[stream] = LakeRanges(
                self._folder / stream, stream, is_needed=True, watch=self._watch
            )
        end = table.has(pubend)
        if end is None or end.last < upto:
            table.look()
            end = table.has(pubend)
        if end is None or end.last <= after:
            return LakePage(upto, absent=[(after, upto)])
        if after < end.first:
            covered = min(upto, end.first)
            return LakePage(covered, absent=[(after, covered)])
        wanted = ReadRequest(stream, pubend, after, end.last, (*_PLACES, *_OF_EVENTS), {}, gaps="row")
        try:
            page = table.page(wanted)
        finally:
            table.let_go()  # or each pubend would keep what it has read last
        group = _Group(f"{self._folder / stream}: {pubend}", pubend, after, page.covered, page.batches)
        self._groups.append(group)
        del self._groups[:-GROUPS_MAX]
        return group


class _Group:
    """Some rows of a pubend, which are all there is of (after, covered]."""

    def __init__(self, title: str, pubend: str, after: Tick, covered: Tick, batches: Sequence[Any]) -> None:
        self.pubend = pubend
        self.after = after
        self.covered = covered
        self._title = title
        self._rows = pa.Table.from_batches(batches).combine_chunks() if batches else None
        places: list[list[Any]] = [[], [], [], []]
        if self._rows is not None:
            places = [self._rows.column(name).to_pylist() for name in _PLACES]
        self._kinds, self._begins, self._ticks, self._reasons = places

    def page(self, after: Tick, upto: Tick, limit: int, variants: VariantReader) -> LakePage:
        """What it has of (after, upto], from its beginning."""
        upto = min(upto, self.covered)
        first, beyond = bisect_right(self._ticks, after), bisect_right(self._ticks, upto)
        if beyond - first > limit:
            beyond = first + limit
            upto = self._ticks[beyond - 1]
        ticks: list[Tick] = []
        publications: list[Publication] = []
        lost: list[Lost] = []
        damages: list[str] = []
        size = 0
        for tick, found in self._events(first, beyond, variants):
            if isinstance(found, Publication):
                ticks.append(tick)
                publications.append(found)
                size += len(found.event)
                if size >= PAGE_BYTES_MAX:
                    upto = tick
                    break
                continue
            lost.append(Lost(tick - 1, tick, DAMAGED))
            damages = damages or [f"{self._title}, tick {tick}: {found}"]
        lost += [
            Lost(max(after, self._begins[i]), min(upto, self._ticks[i]), self._reasons[i] or "")
            for i in range(first, min(beyond + 1, len(self._ticks)))
            if self._kinds[i] != EVENT and self._begins[i] < upto
        ]
        return LakePage(upto, ticks, publications, sorted(lost), damages=damages)

    def _events(
        self, first: int, beyond: int, variants: VariantReader
    ) -> Iterator[tuple[Tick, Publication | NotExact]]:
        """The events among these rows, or why one of them cannot be had."""
        for start in range(first, beyond, _AT_ONCE):
            assert self._rows is not None
            rows = self._rows.slice(start, min(_AT_ONCE, beyond - start))
            columns = [_plain(rows.column(name)) for name in _OF_EVENTS]
            for i, row in enumerate(zip(*columns, strict=True), start):
                if self._kinds[i] == EVENT:
                    yield self._ticks[i], _publication(self._ticks[i], row, variants)


def _publication(tick: Tick, row: Sequence[Any], variants: VariantReader) -> Publication | NotExact:
    publisher, n, topic, attributes, content_type, payload, time, rest = row
    try:
        values = variants.attributes(attributes["value"], attributes["metadata"])
        return publication_of(tick, publisher, n, topic, values, content_type or "", payload, time, rest)
    except NotExact as error:
        return error
    except (HoldfastError, ValueError, LookupError, TypeError) as error:  # a Variant that is none, a NULL
        return NotExact(f"the row cannot be read: {error}")


def _plain(column: Any) -> list[Any]:
    """The values of a column; of times the microseconds."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values
