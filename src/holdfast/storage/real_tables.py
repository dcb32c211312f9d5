"""Tables in an SQLite file, one transaction for each ``apply``, synced before it returns."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from google_crc32c import value as crc32c

from holdfast.storage.files import DiskFailed, DiskFull
from holdfast.storage.tables import Change

__all__ = ["RealTables"]

VERSION: Final = 1
RESERVE_BYTES: Final = 1 << 20
_IDENTITY: Final = (
    0x486F6C64  #: "Hold": SQLite keeps it in the file's header, so that a stranger's is not taken for ours
)

_SCHEMA: Final = """
CREATE TABLE rows (
    "table" TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY ("table", key)
) WITHOUT ROWID
"""


class RealTables:
    """One file; whoever has opened it has it alone. May be used from one thread at a time, whichever.

    :raises DiskFailed: if it is no file of ours, is damaged or newer than we are, or another process has it.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._reserve = path.with_name(f"{path.name}-reserve")
        with self._told():
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
            try:
                self._open()
            except BaseException:
                self._database.close()
                raise

    def _open(self) -> None:
        run = self._database.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")  # takes the lock
        run("PRAGMA synchronous = FULL")
        run("BEGIN IMMEDIATE")
        [(identity,)], [(version,)] = run("PRAGMA application_id"), run("PRAGMA user_version")
        [(count,)] = run("SELECT count(*) FROM sqlite_schema")
        if count == 0 and identity == 0:
            run(_SCHEMA)
            run(f"PRAGMA application_id = {_IDENTITY}")
            run(f"PRAGMA user_version = {VERSION}")
        elif identity != _IDENTITY:
            raise DiskFailed(self._name, "an SQLite file, and not one of ours")
        elif version > VERSION:
            raise DiskFailed(self._name, f"has version {version}, and this Holdfast knows up to {VERSION}")
        run("COMMIT")
        [(found,)] = run("PRAGMA quick_check(1)")
        if found != "ok":
            raise DiskFailed(self._name, f"damaged: {found}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def names(self) -> list[str]:
        """The tables that have rows."""
        with self._told():
            return [
                name for (name,) in self._database.execute('SELECT DISTINCT "table" FROM rows ORDER BY 1')
            ]

    def read(self, table: str) -> dict[str, bytes]:
        """All rows of a table."""
        with self._told():
            rows = dict(self._database.execute('SELECT key, value FROM rows WHERE "table" = ?', (table,)))
        return {key: self._checked(table, key, value) for key, value in rows.items()}

    def _checked(self, table: str, key: str, value: bytes) -> bytes:
        """A row without its checksum: SQLite has none of its own."""
        if value[-4:] != _checksum(table, key, value[:-4]):
            raise DiskFailed(self._name, f"the row {key!r} of table {table} is damaged")
        return value[:-4]

    def apply(self, changes: Sequence[Change]) -> None:
        """One transaction. On a full disk a reserve is given up for it: what lets logs be chopped must be saved."""
        try:
            self._apply(changes)
        except DiskFull:
            if not self._reserve.exists():
                raise
            self._reserve.unlink()
            self._apply(changes)
        else:
            self._restore_reserve()

    def _restore_reserve(self) -> None:
        if not self._reserve.exists():
            try:
                with self._reserve.open("wb") as file:
                    file.write(bytes(RESERVE_BYTES))
                    file.flush()
                    os.fsync(file.fileno())
            except OSError:
                self._reserve.unlink(missing_ok=True)

    def _apply(self, changes: Sequence[Change]) -> None:
        with self._told():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                for table, key, value in changes:
                    if value is None:
                        self._database.execute('DELETE FROM rows WHERE "table" = ? AND key = ?', (table, key))
                    else:
                        self._database.execute(
                            "INSERT OR REPLACE INTO rows VALUES (?, ?, ?)",
                            (table, key, value + _checksum(table, key, value)),
                        )
                self._database.execute("COMMIT")
            except sqlite3.Error:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_FULL:
                raise DiskFull(self._name) from error
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise DiskFailed(self._name, "another process has it") from error
            raise DiskFailed(self._name, str(error)) from error


def _checksum(table: str, key: str, value: bytes) -> bytes:
    found: int = crc32c(f"{table}\n{key}\n".encode() + value)
    return found.to_bytes(4, "big")
