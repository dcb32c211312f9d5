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
from holdfast.broker.settings import Routing
from holdfast.client.effect import Ended
from holdfast.client.input import AddSubscription, Consumed, EndSubscription, Open, Submit
from holdfast.clock import MILLISECOND, SECOND
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.publications import (
    Accepted,
    Batch,
    Copy,
    Deliveries,
    Publication,
    Publications,
    Publish,
    Rejected,
)
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Kind, Welcome
from holdfast.messages.subscriptions import (
    Confirmed,
    Partition,
    Refused,
    Row,
    Subscribe,
    Table,
    Unsubscribe,
    Withdrawn,
)
from holdfast.overlay.transport import Connect, Wake

NAMES = ["left", "right", "up", "c", "d", "onlooker", ""]

names = st.sampled_from(NAMES)
numbers = st.integers(-1, 4)
lives = st.integers(0, 2)
filters = st.sampled_from(["a", "b", "#", "a WHERE x > 1", "a WHERE", ""])
ids = st.builds(SubscriptionId, names, lives, numbers)
vectors = st.lists(st.builds(Element, names, lives, st.none() | numbers), max_size=2).map(tuple)
events = st.builds(a_publication, names, numbers, st.sampled_from("ab")) | st.builds(
    Publication, names, numbers, st.binary(max_size=12)
)
batches = st.lists(events, max_size=4).map(Batch)
partials = st.lists(st.builds(Partition, names, lives, numbers, st.just(("left",))), max_size=1).map(tuple)


@st.composite
def spread_events(draw: st.DrawFn) -> Message:
    batch = draw(batches)
    copies = draw(st.none() | st.just([Copy(lo=1)] * len(batch)))
    if draw(st.booleans()):
        return Publications("default", batch, range(len(batch)), copies)
    lists = [draw(st.lists(numbers, max_size=3).map(tuple)) for _ in batch.publications]
    return Deliveries("default", batch, range(len(batch)), lists, copies)


#: Messages from a small world, in which most of what is said concerns somebody.
near: st.SearchStrategy[Message] = st.one_of(
    st.builds(hello, names, st.sampled_from(Kind), lives, session=lives),
    st.builds(Welcome, names, st.sampled_from(Kind), lives, lives, st.sampled_from([0, SECOND])),
    st.builds(Heartbeat),
    st.builds(Goodbye, st.sampled_from(Farewell), names),
    st.builds(Subscribe, ids, filters, vectors),
    st.builds(Confirmed, ids, partials),
    st.builds(Refused, ids, names),
    st.builds(Unsubscribe, ids),
    st.builds(Withdrawn, ids),
    st.builds(Table, st.lists(st.builds(Row, ids, filters, vectors), max_size=3).map(tuple), st.booleans()),
    st.builds(Publish, batches),
    st.builds(Accepted, numbers, st.just((1,))),
    st.builds(Rejected, numbers, names),
    spread_events(),
)
any_message = st.one_of(near, near, near, messages())
turns = st.lists(any_message, min_size=1, max_size=3)

#: What may happen to a broker: somebody comes, somebody talks, somebody goes, time passes.
broker_moves = st.lists(
    st.one_of(
        st.tuples(st.just("talk"), st.integers(0, 9), turns),
        st.tuples(st.just("talk"), st.integers(0, 9), turns),
        st.tuples(
            st.just("come"), st.sampled_from(["stranger", "client", "left", "right", "dialled"]), lives
        ),
        st.tuples(st.just("go"), st.integers(0, 9), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([1, 150, 600, 6_000]), st.none()),
    ),
    max_size=30,
)


def come(world: ByHand, who: str, life: int) -> None:
    match who:
        case "client":
            world.say(world.connect(), hello("c", incarnation=life))
        case "left" | "right":
            world.neighbour(who, incarnation=life)
        case "dialled" if "up" in world.dialled:
            world.dialled.remove("up")
            world.connect("up")
        case _:
            world.connect()


@pytest.mark.parametrize("routing", list(Routing))
@given(moves=broker_moves)
@examples(150)
def test_no_messages_in_any_order_break_a_broker(routing: Routing, moves: list[Any]) -> None:
    world = ByHand(["left", "right"], "up", routing=routing, subscriptions_max=6, clients_max=4, held_max=5)
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
    assert world.broker.advertisement.pending == 0
    assert not world.broker.advertisement._withdrawing
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
