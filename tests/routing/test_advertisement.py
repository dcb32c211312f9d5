"""How interest spreads: outward to all, confirmed inward, taken back, and agreed on by brokers that meet."""

from __future__ import annotations

import pytest

from counted_calls import work_of
from holdfast.errors import FilterError
from holdfast.filters.parse import parse_filter
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.subscriptions import (
    PARTITIONS_MAX,
    TABLE_ROWS_MAX,
    Confirmed,
    Partition,
    Row,
    Subscribe,
    Table,
    Unsubscribe,
    Withdrawn,
)
from holdfast.overlay.transport import Send, TransportEffect
from holdfast.routing.advertisement import Advertisement, Reused
from holdfast.routing.port import ClientPort, NeighbourPort
from holdfast.routing.table import Table as RoutingTable
from holdfast.wire.frame import FRAME_BYTES_MAX, encode

ID = SubscriptionId("c", 1, 1)


class Node:
    """A broker's control plane with three neighbours, all of whom have been told, and a client."""

    def __init__(self) -> None:
        self.table = RoutingTable()
        self.neighbours = [NeighbourPort(name, None) for name in ("left", "right", "up")]
        self.left, self.right, self.up = self.neighbours
        self.client = ClientPort("c", 1)
        self.client.connection = 9
        for connection, port in enumerate(self.neighbours, start=1):
            port.become_greeted(connection, 1)
            port.is_told = port.has_told = True
        self.control = Advertisement("b", 1, self.table, self.neighbours)

    def is_clean(self) -> bool:
        return self.control.pending == 0 and not self.control._withdrawing

    def lose(self, port: NeighbourPort) -> list[TransportEffect]:
        port.become_absent()
        return self.control.on_absent(port)


def sent(effects: list[TransportEffect]) -> dict[int, list[Message]]:
    """Connection to messages."""
    found: dict[int, list[Message]] = {}
    for effect in effects:
        assert isinstance(effect, Send)
        found.setdefault(effect.connection, []).extend(effect.messages)
    return found


def subscribe(filter: str = "a", vector: tuple[Element, ...] = ()) -> Subscribe:
    return Subscribe(ID, filter, vector)


# Subscriptions


def test_a_subscription_goes_to_every_neighbour_but_its_own_and_is_confirmed_by_all_first() -> None:
    node = Node()
    effects = node.control.on_subscribe(node.left, subscribe())
    assert set(sent(effects)) == {2, 3}
    assert node.control.on_confirmed(node.right, Confirmed(ID)) == []
    assert len(node.table) == 0, "installed when it is confirmed, not before"
    assert sent(node.control.on_confirmed(node.up, Confirmed(ID))) == {1: [Confirmed(ID)]}
    assert node.table.get(ID) is not None
    assert node.is_clean()


def test_a_confirmation_counts_once_and_only_from_those_who_were_asked() -> None:
    node = Node()
    node.control.on_subscribe(node.left, subscribe())
    for port in (node.left, node.right, node.right):
        assert node.control.on_confirmed(port, Confirmed(ID)) == []
    assert node.control.pending == 1
    assert node.control.on_confirmed(node.up, Confirmed(SubscriptionId("x", 1, 1))) == []


def test_partitions_beyond_and_here_are_named_in_the_confirmation() -> None:
    node = Node()
    node.lose(node.up)
    node.control.on_subscribe(node.client, subscribe())
    beyond = Partition("far", 3, 4, ("farther",))
    assert node.control.on_confirmed(node.right, Confirmed(ID, (beyond,))) == []
    [confirmed] = sent(node.control.on_confirmed(node.left, Confirmed(ID)))[9]
    assert isinstance(confirmed, Confirmed)
    assert [each.fragment for each in confirmed.partial] == [("up",), ("farther",)]


def test_a_confirmation_never_names_more_partitions_than_a_frame_may_have() -> None:
    node = Node()
    node.control.on_subscribe(node.client, subscribe())
    many = tuple(Partition("far", 1, number, ()) for number in range(PARTITIONS_MAX))
    for port in node.neighbours:
        effects = node.control.on_confirmed(port, Confirmed(ID, many))
    [confirmed] = sent(effects)[9]
    assert isinstance(confirmed, Confirmed)
    assert len(confirmed.partial) == PARTITIONS_MAX


def test_asked_again_a_partial_confirmation_is_still_partial() -> None:
    node = Node()
    for port in node.neighbours:
        node.lose(port)
    first = sent(node.control.on_subscribe(node.client, subscribe()))
    assert sent(node.control.on_subscribe(node.client, subscribe())) == first
    [confirmed] = first[9]
    assert isinstance(confirmed, Confirmed)
    assert len(confirmed.partial) == 3


