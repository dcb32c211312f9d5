"""Neighbours: dialling and being dialled, tables before publications, sessions that replace one another."""

from __future__ import annotations

import pytest

from by_hand import ByHand, hello, publications, publish, subscribe
from holdfast.broker.settings import Routing
from holdfast.clock import MILLISECOND, SECOND
from holdfast.events.event import DEFAULT_LIMITS
from holdfast.identity import SubscriptionId
from holdfast.messages.publications import Batch, Publication, Publications
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello, Kind, Welcome
from holdfast.messages.subscriptions import Confirmed, Row, Subscribe, Table, Unsubscribe
from holdfast.overlay.transport import ConnectFailed


def row(subscriber: str, number: int = 1, filter: str = "#") -> Row:
    return Row(SubscriptionId(subscriber, 1, number), filter, ())


def installed(world: ByHand) -> dict[str, str]:
    """Subscriber to the port its subscription lies behind."""
    return {entry.subscription.subscriber: entry.port.name for entry in world.broker.table}


# Dialling


def test_the_parent_is_dialled_at_once_and_again_after_every_failure() -> None:
    world = ByHand(["child"], "parent", probe_every_ns=200 * MILLISECOND)
    assert world.dialled == ["parent"]
    world.wait(SECOND)
    assert world.dialled == ["parent"], "one attempt at a time"
    world.step(ConnectFailed("parent", "nobody there"))
    world.wait(199 * MILLISECOND)
    assert world.dialled == ["parent"]
    world.wait(MILLISECOND)
    assert world.dialled == ["parent"] * 2


def test_the_dialler_introduces_itself_and_counts_its_sessions() -> None:
    world = ByHand(parent="parent")
    for number in (1, 2):
        connection = world.connect("parent")
        [said] = world.said(connection, Hello)
        assert (said.node, said.kind, said.incarnation, said.session) == ("b", Kind.BROKER, 1, number)
        world.lose(connection)
        world.wait(SECOND)


@pytest.mark.parametrize(
    "welcome", [Welcome("other", Kind.BROKER, 1, 1, SECOND), Welcome("parent", Kind.CLIENT, 1, 1, SECOND)]
)
def test_somebody_else_at_the_parents_address_is_not_taken_for_it(welcome: Welcome) -> None:
    world = ByHand(parent="parent")
    connection = world.connect("parent")
    world.say(connection, welcome)
    assert world.said(connection, Goodbye)[0].farewell is Farewell.PROTOCOL
    world.wait(SECOND)
    assert world.dialled == ["parent"] * 2


def test_a_parent_that_connects_and_is_silent_is_dialled_again() -> None:
    world = ByHand(parent="parent")
    connection = world.connect("parent")
    world.wait(4 * SECOND)
    assert connection not in world.closed, "a round trip may take longer than a neighbour's silence"
    world.wait(2 * SECOND)
    assert connection in world.closed
    assert world.dialled == ["parent"] * 2


# Tables


def test_a_table_is_told_once_all_others_have_told_theirs() -> None:
    world = ByHand(["left", "right"])
    left = world.neighbour("left", rows=None)
    assert world.said(left, Table) == [], "right may still come"
    right = world.neighbour("right", rows=[row("far")])
    [told] = world.said(left, Table)
    assert told.last
    assert [each.subscription.subscriber for each in told.rows] == ["far"]
    assert world.said(right, Table) == [], "left has not told its table"
    world.say(left, Table((row("near"),), True))
    [told] = world.said(right, Table)
    assert [each.subscription.subscriber for each in told.rows] == ["near"]
    assert installed(world) == {"far": "right", "near": "left"}


def test_a_neighbour_that_never_came_is_given_up_after_a_while() -> None:
    world = ByHand(["left", "right"], detect_after_ns=500 * MILLISECOND)
    left = world.neighbour("left")
    assert not world.broker.is_ready
    world.wait(499 * MILLISECOND)
    assert world.said(left, Table) == []
    world.wait(MILLISECOND)
    assert [each.rows for each in world.said(left, Table)] == [()]
    assert world.broker.is_ready


