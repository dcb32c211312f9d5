"""Every kind of message at every moment, and how sessions begin, fall silent and end."""

from __future__ import annotations

from typing import Any

import pytest

from by_hand import ByHand, a_publication, hello, publications, publish, subscribe
from holdfast.broker.input import Stop
from holdfast.broker.settings import Stream
from holdfast.clock import MILLISECOND, SECOND
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import (
    Confirmations,
    DepthAck,
    Join,
    Leave,
    Need,
    Ready,
    Relay,
    Role,
    Step,
    Told,
    Trail,
)
from holdfast.messages.publications import Accepted, Batch, Deliveries, Rejected
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Kind, Overlay, Welcome
from holdfast.messages.subscriptions import (
    Cleared,
    Confirmed,
    Heal,
    Healed,
    Lore,
    Partition,
    Refused,
    Subscribe,
    Unsubscribe,
    Upgraded,
    UpgradeTaken,
    Withdrawn,
)
from holdfast.overlay.transport import Close, Connected, Received

SUBSCRIPTION = SubscriptionId("peer", 1, 1)
PARTITION = Partition("child", 1, 1, ("far",))


def relay(*, refill: bool = False) -> Relay:
    """One publication from the child; what was lost is given back without its last step."""
    trail = Trail((), []) if refill else Trail((Step("child", 1),), [[1]])
    return Relay("default", Batch([a_publication("peer", 1)]), [0], trail, refill=refill)


EVERY_KIND: dict[str, Message] = {
    "Hello": hello("peer"),
    "Welcome": Welcome("peer", Kind.BROKER, 1, 1, SECOND),
    "Heartbeat": Heartbeat(),
    "Subscribe": subscribe("peer", 1),
    "Confirmed": Confirmed(SUBSCRIPTION),
    "Refused": Refused(SUBSCRIPTION, "no"),
    "Unsubscribe": Unsubscribe(SUBSCRIPTION),
    "Withdrawn": Withdrawn(SUBSCRIPTION),
    "Publish": publish("peer", 1),
    "Accepted": Accepted(1),
    "Rejected": Rejected(1, "no"),
    "Publications": publications("peer", 1),
    "Deliveries": Deliveries("default", Batch([]), [], []),
    "Relay": relay(),
    "Refill": relay(refill=True),
    "DepthAck": DepthAck(()),
    "Confirmations": Confirmations([]),
    "Join": Join("peer", Role.PUBLISHER, "child", None, 1),
    "Leave": Leave("peer", 1, "gone"),
    "Told": Told(),
    "Ready": Ready(),
    "Need": Need(True),
    "Lore": Lore(),
    "Heal": Heal(PARTITION, (), True),
    "Healed": Healed(PARTITION),
    "Upgraded": Upgraded(SUBSCRIPTION, (), ()),
    "UpgradeTaken": UpgradeTaken(SUBSCRIPTION, ()),
    "Cleared": Cleared(PARTITION),
}

#: What nodes tell each other as soon as they are in session.
OF_NODES = {
    "Confirmed",
    "Unsubscribe",
    "Withdrawn",
    "Refill",
    "DepthAck",
    "Confirmations",
    "Join",
    "Leave",
    "Told",
    "Ready",
    "Need",
    "Lore",
    "Heal",
    "Healed",
    "Upgraded",
    "UpgradeTaken",
    "Cleared",
}

#: What may be said, by who says it and when; everything else ends the session.
MAY_BE_SAID = {
    "a stranger": {"Hello", "Heartbeat"},
    "a client": {"Heartbeat", "Subscribe", "Unsubscribe", "Publish"},
    "a neighbour before it has told": {"Heartbeat", "Subscribe", *OF_NODES},
    "a neighbour": {"Heartbeat", "Subscribe", "Publications", "Relay", *OF_NODES},
    "the parent before its Welcome": {"Heartbeat"},
    "a client that waits": {"Heartbeat"},
}


def peer_in(world: ByHand, who: str) -> int:
    match who:
        case "a stranger":
            return world.connect()
        case "a client":
            return world.client("peer")
        case "a neighbour before it has told":
            return world.neighbour("child", rows=None)
        case "a neighbour":
            return world.neighbour("child")
        case "the parent before its Welcome":
            return world.connect("parent")
    connection = world.connect()
    assert world.say(connection, hello("peer")) == []
    return connection


