"""The user's own database, as far as the helpers beside it must know: ``checkpoints`` and ``outbox_table``.

Statements are written once, with ``?`` for values. A connection stays the user's: its transactions are left alone, and
so is how it gives rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from holdfast.client.errors import InvalidOption
from holdfast.errors import CallersFault

if TYPE_CHECKING:
    import psycopg

__all__ = ["Database", "PostgresDatabase", "SqliteDatabase"]


class Database(Protocol):
    """One connection to a database."""

    identity: ClassVar[str]  #: the type of a column that numbers rows as they are added
    blob: ClassVar[str]  #: the type of bytes
    microseconds: ClassVar[str]  #: since 1970, as an expression

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Execute in whatever transaction there is; the rows."""

    def look(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """The same for a question, which begins no transaction that somebody must end."""

    def transaction(self) -> Any:
        """A transaction of our own, as a context.

        :raises InvalidOption: if the user is in one.
        """

    def part(self) -> Any:
        """The same, or a part of the user's."""

    def create(self, *statements: str) -> None:
        """Make tables that may be there."""


class SqliteDatabase:
    """A connection of ``sqlite3``."""

    identity: ClassVar[str] = "INTEGER PRIMARY KEY AUTOINCREMENT"
    blob: ClassVar[str] = "BLOB"
    microseconds: ClassVar[str] = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"

    def __init__(self, connection: sqlite3.Connection) -> None:
        _check_connection(connection, sqlite3.Connection)
        self._connection = connection

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Execute."""
        cursor = self._connection.cursor()
        cursor.row_factory = None
        return cursor.execute(statement, values).fetchall()

    def look(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Ask; here that begins no transaction."""
        return self.run(statement, *values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction of our own, however the user has transactions begin and end."""
        _refuse_inside(self._connection.in_transaction)
        with self.part():
            yield

    @contextmanager
    def part(self) -> Iterator[None]:
        """The same, or a part of the user's."""
        if self._connection.in_transaction:
            yield
            return
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self.run("ROLLBACK")
            raise

    def create(self, *statements: str) -> None:
        """Make tables."""
        for statement in statements:
            self.run(statement)


class PostgresDatabase:
    """A connection of ``psycopg``, version 3."""

    identity: ClassVar[str] = "BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY"
    blob: ClassVar[str] = "BYTEA"
    microseconds: ClassVar[str] = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        try:
            library = import_module("psycopg")
        except ImportError as error:
            raise CallersFault(
                "PostgreSQL needs psycopg; install it with: pip install 'holdfast[postgres]'"
            ) from error
        _check_connection(connection, library.Connection)
        self._connection = connection
        self._tuple_row: Callable[..., Any] = import_module("psycopg.rows").tuple_row

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Execute."""
        with self._connection.cursor(row_factory=self._tuple_row) as cursor:
            cursor.execute(statement.replace("?", "%s").encode(), values)
            return [] if cursor.description is None else cursor.fetchall()

    def look(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Ask. By itself that would begin a transaction, and the user's next would be a part of it."""
        with self._connection.transaction():
            return self.run(statement, *values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction of our own."""
        _refuse_inside(self._connection.info.transaction_status.name != "IDLE")
        with self._connection.transaction():
            yield

    def part(self) -> Any:
        """The same, or a part of the user's."""
        return self._connection.transaction()

    def create(self, *statements: str) -> None:
        """Make tables; one at a time in the whole database, or two who find none would both make it."""
        with self._connection.transaction():
            self.run("SELECT pg_advisory_xact_lock(hashtext('holdfast'))")
            for statement in statements:
                self.run(statement)


def _check_connection(connection: object, expected: type) -> None:
    if not isinstance(connection, expected):
        library = expected.__module__.partition(".")[0]
        raise InvalidOption("connection", f"is {connection!r}; expected a Connection of {library}")


def _refuse_inside(is_inside: bool) -> None:
    if is_inside:
        raise InvalidOption("connection", "is in a transaction; commit it first, or use another connection")
