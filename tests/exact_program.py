"""A user's programs, as the manual has them, to be killed: ``python tests/exact_program.py KIND DATABASE NAME URL…``

``produce`` puts orders into its own table and tells of them by an outbox, in one transaction, and relays that. Once
there is a file DATABASE.enough it goes on until the outbox is empty, and ends. ``consume`` writes what it is given into
its own table, and its token, in one transaction, and never ends. Both end with whoever holds their standard input.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random

import holdfast

TOPICS = ("orders/eu", "orders/us", "audit/eu")
FILTER = "# WHERE side = 'buy'"
BATCH_MAX = 20
TIMEOUT_S = 2.0

ORDERS = "CREATE TABLE IF NOT EXISTS orders (i INTEGER PRIMARY KEY, topic TEXT NOT NULL, side TEXT NOT NULL)"
READ = (
    "CREATE TABLE IF NOT EXISTS read (at INTEGER PRIMARY KEY, publisher TEXT NOT NULL, i INTEGER NOT NULL,"
    " topic TEXT NOT NULL)"
)
GAPS = "CREATE TABLE IF NOT EXISTS gaps (told TEXT NOT NULL)"


def produce(database: sqlite3.Connection, name: str, urls: Sequence[str], enough: Path) -> None:
    """Orders, and events that tell of them."""
    random = Random()
    outbox = holdfast.SqliteOutbox(database, name)
    with holdfast.sync.connect(urls, name=name, timeout=None) as network:
        while True:
            is_enough = enough.exists()
            if not is_enough:
                with database:
                    for _ in range(random.randint(1, BATCH_MAX)):
                        topic, side = random.choice(TOPICS), random.choice(("buy", "sell"))
                        added = database.execute(
                            "INSERT INTO orders (topic, side) VALUES (?, ?)", (topic, side)
                        )
                        outbox.add(topic, {"i": added.lastrowid, "side": side})
            try:
                outbox.relay(network, TIMEOUT_S)
            except (holdfast.Unknown, holdfast.TimedOut):
                continue
            if is_enough:
                return
            time.sleep(random.uniform(0.0, 0.02))  # the rate at which orders come


def consume(database: sqlite3.Connection, name: str, urls: Sequence[str]) -> None:
    """What was told, once."""
    checkpoint = holdfast.SqliteCheckpoint(database, name)
    while True:
        try:
            visit(database, checkpoint, name, urls)
        except holdfast.Refused:
            continue  # the broker that knows where it stood is down


def visit(
    database: sqlite3.Connection, checkpoint: holdfast.SqliteCheckpoint, name: str, urls: Sequence[str]
) -> None:
    random = Random()
    start = checkpoint.load()
    with (
        holdfast.sync.connect(urls, name=name, timeout=None) as network,
        network.subscribe(FILTER, durable=name, start=start or "earliest", whole=True, timeout=None) as items,
    ):
        if start is None:
            with database:
                checkpoint.save(items.token)
        for batch in items.batches():
            with database:
                for item in batch:
                    if isinstance(item, holdfast.Event):
                        row = (item.publisher, item.attributes["i"], item.topic)
                        database.execute("INSERT INTO read (publisher, i, topic) VALUES (?, ?, ?)", row)
                    else:
                        database.execute("INSERT INTO gaps VALUES (?)", (str(item),))
                checkpoint.save(items.token)
            if random.random() < 0.2:
                items.commit()


def main(kind: str, path: str, name: str, *urls: str) -> None:
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(3)), daemon=True).start()
    with closing(sqlite3.connect(path, timeout=30)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        for table in (ORDERS, READ, GAPS):
            database.execute(table)
        if kind == "produce":
            produce(database, name, urls, Path(f"{path}.enough"))
        else:
            consume(database, name, urls)


if __name__ == "__main__":
    main(*sys.argv[1:])
