"""A client's home: the broker its events are logged at, whichever it hands them to [B1.4, I18]."""

from __future__ import annotations

import asyncio

import pytest

import holdfast
from answered import Answered
from holdfast import memory, sync
from holdfast.client.input import Open, SetHome
from holdfast.messages.publications import Accepted, Publish
from holdfast.messages.session import Farewell, Goodbye
from holdfast.overlay.transport import Connect, ConnectFailed
from in_memory import taken, until
from scenario import scenario

STREAMS = {"orders": ("orders/#", "durable")}


def homes(world: Answered) -> list[str]:
    """What was said of the home on this connection."""
    return [message.home for message in world.said if isinstance(message, Publish)]


def moved(world: Answered, node: str) -> None:
    """The session breaks, and another broker takes the client."""
    world.lose()
    world.reconnect(node=node)


# The core


def test_the_first_broker_an_event_is_sent_to_is_the_home_and_need_not_be_told() -> None:
    world = Answered()
    world.open()
    assert world.core.ledger.home == "", "nothing was sent"
    world.submit(1)
    assert (world.core.ledger.home, homes(world)) == ("b", [""])


def test_what_has_no_answer_is_repeated_to_another_broker_for_the_home_and_so_is_what_follows() -> None:
    world = Answered()
    world.open()
    world.submit(1, 2)
    world.say(Accepted(1))
    moved(world, "c")
    assert (world.sent_numbers(), homes(world)) == ([2], ["b"])
    world.submit(3)
    assert homes(world) == ["b", "b"]
    moved(world, "b")
    assert (world.sent_numbers(), homes(world)) == ([2, 3], [""])


def test_what_is_published_while_away_has_its_home_where_it_is_first_sent() -> None:
    world = Answered()
    world.step(Open())
    world.submit(1)
    assert world.core.ledger.home == ""
    world.connected()
    world.welcome(node="c")
    assert (world.core.ledger.home, homes(world)) == ("c", [""])


def test_a_client_that_moves_before_it_publishes_is_at_home_where_it_is_then() -> None:
    world = Answered()
    world.open()
    moved(world, "c")
    world.submit(1)
    assert (world.core.ledger.home, homes(world)) == ("c", [""])


def test_a_home_that_was_set_is_kept_wherever_the_first_event_is_sent() -> None:
    world = Answered()
    world.open()
    world.step(SetHome("lisbon"))
    world.submit(1)
    assert (world.core.ledger.home, homes(world)) == ("lisbon", ["lisbon"])


# Several brokers


def test_brokers_are_dialled_in_turn_until_one_is_there() -> None:
    world = Answered(others=("c:1", "d:1"))
    assert world.step(Open()) == [Connect("", "b:1")]
    dialled = []
    for _ in range(4):
        world.step(ConnectFailed("", "refused"))
        dialled.append(world.wait_for(Connect).address)
    assert dialled == ["c:1", "d:1", "b:1", "c:1"]
    world.connected()
    world.welcome(node="c")
    assert world.core.address == "c:1"


def test_whoever_is_lost_or_sends_us_away_is_followed_by_the_next() -> None:
    world = Answered(others=("c:1",))
    world.open()
    world.lose()
    assert world.wait_for(Connect).address == "c:1"
    world.connected()
    world.welcome(node="c")
    world.say(Goodbye(Farewell.STOPPING, "later"))
    assert world.wait_for(Connect).address == "b:1"


# The whole client


def network(name: str) -> memory.Network:
    """b1 with two children, b2 and b3."""
    return memory.Network(name, brokers=3, streams=STREAMS, stepped=True)


async def published(who: holdfast.Network, *numbers: int) -> list[holdfast.Receipt]:
    return [await who.publish("orders/eu", n=n, timeout=60) for n in numbers]


async def given(items: holdfast.Subscription, count: int) -> list[int]:
    got = [await items.get(60) for _ in range(count)]
    return [item.n for item in got if isinstance(item, holdfast.LoggedEvent)]


