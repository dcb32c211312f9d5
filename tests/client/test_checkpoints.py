"""Tokens in the user's transaction: consumed, and known to be, or neither [R1.8, R1.10]."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from user_databases import KINDS, UserDatabase, user_database

from holdfast import (
    InvalidOption,
    InvalidToken,
    PostgresCheckpoint,
    PostgresOutbox,
    SqliteCheckpoint,
    SqliteOutbox,
    TakenOver,
    Token,
    memory,
    sync,
)
from holdfast.client.checkpoints import Checkpoint
from holdfast.client.item import LoggedEvent
from holdfast.client.options import Start
from holdfast.errors import CallersFault
from holdfast.streams.checkpoint_token import Place

FIRST, SECOND = Token({"s@b/1": Place(1, 7)}), Token({"s@b/1": Place(1, 9), "s@c/1": Place(2, 1)})
THIRD = Token({"s@b/1": Place(1, 12)})


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> UserDatabase:
    return user_database(request.param, tmp_path, request)


def test_what_was_saved_is_loaded_by_its_name(database: UserDatabase) -> None:
    with closing(database.connect()) as mine:
        one, other = database.checkpoint(mine, "one"), database.checkpoint(mine, "other")
        assert one.load() is None
        for token in (FIRST, SECOND):
            with database.transaction(mine):
                one.save(token)
            assert one.load() == token
        assert other.load() is None
    with closing(database.connect()) as mine:
        assert database.checkpoint(mine, "one").load() == SECOND


def test_a_transaction_that_fails_saves_nothing(database: UserDatabase) -> None:
    with closing(database.connect()) as mine:
        checkpoint = database.checkpoint(mine, "one")
        with database.transaction(mine):
            checkpoint.save(FIRST)
        with suppress(KeyError), database.transaction(mine):
            checkpoint.save(SECOND)
            raise KeyError("mine")
        assert checkpoint.load() == FIRST


@pytest.mark.parametrize("what", [None, 5, str(FIRST)])
def test_only_tokens_are_saved(database: UserDatabase, what: Any) -> None:
    with closing(database.connect()) as mine:
        checkpoint = database.checkpoint(mine, "one")
        with pytest.raises(InvalidOption, match=r"token: is .*; expected a Token"):
            checkpoint.save(what)
        assert checkpoint.load() is None


def test_a_checkpoint_and_an_outbox_have_names() -> None:
    for kind in (SqliteCheckpoint, SqliteOutbox):
        for name in (None, 5, ""):
            with closing(sqlite3.connect(":memory:")) as mine, pytest.raises(InvalidOption, match="name: "):
                kind(mine, name)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [SqliteCheckpoint, SqliteOutbox, PostgresCheckpoint, PostgresOutbox])
@pytest.mark.parametrize("what", [None, "shop.db", 5])
def test_a_checkpoint_and_an_outbox_are_in_a_connection(kind: Any, what: object) -> None:
    library = "sqlite3" if kind in (SqliteCheckpoint, SqliteOutbox) else "psycopg"
    with pytest.raises(InvalidOption, match=rf"connection: is .*; expected a Connection of {library}"):
        kind(what, "one")


def test_a_connection_of_another_library_is_none() -> None:
    with closing(sqlite3.connect(":memory:")) as mine, pytest.raises(InvalidOption, match="of psycopg"):
        PostgresCheckpoint(mine, "one")  # type: ignore[arg-type]


def test_without_psycopg_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(CallersFault, match=r"pip install 'holdfast\[postgres\]'"):
        PostgresOutbox(None, "one")  # type: ignore[arg-type]


def have_effect(database: UserDatabase, mine: Any, checkpoint: Checkpoint) -> None:
    with database.transaction(mine):
        database.execute(mine, "INSERT INTO effects VALUES (1)")
        checkpoint.save(THIRD)


def test_who_loads_a_checkpoint_takes_it_over(database: UserDatabase) -> None:
    """One stood still, so long that another was started in its place: what it has in hand has its effect there."""
    with closing(database.connect()) as mine, closing(database.connect()) as its:
        database.execute(mine, "CREATE TABLE effects (n INTEGER)")
        mine.commit()
        stalled = database.checkpoint(mine, "one")
        assert stalled.load() is None
        with database.transaction(mine):
            stalled.save(FIRST)
        successor = database.checkpoint(its, "one")
        with database.transaction(mine):
            stalled.save(SECOND)
        assert successor.load() == SECOND
        with pytest.raises(TakenOver, match="'one': another program has loaded"):
            have_effect(database, mine, stalled)
        assert database.execute(mine, "SELECT * FROM effects") == [], (
            "what it did in that transaction is undone"
        )
        mine.rollback()
        with database.transaction(its):
            successor.save(THIRD)
        assert stalled.load() == THIRD
        with pytest.raises(TakenOver), database.transaction(its):
            successor.save(FIRST)


def test_also_one_that_nobody_has_saved_yet(database: UserDatabase) -> None:
    with closing(database.connect()) as mine, closing(database.connect()) as its:
        one, other = database.checkpoint(mine, "one"), database.checkpoint(its, "one")
        assert (one.load(), other.load()) == (None, None)
        with pytest.raises(TakenOver), database.transaction(mine):
            one.save(FIRST)
        with database.transaction(its):
            other.save(FIRST)


def test_in_the_middle_of_a_transaction_that_is_a_part_of_it(database: UserDatabase) -> None:
    with closing(database.connect()) as mine, closing(database.connect()) as its:
        one, other = database.checkpoint(mine, "one"), database.checkpoint(its, "one")
        with database.transaction(its):
            other.save(FIRST)
        database.execute(mine, "CREATE TABLE effects (n INTEGER)")
        mine.commit()
        with database.transaction(mine):
            database.execute(mine, "INSERT INTO effects VALUES (1)")
            assert one.load() == FIRST
            one.save(SECOND)
        assert other.load() == SECOND


def test_a_transaction_that_fails_is_no_other_program(database: UserDatabase) -> None:
    with closing(database.connect()) as mine:
        checkpoint = database.checkpoint(mine, "one")
        for before in (None, FIRST, FIRST):
            for token in (SECOND, THIRD):
                with suppress(KeyError), database.transaction(mine):
                    checkpoint.save(token)
                    raise KeyError("mine")
            assert checkpoint.load() == before
            with database.transaction(mine):
                checkpoint.save(FIRST)


def test_what_is_no_token_is_not_taken_for_one(database: UserDatabase) -> None:
    with closing(database.connect()) as mine:
        checkpoint = database.checkpoint(mine, "one")
        with database.transaction(mine):
            database.execute(mine, "INSERT INTO holdfast_checkpoints VALUES ('one', ?, '')", str(FIRST)[:-2])
        with pytest.raises(InvalidToken):
            checkpoint.load()


def consume(database: UserDatabase, url: str, count: int, *, fails_after: int | None = None) -> None:
    """As in the manual, and sometimes it dies: in a transaction, or when that is done and the broker not told."""
    with (
        closing(database.connect()) as mine,
        sync.connect(url, broker="b3", name="consumer") as network,
    ):
        database.execute(mine, "CREATE TABLE IF NOT EXISTS seen (n INTEGER)")
        mine.commit()
        checkpoint = database.checkpoint(mine, "consumer")
        start: Start = checkpoint.load() or "earliest"
        with network.subscribe("orders/#", durable="consumer", start=start) as items:
            for taken in range(count):
                item = items.get()
                assert isinstance(item, LoggedEvent)
                with database.transaction(mine):
                    database.execute(mine, "INSERT INTO seen VALUES (?)", item.n)
                    if taken == fails_after:
                        raise KeyError("in the transaction")
                    checkpoint.save(items.token)
                if taken + 1 == fails_after:
                    raise KeyError("before the commit at the broker")
                items.commit(item)


def test_r1_10_every_event_has_its_effect_once_whenever_the_consumer_dies(database: UserDatabase) -> None:
    with memory.Network("exactly-once", brokers=3, streams={"orders": ("orders/#", "durable")}) as net:
        with sync.connect(net.url, broker="b2", name="p") as p:
            consume(database, net.url, 0)
            for n in range(1, 11):
                p.publish("orders/eu", n=n)
        for count, fails_after in ((3, 1), (4, 2), (2, None)):
            try:
                consume(database, net.url, count, fails_after=fails_after)
            except KeyError:
                continue
        with closing(database.connect()) as mine:
            seen: list[tuple[Any, ...]] = database.execute(mine, "SELECT n FROM seen ORDER BY n")
        done = len(seen)
        assert 0 < done < 10
        consume(database, net.url, 10 - done)
        with closing(database.connect()) as mine:
            assert database.execute(mine, "SELECT n FROM seen ORDER BY n") == [(n,) for n in range(1, 11)]
