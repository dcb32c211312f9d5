"""Events in the user's transaction: done, and told to others, or neither; and told once [B1.4]."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from user_databases import KINDS, UserDatabase, user_database

import holdfast
from holdfast import memory, sync
from holdfast.client import outbox_table
from holdfast.client.item import Item, LoggedEvent
from holdfast.client.outbox_table import OutboxTable, SqliteOutbox

STREAMS = {"orders": ("orders/#", "durable")}


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> UserDatabase:
    return user_database(request.param, tmp_path, request)


@pytest.fixture
def mine(database: UserDatabase) -> Iterator[Any]:
    with closing(database.connect()) as connection:
        yield connection


@pytest.fixture
def net() -> Iterator[memory.Network]:
    with memory.Network("outbox", brokers=2, streams=STREAMS) as net:
        yield net


def taken(items: sync.Subscription, count: int) -> list[Item]:
    return [items.get() for _ in range(count)]


def amounts(items: list[Item]) -> list[object]:
    return [item.attributes["i"] for item in items if isinstance(item, LoggedEvent)]


def left(database: UserDatabase, mine: Any) -> int:
    [(count,)] = database.execute(mine, "SELECT count(*) FROM holdfast_outbox")
    mine.commit()
    return int(count)


def die(*arguments: object) -> None:
    raise KeyError("the process died between the receipts and the deletion")


def relayed_at_last(outbox: OutboxTable, network: sync.Network) -> int:
    """There is room, and the broker finds out in its own time."""
    until = time.monotonic() + 20
    while True:
        try:
            return outbox.relay(network)
        except holdfast.Refused:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_what_was_added_is_published_in_order_and_gone(
    database: UserDatabase, mine: Any, net: memory.Network
) -> None:
    outbox = database.outbox(mine, "shop")
    with sync.connect(net.url, name="shop") as network, network.subscribe("orders/#") as items:
        assert outbox.relay(network) == 0
        with database.transaction(mine):
            outbox.add("orders/eu", {"i": 1}, b"one", content_type="text/plain")
            outbox.add("orders/us", {"i": 2})
        assert outbox.relay(network) == 2
        first, second = taken(items, 2)
        assert isinstance(first, LoggedEvent)
        assert (first.topic, first.payload, first.content_type) == ("orders/eu", b"one", "text/plain")
        assert amounts([first, second]) == [1, 2]
        assert left(database, mine) == 0
        assert outbox.relay(network) == 0


def test_a_transaction_that_fails_tells_nobody(
    database: UserDatabase, mine: Any, net: memory.Network
) -> None:
    outbox = database.outbox(mine, "shop")
    with suppress(KeyError), database.transaction(mine):
        outbox.add("orders/eu")
        raise KeyError("mine")
    with sync.connect(net.url, name="shop") as network:
        assert outbox.relay(network) == 0


def test_many_go_in_batches(
    database: UserDatabase, mine: Any, net: memory.Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_table, "BATCH", 7)
    outbox = database.outbox(mine, "shop")
    with database.transaction(mine):
        for i in range(40):
            outbox.add("orders/eu", {"i": i})
    with sync.connect(net.url, name="shop") as network, network.subscribe("orders/#") as items:
        assert outbox.relay(network) == 40
        assert amounts(taken(items, 40)) == list(range(40))


def test_b1_4_what_was_published_before_a_crash_is_not_published_again(
    database: UserDatabase, mine: Any, net: memory.Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = database.outbox(mine, "shop")
    with database.transaction(mine):
        for i in range(3):
            outbox.add("orders/eu", {"i": i})
    with sync.connect(net.url, name="reader") as reader, reader.subscribe("orders/#") as items:
        with sync.connect(net.url, name="shop") as network, monkeypatch.context() as dying:
            dying.setattr(outbox, "_settle", die)
            with pytest.raises(KeyError):
                outbox.relay(network)
        assert left(database, mine) == 3
        with closing(database.connect()) as other:
            with database.transaction(other):
                database.outbox(other, "shop").add("orders/eu", {"i": 3})
            with sync.connect(net.url, name="shop") as network:
                assert database.outbox(other, "shop").relay(network) == 4
        assert amounts(taken(items, 4)) == [0, 1, 2, 3]
        with pytest.raises(holdfast.TimedOut):
            items.get(timeout=0.05)


def test_b1_4_what_was_published_before_a_crash_is_not_published_again_through_another_broker(
    database: UserDatabase, mine: Any, net: memory.Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outbox knows its home, where it is known what was logged: no event twice, and all in order."""
    outbox = database.outbox(mine, "shop")
    with database.transaction(mine):
        outbox.add("orders/eu", {"i": 0})
    with sync.connect(net.url, name="reader") as reader, reader.subscribe("orders/#") as items:
        with sync.connect(net.url, broker="b2", name="shop") as network, monkeypatch.context() as dying:
            dying.setattr(outbox, "_settle", die)
            with pytest.raises(KeyError):
                outbox.relay(network)
        with closing(database.connect()) as other:
            again = database.outbox(other, "shop")
            with database.transaction(other):
                again.add("orders/eu", {"i": 1})
            with sync.connect(net.url, broker="b1", name="shop") as network:
                assert again.relay(network) == 2
                assert network.home == "b2"
        found = taken(items, 2)
        assert amounts(found) == [0, 1]
        assert {item.pubend for item in found if isinstance(item, LoggedEvent)} == {"orders@b2/0"}
        with pytest.raises(holdfast.TimedOut):
            items.get(timeout=0.05)


