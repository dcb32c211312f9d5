"""Batches that arrive together leave together, and say the same."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from by_hand import ByHand, publications, publish, subscribe
from counted_calls import work_of
from drawn_messages import plain
from examples import examples
from holdfast.broker.coalescing import ENOUGH, merged
from holdfast.messages.message import Message
from holdfast.messages.publications import PUBLICATIONS_MAX, Batch, Copy, Deliveries, Publications, Publish
from holdfast.messages.session import Heartbeat

SIZES = st.integers(0, 3)


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """What may arrive in one turn: batches of two kinds, homes and streams, other things between them."""
    messages: list[Message] = []
    for n in range(1, draw(st.integers(0, 12)) * 10, 10):
        numbers = range(n, n + draw(SIZES))
        kind = draw(st.sampled_from(["publish", "s", "t", "marked", "part", "other"]))
        picked = publications("p", *numbers)
        match kind:
            case "publish":
                home, heard = draw(st.sampled_from([("", 0), ("", 0), ("lisbon", 0), ("", 3)]))
                messages.append(publish("p", *numbers, home=home, heard=heard))
            case "marked":
                messages.append(Publications("s", picked.batch, picked.at, [Copy(lo=n)] * len(picked.at)))
            case "part":
                messages.append(Publications("s", picked.batch, list(picked.at)[1:]))
            case "other":
                messages.append(Heartbeat())
            case stream:
                messages.append(Publications(stream, picked.batch, picked.at))
    return messages


def flattened(messages: list[Message]) -> list[object]:
    """Events one by one, with all that is said about each."""
    said: list[object] = []
    for message in messages:
        match plain(message):
            case ("Publish", home, heard, events):
                said += [(home, heard, event) for event in events]
            case ("Publications", stream, events, marks):
                said += [(stream, event, mark) for event, mark in zip(events, marks, strict=True)]
            case other:
                said.append(other)
    return said


@given(turns())
@examples(200)
def test_joined_batches_say_the_same_in_the_same_order(messages: list[Message]) -> None:
    joined = list(merged(messages))
    assert flattened(joined) == flattened(messages)
    for first, second in pairwise(joined):
        if isinstance(first, Publish) and isinstance(second, Publish):
            assert (first.home, first.heard) != (second.home, second.heard)


def test_no_batch_grows_beyond_what_a_frame_may_have() -> None:
    messages: list[Message] = [publish("p", *range(i, i + 500)) for i in range(1, 20_000, 500)]
    sizes = [len(each.batch) for each in merged(messages) if isinstance(each, Publish)]
    assert sum(sizes) == 20_000
    assert max(sizes) < ENOUGH + 500
    largest = Publish(Batch(publish("p", 1).batch.publications * PUBLICATIONS_MAX))
    alone = list(merged([publish("p", *range(1, ENOUGH)), largest]))
    assert [len(each.batch) for each in alone if isinstance(each, Publish)] == [ENOUGH - 1, PUBLICATIONS_MAX]


def test_the_work_of_joining_grows_with_the_messages_not_with_their_square() -> None:
    def work(count: int, size: int) -> int:
        messages: list[Message] = [publish("p", *range(size)) for _ in range(count)]
        return work_of(lambda: list(merged(messages))).calls

    for size in (0, 1):
        assert work(1_000, size) < 12 * work(100, size)


def test_what_arrives_in_one_turn_leaves_in_one_message_and_is_answered_once() -> None:
    world = ByHand()
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1))
    answer = world.say(peer, publish("peer", 1), publish("peer", 2), publish("peer", 3, 4))
    assert [type(message).__name__ for message in answer] == ["Deliveries", "Accepted"]
    assert world.delivered(peer) == [("peer", n, (1,)) for n in (1, 2, 3, 4)]
    assert len(world.said(peer, Deliveries)) == 1
