"""What a client does with an invitation: a broker may say anything, and the client goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.client.input import Open
from holdfast.client.membership import membership_of, welcome_problem
from holdfast.client.newcomer import Newcomer
from holdfast.client.settings import Settings
from holdfast.clock import MILLISECOND, SECOND
from holdfast.events.event import DEFAULT_LIMITS
from holdfast.messages.overlay import Join, Role
from holdfast.messages.session import Farewell, Goodbye, Hello, Invitation, Kind, Welcome
from holdfast.messages.streams import Guarantee, Order, StreamOrder
from holdfast.node.settings import Acknowledge
from holdfast.overlay.transport import Connected, Received, Send

INVITATION = Invitation(
    2,
    (Join("b1", Role.BROKER, "b2", "b1:1", 0),),
    7,
    "dack",
    True,
    False,
    100 * MILLISECOND,
    500 * MILLISECOND,
    200 * MILLISECOND,
    100 * MILLISECOND,
    DEFAULT_LIMITS,
)
STREAMS = (StreamOrder("s", Order.FIFO, Guarantee.RELIABLE, ("#",)),)
SETTINGS = Settings("me", 5, "b2:1")


def welcome(streams: tuple[StreamOrder, ...] = STREAMS, **fields: Any) -> Welcome:
    invitation = replace(INVITATION, **fields)
    return Welcome("b2", Kind.BROKER, 3, 1, SECOND, streams=streams, invitation=invitation)


def test_the_broker_that_invites_is_home_and_knows_who_is_around() -> None:
    membership = membership_of(SETTINGS, welcome(), "me:1")
    assert (membership.home, membership.address, membership.delta) == ("b2", "me:1", 2)
    assert [(each.node, each.beside, each.address) for each in membership.places] == [
        ("b2", "me", "b2:1"),
        ("b1", "b2", "b1:1"),
    ]
    assert membership.acknowledge is Acknowledge.DACK
    assert membership.role is Role.SUBSCRIBER


def test_an_incarnation_is_above_the_one_that_is_known_whatever_the_clock_says() -> None:
    assert membership_of(SETTINGS, welcome(), None).incarnation == 8
    assert membership_of(SETTINGS, welcome(incarnation=0), None).incarnation == 5


BAD: list[dict[str, Any]] = [
    {"delta": -1},
    {"delta": 34},
    {"delta": 2**62},
    {"acknowledge": "by post"},
    {"heartbeat_ns": 0},
    {"heartbeat_ns": 2**62},
    {"detect_after_ns": 0},
    {"probe_every_ns": -1},
    {"dack_every_ns": 2**62},
    {"streams": (StreamOrder("s", Order.FIFO, Guarantee.RELIABLE, ("a/#/b",)),)},
]


@pytest.mark.parametrize("fields", BAD, ids=str)
def test_an_invitation_that_cannot_be_followed_ends_the_session_and_not_the_client(
    fields: dict[str, Any],
) -> None:
    assert welcome_problem(welcome()) is None
    client = Newcomer(SETTINGS)
    client.step(Open(), 0)
    [hello] = client.step(Connected(1, ""), 0)
    assert isinstance(hello, Send)
    assert isinstance(hello.messages[0], Hello)
    effects = client.step(Received(1, [welcome(**fields)]), 0)
    [goodbye] = [said for effect in effects if isinstance(effect, Send) for said in effect.messages]
    assert isinstance(goodbye, Goodbye)
    assert goodbye.farewell is Farewell.PROTOCOL
    assert not client.is_member
    assert client.next_deadline() is not None, "it tries again"
