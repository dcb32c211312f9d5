"""Events in the user's own database until they are published: what was done, and that it be told, in one transaction.

    outbox = SqliteOutbox(database, "shop")
    with database:
        ...
        outbox.add("orders/eu", {"price": 101.5}, b"...")

    with holdfast.sync.connect(url, name="shop") as network:
        outbox.relay(network)

A relay gives each event its number before it publishes it first, and keeps it until there is a receipt. So what is
published again after a crash has the number it had, and goes to the broker it went to, the outbox's home, through
whichever broker it is relayed; its pubend there knows it: every event is logged once. Numbers are
given in the order in which rows were added, but only to rows that can be seen: where two transactions run at once, the
one that added first may commit last.

The publisher's name is the outbox's, and nobody else publishes under it. Numbers begin above the clock, as those of
every client with a name (``numbers``), in case somebody has.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from holdfast.client.databases import Database, PostgresDatabase, SqliteDatabase
from holdfast.client.errors import InvalidOption, Refused, Unknown
from holdfast.events.event import make_event
from holdfast.events.packed import pack, unpack
from holdfast.events.value import Value

if TYPE_CHECKING:
    import sqlite3

    import psycopg

    from holdfast.client.sync import Network, Sent

__all__ = ["OutboxTable", "PostgresOutbox", "SqliteOutbox"]

#: So many events are on their way at a time.
BATCH: Final = 500

_LOCK = "UPDATE holdfast_outbox_numbers SET last = last WHERE outbox = ?"
_HOME = "SELECT home FROM holdfast_outbox_numbers WHERE outbox = ?"
_LAST = "SELECT last FROM holdfast_outbox_numbers WHERE outbox = ?"
_FRESH = "SELECT id FROM holdfast_outbox WHERE outbox = ? AND n IS NULL ORDER BY id LIMIT ?"
_NUMBERED = "SELECT n, event FROM holdfast_outbox WHERE outbox = ? AND n IS NOT NULL ORDER BY n LIMIT ?"


class OutboxTable:
    """One publisher's events, in the table ``holdfast_outbox``."""

    def __init__(self, database: Database, name: str) -> None:
        self.name = name
        self._database = database
        self._refused: dict[int, Refused] = {}  #: by number, until they are discarded
        database.create(
            f"CREATE TABLE IF NOT EXISTS holdfast_outbox (id {database.identity}, outbox TEXT NOT NULL,"
            f" n BIGINT, event {database.blob} NOT NULL)",
            "CREATE INDEX IF NOT EXISTS holdfast_outbox_n ON holdfast_outbox (outbox, n)",
            "CREATE TABLE IF NOT EXISTS holdfast_outbox_numbers"
            " (outbox TEXT PRIMARY KEY, last BIGINT NOT NULL, home TEXT NOT NULL)",
        )

    def add(
        self,
        topic: str,
        attributes: Mapping[str, Value | None] | None = None,
        payload: bytes = b"",
        *,
        content_type: str = "",
    ) -> None:
        """Have an event published, if the caller's transaction is committed.

        :raises InvalidEvent: if it breaks a rule.
        """
        event = pack(make_event(topic, attributes, payload, content_type))
        self._database.run("INSERT INTO holdfast_outbox (outbox, event) VALUES (?, ?)", self.name, event)

    def relay(self, network: Network, timeout: float | None = 10.0) -> int:
        """Publish what has been added, in order, and wait for the receipts; how many events that were.

        In transactions of its own: give it a connection on which nobody is in one.

        :raises Refused: if the network will not have one of them. It stays, and the others are published.
        :raises Unknown: if there is no receipt in time; call again.
        """
        if network.name != self.name:
            raise InvalidOption("network", f"is connected as {network.name!r}; expected {self.name!r}")
        relayed = 0
        while True:
            rows = [(n, event) for n, event in self._numbered(network) if n not in self._refused]
            if not rows:
                break
            relayed += self._publish(network, rows, timeout)
        if self._refused:
            raise next(iter(self._refused.values())).with_traceback(None)
        return relayed

    def discard(self, n: int) -> None:
        """Give up an event that is refused, by the number of its ``Refused.id``."""
        self._refused.pop(n, None)
        self._delete([n])

    def _numbered(self, network: Network) -> list[tuple[Any, ...]]:
        """The events that come next, each with its number, which it keeps; the network is told where they go."""
        if not self._database.look("SELECT id FROM holdfast_outbox WHERE outbox = ? LIMIT 1", self.name):
            return []
        with self._database.transaction():
            self._database.run(
                "INSERT INTO holdfast_outbox_numbers (outbox, last, home)"
                f" VALUES (?, {self._database.microseconds}, ?) ON CONFLICT (outbox) DO NOTHING",
                self.name,
                network.home or network.broker,
            )
            self._database.run(_LOCK, self.name)
            [(home,)] = self._database.run(_HOME, self.name)
            network.home = home
            [(last,)] = self._database.run(_LAST, self.name)
            for (row,) in self._database.run(_FRESH, self.name, BATCH):
                last += 1
                self._database.run("UPDATE holdfast_outbox SET n = ? WHERE id = ?", last, row)
            self._database.run(
                "UPDATE holdfast_outbox_numbers SET last = ? WHERE outbox = ?", last, self.name
            )
            return self._database.run(_NUMBERED, self.name, BATCH)

    def _publish(self, network: Network, rows: list[tuple[int, bytes]], timeout: float | None) -> int:
        """How many of them are accepted."""
        sent: list[tuple[int, Sent]] = []
        out = network.publisher(window=BATCH)
        with suppress(Refused):  # the first that is refused ends a publisher; its receipt says which that was
            for n, packed in rows:
                event = unpack(packed)
                attributes, payload, content_type = event.attributes, event.payload, event.content_type
                sent.append((n, out.send(event.topic, attributes, payload, content_type=content_type, n=n)))
        accepted: list[int] = []
        unknown: Unknown | None = None
        for n, each in sent:
            try:
                each.receipt(timeout if unknown is None else 0)
                accepted.append(n)
            except Refused as error:
                if error.id == (self.name, n):  # else an earlier one was, and this was not even sent
                    self._refused[n] = error
            except Unknown as error:
                unknown = unknown or error
        self._delete(accepted)
        if unknown is not None:
            raise unknown
        return len(accepted)

    def _delete(self, numbers: list[int]) -> None:
        with self._database.transaction():
            for n in numbers:
                self._database.run("DELETE FROM holdfast_outbox WHERE outbox = ? AND n = ?", self.name, n)


class SqliteOutbox(OutboxTable):
    """In a database of ``sqlite3``."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        super().__init__(SqliteDatabase(connection), name)


class PostgresOutbox(OutboxTable):
    """In PostgreSQL, through ``psycopg`` (the extra ``postgres``)."""

    def __init__(self, connection: psycopg.Connection[Any], name: str) -> None:
        super().__init__(PostgresDatabase(connection), name)
