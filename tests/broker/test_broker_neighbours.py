"""Neighbours: dialling and being dialled, all that is known before publications, sessions that replace one another.

What a neighbour is told and tells is [KJ §4.2.1] with the resolutions B0.18 (a session is a failure and a recovery) and
B0.24 (what is over stays so): nothing ends because somebody does not mention it.
"""

from __future__ import annotations

import pytest

from by_hand import ByHand, hello, own, publications, publish, subscribe
from holdfast.broker.settings import Routing
from holdfast.clock import MILLISECOND, SECOND
from holdfast.events.event import DEFAULT_LIMITS
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.overlay import Ready, Role, Told
from holdfast.messages.publications import Batch, Publication, Publications
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello, Kind, Overlay, Welcome
from holdfast.messages.subscriptions import Confirmed, Grave, Known, Lore, Subscribe
from holdfast.overlay.transport import ConnectFailed

A_BROKER = Overlay(Role.BROKER, 0, is_recovering=False)


def row(subscriber: str, number: int = 1, filter: str = "#") -> Known:
    """A subscription as the broker of its client tells it."""
    return Known(SubscriptionId(subscriber, 1, number), filter, ())


def grave(subscriber: str, number: int = 1) -> Grave:
    return Grave(subscriber, 1, number, number)


def installed(world: ByHand) -> dict[str, str]:
    """Subscriber to the port its subscription lies behind."""
    return {entry.subscription.subscriber: entry.port.name for entry in world.broker.table}


def told(world: ByHand, connection: int) -> list[tuple[str, tuple[str, ...]]]:
    """The subscriptions a neighbour was told, by subscriber, with the way there."""
    return [
        (each.subscription.subscriber, each.route)
        for lore in world.said(connection, Lore)
        for each in lore.rows
    ]


def buried(world: ByHand, connection: int) -> list[Grave]:
    """The graves a neighbour was told, but for those of the broker's own earlier lives."""
    graves = [each for lore in world.said(connection, Lore) for each in lore.graves]
    return [each for each in graves if each.subscriber != "b"]


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
    "welcome",
    [
        Welcome("other", Kind.BROKER, 1, 1, SECOND, features=("routing=filter",), overlay=A_BROKER),
        Welcome("parent", Kind.CLIENT, 1, 1, SECOND),
        Welcome("parent", Kind.BROKER, 1, 1, SECOND, features=("routing=filter",)),
    ],
    ids=["another broker", "a client", "no node of the overlay"],
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


# What is told first


def test_what_is_known_is_told_at_once_and_ready_is_said_once_everybody_has_told() -> None:
    world = ByHand(["left", "right"])
    left = world.neighbour("left", rows=None)
    assert len(world.said(left, Told)) == 1
    assert told(world, left) == []
    right = world.neighbour("right", rows=[row("far")])
    assert told(world, left) == [("far", ("right",))], "what is learnt is passed on"
    assert world.said(right, Ready) == [], "left has not told what it knows"
    world.say(left, Lore((row("near"),)), Told())
    assert told(world, right) == [("near", ("left",))]
    assert len(world.said(left, Ready)) == len(world.said(right, Ready)) == 1
    assert installed(world) == {"far": "right", "near": "left"}


def test_who_has_lost_its_memory_as_we_have_is_told_once_all_others_have_told() -> None:
    """Else what we are given back later would not be told to it [B0.16]."""
    world = ByHand(["left", "right"])
    left = world.neighbour("left", rows=None, is_recovering=True)
    assert world.said(left, Told) == []
    world.neighbour("right", rows=[row("far")])
    assert len(world.said(left, Told)) == 1
    assert told(world, left) == [("far", ("right",))]
    assert world.said(left, Ready) == []


def test_nobody_is_told_that_we_are_ready_before_it_has_told_what_it_knows() -> None:
    world = ByHand(["left", "right"])
    world.neighbour("right")
    left = world.neighbour("left", rows=None)
    world.wait(499 * MILLISECOND)
    assert world.said(left, Ready) == []
    world.say(left, Told())
    assert len(world.said(left, Ready)) == 1


def test_a_neighbour_that_never_came_is_given_up_after_a_while() -> None:
    world = ByHand(["left", "right"], detect_after_ns=500 * MILLISECOND)
    left = world.neighbour("left")
    assert not world.broker.is_ready
    world.wait(499 * MILLISECOND)
    assert world.said(left, Ready) == []
    world.wait(MILLISECOND)
    assert len(world.said(left, Ready)) == 1
    assert world.broker.is_ready