def test_b1_4_a_publisher_cut_off_from_its_broker_goes_on_through_another_and_back_again() -> None:
    with network("cut-off") as net:

        async def run() -> None:
            async with (
                holdfast.connect(net.url, broker="b1", name="u") as u,
                u.subscribe("orders/#") as items,
                holdfast.connect(net.url, broker=("b2", "b3"), name="p") as p,
            ):
                receipts = await published(p, 1)
                for n, (near, far) in enumerate((("b2", "b3"), ("b3", "b2")), 2):
                    net.cut("p", near)
                    receipts += await published(p, n)
                    assert p.broker == far
                    net.heal("p")
                assert p.home == "b2"
                assert {each.pubend for each in receipts} == {"orders@b2/0"}
                assert await given(items, 3) == [1, 2, 3]
                later = net.now + 3
                await until(lambda: net.now >= later)
                assert await taken(items) == []

        asyncio.run(net.in_time(run(), 300))


def test_a_home_that_is_down_is_waited_for_and_everything_is_logged_once_when_it_is_back() -> None:
    """Nothing is logged elsewhere meanwhile: the publisher hears that nothing is known, and why."""
    with network("home-down") as net:

        async def run() -> None:
            async with (
                holdfast.connect(net.url, broker="b1", name="u") as u,
                u.subscribe("orders/#") as items,
                holdfast.connect(net.url, broker=("b2", "b3"), name="p") as p,
            ):
                await published(p, 1)
                net.crash("b2")
                await p.wait_while(holdfast.State.READY, 60)
                await p.wait_while(holdfast.State.AWAY, 60)
                with pytest.raises(holdfast.Unknown, match="logged at b2, which b3 may not reach"):
                    await p.publish("orders/eu", n=2, timeout=0.05)
                assert net.status("b3")["durable"]["elsewhere"][0]["events"] == 1
                net.restart("b2")
                receipts = await published(p, 2, 3)
                assert {each.pubend for each in receipts} == {"orders@b2/0"}
                assert await given(items, 3) == [1, 2, 3]

        asyncio.run(net.in_time(run(), 300))


@scenario
async def test_a_home_is_set_before_the_first_event_or_not_at_all() -> None:
    with memory.Network("set-home", brokers=2, streams=STREAMS) as net:
        async with holdfast.connect(net.url, broker="b1", name="p") as p:
            assert p.home == ""
            p.home = "b2"
            assert p.home == "b2"
            assert (await p.publish("orders/eu")).pubend == "orders@b2/0"
            p.home = "b2"
            with pytest.raises(holdfast.InvalidOption, match="home: is 'b2': something has been published"):
                p.home = "b1"
            with pytest.raises(holdfast.InvalidOption, match="home: is empty"):
                p.home = ""


def test_the_same_without_async() -> None:
    with (
        memory.Network("set-home-sync", brokers=2, streams=STREAMS) as net,
        sync.connect(net.url, broker=("b1", "b2"), name="p") as p,
    ):
        p.home = "b2"
        assert p.publish("orders/eu").pubend == "orders@b2/0"
        with pytest.raises(holdfast.InvalidOption, match="home"):
            p.home = "b1"
        assert p.home == "b2"


@scenario
async def test_a_home_no_broker_has_is_refused() -> None:
    with memory.Network("no-home", brokers=2, streams=STREAMS) as net:
        async with holdfast.connect(net.url, name="p") as p:
            p.home = "atlantis"
            with pytest.raises(holdfast.Refused, match="no broker of this network is called so"):
                await p.publish("orders/eu")


def test_a_client_must_know_a_broker() -> None:
    with pytest.raises(holdfast.InvalidOption, match="url: names no broker"):
        holdfast.connect([])
    with pytest.raises(holdfast.InvalidUrl):
        holdfast.connect(["holdfast://localhost:7000", "nonsense"])
