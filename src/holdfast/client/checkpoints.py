"""Tokens in the user's own database: what was consumed, and that it was, in one transaction [R1.8, R1.10].

    checkpoint = SqliteCheckpoint(database, "totals")
    with network.subscribe("orders/#", durable="totals", start=checkpoint.load() or "earliest") as items:
        for item in items:
            with database:
                ...
                checkpoint.save(items.token)

Whatever happens, either both are there or neither: every item has its effect once. That goes for two programs with the
same checkpoint, too: one that stood still while the other was started in its place may still have items in hand. So a
token is only saved by who saved the last one, or has loaded it. Where the token stands, the log may be released;
``items.commit`` tells the broker so, from time to time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from holdfast.client.databases import Database, PostgresDatabase, SqliteDatabase
from holdfast.client.errors import TakenOver
from holdfast.streams.checkpoint_token import Token

if TYPE_CHECKING:
    import sqlite3

    import psycopg

__all__ = ["Checkpoint", "PostgresCheckpoint", "SqliteCheckpoint"]

_TABLE = (
    "CREATE TABLE IF NOT EXISTS holdfast_checkpoints"
    " (name TEXT PRIMARY KEY, token TEXT NOT NULL, program TEXT NOT NULL)"
)
_LOAD = "SELECT token FROM holdfast_checkpoints WHERE name = ?"
_SAVE = (
    "INSERT INTO holdfast_checkpoints (name, token, program) VALUES (?, ?, ?)"
    " ON CONFLICT (name) DO UPDATE SET token = excluded.token, program = excluded.program"
    " WHERE holdfast_checkpoints.program = excluded.program OR holdfast_checkpoints.token = ? RETURNING name"
)


class Checkpoint:
    """One token, by its name, in the table ``holdfast_checkpoints``."""

    def __init__(self, database: Database, name: str) -> None:
        self.name = name
        self._database = database
        self._program = uuid4().hex
        database.create(_TABLE)
        self._loaded = self._stored()  #: as text; None: there was none

    def load(self) -> Token | None:
        """The token that was saved last; None: none was.

        :raises InvalidToken: if something else stands there.
        """
        self._loaded = self._stored()
        return None if self._loaded is None else Token.parse(self._loaded)

    def _stored(self) -> str | None:
        rows: list[tuple[str]] = self._database.look(_LOAD, self.name)
        return rows[0][0] if rows else None

    def save(self, token: Token) -> None:
        """Keep a token, in the caller's transaction.

        :raises TakenOver: if another program has saved one since it was loaded here. Then nothing of the transaction
            may stay, and ``load`` says where to go on.
        """
        if not self._database.run(_SAVE, self.name, str(token), self._program, self._loaded):
            raise TakenOver(self.name, reason="another program has saved this checkpoint since it was loaded")


class SqliteCheckpoint(Checkpoint):
    """In a database of ``sqlite3``."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        super().__init__(SqliteDatabase(connection), name)


class PostgresCheckpoint(Checkpoint):
    """In PostgreSQL, through ``psycopg`` (the extra ``postgres``)."""

    def __init__(self, connection: psycopg.Connection[Any], name: str) -> None:
        super().__init__(PostgresDatabase(connection), name)
