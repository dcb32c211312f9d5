"""B0.35 for plain clients: accepted is what their broker and the first δ nodes beyond it hold, and no more is needed."""

from __future__ import annotations

from by_hand import ByHand, publish
from holdfast.broker.settings import Stream
from holdfast.identity import SubscriptionId
from holdfast.messages.overlay import DepthAck, Holding
from holdfast.messages.publications import Accepted
from holdfast.messages.streams import Guarantee
from holdfast.messages.subscriptions import Known
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


def test_with_delta_1_the_broker_beside_it_is_enough() -> None:
    """far, where the subscriber is, may be down for as long as it likes."""
    world, near, publisher = chain(1)
    world.say(publisher, publish("p", 1, 2))
    assert accepted(world, publisher) == []
    holds(world, near, Holding("near", 1, "b", 1, 1, 0))
    assert accepted(world, publisher) == []
    holds(world, near, Holding("near", 1, "b", 1, 2, 0))
    assert accepted(world, publisher) == [2]
    assert world.broker.node.plane.held == 2, "the broker holds it on"


def test_what_somebody_beyond_has_let_go_is_accepted_though_who_is_nearer_lacks_it() -> None:
    world, near, publisher = chain(1)
    world.say(publisher, publish("p", 1))
    holds(world, near, Holding("far", 1, "b", 1, 1, 1))
    assert accepted(world, publisher) == [1]


def test_with_delta_0_its_own_broker_is_enough() -> None:
    world, _, publisher = chain(0)
    world.say(publisher, publish("p", 1))
    assert accepted(world, publisher)[-1] == 1
    assert world.broker.node.plane.held == 1


def test_where_every_event_is_confirmed_it_is_accepted_when_it_is() -> None:
    world, _, publisher = chain(0, Acknowledge.CONF)
    world.say(publisher, publish("p", 1))
    assert accepted(world, publisher) == []
