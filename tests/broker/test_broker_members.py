"""Clients that are nodes of the overlay [KJ §13]: each speaks for itself alone, and leaves nothing behind."""

from __future__ import annotations

import pytest

from by_hand import ByHand, hello, publish
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import Join, Leave, Ready, Role, Told
from holdfast.messages.publications import Accepted
from holdfast.messages.session import Farewell, Goodbye, Overlay, Welcome
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
