"""How a broker takes subscriptions up, passes them on, confirms and ends them, by hand: left, right, up and a client.

The same over whole networks, and around failures, is in ``tests/node/test_spread.py``; here is what one broker owes its
peers whatever they say.
"""

from __future__ import annotations

from typing import Any

import pytest

from by_hand import ByHand, own, publish, subscribe
from counted_calls import work_of
from holdfast.clock import SECOND
from holdfast.filters.parse import parse_filter
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.session import Farewell, Goodbye
from holdfast.messages.subscriptions import (
    PARTITIONS_MAX,
    TABLE_ROWS_MAX,
    Confirmed,
    Grave,
    Heal,
    Known,
    Lore,
    Partition,
    Subscribe,
    Unsubscribe,
    Withdrawn,
)
from holdfast.overlay.transport import Received
from holdfast.wire.frame import FRAME_BYTES_MAX, encode

ID = SubscriptionId("far", 1, 1)
NAMES = ("left", "right", "up")


def world_of_three(**settings: Any) -> tuple[ByHand, int, int, int]:
    """A broker with three neighbours that are ready."""
    world = ByHand(NAMES, **settings)
    left, right, up = (world.neighbour(name) for name in NAMES)
    return world, left, right, up


def alone(**settings: Any) -> tuple[ByHand, int]:
    """One whose neighbours were given up, and a client of its own."""
    world = ByHand(NAMES, **settings)
    world.wait(SECOND)
    return world, world.client("peer")


def from_left(subscription: SubscriptionId = ID, filter: str = "a") -> Subscribe:
    return Subscribe(subscription, filter, (Element("left", 1, 1),))


def known(world: ByHand) -> list[str]:
    return sorted(entry.subscription.subscriber for entry in world.broker.table)


# Subscribing


def test_a_subscription_goes_to_every_neighbour_but_its_own_and_is_confirmed_by_all_first() -> None:
    """R0.24: installed when it is confirmed, not before."""
    world, left, right, up = world_of_three()
    world.say(left, from_left())
    assert [len(world.said(each, Subscribe)) for each in (left, right, up)] == [0, 1, 1]
    world.say(right, Confirmed(ID))
    assert (known(world), world.said(left, Confirmed)) == ([], [])
    world.say(up, Confirmed(ID))
    assert (known(world), world.said(left, Confirmed)) == (["far"], [Confirmed(ID)])


def test_a_confirmation_counts_once_and_only_from_those_who_were_asked() -> None:
    world, left, right, up = world_of_three()
    world.say(left, from_left())
    for peer in (left, right, right):
        world.say(peer, Confirmed(ID))
    world.say(up, Confirmed(SubscriptionId("x", 1, 1)))
    assert world.said(left, Confirmed) == []
    assert world.broker.node.spread.pending == 1


def test_partitions_beyond_and_here_are_named_in_the_confirmation() -> None:
    """R0.29."""
    world, left, right, up = world_of_three()
    peer = world.client("peer")
    world.lose(up)
    world.say(peer, subscribe("peer", 1))
    world.say(right, Confirmed(own(1), (Partition("far", 3, 4, ("farther",)),)))
    world.say(left, Confirmed(own(1)))
    [confirmed] = world.said(peer, Confirmed)
    assert sorted(each.fragment for each in confirmed.partial) == [("farther",), ("up",)]


def test_a_confirmation_never_names_more_partitions_than_a_frame_may_have() -> None:
    world, left, right, up = world_of_three()
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1))
    for each, name in ((left, "l"), (right, "r"), (up, "u")):
        many = tuple(Partition(name, 1, number, ()) for number in range(PARTITIONS_MAX))
        world.say(each, Confirmed(own(1), many))
    [confirmed] = world.said(peer, Confirmed)
    assert len(confirmed.partial) <= PARTITIONS_MAX


