"""The tables of a broker that may be running, read without disturbing it.

Tables belong to one process, which has them locked. So a copy is read: the file first, then what SQLite has not yet put
into it (the write-ahead log). Between the two SQLite may move pages from the log to the file, which does no harm, and
begin the log anew, which would leave us with half of each; a log that was begun anew has another salt.

Copies are made in memory where there is a folder for that: SQLite's log is of megabytes even if little is new in it,
and whoever reads a log while events come copies ten times a second. Commits of the broker would wait for its disk.

Whoever wants to compare tables with logs reads the tables first: a broker saves what it has written, not what it will.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from holdfast.errors import EnvironmentsFault
from holdfast.runtime.real_store import TABLES_FILE
from holdfast.storage.files import DiskFailed
from holdfast.storage.real_files import RealFiles
from holdfast.storage.real_tables import RealTables

__all__ = ["TablesCopy"]

ATTEMPTS: Final = 5
_LOG: Final = f"{TABLES_FILE}-wal"
_SALT: Final = slice(16, 24)  #: in the log's header
_MEMORY: Final = Path("/dev/shm")  #: what is written there goes to no disk
_ROOM: Final = 4  #: times as much must be free there: SQLite may write as much again, and others want some
_PREFIX: Final = "holdfast-tables-"  #: of the folders of copies
_LEFT_SECONDS: Final = 60.0  #: a copy lives for milliseconds: whoever made one that is older was killed


class TablesCopy:
    """The tables in a folder, as of the last time a copy succeeded."""

    def __init__(self, folder: Path) -> None:
        _clear_memory()
        self._folder = folder
        self._files = RealFiles(folder, write=False)
        self._seen: list[object] = []  #: the states of both files, when they were copied
        self._tables: Mapping[str, Mapping[str, bytes]] | None = None
        self.as_of = 0  #: what was saved by then is in what was read last; in nanoseconds since 1970

    def read(self) -> Mapping[str, Mapping[str, bytes]] | None:
        """All rows by table; None if there are no tables. If they cannot be read now, those of the last time.

        :raises DiskFailed: if they could never be read.
        """
        problem: Exception | None = None
        for _ in range(ATTEMPTS):
            at, look = time.time_ns(), [self._files.state(name) for name in (TABLES_FILE, _LOG)]
            if self._files.size(TABLES_FILE) is None:
                self.as_of = at
                return None
            if look == self._seen and None not in look:
                self.as_of = at
                return self._tables
            try:
                found = self._copied()
            except (EnvironmentsFault, OSError) as error:
                problem = error  # perhaps they were changing
                continue
            if found is not None:
                self._seen, self._tables, self.as_of = look, found, at
                return found
        if self._tables is None:
            raise DiskFailed(TABLES_FILE, f"no copy could be read: {problem or 'it is written all the time'}")
        return self._tables

    def _copied(self) -> Mapping[str, Mapping[str, bytes]] | None:
        """The rows; None if the log was begun anew while it was copied."""
        with TemporaryDirectory(prefix=_PREFIX, dir=self._place()) as copy:
            before = self._salt()
            for name in (TABLES_FILE, _LOG):
                if (self._folder / name).exists():
                    shutil.copyfile(self._folder / name, Path(copy) / name)
            if self._salt() != before:
                return None
            with RealTables(Path(copy) / TABLES_FILE) as tables:
                return {name: tables.read(name) for name in tables.names()}

    def _place(self) -> Path | None:
        """Where the copy is made; None is where all that is temporary is."""
        size = sum(self._files.size(name) or 0 for name in (TABLES_FILE, _LOG))
        try:
            has_room = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ROOM * size
        except OSError:
            return None
        return _MEMORY if has_room else None

    def _salt(self) -> bytes:
        try:
            with (self._folder / _LOG).open("rb") as file:
                return file.read(_SALT.stop)[_SALT]
        except FileNotFoundError:
            return b""


def _clear_memory() -> None:
    """Remove the copies that those have left in memory who were killed."""
    for each in _MEMORY.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # it is somebody else's, or just gone
            if time.time() - each.stat().st_mtime > _LEFT_SECONDS:
                shutil.rmtree(each)
