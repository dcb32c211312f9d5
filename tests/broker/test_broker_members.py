"""Clients that are nodes of the overlay [KJ §13]: each speaks for itself alone, and leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest

from by_hand import ByHand, hello, publish
from holdfast.broker.input import Expel
from holdfast.broker.settings import Stream
from holdfast.clock import SECOND
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import Join, Leave, Missing, Present, Ready, Role, Told
from holdfast.messages.publications import Accepted
from holdfast.messages.session import MEMBER, Farewell, Goodbye, Heartbeat, Hello, Overlay, Welcome
from holdfast.messages.streams import Guarantee
from holdfast.messages.subscriptions import Confirmed, Grave, Known, Lore, Subscribe, Unsubscribe

OF_THE_MEMBER = SubscriptionId("member", 1, 1)
OF_ANOTHER = SubscriptionId("other", 1, 1)

SAID_FOR_OTHERS: dict[str, Message] = {
    "Subscribe": Subscribe(OF_ANOTHER, "#", (Element("member", 1, 1),)),
    "Subscribe in another life": Subscribe(SubscriptionId("member", 7, 1), "#", (Element("member", 7, 1),)),
    "Unsubscribe": Unsubscribe(OF_ANOTHER),
    "a row": Lore((Known(OF_ANOTHER, "#", ()),)),
    "a grave": Lore((), (Grave("other", 1, 1, 2**63 - 1),)),
    "Join": Join("another", Role.PUBLISHER, "member", None, 1),
    "Leave": Leave("other", 1, "I say so"),
    "Leave of a broker": Leave("child", 0, "I say so"),
    "Missing": Missing("other", 1, 1, 1),
    "Present": Present("other", 1),
    "a grave of a broker": Lore((), (Grave("child", 1, 1, 2**63 - 1),)),
}


def member(world: ByHand, name: str = "member", role: Role = Role.PUBLISHER) -> int:
    """A member in session that accepts publications."""
    connection = world.connect()
    standing = Overlay(role, world.broker.settings.delta, is_recovering=False, home="b")
    answer = world.say(connection, hello(name, overlay=standing))
    assert isinstance(answer[0], Welcome)
    world.say(connection, Told(), Ready())
    return connection


def subscribed(world: ByHand, peer: int, subscription: SubscriptionId, *others: int) -> None:
    """A member subscribes, and whoever must know confirms."""
    world.say(peer, Subscribe(subscription, "b", (Element(subscription.subscriber, 1, 1),)))
    for each in others:
        world.say(each, Confirmed(subscription))
    assert world.said(peer, Confirmed)[-1] == Confirmed(subscription)


def entries(world: ByHand) -> list[tuple[SubscriptionId, str]]:
    return [(entry.subscription, entry.port.name) for entry in world.broker.table]


def still_serves(world: ByHand) -> None:
    client = world.client("peer")
    assert world.say(client, publish("peer", 1), publish("peer", 2, topic="b")) == [Accepted(2)]


def test_a_member_subscribes_under_its_own_name_and_is_confirmed() -> None:
    world = ByHand()
    peer = member(world)
    subscribed(world, peer, OF_THE_MEMBER)
    assert entries(world) == [(OF_THE_MEMBER, "member")]


@pytest.mark.parametrize("said", SAID_FOR_OTHERS)
def test_what_a_member_says_for_others_changes_nothing_for_them(said: str) -> None:
    world = ByHand(["child"])
    child, other = world.neighbour("child"), member(world, "other")
    subscribed(world, other, OF_ANOTHER, child)
    world.say(member(world), SAID_FOR_OTHERS[said])
    assert other not in world.closed
    assert [entry for entry in entries(world) if entry[0] == OF_ANOTHER] == [(OF_ANOTHER, "other")]
    assert world.broker.node.reach["child"].is_open
    still_serves(world)


@pytest.mark.parametrize("said", SAID_FOR_OTHERS)
def test_a_member_that_left_has_left_nothing_behind(said: str) -> None:
    world = ByHand(["child"])
    child, peer = world.neighbour("child"), member(world)
    subscribed(world, peer, OF_THE_MEMBER, child)
    world.say(peer, SAID_FOR_OTHERS[said])
    world.say(child, *(Confirmed(each.subscription) for each in world.said(child, Subscribe)))
    if peer in world.closed:  # what it said was a breach
        peer = member(world)
    world.say(peer, Goodbye(Farewell.LEAVING, "done"))
    assert entries(world) == []
    assert world.broker.node.reach.get("member") is None
    still_serves(world)


# Room


RELIABLE = (Stream("all", ("#",), guarantee=Guarantee.RELIABLE),)


def full_house(*children: str, **settings: Any) -> tuple[ByHand, int]:
    """A broker for two clients that has a plain one and a member."""
    world = ByHand(children, clients_max=2, streams=RELIABLE, **settings)
    for child in children:
        world.neighbour(child)
    world.client("plain")
    return world, member(world)


def turned_away(world: ByHand, *said: Message) -> bool:
    """Whether a stranger who says this is told that there is no room."""
    connection = world.connect()
    world.say(connection, *said)
    farewells = [goodbye.farewell for goodbye in world.said(connection, Goodbye)]
    assert farewells in ([], [Farewell.FULL])
    assert bool(farewells) == (connection in world.closed)
    return bool(farewells)


def as_member(name: str, home: str = "b", incarnation: int = 1, delta: int = 0) -> Hello:
    standing = Overlay(Role.SUBSCRIBER, delta, is_recovering=False, home=home)
    return hello(name, incarnation=incarnation, overlay=standing)


def test_members_count_among_the_clients_there_may_be() -> None:
    world, _ = full_house()
    assert turned_away(world, hello("third"))
    assert turned_away(world, hello("third", features=(MEMBER,))), "before it is invited"
    assert turned_away(world, as_member("third"))
    assert world.broker.node.topology.get("third") is None


def test_a_known_name_needs_no_new_place() -> None:
    world, peer = full_house()
    world.lose(peer)
    assert turned_away(world, as_member("third")), "who is away is waited for"
    assert not turned_away(world, as_member("member"))
    assert not turned_away(world, hello("member", features=(MEMBER,)))
    assert not turned_away(world, as_member("member", incarnation=2)), "another life takes over"
    assert not turned_away(world, hello("plain", incarnation=2))


def test_who_leaves_or_is_expelled_makes_room() -> None:
    world, peer = full_house()
    world.say(peer, Goodbye(Farewell.LEAVING, "done"))
    assert not turned_away(world, as_member("second"))
    assert turned_away(world, as_member("third"))
    world.step(Expel("second"))
    assert not turned_away(world, as_member("third"))


def test_who_was_invited_has_a_place_until_it_comes_or_goes() -> None:
    world = ByHand(clients_max=1, streams=RELIABLE)
    first, second = world.connect(), world.connect()
    assert isinstance(world.say(first, hello("first", features=(MEMBER,)))[0], Welcome)
    assert turned_away(world, as_member("third"))
    world.lose(first)
    assert isinstance(world.say(second, hello("second", features=(MEMBER,)))[0], Welcome)
    assert isinstance(world.say(second, as_member("second"))[0], Welcome)
    assert turned_away(world, hello("third"))


def test_a_member_of_another_broker_that_comes_past_it_takes_no_place() -> None:
    world, _ = full_house("child", delta=1)
    assert not turned_away(world, as_member("guest", home="child", delta=1))
    assert world.broker.node.reach["guest"].connection is not None


def test_a_member_that_was_lost_is_expelled_when_its_grace_is_over() -> None:
    """And a plain client's events that only waited for it, one of the δ nodes beyond, are accepted at once (B0.35)."""
    world, peer = full_house(member_grace_ns=3 * SECOND, delta=1)
    subscribed(world, peer, OF_THE_MEMBER)
    world.lose(peer)
    publisher = world.client("plain", incarnation=2)
    world.say(publisher, publish("plain", 1, topic="b"))
    world.wait(2 * SECOND)
    world.say(publisher, Heartbeat())
    assert (entries(world), world.said(publisher, Accepted)) == ([(OF_THE_MEMBER, "member")], [])
    for _ in range(3):  # it is asked for first
        world.wait(2 * SECOND)
        world.say(publisher, Heartbeat())
    assert (entries(world), world.said(publisher, Accepted)) == ([], [Accepted(1)])
    assert world.broker.node.topology.get("member") is None
    assert any(log.text == "a member is expelled" for log in world.logs)
