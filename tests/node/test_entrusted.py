"""B0.35 for plain clients: their broker and the first δ nodes beyond it hold what is accepted, and others that live."""

from __future__ import annotations

import pytest

from by_hand import ByHand, publish
from holdfast.broker.settings import Stream
from holdfast.identity import SubscriptionId
from holdfast.messages.overlay import DepthAck, Holding, Join, Leave, Role
from holdfast.messages.publications import Accepted
from holdfast.messages.streams import Guarantee
from holdfast.messages.subscriptions import Known, Lore
from holdfast.node.settings import Acknowledge

RELIABLE = (Stream("all", ("#",), guarantee=Guarantee.RELIABLE),)


def chain(delta: int, acknowledge: Acknowledge = Acknowledge.DACK) -> tuple[ByHand, int, int]:
    """b ── near ── far, where somebody at far wants everything; near, and a plain publisher at b."""
    beyond = [("far", "near")] if delta else []
    world = ByHand(["near"], beyond=beyond, streams=RELIABLE, delta=delta, acknowledge=acknowledge)
    row = Known(SubscriptionId("far", 1, 1), "#", ("far",))
    near = world.neighbour("near", [row])
    return world, near, world.client("p")


def holds(world: ByHand, near: int, *holdings: Holding) -> None:
    world.say(near, DepthAck(holdings))


def accepted(world: ByHand, publisher: int) -> list[int]:
    return [each.upto for each in world.said(publisher, Accepted)]


def test_while_all_are_there_it_is_accepted_when_it_is_safe() -> None:
    """far has had something before: it is waited for, so that the event is well on its way."""
    world, near, publisher = chain(1)
    world.say(publisher, publish("p", 1))
    holds(world, near, Holding("near", 1, "b", 1, 1, 0), Holding("far", 1, "b", 1, 1, 0))
    assert accepted(world, publisher) == [1]
    world.say(publisher, publish("p", 2))
    holds(world, near, Holding("near", 1, "b", 1, 2, 0))
    assert accepted(world, publisher) == [1]
    holds(world, near, Holding("far", 1, "b", 1, 2, 0))
    assert accepted(world, publisher) == [1, 2]


@pytest.mark.parametrize("had", [0, 1])
def test_if_nobody_knows_that_the_subscribers_broker_lives_delta_others_are_enough(had: int) -> None:
    """far has failed, or was never there: near says that it does not know."""
    world, near, publisher = chain(1)
    world.say(publisher, publish("p", 1))
    holds(world, near, *([Holding("far", 1, "b", 1, 1, 0)] if had else []))
    world.say(publisher, publish("p", 2))
    assert accepted(world, publisher) == []
    holds(world, near, Holding("near", 1, "b", 1, 1, 0), Holding("far", 1, "b", 1, 0, 0))
    assert accepted(world, publisher) == [1], "near lacks 2"
    holds(world, near, Holding("near", 1, "b", 1, 2, 0))
    assert accepted(world, publisher) == [1, 2]
    assert world.broker.node.plane.held == 2, "the broker holds it on"


@pytest.mark.parametrize("arrived", [0, 1])
def test_what_somebody_beyond_has_let_go_is_accepted_though_who_is_nearer_lacks_it(arrived: int) -> None:
    """Also if nobody knows whether he lives now."""
    world, near, publisher = chain(1)
    world.say(publisher, publish("p", 1))
    holds(world, near, Holding("far", 1, "b", 1, arrived, 1))
    assert accepted(world, publisher)[-1] == 1


def test_every_way_counts_and_the_last_of_a_batch() -> None:
    """Two subscribers' brokers in two directions; what came together is accepted together."""
    world = ByHand(["left", "right"], streams=RELIABLE, delta=1)
    ways = {
        name: world.neighbour(name, [Known(SubscriptionId(name, 1, 1), "#", ())])
        for name in ("left", "right")
    }
    publisher = world.client("p")
    world.say(publisher, publish("p", 1, 2, 3))
    holds(world, ways["left"], Holding("left", 1, "b", 1, 3, 0))
    assert accepted(world, publisher) == []
    holds(world, ways["right"], Holding("right", 1, "b", 1, 2, 0))
    assert accepted(world, publisher) == []
    holds(world, ways["right"], Holding("right", 1, "b", 1, 3, 0))
    assert accepted(world, publisher) == [3]


def test_who_has_left_for_good_is_not_waited_for() -> None:
    """u is a member at near, one hop behind it, and is expelled."""
    world, near, publisher = chain(1)
    world.say(near, Join("u", Role.SUBSCRIBER, "near", None, 1))
    world.say(near, Lore((Known(SubscriptionId("u", 1, 1), "#", ("u",)),)))
    for n in (1, 2):
        world.say(publisher, publish("p", n))
        holds(world, near, Holding("near", 1, "b", 1, n, 0), Holding("u", 1, "b", 1, 1, 0))
    assert accepted(world, publisher) == [1], "u lives, and lacks 2"
    world.say(near, Leave("u", 1, "expelled"))
    assert accepted(world, publisher) == [1, 2]
    assert world.broker.node.plane.held == 2, "for far, of which nobody knows"


def test_with_delta_0_its_own_broker_is_enough() -> None:
    world, near, publisher = chain(0)
    world.say(publisher, publish("p", 1))
    world.lose(near)
    world.wait(2 * world.broker.settings.dack_every_ns)
    assert accepted(world, publisher) == [1]
    assert world.broker.node.plane.held == 1


def test_where_every_event_is_confirmed_it_is_accepted_when_it_is() -> None:
    world, near, publisher = chain(0, Acknowledge.CONF)
    world.say(publisher, publish("p", 1))
    world.lose(near)
    world.wait(2 * world.broker.settings.dack_every_ns)
    assert accepted(world, publisher) == []