def test_an_outbox_is_not_relayed_by_who_has_published_elsewhere(
    database: UserDatabase, mine: Any, net: memory.Network
) -> None:
    outbox = database.outbox(mine, "shop")
    with database.transaction(mine):
        outbox.add("orders/eu", {"i": 0})
    with sync.connect(net.url, broker="b1", name="shop") as network:
        assert outbox.relay(network) == 1
    with database.transaction(mine):
        outbox.add("orders/eu", {"i": 1})
    with sync.connect(net.url, broker="b2", name="shop") as network:
        network.publish("orders/eu")
        with pytest.raises(holdfast.InvalidOption, match="home: is 'b2': something has been published"):
            outbox.relay(network)
    assert left(database, mine) == 1


def test_what_has_no_receipt_in_time_is_asked_for_again(
    database: UserDatabase, mine: Any, net: memory.Network
) -> None:
    outbox = database.outbox(mine, "shop")
    with database.transaction(mine):
        for i in range(3):
            outbox.add("orders/eu", {"i": i})
    with sync.connect(net.url, name="reader") as reader, reader.subscribe("orders/#") as items:
        with sync.connect(net.url, name="shop") as network:
            net.freeze("b1")
            for _ in range(2):
                with pytest.raises(holdfast.Unknown):
                    outbox.relay(network, timeout=0.01)
            net.unfreeze("b1")
            assert outbox.relay(network) == 3
        assert left(database, mine) == 0
        assert amounts(taken(items, 3)) == [0, 1, 2]


def test_an_event_nobody_will_have_does_not_keep_the_others(
    database: UserDatabase, mine: Any, net: memory.Network
) -> None:
    outbox = database.outbox(mine, "shop")
    with database.transaction(mine):
        outbox.add("orders/eu", {"i": 1})
        outbox.add("no stream has this")
        outbox.add("orders/eu", {"i": 2})
    with sync.connect(net.url, name="shop") as network, network.subscribe("orders/#") as items:
        for _ in range(2):
            with pytest.raises(holdfast.Refused) as refused:
                outbox.relay(network)
        assert amounts(taken(items, 2)) == [1, 2]
        assert left(database, mine) == 1
        assert refused.value.id is not None
        outbox.discard(refused.value.id.n)
        assert outbox.relay(network) == 0
        assert left(database, mine) == 0


