"""The two databases a user may have, by the same few words."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from holdfast.client.checkpoints import Checkpoint, PostgresCheckpoint, SqliteCheckpoint
from holdfast.client.outbox_table import OutboxTable, PostgresOutbox, SqliteOutbox

__all__ = ["KINDS", "UserDatabase", "user_database"]

KINDS = ["sqlite", "postgres"]


class UserDatabase:
    """Connections to one database; each gives rows in a way of its own, as users like it."""

    def __init__(self, kind: str, connect: Callable[[], Any]) -> None:
        self.kind = kind
        self.connect = connect

    def checkpoint(self, connection: Any, name: str) -> Checkpoint:
        return (SqliteCheckpoint if self.kind == "sqlite" else PostgresCheckpoint)(connection, name)

    def outbox(self, connection: Any, name: str) -> OutboxTable:
        return (SqliteOutbox if self.kind == "sqlite" else PostgresOutbox)(connection, name)

    def transaction(self, connection: Any) -> AbstractContextManager[Any]:
        """As a user makes one."""
        found = connection if self.kind == "sqlite" else connection.transaction()
        assert isinstance(found, AbstractContextManager)
        return found

    def execute(self, connection: Any, statement: str, *values: object) -> list[tuple[Any, ...]]:
        text = statement if self.kind == "sqlite" else statement.replace("?", "%s")
        rows = connection.execute(text, values)
        if rows.description is None:
            return []
        return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in rows]


def user_database(kind: str, folder: Path, request: pytest.FixtureRequest) -> UserDatabase:
    if kind == "sqlite":

        def open_file() -> sqlite3.Connection:
            connection = sqlite3.connect(folder / "mine.sqlite")
            connection.row_factory = sqlite3.Row
            return connection

        return UserDatabase(kind, open_file)
    uri: str = request.getfixturevalue("postgres")
    return UserDatabase(kind, lambda: psycopg.connect(uri, row_factory=dict_row))