def test_asked_again_a_partial_confirmation_is_still_partial() -> None:
    world, peer = alone()
    world.say(peer, subscribe("peer", 1))
    world.say(peer, subscribe("peer", 1))
    first, second = world.said(peer, Confirmed)
    assert first == second
    assert len(first.partial) == 3


def test_asked_again_while_it_is_pending_it_is_confirmed_once() -> None:
    world, left, right, up = world_of_three()
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1), subscribe("peer", 1))
    assert [len(world.said(each, Subscribe)) for each in (left, right, up)] == [1, 1, 1]
    for each in (left, right, up):
        world.say(each, Confirmed(own(1)))
    assert len(world.said(peer, Confirmed)) == 1


@pytest.mark.parametrize("is_pending", [True, False])
def test_another_filter_under_a_used_id_ends_the_session_and_changes_nothing(is_pending: bool) -> None:
    world, left, right, up = world_of_three()
    world.say(left, from_left())
    if not is_pending:
        world.say(right, Confirmed(ID))
        world.say(up, Confirmed(ID))
    world.say(left, from_left(filter="b"))
    assert world.said(left, Goodbye)[0].farewell is Farewell.PROTOCOL
    world.say(right, Confirmed(ID))
    world.say(up, Confirmed(ID))
    assert [str(entry.filter) for entry in world.broker.table] == ["a"]


def test_a_neighbours_bad_filter_ends_its_session_and_changes_nothing() -> None:
    world, left, right, _ = world_of_three()
    world.say(left, from_left(filter="a WHERE"))
    assert world.said(left, Goodbye)[0].farewell is Farewell.PROTOCOL
    assert (known(world), world.broker.node.spread.pending) == ([], 0)
    assert world.said(right, Subscribe) == []


def test_no_more_of_a_vector_is_kept_than_is_sent_on() -> None:
    world, left, right, _ = world_of_three()
    long = tuple(Element(f"n{i}", 1, i) for i in range(90))
    world.say(left, Subscribe(ID, "a", (*long, Element("left", 1, 1))))
    [sent] = world.said(right, Subscribe)
    assert len(sent.vector) <= 2
    assert sent.vector[-1].node == "b"


# Withdrawing


def withdrawn_by_a_client() -> tuple[ByHand, int, list[int]]:
    world, *neighbours = world_of_three()
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1))
    for each in neighbours:
        world.say(each, Confirmed(own(1)))
    world.say(peer, Unsubscribe(SubscriptionId("peer", 1, 1)))
    assert known(world) == [], "it takes effect at once"
    assert [world.said(each, Unsubscribe) for each in neighbours] == [[Unsubscribe(own(1))]] * 3
    return world, peer, neighbours


def test_a_withdrawal_takes_effect_at_once_and_is_confirmed_by_all() -> None:
    world, peer, (left, right, up) = withdrawn_by_a_client()
    for each in (left, left, up):
        world.say(each, Withdrawn(own(1)))
    assert world.said(peer, Withdrawn) == []
    world.say(right, Withdrawn(own(1)))
    assert world.said(peer, Withdrawn) == [Withdrawn(SubscriptionId("peer", 1, 1))]


def test_nobody_waits_for_the_withdrawals_of_the_absent() -> None:
    world, peer, (left, right, up) = withdrawn_by_a_client()
    world.say(left, Withdrawn(own(1)))
    world.say(right, Withdrawn(own(1)))
    world.lose(up)
    assert world.said(peer, Withdrawn) == [Withdrawn(SubscriptionId("peer", 1, 1))]


@pytest.mark.parametrize(
    "message", [Unsubscribe(own(1)), Lore((), (Grave("b", 1, 1, 9),))], ids=lambda each: type(each).__name__
)
def test_no_neighbour_can_withdraw_what_a_client_of_ours_wants(message: Unsubscribe | Lore) -> None:
    world, *neighbours = world_of_three()
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1))
    for each in neighbours:
        world.say(each, Confirmed(own(1)))
    world.say(neighbours[0], message)
    world.say(peer, publish("peer", 1))
    assert world.delivered(peer) == [("peer", 1, (1,))]
    assert world.say(peer, subscribe("peer", 1)) == [Confirmed(SubscriptionId("peer", 1, 1))]