def test_what_a_new_table_lacks_is_over_and_the_others_are_told() -> None:
    world = ByHand(["left", "right"])
    right = world.neighbour("right")
    left = world.neighbour("left", [row("old"), row("kept")])
    world.lose(left)
    assert installed(world) == {"old": "left", "kept": "left"}, "absent is not over"
    world.neighbour("left", [row("kept"), row("new")])
    assert world.said(right, Unsubscribe) == [Unsubscribe(SubscriptionId("old", 1, 1))]
    assert [each.subscription.subscriber for each in world.said(right, Subscribe)][-1] == "new"
    world.say(right, *(Confirmed(each.subscription) for each in world.said(right, Subscribe)))
    assert installed(world) == {"kept": "left", "new": "left"}


def test_a_piece_of_a_table_is_taken_up_when_it_comes_and_what_all_lack_is_over_at_the_last() -> None:
    world = ByHand(["left"])
    world.lose(world.neighbour("left", [row("old"), row("one")]))
    left = world.neighbour("left", rows=None)
    world.say(left, Table((row("one"), row("two")), False))
    assert set(installed(world)) == {"old", "one", "two"}
    assert not world.broker.neighbours.ports[0].has_told
    world.say(left, Table((row("three"),), True))
    assert set(installed(world)) == {"one", "two", "three"}


def test_pieces_of_a_table_die_with_their_session() -> None:
    world = ByHand(["left"])
    first = world.neighbour("left", rows=None)
    world.say(first, Table((row("stale"),), False))
    world.lose(first)
    world.neighbour("left", [row("fresh")])
    assert set(installed(world)) == {"fresh"}


def test_a_table_of_too_many_rows_ends_the_session() -> None:
    world = ByHand(["left"], subscriptions_max=3)
    left = world.neighbour("left", rows=None)
    world.say(left, Table(tuple(row("s", i) for i in range(1, 3)), False))
    assert left not in world.closed
    world.say(left, Table(tuple(row("s", i) for i in range(3, 5)), False))
    assert world.said(left, Goodbye)[0].farewell is Farewell.PROTOCOL


def test_a_neighbour_that_never_tells_its_table_is_given_up() -> None:
    world = ByHand(["left", "right"])
    left, right = world.neighbour("left"), world.neighbour("right", rows=None)
    for _ in range(600):
        world.wait(100 * MILLISECOND)
        for connection in {left, right} - set(world.closed):
            world.say(connection, Heartbeat())
    assert right in world.closed
    assert left not in world.closed
    assert world.broker.is_ready
    assert len(world.said(left, Table)) == 1


# Publications


def test_publications_wait_for_the_tables_and_then_leave_in_order() -> None:
    world = ByHand(["left", "right"])
    right = world.neighbour("right")
    left = world.neighbour("left", [row("wants")])
    world.lose(left)
    left = world.neighbour("left", rows=None)
    world.say(right, publications("p", 1, 2), publications("p", 3))
    assert world.forwarded(left) == []
    assert world.broker.holds_undelivered == 3
    world.say(left, Table((row("wants"),), True))
    world.say(right, publications("p", 4))
    assert world.forwarded(left) == [("p", 1), ("p", 2), ("p", 3), ("p", 4)]
    assert world.broker.holds_undelivered == 0


def test_no_more_is_held_than_may_be_and_the_rest_is_counted() -> None:
    world = ByHand(["left", "right"], held_max=2)
    right = world.neighbour("right")
    world.lose(world.neighbour("left", [row("wants")]))
    left = world.neighbour("left", rows=None)
    world.say(right, publications("p", 1, 2), publications("p", 3))
    assert world.broker.holds_undelivered == 2
    assert world.broker.counters.dropped == 1
    world.lose(left)
    assert world.broker.holds_undelivered == 0
    assert world.broker.counters.dropped == 3, "what was held is gone with the session"


def test_what_comes_from_a_neighbour_never_goes_back_to_it() -> None:
    world = ByHand(["left", "right"])
    left, right = world.neighbour("left", [row("l")]), world.neighbour("right", [row("r")])
    world.say(left, publications("p", 1))
    assert (world.forwarded(left), world.forwarded(right)) == ([], [("p", 1)])


