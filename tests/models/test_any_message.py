"""Whatever well-formed messages come, in whatever order: a core never raises, and whoever behaves is served.

Frames are checked by ``wire``; this is about what gets through: right in form, wrong in every other way.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answered import Answered
from by_hand import ByHand, a_publication, hello, publish, subscribe
from drawn_messages import messages
from examples import examples
from holdfast.broker.settings import Routing, Stream
from holdfast.client.effect import Ended
from holdfast.client.input import AddSubscription, Consumed, EndSubscription, Open, Submit
from holdfast.clock import MILLISECOND, SECOND
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import (
    Confirmations,
    DepthAck,
    Holding,
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
from holdfast.messages.publications import (
    Accepted,
    Batch,
    Copy,
    Deliveries,
    Publication,
    Publications,
    Publish,
    Rejected,
    Tag,
)
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Kind, Overlay, Welcome
from holdfast.messages.streams import Guarantee
from holdfast.messages.subscriptions import (
    Cleared,
    Confirmed,
    Grave,
    Heal,
    Healed,
    Known,
    Lore,
    Partition,
    Refused,
    Subscribe,
    Unsubscribe,
    Upgraded,
    UpgradeTaken,
    Withdrawn,
)
from holdfast.node.settings import Acknowledge
from holdfast.overlay.transport import Connect, Wake

NAMES = ["left", "right", "up", "far", "b", "c", "d", "onlooker", ""]
RELIABLE = Stream("default", ("#",), guarantee=Guarantee.RELIABLE)

names = st.sampled_from(NAMES)
numbers = st.integers(-1, 4)
lives = st.integers(0, 2)
filters = st.sampled_from(["a", "b", "#", "a WHERE x > 1", "a WHERE", ""])
#: Anybody's, and often those that are likely to be there: a client's first, and what the broker made of it.
ids = st.builds(SubscriptionId, names, lives, numbers) | st.builds(
    SubscriptionId, st.sampled_from("bcd"), st.just(1), st.integers(1, 2)
)
vectors = st.lists(st.builds(Element, names, lives, st.none() | numbers), max_size=2).map(tuple)
events = st.builds(a_publication, names, numbers, st.sampled_from("ab")) | st.builds(
    Publication, names, numbers, st.binary(max_size=12)
)
batches = st.lists(events, max_size=4).map(Batch)
routes = st.lists(names, max_size=3).map(tuple)
partitions = st.builds(Partition, names, lives, numbers, st.sampled_from([("left",), ("right", "far"), ()]))
partials = st.lists(partitions, max_size=1).map(tuple)
rows = st.lists(st.builds(Known, ids, filters, routes, partials), max_size=3).map(tuple)
graves = st.lists(st.builds(Grave, names, lives, numbers, numbers), max_size=2).map(tuple)
roles = st.sampled_from(Role)
standings = st.none() | st.builds(Overlay, roles, st.integers(0, 1), st.booleans(), st.none() | names)
tags = st.lists(st.builds(Tag, names, lives, numbers, st.booleans()), max_size=1).map(tuple)


@st.composite
def spread_events(draw: st.DrawFn) -> Message:
    batch = draw(batches)
    copies = draw(st.none() | st.just([Copy(lo=1)] * len(batch)))
    if draw(st.booleans()):
        return Publications("default", batch, range(len(batch)), copies)
    lists = [draw(st.lists(numbers, max_size=3).map(tuple)) for _ in batch.publications]
    return Deliveries("default", batch, range(len(batch)), lists, copies)


@st.composite
def relays(draw: st.DrawFn) -> Message:
    """As ``wire`` lets them pass: a number of every step that was not bypassed for every event."""
    batch = draw(batches)
    steps = tuple(draw(st.lists(st.builds(Step, names, st.none() | lives), max_size=3)))
    passed = sum(step.incarnation is not None for step in steps)
    first = draw(numbers)
    columns = [[first + place for place in range(len(batch))] for _ in range(passed)]
    lists = draw(st.none() | st.just([(1,)] * len(batch)))
    trail = Trail(steps, columns)
    at = range(len(batch))
    return Relay("default", batch, at, trail, draw(tags), lists, *(draw(st.booleans()) for _ in range(3)))


#: Messages from a small world, in which most of what is said concerns somebody.
near: st.SearchStrategy[Message] = st.one_of(
    st.builds(hello, names, st.sampled_from(Kind), lives, session=lives),
    st.builds(hello, names, st.sampled_from(Kind), lives, overlay=standings),
    st.builds(
        Welcome,
        names,
        st.sampled_from(Kind),
        lives,
        lives,
        st.sampled_from([0, SECOND]),
        features=st.sampled_from([(), ("routing=filter",), ("routing=flooding",)]),
        overlay=standings,
    ),
    st.builds(Heartbeat),
    st.builds(Goodbye, st.sampled_from(Farewell), names),
    st.builds(Subscribe, ids, filters, vectors),
    st.builds(Confirmed, ids, partials),
    st.builds(Refused, ids, names),
    st.builds(Unsubscribe, ids),
    st.builds(Withdrawn, ids),
    st.builds(Lore, rows, graves),
    st.builds(Heal, partitions, rows, st.booleans()),
    st.builds(Healed, partitions, partials),
    st.builds(Upgraded, ids, partials, partials),
    st.builds(UpgradeTaken, ids, partials),
    st.builds(Cleared, partitions),
    st.builds(Told),
    st.builds(Ready),
    st.builds(Need, st.booleans()),
    st.builds(Join, names, roles, names, st.none() | names, lives),
    st.builds(Leave, names, lives, names),
    st.builds(
        DepthAck, st.lists(st.builds(Holding, names, lives, names, lives, numbers, numbers)).map(tuple)
    ),
    st.builds(Confirmations, st.lists(numbers, max_size=3)),
    relays(),
    st.builds(Publish, batches),
    st.builds(Accepted, numbers, st.just((1,))),
    st.builds(Rejected, numbers, names),
    spread_events(),
)
any_message = st.one_of(near, near, near, messages())
turns = st.lists(any_message, min_size=1, max_size=3)

COMERS = ["stranger", "client", "member", "left", "right", "far", "dialled"]

#: What may happen to a broker: somebody comes, somebody talks, somebody goes, time passes.
broker_moves = st.lists(
    st.one_of(
        st.tuples(st.just("talk"), st.integers(0, 9), turns),
        st.tuples(st.just("talk"), st.integers(0, 9), turns),
        st.tuples(
            st.just("come"),
            st.sampled_from(COMERS),
            lives,
        ),
        st.tuples(st.just("go"), st.integers(0, 9), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([1, 150, 600, 6_000]), st.none()),
    ),
    max_size=30,
)


def come(world: ByHand, who: str, life: int) -> None:
    match who:
        case "client":
            world.say(world.connect(), hello("c", incarnation=life), subscribe("c", 1, incarnation=life))
        case "member":
            home = Overlay(Role.PUBLISHER, world.broker.settings.delta, is_recovering=True, home="b")
            member = world.connect()
            world.say(member, hello("d", incarnation=life, overlay=home))
            world.say(member, Told(), Ready())
        case "left" | "right" | "far":
            world.neighbour(who, incarnation=life)
        case "dialled" if world.dialled:
            world.connect(world.dialled.pop(0))
        case _:
            world.connect()


BROKERS: dict[str, dict[str, Any]] = {
    "filter": {"routing": Routing.FILTER},
    "flooding": {"routing": Routing.FLOODING},
    "reliable": {"streams": (RELIABLE,)},
    "delta": {"streams": (RELIABLE,), "delta": 1, "beyond": [("far", "left"), ("farther", "up")]},
    "conf": {"streams": (RELIABLE,), "acknowledge": Acknowledge.CONF},
}


@pytest.mark.parametrize("kind", BROKERS)
@given(waits=st.booleans(), moves=broker_moves)
@examples(100)
def test_no_messages_in_any_order_break_a_broker(kind: str, waits: bool, moves: list[Any]) -> None:
    limits: dict[str, Any] = {"subscriptions_max": 6, "clients_max": 4, "held_max": 5}
    world = ByHand(["left", "right"], "up", **limits, **BROKERS[kind])
    if waits:
        world.wait(SECOND)  # its neighbours are given up, and clients served at once
    gone: set[int] = set()
    for move, which, what in moves:
        open_ones = [each for each in world.heard if each not in world.closed and each not in gone]
        if move == "come":
            come(world, which, what)
        elif move == "wait":
            world.wait(which * MILLISECOND)
        elif open_ones:
            peer = open_ones[which % len(open_ones)]
            if move == "talk":
                world.say(peer, *what)
            else:
                gone.add(peer)
                world.lose(peer)
    world.wait(60 * SECOND)  # everybody else is silent and gone
    assert not [each for each in world.heard if each not in world.closed and each not in gone]
    assert world.broker.node.spread.pending == 0
    assert len(world.broker.clients) == 0
    onlooker = world.client("onlooker", incarnation=5)
    world.say(onlooker, subscribe("onlooker", 1, incarnation=5))
    if world.said(onlooker, Confirmed):  # else the tables of neighbours that left have taken all the room
        world.say(onlooker, publish("onlooker", 10**6))
        assert world.delivered(onlooker) == [("onlooker", 10**6, (1,))]


client_moves = st.lists(
    st.one_of(
        st.tuples(st.just("hear"), turns),
        st.tuples(st.just("hear"), turns),
        st.tuples(st.just("subscribe"), st.integers(1, 3)),
        st.tuples(st.just("end"), st.integers(1, 3)),
        st.tuples(st.just("submit"), st.integers(1, 3)),
        st.tuples(st.just("consume"), st.integers(1, 3)),
        st.tuples(st.just("lose"), st.none()),
        st.tuples(st.just("wait"), st.none()),
    ),
    max_size=30,
)


@given(client_moves)
@examples(200)
def test_no_messages_in_any_order_break_a_client(moves: list[Any]) -> None:
    world = Answered()
    world.core.name = "c"
    world.step(Open())
    world.connected()
    world.welcome()
    used: set[int] = set()
    n = 0
    for move, what in moves:
        if world.told(Ended):
            return
        if world.connection == 0:
            world.wait_for(Connect)
            world.connected()
        match move:
            case "hear":
                world.say(*what)
            case "subscribe" if what not in used:
                used.add(what)
                world.step(AddSubscription(what, "#", 2))
            case "end":
                world.step(EndSubscription(what))
            case "submit":
                n += what
                world.step(Submit([a_publication("c", n)]))
            case "consume":
                world.step(Consumed(what, 0))
            case "lose":
                world.lose()
            case "wait":
                due = world.core.next_deadline()
                world.now = max(world.now, due if due is not None else 0)
                world.step(Wake())
        assert 0 <= world.core.unacknowledged <= n