def as_said_by(who: str, kind: str) -> Message:
    """A subscription is a client's own, or has come by way of the neighbour that passes it on."""
    if kind == "Subscribe" and "neighbour" in who:
        return Subscribe(SUBSCRIPTION, "#", (Element("child", 1, 1),))
    return EVERY_KIND[kind]


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("who", MAY_BE_SAID)
def test_what_must_not_be_said_ends_that_session_and_no_other(who: str, kind: str) -> None:
    world = ByHand(["child"], "parent")
    onlooker = None
    if who not in ("a client that waits", "the parent before its Welcome"):
        world.wait(SECOND)  # the neighbours are given up, clients are served
        onlooker = world.client("onlooker")
        world.say(onlooker, subscribe("onlooker", 1))
    peer = peer_in(world, who)
    answer = world.say(peer, as_said_by(who, kind))
    if kind in MAY_BE_SAID[who]:
        assert peer not in world.closed
    else:
        goodbye = answer[-1]
        assert isinstance(goodbye, Goodbye)
        assert goodbye.farewell is Farewell.PROTOCOL
        said = type(EVERY_KIND[kind]).__name__.lower()
        assert any(word in goodbye.reason.lower() for word in (said, "was dialled", "an answer to a broker"))
        assert peer in world.closed
        assert world.broker.counters.refusals == 1
        assert world.logs[-1].level == "warning"
    if onlooker is not None:
        before = len(world.delivered(onlooker))
        world.say(onlooker, publish("onlooker", 7))
        assert world.delivered(onlooker)[before:] == [("onlooker", 7, (1,))]


@pytest.mark.parametrize("kind", [*EVERY_KIND, "Goodbye"])
@pytest.mark.parametrize("who", ["a stranger", "a client", "a neighbour", "a neighbour before it has told"])
def test_after_goodbye_nothing_is_heard(who: str, kind: str) -> None:
    world = ByHand(["child"], "parent")
    world.wait(SECOND)
    peer = peer_in(world, who)
    late = EVERY_KIND.get(kind, Goodbye(Farewell.LEAVING, "again"))
    before = len(world.heard[peer])
    world.say(peer, Goodbye(Farewell.LEAVING, "enough"), late)
    world.say(peer, late)
    assert world.closed[peer] == "enough"
    assert world.heard[peer][before:] == []


def test_messages_after_a_breach_in_the_same_batch_are_not_obeyed() -> None:
    world = ByHand()
    watcher = world.client("watcher")
    world.say(watcher, subscribe("watcher", 1))
    peer = world.client("peer")
    world.say(peer, Accepted(1), publish("peer", 1))
    assert world.delivered(watcher) == []


@pytest.mark.parametrize(("low", "high"), [(2, 9), (0, 0), (-5, -1), (9, 2)])
def test_no_version_in_common_is_said_so(low: int, high: int) -> None:
    world = ByHand()
    peer = world.connect()
    [goodbye] = world.say(peer, hello("peer", version_min=low, version_max=high))
    assert isinstance(goodbye, Goodbye)
    assert goodbye.farewell is Farewell.VERSION
    assert peer in world.closed


def test_a_range_of_versions_that_holds_ours_is_enough() -> None:
    world = ByHand()
    [welcome] = world.say(world.connect(), hello("peer", version_min=0, version_max=7, features=("later",)))
    assert isinstance(welcome, Welcome)
    assert welcome.version == 1


@pytest.mark.parametrize(
    "differently",
    [
        {"features": ("routing=flooding",)},
        {"features": ()},
        {"overlay": Overlay(Role.BROKER, 1, is_recovering=False)},
    ],
    ids=["routing", "nothing said", "delta"],
)
def test_a_neighbour_that_is_configured_differently_is_told_so(differently: dict[str, Any]) -> None:
    """R0.2: δ is one for the whole network; so is the routing policy."""
    world = ByHand(["child"])
    peer = world.connect()
    [goodbye] = world.say(peer, hello("child", Kind.BROKER, **differently))
    assert isinstance(goodbye, Goodbye)
    assert goodbye.farewell is Farewell.MISMATCH
    assert not world.broker.node.reach["child"].connection


def test_a_broker_that_is_no_neighbour_is_turned_away() -> None:
    world = ByHand(["child"])
    peer = world.connect()
    [goodbye] = world.say(peer, hello("stray", Kind.BROKER))
    assert isinstance(goodbye, Goodbye)
    assert goodbye.farewell is Farewell.UNKNOWN
    assert "stray" in goodbye.reason


