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
from holdfast.client.errors import BadEvent, InvalidOption, Refused, Unknown
from holdfast.client.options import check_name
from holdfast.client.sync import Network
from holdfast.events.event import make_event
from holdfast.events.packed import pack, unpack
from holdfast.events.value import Value

if TYPE_CHECKING:
    import sqlite3

    import psycopg

    from holdfast.client.sync import Sent

__all__ = ["OutboxTable", "PostgresOutbox", "SqliteOutbox"]

#: So many events are on their way at a time.
BATCH: Final = 500

_HOME = "SELECT home FROM holdfast_outbox_numbers WHERE outbox = ?"
_LAST = "SELECT last FROM holdfast_outbox_numbers WHERE outbox = ?"
_LAST_IS = "UPDATE holdfast_outbox_numbers SET last = ? WHERE outbox = ?"
_ANY = "SELECT id FROM holdfast_outbox WHERE outbox = ? LIMIT 1"
_FRESH = "SELECT id FROM holdfast_outbox WHERE outbox = ? AND n IS NULL ORDER BY id LIMIT ?"
_NUMBER = "UPDATE holdfast_outbox SET n = ? WHERE id = ?"
_NUMBERED = "SELECT n, event FROM holdfast_outbox WHERE outbox = ? AND n IS NOT NULL ORDER BY n"
_TAKE_BACK = "UPDATE holdfast_outbox SET n = NULL WHERE outbox = ? AND n = ?"
_DELETE = "DELETE FROM holdfast_outbox WHERE outbox = ? AND n = ?"


class OutboxTable:
    """One publisher's events, in the table ``holdfast_outbox``."""

    def __init__(self, database: Database, name: str) -> None:
        check_name("name", name)
        self.name = name
        self._database = database
        self._bad: dict[int, BadEvent] = {}  #: by number, until they are discarded
        #: What the database has not been told yet: numbers that are accepted, and that the network would not take.
        self._accepted: set[int] = set()
        self._put_off: set[int] = set()
        self._has_begun = False  #: to give numbers
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

        :raises BadEvent: if the network will never have one of them. It stays, and the others are published.
        :raises Refused: if it will not have them now, because a disk is full: call again.
        :raises Unknown: if there is no receipt in time: call again.
        """
        if not isinstance(network, Network):
            raise InvalidOption("network", f"is {network!r}; expected one of holdfast.sync.connect")
        if network.name != self.name:
            raise InvalidOption("network", f"is connected as {network.name!r}; expected {self.name!r}")
        if self._accepted or self._put_off:
            self._settle()
        relayed = 0
        while True:
            rows, asked = self._numbered(network)
            if not rows:
                break
            relayed += self._publish(network, rows, asked, timeout)
        if self._bad:
            raise next(iter(self._bad.values())).with_traceback(None)
        return relayed

    def discard(self, n: int) -> None:
        """Give up an event that is refused for good, by the number of its ``BadEvent.id``."""
        if not isinstance(n, int) or isinstance(n, bool):
            raise InvalidOption("n", f"is {n!r}; expected the number of an event")
        self._bad.pop(n, None)
        with self._database.transaction():
            self._database.run(_DELETE, self.name, n)

    def _numbered(self, network: Network) -> tuple[list[tuple[int, bytes]], int]:
        """The events that come next, each with its number, which it keeps; the network is told where they go.

        Up to a number it may have been asked for them before.
        """
        if not self._database.look(_ANY, self.name):
            return [], 0
        run = self._database.run
        with self._database.transaction():
            self._lock(network.home or network.broker)
            [(network.home,)] = run(_HOME, self.name)
            [(last,)] = run(_LAST, self.name)
            asked = last
            room = BATCH - len(self._waiting())
            for (row,) in run(_FRESH, self.name, room):
                last += 1
                run(_NUMBER, last, row)
            run(_LAST_IS, last, self.name)
            waiting = self._waiting()
        self._has_begun = True
        return waiting, asked

    def _lock(self, home: str) -> None:
        """Be the only one who gives numbers, until the end of the transaction.

        The first time above the clock, too: the database may be an older copy of itself.
        """
        run, now = self._database.run, self._database.microseconds
        run(
            f"INSERT INTO holdfast_outbox_numbers (outbox, last, home) VALUES (?, {now}, ?)"
            " ON CONFLICT (outbox) DO NOTHING",
            self.name,
            home,
        )
        above = "last" if self._has_begun else f"CASE WHEN last < {now} THEN {now} ELSE last END"
        run(f"UPDATE holdfast_outbox_numbers SET last = {above} WHERE outbox = ?", self.name)

    def _waiting(self) -> list[tuple[int, bytes]]:
        """Those that have a number, and may be accepted."""
        return [(n, event) for n, event in self._database.run(_NUMBERED, self.name) if n not in self._bad]

    def _publish(
        self, network: Network, rows: list[tuple[int, bytes]], asked: int, timeout: float | None
    ) -> int:
        """Hear of each whether it is accepted; how many are.

        What the network may have been asked for before, up to a number, is sent even behind one that is refused: it
        must be answered under its number, and before another number is given to what comes before it.
        """
        waiting = dict(rows)
        unknown: Unknown | None = None
        refused: Refused | None = None
        while waiting and unknown is None:
            for n, sent in self._send(network, waiting):
                try:
                    sent.receipt(timeout if unknown is None else 0)
                    self._accepted.add(n)
                except Refused as error:
                    if error.id != (self.name, n):
                        break  # an earlier one is, which ends a publisher: this was not even sent
                    if isinstance(error, BadEvent):
                        self._bad[n] = error
                    else:
                        self._put_off.add(n)
                        refused = refused or error
                except Unknown as error:
                    unknown = unknown or error
                del waiting[n]
            if refused is not None:
                self._put_off.update(n for n in waiting if n > asked)
                waiting = {n: event for n, event in waiting.items() if n <= asked}
        accepted = len(self._accepted)
        self._settle()
        if failure := unknown or refused:
            raise failure
        return accepted

    def _send(self, network: Network, rows: dict[int, bytes]) -> list[tuple[int, Sent]]:
        """Events on their way, until one is refused."""
        sent: list[tuple[int, Sent]] = []
        out = network.publisher(window=BATCH)
        with suppress(Refused):
            for n, packed in rows.items():
                event = unpack(packed)
                attributes, payload, content_type = event.attributes, event.payload, event.content_type
                sent.append((n, out.send(event.topic, attributes, payload, content_type=content_type, n=n)))
        return sent

    def _settle(self) -> None:
        """Accepted events are over. What the network would not take is certainly nowhere, and gets other numbers."""
        with self._database.transaction():
            for n in self._accepted:
                self._database.run(_DELETE, self.name, n)
            for n in self._put_off:
                self._database.run(_TAKE_BACK, self.name, n)
        self._accepted.clear()
        self._put_off.clear()


class SqliteOutbox(OutboxTable):
    """In a database of ``sqlite3``."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        super().__init__(SqliteDatabase(connection), name)


class PostgresOutbox(OutboxTable):
    """In PostgreSQL, through ``psycopg`` (the extra ``postgres``)."""

    def __init__(self, connection: psycopg.Connection[Any], name: str) -> None:
        super().__init__(PostgresDatabase(connection), name)
