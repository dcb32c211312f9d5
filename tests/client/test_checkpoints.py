"""Tokens in the user's transaction: consumed, and known to be, or neither [R1.8, R1.10]."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from user_databases import KINDS, UserDatabase, user_database

from holdfast import InvalidToken, Token, memory, sync
from holdfast.client.item import LoggedEvent
from holdfast.client.options import Start
from holdfast.streams.checkpoint_token import Place

FIRST, SECOND = Token({"s@b/1": Place(1, 7)}), Token({"s@b/1": Place(1, 9), "s@c/1": Place(2, 1)})


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


def test_what_is_no_token_is_not_taken_for_one(database: UserDatabase) -> None:
    with closing(database.connect()) as mine:
        checkpoint = database.checkpoint(mine, "one")
        with database.transaction(mine):
            database.execute(mine, "INSERT INTO holdfast_checkpoints VALUES ('one', ?)", str(FIRST)[:-2])
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