@pytest.mark.parametrize("name", ["", "x" * 100_000])
@pytest.mark.parametrize("kind", list(Kind))
def test_a_name_that_is_no_name_is_refused(name: str, kind: Kind) -> None:
    world = ByHand()
    peer = world.connect()
    [goodbye] = world.say(peer, hello(name, kind))
    assert isinstance(goodbye, Goodbye)
    assert len(goodbye.reason) < 1_000
    assert all(len(log.text) < 1_000 for log in world.logs)
    assert len(world.broker.clients) == 0


def test_what_a_peer_says_is_not_echoed_at_length() -> None:
    world = ByHand(["child"], streams=(Stream("none", ("nothing",)),))
    long = "x" * 60_000
    spoken: list[list[Message]] = [
        [hello("peer"), publish(long, 1)],
        [hello("child", Kind.BROKER, features=(long,))],
        [hello("peer"), subscribe("peer", 1, f"a WHERE x = '{long}'"), subscribe("peer", 1, "b")],
        [hello("peer"), subscribe("peer", 1, long)],
        [hello("peer", version_min=10**18, version_max=10**18)],
    ]
    for messages in spoken:
        world.wait(SECOND)
        peer = world.connect()
        for message in messages:
            world.say(peer, message)
        assert all(len(str(said)) < 2_000 for said in world.heard[peer])
    assert all(len(str(log)) < 2_000 for log in world.logs)


# Time


def test_a_stranger_must_introduce_itself() -> None:
    world = ByHand()
    peer = world.connect()
    world.wait(4_900 * MILLISECOND)
    assert peer not in world.closed
    world.wait(200 * MILLISECOND)
    assert peer in world.closed


def test_a_stranger_must_introduce_itself_whatever_else_it_sends() -> None:
    world = ByHand()
    peer = world.connect()
    for _ in range(7):
        world.wait(SECOND)
        if peer not in world.closed:
            world.say(peer, Heartbeat())
    assert peer in world.closed


def test_a_silent_client_is_given_up_after_three_of_its_heartbeats() -> None:
    world = ByHand()
    peer = world.client("peer", heartbeat_ns=SECOND)
    world.say(peer, Heartbeat())
    world.wait(2_900 * MILLISECOND)
    assert peer not in world.closed
    world.wait(200 * MILLISECOND)
    assert world.said(peer, Goodbye)[0].farewell is Farewell.SILENT


def test_a_client_that_is_heard_is_kept_and_hears_the_broker() -> None:
    world = ByHand()
    peer = world.client("peer", heartbeat_ns=SECOND)
    for _ in range(10):
        world.wait(SECOND)
        world.say(peer, Heartbeat())
    assert peer not in world.closed
    assert 9 <= len(world.said(peer, Heartbeat)) <= 11


@pytest.mark.parametrize("heartbeat_ns", [2**62, -1, 0])
def test_no_peer_may_be_silent_for_ever(heartbeat_ns: int) -> None:
    world = ByHand()
    peer = world.connect()
    world.say(peer, hello("peer", heartbeat_ns=heartbeat_ns))
    world.wait(600 * SECOND)
    assert peer in world.closed


def test_a_session_that_ends_while_the_tick_goes_round_is_not_ended_twice() -> None:
    world = ByHand(["child"], detect_after_ns=500 * MILLISECOND)
    mute = world.neighbour("child", rows=None)  # in session, so that the broker is not ready
    first, second = world.connect(), world.connect()
    world.say(first, hello("peer", incarnation=1, heartbeat_ns=MILLISECOND))
    world.say(second, hello("peer", incarnation=2, heartbeat_ns=MILLISECOND))
    world.wait(10 * SECOND)
    assert mute in world.closed
    assert world.said(first, Goodbye)[0].farewell in (Farewell.TAKEN_OVER, Farewell.SILENT)


def test_stop_says_goodbye_to_everybody_and_nothing_more() -> None:
    world = ByHand(["child"])
    child, stranger = world.neighbour("child"), world.connect()
    client = world.client("peer")
    world.step(Stop())
    for each in (child, stranger, client):
        assert isinstance(world.heard[each][-1], Goodbye)
        assert world.closed[each] == "stopping"
    assert world.broker.next_deadline() is None
    assert world.step(Received(client, [publish("peer", 1)])) == []


def test_a_connection_that_comes_after_stop_is_closed() -> None:
    world = ByHand(parent="parent")
    world.step(Stop())
    [close] = world.broker.step(Connected(99, "parent"), 0)
    assert isinstance(close, Close)
