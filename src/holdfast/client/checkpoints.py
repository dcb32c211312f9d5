"""Tokens in the user's own database: what was consumed, and that it was, in one transaction [R1.8, R1.10].

    checkpoint = SqliteCheckpoint(database, "totals")
    with network.subscribe("orders/#", durable="totals", start=checkpoint.load() or "earliest") as items:
        for item in items:
            with database:
                ...
                checkpoint.save(items.token)

Whatever happens, either both are there or neither: every item has its effect once. That goes for two programs with the
same checkpoint, too: one that stood still while the other was started in its place may still have items in hand. So who
loads a checkpoint takes it over, and what anybody else does with it fails. Where the token stands, the log may be
released; ``items.commit`` tells the broker so, from time to time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from holdfast.client.databases import Database, PostgresDatabase, SqliteDatabase
from holdfast.client.errors import InvalidOption, TakenOver
from holdfast.client.options import check_name
from holdfast.streams.checkpoint_token import Token

if TYPE_CHECKING:
    import sqlite3

    import psycopg

__all__ = ["Checkpoint", "PostgresCheckpoint", "SqliteCheckpoint"]

_TABLE = "CREATE TABLE IF NOT EXISTS holdfast_checkpoints (name TEXT PRIMARY KEY, token TEXT, program TEXT NOT NULL)"
_TAKE_OVER = (
    "INSERT INTO holdfast_checkpoints (name, program) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET program = excluded.program RETURNING token"
)
_SAVE = "UPDATE holdfast_checkpoints SET token = ? WHERE name = ? AND program = ? RETURNING name"


class Checkpoint:
    """One token, by its name, in the table ``holdfast_checkpoints``."""

    def __init__(self, database: Database, name: str) -> None:
        check_name("name", name)
        self.name = name
        self._database = database
        self._program = uuid4().hex
        self._is_loaded = False
        database.create(_TABLE)

    def load(self) -> Token | None:
        """The token that was saved last; None: none was. From now on nobody else saves one.

        :raises InvalidToken: if something else stands there.
        """
        with self._database.part():
            text = self._take_over()
        self._is_loaded = True
        return None if text is None else Token.parse(text)

    def save(self, token: Token) -> None:
        """Keep a token, in the caller's transaction.

        :raises TakenOver: if another program has loaded it since. Nothing of the transaction may stay then.
        """
        if not isinstance(token, Token):
            raise InvalidOption("token", f"is {token!r}; expected a Token")
        if not self._is_loaded:
            self._take_over()  # each time: it goes with the caller's transaction if that fails
        if not self._database.run(_SAVE, str(token), self.name, self._program):
            raise TakenOver(self.name, reason="another program has loaded this checkpoint since")

    def _take_over(self) -> str | None:
        rows: list[tuple[str | None]] = self._database.run(_TAKE_OVER, self.name, self._program)
        return rows[0][0]


class SqliteCheckpoint(Checkpoint):
    """In a database of ``sqlite3``."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        super().__init__(SqliteDatabase(connection), name)


class PostgresCheckpoint(Checkpoint):
    """In PostgreSQL, through ``psycopg`` (the extra ``postgres``)."""

    def __init__(self, connection: psycopg.Connection[Any], name: str) -> None:
        super().__init__(PostgresDatabase(connection), name)
