"""A client of a network whose streams promise different things: what it is, what it is told, what it may ask for.

Decision 0015: where a stream is durable every client is plain. What it may have missed of reliable streams while it had
no session is announced, of each stream by its own events.
"""

from __future__ import annotations

from typing import Any

import pytest

import holdfast
from answered import Answered, numbered
from holdfast import memory
from holdfast.client.item import Gap
from holdfast.messages.publications import Batch, Deliveries
from holdfast.messages.session import Farewell, Goodbye
from holdfast.messages.streams import Guarantee, Order, StreamOrder
from holdfast.messages.subscriptions import Confirmed
from in_memory import rest, taken
from scenario import scenario

STREAMS = {
    "hints": ("hints/#", "best-effort"),
    "alarms": ("alarms/#", "reliable"),
    "orders": ("orders/#", "durable"),
}
TOLD = tuple(
    StreamOrder(name, Order.FIFO, Guarantee(guarantee), (topics,))
    for name, (topics, guarantee) in STREAMS.items()
)


# What it is


@scenario
@pytest.mark.parametrize("streams", [STREAMS, {"orders": ("#", "durable")}])
async def test_where_a_stream_is_durable_a_client_is_a_plain_one(streams: dict[str, Any]) -> None:
    with memory.Network("plain", delta=1, streams=streams) as net:
        async with holdfast.connect(net.url, name="me") as client:
            assert not client.is_member
            assert net.status("b1")["overlay"]["members"] == []


@scenario
@pytest.mark.parametrize(("option", "value"), [("member", True), ("listen", "127.0.0.1:0")])
async def test_who_wants_to_be_a_member_there_is_told_that_it_cannot(option: str, value: Any) -> None:
    with memory.Network("refused", delta=1, streams=STREAMS) as net:
        with pytest.raises(holdfast.InvalidOption, match=r"the stream 'orders' .* is durable") as raised:
            await holdfast.connect(net.url, name="me", **{option: value})
        assert raised.value.option == option
        assert net.status("b1")["clients"]["connected"] == 0


@scenario
async def test_where_none_is_durable_it_can() -> None:
    with memory.Network("member", delta=1, stepped=True) as net:
        async with holdfast.connect(net.url, name="me", member=True) as client:
            assert client.is_member


@scenario
async def test_one_window_for_all_streams_and_receipts_in_its_order() -> None:
    """Each says where its event stands: in a log, or under its publisher's number."""
    with memory.Network("window", brokers=3, delta=1, streams=STREAMS) as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3", name="s") as s,
            s.subscribe("#") as items,
            p.publisher() as publisher,
        ):
            topics = ["orders/a", "alarms/a", "hints/a"] * 3
            sent = [await publisher.send(topic) for topic in topics]
            receipts = [await each.receipt() for each in sent]
            assert [each.pubend for each in receipts] == ["orders@b2/0", "p", "p"] * 3
            got = [item for _ in topics if isinstance(item := await items.get(), holdfast.Event)]
            for stream in STREAMS:
                wanted = [
                    each.id.n for each, topic in zip(sent, topics, strict=True) if topic == f"{stream}/a"
                ]
                assert [event.n for event in got if event.topic == f"{stream}/a"] == wanted


@scenario
async def test_what_it_missed_with_its_broker_is_announced_or_comes_later() -> None:
    """A gap on the reliable stream, and the event itself on the durable one."""
    with memory.Network("missed", brokers=3, delta=1, streams=STREAMS, stepped=True) as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3", name="s") as s,
        ):
            items = await net.in_time(s.subscribe("#").__aenter__())
            for n, topic in enumerate(("orders/a", "alarms/a"), 1):
                await net.in_time(p.publish(topic, n=n))
            net.crash("b3")
            await rest(net, 6)
            for n, topic in enumerate(("orders/a", "alarms/a"), 3):
                await net.in_time(p.publish(topic, n=n))
            net.restart("b3")
            await rest(net, 10)
            await net.in_time(p.publish("alarms/a", n=5))
            await rest(net, 1)
            got = await taken(items)
            numbers = {
                topic: [each.n for each in got if isinstance(each, holdfast.Event) and each.topic == topic]
                for topic in ("orders/a", "alarms/a")
            }
            assert numbers == {"orders/a": [1, 3], "alarms/a": [2, 5]}
            assert [each for each in got if isinstance(each, Gap)] == [Gap("p", 2, 4, "disconnected")]
            await net.in_time(items.__aexit__(None, None, None))


# What it is told


def delivered(stream: str, *numbers: int, to: tuple[int, ...] = (1,)) -> Deliveries:
    batch = Batch(numbered(*numbers, publisher="p"))
    return Deliveries(stream, batch, list(range(len(numbers))), [to] * len(numbers))


def subscribed(*filters: str) -> Answered:
    """A client that has these subscriptions, numbered from 1."""
    world = Answered()
    world.open(streams=TOLD)
    for number, filter in enumerate(filters, 1):
        world.subscribe(number, filter=filter)
    return world


def come_back(world: Answered, *subscriptions: int) -> None:
    """The session is lost, and there is another."""
    world.lose()
    world.reconnect(streams=TOLD)
    world.say(*(Confirmed(world.id(number)) for number in subscriptions))


def test_a_stream_that_was_behind_another_is_judged_by_its_own_events() -> None:
    """3 was on its way on the reliable stream when 4 had come on the other; that 5 comes there tells nothing of it."""
    world = subscribed("#")
    world.say(delivered("alarms", 1), delivered("hints", 2, 4))
    come_back(world, 1)
    world.say(delivered("hints", 5), delivered("alarms", 6))
    assert world.items() == [("p", 1), ("p", 2), ("p", 4), ("p", 5), Gap("p", 1, 5, "disconnected"), ("p", 6)]


def test_a_publisher_that_was_heard_on_one_stream_may_be_missed_on_another() -> None:
    world = subscribed("#")
    world.say(delivered("hints", 1))
    come_back(world, 1)
    world.say(delivered("alarms", 4))
    assert world.items() == [("p", 1), Gap("p", 1, 3, "disconnected"), ("p", 4)]


def test_who_gets_nothing_of_a_stream_is_told_no_gap_by_it() -> None:
    world = subscribed("hints/#", "alarms/+ WHERE x > 1", "#")
    world.say(delivered("hints", 1, to=(1, 3)), delivered("alarms", 2, to=(2, 3)))
    come_back(world, 1, 2, 3)
    world.say(delivered("alarms", 9, to=(3,)))
    assert world.items(1) == [("p", 1)]
    assert world.items(2) == [("p", 2), Gap("p", 2, 8, "disconnected")]
    assert world.items(3) == [("p", 1), ("p", 2), Gap("p", 2, 8, "disconnected"), ("p", 9)]


def test_a_broker_whose_topics_are_no_patterns_is_not_believed() -> None:
    world = Answered()
    world.open(streams=(StreamOrder("odd", Order.FIFO, topics=("a/#/b",)),))
    [goodbye] = [message for message in world.said if isinstance(message, Goodbye)]
    assert goodbye.farewell is Farewell.PROTOCOL
    assert "topics are no pattern" in goodbye.reason