def test_asked_again_while_it_is_pending_it_is_confirmed_once() -> None:
    node = Node()
    node.lose(node.up)
    node.control.on_subscribe(node.client, subscribe())
    assert node.control.on_subscribe(node.client, subscribe()) == []
    node.control.on_confirmed(node.left, Confirmed(ID))
    assert len(sent(node.control.on_confirmed(node.right, Confirmed(ID)))[9]) == 1


def test_another_filter_under_a_used_id_is_refused() -> None:
    node = Node()
    node.control.on_subscribe(node.client, subscribe("a"))
    with pytest.raises(Reused):
        node.control.on_subscribe(node.client, subscribe("b"))
    for port in node.neighbours:
        node.control.on_confirmed(port, Confirmed(ID))
    with pytest.raises(Reused):
        node.control.on_subscribe(node.client, subscribe("b"))
    assert [str(each.filter) for each in node.table] == ["a"]


def test_a_refused_filter_changes_nothing() -> None:
    node = Node()
    with pytest.raises(FilterError):
        node.control.on_subscribe(node.client, subscribe("a WHERE"))
    assert node.is_clean()


def test_no_more_of_a_vector_is_kept_than_is_sent_on() -> None:
    node = Node()
    for port in node.neighbours:
        node.lose(port)
    node.control.on_subscribe(node.client, subscribe(vector=tuple(Element("n", 1, i) for i in range(1_000))))
    kept = node.table.get(ID)
    assert kept is not None
    assert len(kept.vector) <= 1


def test_a_subscription_that_moved_leaves_its_old_route_before_it_takes_the_new_one() -> None:
    node = Node()
    node.control.on_subscribe(node.left, subscribe())
    for port in (node.right, node.up):
        node.control.on_confirmed(port, Confirmed(ID))
    effects = node.control.on_subscribe(node.client, subscribe())
    told = [type(message) for message in sent(effects)[2]]
    assert told == [Unsubscribe, Subscribe]
    assert [type(message) for message in sent(effects)[1]] == [Subscribe], "where it came from knows already"
    for port in node.neighbours:
        node.control.on_withdrawn(port, Withdrawn(ID))
        node.control.on_confirmed(port, Confirmed(ID))
    [entry] = node.table
    assert entry.port is node.client
    assert node.is_clean()


# Withdrawals


def installed() -> Node:
    node = Node()
    node.control.on_subscribe(node.client, subscribe())
    for port in node.neighbours:
        node.control.on_confirmed(port, Confirmed(ID))
    return node


def test_a_withdrawal_takes_effect_at_once_and_is_confirmed_by_all() -> None:
    node = installed()
    effects = node.control.on_unsubscribe(node.client, ID)
    assert sent(effects) == {i: [Unsubscribe(ID)] for i in (1, 2, 3)}
    assert len(node.table) == 0
    assert node.control.on_withdrawn(node.left, Withdrawn(ID)) == []
    assert node.control.on_withdrawn(node.left, Withdrawn(ID)) == []
    assert node.control.on_withdrawn(node.up, Withdrawn(ID)) == []
    assert sent(node.control.on_withdrawn(node.right, Withdrawn(ID))) == {9: [Withdrawn(ID)]}
    assert node.is_clean()


def test_only_where_it_came_from_can_it_be_withdrawn() -> None:
    node = installed()
    assert sent(node.control.on_unsubscribe(node.left, ID)) == {1: [Withdrawn(ID)]}
    assert len(node.table) == 1


def test_nobody_waits_for_the_withdrawals_of_the_absent() -> None:
    node = installed()
    node.control.on_unsubscribe(node.client, ID)
    node.control.on_withdrawn(node.left, Withdrawn(ID))
    node.control.on_withdrawn(node.right, Withdrawn(ID))
    assert sent(node.lose(node.up)) == {9: [Withdrawn(ID)]}
    assert node.is_clean()


# Tables


def rows(*subscribers: str, filter: str = "a") -> list[Row]:
    return [Row(SubscriptionId(each, 1, 1), filter, ()) for each in subscribers]


def test_a_table_lists_what_does_not_come_from_its_reader_pending_or_not() -> None:
    node = Node()
    node.lose(node.up)
    node.control.on_subscribe(node.left, Subscribe(SubscriptionId("l", 1, 1), "a", ()))
    node.control.on_subscribe(node.client, subscribe("b"))
    node.control.on_confirmed(node.right, Confirmed(SubscriptionId("l", 1, 1)))
    node.up.become_greeted(7, 1)
    [table] = sent(node.control.tell(node.up))[7]
    assert isinstance(table, Table)
    assert [(row.subscription.subscriber, row.filter) for row in table.rows] == [("l", "a"), ("c", "b")]
    assert all(row.vector[-1].node == "b" for row in table.rows)
    assert node.up.is_told