def test_what_a_full_disk_would_not_take_is_published_when_there_is_room_and_in_order(
    database: UserDatabase, mine: Any, net: memory.Network
) -> None:
    """The user's transaction was committed, so its event will be published, whatever the network says meanwhile."""
    outbox = database.outbox(mine, "shop")
    with sync.connect(net.url, name="reader") as reader, reader.subscribe("orders/#") as items:
        with sync.connect(net.url, name="shop") as network:
            with database.transaction(mine):
                outbox.add("orders/eu", {"i": 0})
            assert outbox.relay(network) == 1
            net.fill_disk("b1")
            with database.transaction(mine):
                for i in range(1, 4):
                    outbox.add("orders/eu", {"i": i})
            for _ in range(2):
                with pytest.raises(holdfast.Refused, match="no space left"):
                    outbox.relay(network)
            with database.transaction(mine):
                outbox.add("orders/eu", {"i": 4})
            net.free_disk("b1")
            assert relayed_at_last(outbox, network) == 4
        assert left(database, mine) == 0
        assert amounts(taken(items, 5)) == [0, 1, 2, 3, 4]
        with pytest.raises(holdfast.TimedOut):
            items.get(timeout=0.05)


def test_b1_4_a_relay_that_died_when_the_disk_was_full_is_gone_on_with(
    database: UserDatabase, mine: Any, net: memory.Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had heard that its events were refused, and could not write it down."""
    outbox = database.outbox(mine, "shop")
    with database.transaction(mine):
        for i in range(3):
            outbox.add("orders/eu", {"i": i})
    with sync.connect(net.url, name="reader") as reader, reader.subscribe("orders/#") as items:
        net.fill_disk("b1")
        with sync.connect(net.url, name="shop") as network, monkeypatch.context() as dying:
            dying.setattr(outbox, "_settle", die)
            with pytest.raises(KeyError):
                outbox.relay(network)
        net.free_disk("b1")
        with sync.connect(net.url, name="shop") as network:
            assert relayed_at_last(database.outbox(mine, "shop"), network) == 3
        assert amounts(taken(items, 3)) == [0, 1, 2]


def test_what_was_accepted_and_could_not_be_deleted_is_deleted_by_the_next_relay(
    database: UserDatabase, mine: Any, net: memory.Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's database is locked for a moment; the network is the same, and so is the outbox."""
    outbox = database.outbox(mine, "shop")
    with database.transaction(mine):
        for i in range(3):
            outbox.add("orders/eu", {"i": i})
    with sync.connect(net.url, name="shop") as network, network.subscribe("orders/#") as items:
        with monkeypatch.context() as locked:
            locked.setattr(outbox, "_settle", die)
            with pytest.raises(KeyError):
                outbox.relay(network)
        assert left(database, mine) == 3
        with database.transaction(mine):
            outbox.add("orders/eu", {"i": 3})
        assert outbox.relay(network) == 1
        assert left(database, mine) == 0
        assert amounts(taken(items, 4)) == [0, 1, 2, 3]


def test_an_outbox_that_was_restored_from_a_backup_gives_no_number_again(
    database: UserDatabase, mine: Any, net: memory.Network
) -> None:
    """What was added since is another event than what was published under the numbers that come next in the backup."""
    outbox = database.outbox(mine, "shop")
    with sync.connect(net.url, name="shop") as network, network.subscribe("orders/#") as items:
        with database.transaction(mine):
            outbox.add("orders/eu", {"i": 0})
        assert outbox.relay(network) == 1
        [backup] = database.execute(mine, "SELECT last, home FROM holdfast_outbox_numbers")
        mine.commit()
        with database.transaction(mine):
            for i in (1, 2):
                outbox.add("orders/eu", {"i": i})
        assert outbox.relay(network) == 2
        with database.transaction(mine):
            database.execute(mine, "UPDATE holdfast_outbox_numbers SET last = ?, home = ?", *backup)
            outbox = database.outbox(mine, "shop")
            outbox.add("orders/eu", {"i": 3})
        assert outbox.relay(network) == 1
        assert amounts(taken(items, 4)) == [0, 1, 2, 3]


def test_as_many_events_as_go_at_a_time_may_be_ones_nobody_will_have(
    database: UserDatabase, mine: Any, net: memory.Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_table, "BATCH", 3)
    outbox = database.outbox(mine, "shop")
    with database.transaction(mine):
        for i in range(7):
            outbox.add("no stream has this" if i < 5 else "orders/eu", {"i": i})
    with sync.connect(net.url, name="shop") as network, network.subscribe("orders/#") as items:
        with pytest.raises(holdfast.BadEvent):
            outbox.relay(network)
        assert amounts(taken(items, 2)) == [5, 6]
        assert left(database, mine) == 5


def test_a_connection_that_commits_each_statement_by_itself_is_as_good(
    tmp_path: Path, net: memory.Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a relay that dies while it gives numbers gives them again, to other events."""
    with closing(sqlite3.connect(tmp_path / "mine.sqlite", isolation_level=None)) as mine:
        outbox = SqliteOutbox(mine, "shop")
        for i in range(3):
            outbox.add("orders/eu", {"i": i})
        with sync.connect(net.url, name="shop") as network:
            with monkeypatch.context() as dying:
                dying.setattr(outbox_table, "_LAST_IS", "UPDATE nowhere SET last = ? WHERE outbox = ?")
                with pytest.raises(sqlite3.OperationalError, match="nowhere"):
                    outbox.relay(network)
            assert mine.execute("SELECT count(n) FROM holdfast_outbox").fetchone() == (0,)
            assert outbox.relay(network) == 3


@pytest.mark.parametrize("what", [None, "holdfast://127.0.0.1:7777", holdfast.connect])
def test_an_outbox_is_relayed_by_a_network_of_sync(database: UserDatabase, mine: Any, what: Any) -> None:
    with pytest.raises(
        holdfast.InvalidOption, match=r"network: is .*; expected one of holdfast\.sync\.connect"
    ):
        database.outbox(mine, "shop").relay(what)


@pytest.mark.parametrize("what", [None, "7", 7.0, True])
def test_an_event_is_given_up_by_its_number(database: UserDatabase, mine: Any, what: Any) -> None:
    outbox = database.outbox(mine, "shop")
    with database.transaction(mine):
        outbox.add("orders/eu", {"i": 1})
    with pytest.raises(holdfast.InvalidOption, match=r"n: is .*; expected the number of an event"):
        outbox.discard(what)
    assert left(database, mine) == 1


def test_outboxes_do_not_concern_each_other(database: UserDatabase, mine: Any, net: memory.Network) -> None:
    shop, bank = database.outbox(mine, "shop"), database.outbox(mine, "bank")
    with database.transaction(mine):
        shop.add("orders/eu", {"i": 1})
        bank.add("orders/eu", {"i": 2})
    with sync.connect(net.url, name="bank") as network:
        assert bank.relay(network) == 1
        with pytest.raises(holdfast.InvalidOption, match="network: is connected as 'bank'; expected 'shop'"):
            shop.relay(network)
    assert left(database, mine) == 1


def test_a_relay_does_not_touch_a_transaction_of_the_users(
    database: UserDatabase, mine: Any, net: memory.Network
) -> None:
    outbox = database.outbox(mine, "shop")
    outbox.add("orders/eu")
    with sync.connect(net.url, name="shop") as network:
        with pytest.raises(holdfast.InvalidOption, match="connection: is in a transaction"):
            outbox.relay(network)
        mine.rollback()
        assert outbox.relay(network) == 0


def test_who_added_first_and_committed_last_is_not_lost(
    postgres: str, tmp_path: Path, request: pytest.FixtureRequest, net: memory.Network
) -> None:
    """Its row has the lower id, and becomes visible when a higher one has been published."""
    database = user_database("postgres", tmp_path, request)
    with closing(database.connect()) as slow, closing(database.connect()) as mine:
        slowly, outbox = database.outbox(slow, "shop"), database.outbox(mine, "shop")
        slowly.add("orders/eu", {"i": "slow"})
        with database.transaction(mine):
            outbox.add("orders/eu", {"i": "fast"})
        with sync.connect(net.url, name="shop") as network, network.subscribe("orders/#") as items:
            assert outbox.relay(network) == 1
            slow.commit()
            assert outbox.relay(network) == 1
            assert amounts(taken(items, 2)) == ["fast", "slow"]


def test_an_event_that_breaks_a_rule_is_refused_when_it_is_added(database: UserDatabase, mine: Any) -> None:
    with pytest.raises(holdfast.InvalidEvent, match="topic"):
        database.outbox(mine, "shop").add("a/#")