# Telling


def rows(*subscribers: str, filter: str = "a") -> tuple[Known, ...]:
    return tuple(Known(SubscriptionId(each, 1, 1), filter, ()) for each in subscribers)


def test_who_is_met_is_asked_what_is_under_way_and_told_what_it_had_stopped() -> None:
    """R0.48, R0.54: nothing that is known here, or about to be, is kept from it."""
    world = ByHand(NAMES)
    world.wait(SECOND)  # up is given up
    left, right = world.neighbour("left"), world.neighbour("right")
    settled, pending = SubscriptionId("settled", 1, 1), SubscriptionId("pending", 1, 1)
    world.say(left, from_left(settled), from_left(pending))
    world.say(right, Confirmed(settled))
    up = world.neighbour("up")
    assert [each.subscription for each in world.said(up, Subscribe)] == [pending]
    [heal] = world.said(up, Heal)
    assert [row.subscription for row in heal.rows] == [settled]


@pytest.mark.parametrize("count", [0, 1, TABLE_ROWS_MAX, TABLE_ROWS_MAX + 1])
def test_what_is_told_comes_in_pieces_of_so_many_rows_each_once(count: int) -> None:
    world = ByHand(["left", "right"])
    left = world.neighbour("left", rows=None)
    for start in range(0, count, TABLE_ROWS_MAX):
        numbers = range(start, min(count, start + TABLE_ROWS_MAX))
        world.say(left, Lore(tuple(Known(SubscriptionId("s", 1, n + 1), "a", ()) for n in numbers)))
    right = world.neighbour("right")
    pieces = [lore.rows for lore in world.said(right, Lore) if lore.rows]
    assert [row.subscription.number for piece in pieces for row in piece] == list(range(1, count + 1))
    assert len(pieces) == -(-count // TABLE_ROWS_MAX)


def test_no_piece_outgrows_a_frame() -> None:
    world, peer = alone()
    long = "a WHERE x = '" + "\U0001f600" * 60_000 + "'"
    for number in range(60):
        world.say(peer, subscribe("peer", number + 1, long))
    up = world.neighbour("up")
    said = world.heard[up]
    assert max(len(encode(message)[1]) for message in said) < FRAME_BYTES_MAX // 2


@pytest.mark.parametrize("trouble", ["filter", "too many"])
def test_what_was_told_before_a_row_that_is_refused_is_known_to_the_others_too(trouble: str) -> None:
    """Else it would be known here, be news to nobody later, and never reach them."""
    world, left, right, _ = world_of_three(subscriptions_max=2)
    bad = rows("z", filter="a WHERE") if trouble == "filter" else rows("y", "z")
    world.say(left, Lore((*rows("good"), *bad)))
    assert world.said(left, Goodbye)[0].farewell is Farewell.PROTOCOL
    told = {row.subscription.subscriber for lore in world.said(right, Lore) for row in lore.rows}
    assert told == set(known(world))


def test_rows_are_read_as_filters() -> None:
    world, left, _, _ = world_of_three()
    world.say(left, Lore(rows("x", filter="a  WHERE  y = 1")))
    assert [entry.filter for entry in world.broker.table] == [parse_filter("a WHERE y = 1")]


def test_the_same_rows_again_cost_no_parsing() -> None:
    world, left, _, _ = world_of_three()
    table = Lore(
        tuple(
            Known(SubscriptionId("x", 1, n), f"a WHERE y > {n} AND z = 'some text'", ()) for n in range(1, 51)
        )
    )
    first = work_of(lambda: world.broker.step(Received(left, [table]), world.now)).calls
    again = work_of(lambda: world.broker.step(Received(left, [table]), world.now)).calls
    assert again < first / 5