def test_no_piece_of_a_table_outgrows_a_frame() -> None:
    node = Node()
    for port in node.neighbours:
        node.lose(port)
    long = "a WHERE x = '" + "\U0001f600" * 60_000 + "'"
    for number in range(60):
        node.control.on_subscribe(node.client, Subscribe(SubscriptionId("c", 1, number), long, ()))
    node.up.become_greeted(7, 1)
    pieces = sent(node.control.tell(node.up))[7]
    assert max(len(encode(piece)[1]) for piece in pieces) < FRAME_BYTES_MAX // 2
    assert sum(len(piece.rows) for piece in pieces if isinstance(piece, Table)) == 60


@pytest.mark.parametrize("count", [0, 1, TABLE_ROWS_MAX, TABLE_ROWS_MAX + 1, 3 * TABLE_ROWS_MAX])
def test_the_last_piece_and_only_the_last_says_so(count: int) -> None:
    node = Node()
    for port in node.neighbours:
        node.lose(port)
    for number in range(count):
        node.control.on_subscribe(node.client, Subscribe(SubscriptionId("c", 1, number), "a", ()))
    node.up.become_greeted(7, 1)
    pieces = [piece for piece in sent(node.control.tell(node.up))[7] if isinstance(piece, Table)]
    assert [piece.last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert [row.subscription.number for piece in pieces for row in piece.rows] == list(range(count))
    assert len(pieces) == max(1, -(-count // TABLE_ROWS_MAX))


def test_a_table_adds_what_is_new_and_ends_what_it_lacks() -> None:
    node = Node()
    node.lose(node.right)
    node.lose(node.up)
    node.control.on_table(node.left, rows("old", "kept"))
    node.right.become_greeted(5, 1)
    node.control.tell(node.right)
    effects = sent(node.control.on_table(node.left, rows("kept", "new")))
    assert [type(message) for message in effects[5]] == [Subscribe, Unsubscribe]
    node.control.on_withdrawn(node.right, Withdrawn(SubscriptionId("old", 1, 1)))
    assert node.control.on_confirmed(node.right, Confirmed(SubscriptionId("new", 1, 1))) == [], "nobody asked"
    assert sorted(each.subscription.subscriber for each in node.table) == ["kept", "new"]
    assert node.is_clean()


@pytest.mark.parametrize("trouble", ["filter", "reused", "twice"])
def test_a_table_that_is_refused_changes_nothing(trouble: str) -> None:
    node = Node()
    node.lose(node.right)
    node.lose(node.up)
    node.control.on_table(node.left, rows("old", "kept"))
    node.right.become_greeted(5, 1)
    node.control.tell(node.right)
    bad = {
        "filter": rows("z", filter="a WHERE"),
        "reused": rows("kept", filter="b"),
        "twice": rows("new", filter="b"),
    }[trouble]
    with pytest.raises((FilterError, Reused)):
        node.control.on_table(node.left, rows("new") + bad)
    assert sorted(each.subscription.subscriber for each in node.table) == ["kept", "old"]
    assert node.is_clean()


def test_what_stood_in_an_earlier_piece_is_not_over() -> None:
    node = Node()
    for port in (node.right, node.up):
        node.lose(port)
    node.control.on_table(node.left, rows("old", "kept"))
    for piece, last in ((rows("kept"), False), (rows("new"), False), ([], True)):
        node.control.on_table(node.left, piece, last=last)
    assert sorted(each.subscription.subscriber for each in node.table) == ["kept", "new"]
    node.control.on_table(node.left, rows("new"))
    assert [each.subscription.subscriber for each in node.table] == ["new"], "each table begins anew"


def test_rows_are_read_as_filters() -> None:
    node = Node()
    for port in (node.right, node.up):
        node.lose(port)
    node.control.on_table(node.left, rows("x", filter="a  WHERE  y = 1"))
    assert [each.filter for each in node.table] == [parse_filter("a WHERE y = 1")]


def test_the_same_table_again_costs_no_parsing() -> None:
    node = Node()
    for port in (node.right, node.up):
        node.lose(port)
    table = [Row(SubscriptionId("x", 1, i), f"a WHERE y > {i} AND z = 'some text'", ()) for i in range(50)]
    first = work_of(lambda: node.control.on_table(node.left, table)).calls
    again = work_of(lambda: node.control.on_table(node.left, table)).calls
    assert again < first / 10