@pytest.mark.parametrize("event", [b"", b"\xc1", b"\x93\xa1a", b"\x00" * 100])
def test_an_event_no_broker_can_have_sent_ends_the_session(event: bytes) -> None:
    world = ByHand(["left", "right"])
    left = world.neighbour("left")
    world.neighbour("right", [row("r")])
    world.say(left, Publications("default", Batch([Publication("p", 1, event)]), [0]))
    assert world.said(left, Goodbye)[0].farewell is Farewell.PROTOCOL


# Sessions that replace one another


def test_a_new_session_replaces_the_old_one() -> None:
    world = ByHand(["left"])
    first = world.neighbour("left", [row("one")])
    second = world.neighbour("left", [row("two")], incarnation=2)
    assert world.said(first, Goodbye)[0].farewell is Farewell.REPLACED
    assert first in world.closed
    assert second not in world.closed
    assert set(installed(world)) == {"two"}


def test_nobody_waits_for_the_confirmation_of_a_lost_neighbour() -> None:
    world = ByHand(["left", "right"])
    left, right = world.neighbour("left"), world.neighbour("right")
    client = world.client("peer")
    world.say(client, subscribe("peer", 1))
    world.say(left, Confirmed(SubscriptionId("peer", 1, 1)))
    assert world.said(client, Confirmed) == []
    world.lose(right)
    [confirmed] = world.said(client, Confirmed)
    assert [each.fragment for each in confirmed.partial] == [("right",)]


def test_an_older_life_of_a_neighbour_is_let_in_with_a_warning() -> None:
    world = ByHand(["left"])
    world.lose(world.neighbour("left", incarnation=5))
    world.neighbour("left", incarnation=4)
    assert any(log.level == "warning" and log.fields["peer"] == "left" for log in world.logs)


def test_a_goodbye_does_not_fill_the_log() -> None:
    world = ByHand(["left"])
    stranger = world.connect()
    world.say(stranger, Goodbye(Farewell.LEAVING, "x" * 1_000_000))
    assert all(len(str(log.text)) < 2_000 for log in world.logs)


# Flooding


def test_flooding_goes_everywhere_but_back_whatever_is_wanted() -> None:
    world = ByHand(["left", "right"], routing=Routing.FLOODING)
    left, right = world.neighbour("left"), world.neighbour("right")
    client = world.client("peer")
    world.say(client, subscribe("peer", 1, "b"))
    assert [each.rows for each in world.said(left, Table)] == [()]
    assert world.said(left, Subscribe) == [], "subscriptions do not travel"
    world.say(left, publications("p", 1, topic="a"), publications("p", 2, topic="b"))
    world.say(client, publish("peer", 1, topic="c"))
    assert world.forwarded(left) == [("peer", 1)]
    assert world.forwarded(right) == [("p", 1), ("p", 2), ("peer", 1)]
    assert world.delivered(client) == [("p", 2, (1,))]


def test_a_flooding_broker_takes_no_subscriptions_from_a_neighbour() -> None:
    world = ByHand(["left", "right"], routing=Routing.FLOODING)
    left, right = world.neighbour("left"), world.neighbour("right", [row("r")])
    world.say(left, publications("p", 1, 2, 3))
    assert world.forwarded(right) in ([("p", 1), ("p", 2), ("p", 3)], [])
    assert installed(world) == {}


def test_a_broker_that_only_floods_never_reads_an_event() -> None:
    world = ByHand(["left", "right"], routing=Routing.FLOODING)
    left, right = world.neighbour("left"), world.neighbour("right")
    world.say(left, Publications("default", Batch([Publication("p", 1, b"opaque")]), [0]))
    assert world.forwarded(right) == [("p", 1)]
    assert world.forwarded(left) == []


def test_the_limit_on_names_is_that_of_publishers() -> None:
    world = ByHand()
    longest = "é" * (DEFAULT_LIMITS.publisher_bytes // 2)
    assert isinstance(world.say(world.connect(), hello(longest))[0], Welcome)
    assert isinstance(world.say(world.connect(), hello(longest + "x"))[0], Goodbye)


def test_a_neighbour_of_a_later_version_may_be_able_to_do_more() -> None:
    world = ByHand(["child"])
    connection = world.connect()
    later = hello("child", Kind.BROKER, features=("routing=filter", "something=new"))
    assert any(isinstance(message, Welcome) for message in world.say(connection, later))
