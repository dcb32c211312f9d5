"""The lake as a place where ranges of pubends are read: it answers what a log reader answers.

A page is made of one row group. Files and row groups in which a filter can match nothing are passed over by their
zones, and the columns that are only shown are read after those that decide. The table is looked at again when a range
goes beyond what was known of it, and when a file is gone: others have the same rows then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from holdfast.errors import FilterError
from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.pipeline.columns import shape_of
from holdfast.pipeline.errors import BadOption, BadRequest, CannotRead, NoPubend, NotStable
from holdfast.pipeline.lake.errors import DamagedFile, NoTable
from holdfast.pipeline.lake.files import DataFile
from holdfast.pipeline.lake.pages import PageMaker
from holdfast.pipeline.lake.parquet import DAMAGE, ParquetRows
from holdfast.pipeline.lake.selecting import Chosen
from holdfast.pipeline.lake.table import LakeTable
from holdfast.pipeline.pages import Page
from holdfast.pipeline.ranges import End
from holdfast.pipeline.requests import ReachAnswer, ReachRequest, ReadRequest
from holdfast.pipeline.rows import SILENCE

__all__ = ["LakeRanges", "Watch"]

#: Takes a file that is about to be read, and up to which tick.
Watch = Callable[[Path, Tick], None]

_TICKS: Final = shape_of(("kind", "tick"))
_GONE_TRIES: Final = 3


class LakeRanges:
    """The pubends of one stream, as its table has them; without a table there are none."""

    def __init__(
        self,
        folder: Path,
        stream: str,
        *,
        is_needed: bool = False,
        prune: bool = True,
        watch: Watch | None = None,
    ) -> None:
        """``is_needed``: without a table there is an error, not nothing. ``watch`` hears what is read for a page."""
        self._folder = folder
        self._watch = watch
        self._is_needed = is_needed
        self._stream = stream
        self._prune = prune
        self._table: LakeTable | None = None
        self._files: dict[str, list[DataFile]] = {}
        self._open: dict[str, tuple[str, ParquetRows]] = {}  #: by pubend the file that was read last
        self._place: tuple[str, Tick] = ("", ORIGIN)  #: the file that is read, and up to where
        self._chosen: tuple[str | None, Chosen] | None = None
        self._closed_bytes = 0

    @property
    def read_bytes(self) -> int:
        """How much was read of files so far."""
        open_bytes: int = sum(rows.read_bytes for _, rows in self._open.values())
        return self._closed_bytes + open_bytes

    @property
    def table_bytes(self) -> int:
        """The size of all files, as of when the table was looked at last."""
        return sum(file.size for files in self._files.values() for file in files)

    def ends(self, stream: str) -> dict[str, End]:
        """How far the pubends go, as the table is now.

        :raises ForeignTable, LakeFailed: as ``LakeTable``.
        """
        self.look()
        return {pubend: self._end(pubend) for pubend in self._files}

    def has(self, pubend: str) -> End | None:
        """How far one pubend goes, as of when the table was looked at last; None if it is not there."""
        if self._table is None:
            self.look()
        return self._end(pubend) if pubend in self._files else None

    def page(self, request: ReadRequest, until: Tick | None = None) -> Page:
        """Rows, as ``pages.read_page`` gives them; with ``until`` only so far, as if the rest came later.

        :raises BadRequest, Gap, NoPubend, NotStable: as there.
        :raises CannotRead: if a file cannot be read; ``DamagedFile``, if it is damaged.
        """
        try:
            shape = shape_of(request.columns, request.attributes)
            chosen = self._choice(request.filter)
        except (BadOption, FilterError) as error:
            raise BadRequest(str(error)) from error
        until = request.upto if until is None else until
        self._reach(request.pubend, until)
        for _ in range(_GONE_TRIES):
            try:
                maker = PageMaker(request, until, shape, self._end(request.pubend))
                return maker.page(self._groups(request, until, chosen), chosen)
            except FileNotFoundError:
                self.look()
            except DAMAGE as error:
                raise self._failed(error) from error
        if not (self._folder / "_delta_log").exists():
            raise CannotRead(f"{self._folder}: it is not there any more")
        raise self._failed(OSError("is in the table, and is not there"))

    def _failed(self, error: Exception) -> CannotRead:
        """What a failure to read says: of the disk if it has a number, else of the file."""
        if isinstance(error, OSError) and error.errno is not None:
            return CannotRead(f"{self._folder}: {error}")
        path, upto = self._place
        return DamagedFile(self._folder / path, upto, str(error).strip().partition("\n")[0])

    def let_go(self) -> None:
        """Close the files that were read."""
        self._closed_bytes = self.read_bytes
        self._open = {}

    def reach(self, request: ReachRequest) -> ReachAnswer:
        """How far so many events go; a gap counts for one, and an event for as many bytes as one of its file."""
        self._reach(request.pubend, request.upto)
        events = size = 0
        covered = request.after
        for file in self._after(request.pubend, request.after):
            each_bytes = -(-file.size // file.rows)
            rows = self._opened(file)
            for group in range(len(rows)):
                if rows.last_tick(group) <= covered:
                    continue
                columns = rows.read(group, _TICKS)
                for kind, tick in zip(columns["kind"].to_pylist(), columns["tick"].to_pylist(), strict=True):
                    if tick <= covered or kind == SILENCE:
                        continue
                    if tick > request.upto or (events and size + each_bytes > request.bytes):
                        return ReachAnswer(request.upto if tick > request.upto else covered, events, size)
                    events, size, covered = events + 1, size + each_bytes, tick
                    if events >= request.events:
                        return ReachAnswer(covered, events, size)
        return ReachAnswer(request.upto, events, size)

    def _choice(self, text: str | None) -> Chosen:
        if self._chosen is None or self._chosen[0] != text:
            self._chosen = (text, Chosen(text))
        return self._chosen[1]

    def look(self) -> None:
        """See what the table is now.

        :raises NoTable: if there has to be one, and there is none.
        :raises ForeignTable, LakeFailed: as ``LakeTable``.
        """
        try:
            if self._table is None:
                self._table = LakeTable(self._folder, self._stream)
            else:
                self._table.refresh()
        except NoTable:
            if self._is_needed:
                raise
            return
        self._files = {}
        for file in self._table.files():
            self._files.setdefault(file.pubend, []).append(file)

    def _end(self, pubend: str) -> End:
        files = self._files[pubend]
        return End(max(file.incarnation for file in files), files[0].after, files[-1].tick)

    def _reach(self, pubend: str, upto: Tick) -> None:
        """The table is known as far as is asked for."""
        if pubend not in self._files or self._files[pubend][-1].tick < upto:
            self.look()
        if pubend not in self._files:
            raise NoPubend(f"{self._folder}: there is no pubend {pubend} in the table")
        if self._files[pubend][-1].tick < upto:
            last = self._files[pubend][-1].tick
            raise NotStable(
                f"{self._folder}: {pubend} is in the table up to {last}, and {upto} was asked for"
            )

    def _after(self, pubend: str, after: Tick) -> Sequence[DataFile]:
        files = self._files[pubend]
        return files[bisect_right(files, after, key=lambda file: file.tick) :]

    def _groups(self, request: ReadRequest, until: Tick, chosen: Chosen) -> Iterator[tuple[ParquetRows, int]]:
        """The row groups of a range in which something may be chosen, in order."""
        for file in self._after(request.pubend, request.after):
            if file.after >= until:
                return
            if self._prune and not chosen.may_match(file.zones):
                continue
            self._be_at(file, file.tick)
            rows = self._opened(file)
            for group in range(len(rows)):
                if rows.last_tick(group) <= request.after:
                    continue
                self._be_at(file, rows.last_tick(group))
                if not self._prune or chosen.may_match(rows.zones(group)):
                    yield rows, group

    def _be_at(self, file: DataFile, upto: Tick) -> None:
        self._place = file.path, upto
        if self._watch is not None:
            self._watch(self._folder / file.path, upto)

    def _opened(self, file: DataFile) -> ParquetRows:
        path, rows = self._open.get(file.pubend, ("", None))
        if rows is None or path != file.path:
            self._closed_bytes += 0 if rows is None else rows.read_bytes
            rows = ParquetRows(self._folder / file.path)
            self._open[file.pubend] = file.path, rows
        return rows