def test_what_is_not_mentioned_is_not_over_and_what_is_buried_is_everywhere() -> None:
    world = ByHand(["left", "right"])
    right = world.neighbour("right")
    left = world.neighbour("left", [row("old"), row("kept"), row("silent")])
    world.lose(left)
    assert installed(world) == {"old": "left", "kept": "left", "silent": "left"}, "absent is not over"
    world.neighbour("left", [row("kept"), row("new")], [grave("old")])
    assert buried(world, right) == [grave("old")]
    assert told(world, right)[-1] == ("new", ("left",))
    assert installed(world) == {"kept": "left", "silent": "left", "new": "left"}


def test_what_is_over_stays_so_whoever_still_tells_of_it() -> None:
    world = ByHand(["left", "right"])
    world.neighbour("right", graves=[grave("gone")])
    left = world.neighbour("left", [row("gone"), row("here")])
    assert installed(world) == {"here": "left"}
    assert buried(world, left) == [grave("gone")] * 2, "told when they met, and again as the answer"
    world.say(left, Subscribe(SubscriptionId("gone", 1, 1), "#", (Element("left", 1, 1),)))
    assert installed(world) == {"here": "left"}


def test_a_piece_of_what_is_known_is_taken_up_when_it_comes() -> None:
    world = ByHand(["left"])
    world.lose(world.neighbour("left", [row("old"), row("one")]))
    left = world.neighbour("left", rows=None)
    world.say(left, Lore((row("one"), row("two"))))
    assert set(installed(world)) == {"old", "one", "two"}
    assert not world.broker.node.reach["left"].has_told
    world.say(left, Lore((row("three"),), (grave("old"),)), Told())
    assert set(installed(world)) == {"one", "two", "three"}
    assert world.broker.node.reach["left"].has_told


def test_who_has_lost_its_memory_is_told_what_it_had_told_itself() -> None:
    world = ByHand(["left"])
    first = world.neighbour("left", rows=None)
    world.say(first, Lore((row("early"),)))
    world.lose(first)
    second = world.neighbour("left", [row("fresh")], incarnation=2)
    assert told(world, second) == [("early", ("left",))], "its own client, on the way through itself"
    assert set(installed(world)) == {"early", "fresh"}


def test_more_rows_than_there_may_be_subscriptions_end_the_session() -> None:
    world = ByHand(["left"], subscriptions_max=3)
    left = world.neighbour("left", rows=None)
    world.say(left, Lore(tuple(row("s", i) for i in range(1, 3))))
    assert left not in world.closed
    world.say(left, Lore(tuple(row("s", i) for i in range(3, 5))))
    assert world.said(left, Goodbye)[0].farewell is Farewell.PROTOCOL


def test_a_neighbour_that_never_tells_what_it_knows_is_given_up() -> None:
    world = ByHand(["left", "right"])
    left, right = world.neighbour("left"), world.neighbour("right", rows=None)
    for _ in range(600):
        world.wait(100 * MILLISECOND)
        for connection in {left, right} - set(world.closed):
            world.say(connection, Heartbeat())
    assert right in world.closed
    assert left not in world.closed
    assert world.broker.is_ready
    assert len(world.said(left, Ready)) == 1


# Publications


def test_publications_wait_until_a_neighbour_is_ready_and_then_leave_in_order() -> None:
    world = ByHand(["left", "right"])
    right = world.neighbour("right")
    left = world.neighbour("left", [row("wants")])
    world.lose(left)
    left = world.neighbour("left", rows=None)
    world.say(right, publications("p", 1, 2), publications("p", 3))
    assert world.forwarded(left) == []
    assert world.broker.holds_undelivered == 3
    world.say(left, Told())
    assert world.forwarded(left) == [], "it does not accept publications yet"
    world.say(left, Ready())
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


def test_what_is_held_is_bounded_in_bytes_too_and_the_first_stay() -> None:
    size = len(publications("p", 1).batch.publications[0].event)
    world = ByHand(["left", "right"], held_bytes_max=3 * size)
    right = world.neighbour("right")
    world.lose(world.neighbour("left", [row("wants")]))
    left = world.neighbour("left", rows=None)
    world.say(right, publications("p", 1, 2))
    world.say(right, publications("p", 3, 4))
    world.say(left, Told(), Ready())
    assert world.forwarded(left) == [("p", 1), ("p", 2), ("p", 3)]
    assert world.broker.counters.dropped == 1


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
    assert set(installed(world)) == {"one", "two"}


def test_nobody_waits_for_the_confirmation_of_a_lost_neighbour() -> None:
    world = ByHand(["left", "right"])
    left, right = world.neighbour("left"), world.neighbour("right")
    client = world.client("peer")
    world.say(client, subscribe("peer", 1))
    world.say(left, Confirmed(own(1)))
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
    assert (told(world, left), world.said(left, Subscribe)) == ([], []), "subscriptions do not travel"
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
