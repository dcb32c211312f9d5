"""A client that is a node: past its own broker, at its own pace, on streams of both kinds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import holdfast
from holdfast import memory
from holdfast.client.member import MemberCore
from holdfast.client.settings import Settings
from holdfast.messages.overlay import Role
from holdfast.messages.publications import Accepted, Batch, Deliveries, Rejected
from holdfast.node.breach import Breach
from holdfast.node.settings import NodeSettings
from holdfast.node.station import Station
from holdfast.node.topology import Place
from in_memory import number, rest, taken
from scenario import scenario

MIXED = {"orders": ("orders/#", "reliable"), "logs": ("logs/#", "best-effort")}


# Streams of both kinds


@scenario
async def test_each_topic_goes_the_way_of_its_stream() -> None:
    with memory.Network("mixed", brokers=3, delta=1, streams=MIXED, stepped=True) as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3", name="s") as s,
            s.subscribe("#") as items,
        ):
            await net.in_time(p.publish("logs/a", n=1))
            assert net.now < 0.05, "a best-effort event waits for nothing but its broker"
            await net.in_time(p.publish("orders/a", n=2))
            await net.in_time(p.publish("logs/a", n=3))
            assert [number(await items.get()) for _ in range(3)] == [1, 2, 3]
            with pytest.raises(holdfast.Refused, match="no stream has the topic 'other'"):
                await net.in_time(p.publish("other", n=4))
            assert (await net.in_time(p.publish("logs/a", n=5))).tick == 5


@scenario
async def test_receipts_come_in_the_order_of_sending_whatever_the_streams() -> None:
    with memory.Network("receipts", delta=0, streams=MIXED, stepped=True) as net:
        async with (
            holdfast.connect(net.url, name="p") as p,
            holdfast.connect(net.url, name="s") as s,
            s.subscribe("#"),
        ):
            order: list[int] = []

            async def note(sent: holdfast.Sent) -> None:
                order.append((await sent).tick)

            async with p.publisher() as out, asyncio.TaskGroup() as group:
                for n in range(1, 7):
                    group.create_task(note(await out.send("orders/a" if n % 2 else "logs/a", n=n)))
                await net.in_time(out.flush())
            assert order == [1, 2, 3, 4, 5, 6]


@scenario
async def test_with_a_broker_gone_best_effort_goes_on_by_another_with_gaps_and_reliable_without() -> None:
    with memory.Network("gaps", brokers=3, delta=1, streams=MIXED, stepped=True) as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b2", name="q") as q,
            holdfast.connect(net.url, broker="b3", name="s") as s,
            s.subscribe("#") as items,
        ):
            for n in (1, 2):
                await net.in_time(p.publish("logs/a", n=n))
                await net.in_time(q.publish("orders/a", n=10 * n))
            await taken(items)
            net.crash("b3")
            await net.in_time(p.publish("logs/a", n=3))  # taken by b2, and lost on its way to b3
            await net.in_time(q.publish("orders/a", n=30))
            await rest(net, 2)
            await net.in_time(p.publish("logs/a", n=4))
            net.restart("b3")
            await rest(net, 5)
            net.crash("b2")
            await net.in_time(p.publish("logs/a", n=5))
            await net.in_time(q.publish("orders/a", n=40))
            await rest(net, 1)
            got = await taken(items)
            assert [item for item in got if isinstance(item, holdfast.Gap)] == [
                holdfast.Gap("p", 2, 3, "disconnected")
            ]
            numbers = [(item.publisher, item.n) for item in got if isinstance(item, holdfast.Event)]
            assert sorted(numbers) == [("p", 4), ("p", 5), ("q", 30), ("q", 40)]


# A slow application


@scenario
async def test_while_nothing_is_read_nobody_is_taken_for_silent() -> None:
    with memory.Network("slow", brokers=3, delta=1, stepped=True) as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3", name="s") as s,
            s.subscribe("#", buffer=10) as items,
            p.publisher() as out,
        ):
            for n in range(1, 101):
                await out.send("a", n=n)
                await rest(net, 0.02)
            for _ in range(100):
                await rest(net, 0.1)
                assert net.status("b3")["overlay"]["down"] == []
                assert s.is_ready
            first = await items.get_batch()
            assert 10 <= len(first) < 20, "it has stopped reading"
            got = [getattr(item, "n", 0) for item in first]
            got += [number(await net.in_time(items.get())) for _ in range(100 - len(got))]
            assert got == list(range(1, 101))
            await net.in_time(out.flush())


@scenario
async def test_a_slow_reader_whose_broker_dies_loses_nothing_either() -> None:
    with memory.Network("slower", brokers=3, delta=1, stepped=True) as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3", name="s") as s,
            s.subscribe("#", buffer=5) as items,
            p.publisher() as out,
        ):
            for n in range(1, 61):
                await out.send("a", n=n)
                await rest(net, 0.05)
                if n == 30:
                    net.crash("b3")
            got = [number(await net.in_time(items.get())) for _ in range(60)]
            assert got == list(range(1, 61))
            await net.in_time(out.flush())


# Parts of the network that cannot be reached


@scenario
async def test_a_subscription_beyond_delta_is_partial_and_is_upgraded() -> None:
    tree = {"a": None, "b": "a", "c": "b", "d": "c"}
    upgrades = []
    with memory.Network("parts", tree=tree, delta=1, stepped=True) as net:
        async with (
            holdfast.connect(net.url, broker="a", name="s") as s,
            holdfast.connect(net.url, broker="d", name="p") as p,
        ):
            await net.in_time(p.publish("x", n=1))
            net.crash("b")
            net.crash("c")
            await rest(net, 2)
            items = s.subscribe("#", on_upgrade=lambda cleared, left: upgrades.append((cleared, left)))
            await net.in_time(items.__aenter__())
            [partition] = items.partial
            assert (partition.lead, partition.fragment) == ("a", ("b", "c"))
            with pytest.raises(holdfast.NotCovered) as refused:
                await net.in_time(items.wait_whole(timeout=0.01))
            assert refused.value.partitions == (partition,)
            net.restart("b")
            net.restart("c")
            await net.in_time(items.wait_whole())
            assert items.partial == ()
            assert upgrades == [((partition,), ())]
            await net.in_time(p.publish("x", n=2))
            # It was confirmed before b and c came back without their memory, and cannot know that it missed nothing.
            assert await net.in_time(items.get()) == holdfast.Gap("p", 0, 1, "beyond delta")
            assert number(await net.in_time(items.get())) == 2
            await net.in_time(items.__aexit__(None, None, None))


@scenario
async def test_who_wants_all_or_nothing_gets_nothing() -> None:
    tree = {"a": None, "b": "a", "c": "b"}
    with memory.Network("whole", tree=tree, delta=0, stepped=True) as net:
        async with holdfast.connect(net.url, broker="a") as s:
            net.crash("b")
            await rest(net, 2)
            with pytest.raises(holdfast.NotCovered, match="not reached: b"):
                async with s.subscribe("#", whole=True, timeout=0.05):
                    pass


# Two clients of one broker


@pytest.mark.parametrize("listen", [None, "any"])
@scenario
async def test_two_clients_of_a_failed_broker_need_somebody_who_listens(listen: str | None) -> None:
    """With the only broker around gone one client must dial the other; it can, if that one listens [R0.8]."""
    with memory.Network("two", brokers=1, delta=1, stepped=True) as net:
        async with (
            holdfast.connect(net.url, name="p") as p,
            holdfast.connect(net.url, name="s", listen=listen) as s,
            s.subscribe("#") as items,
        ):
            await net.in_time(p.publish("x", n=1))
            net.crash("b1")
            await p.publisher().send("x", n=2)
            await rest(net, 5)
            got = [item.n for item in await taken(items) if isinstance(item, holdfast.Event)]
            assert got == ([1, 2] if listen else [1])
            net.restart("b1")
            await rest(net, 5)
            if not listen:
                assert number(await items.get()) == 2


# The end


@scenario
async def test_a_client_that_is_expelled_hears_of_it_and_does_not_come_back() -> None:
    with memory.Network("expelled", delta=1, stepped=True) as net:
        async with holdfast.connect(net.url, name="s") as s:
            items = s.subscribe("#")
            await items.__aenter__()
            net.expel("s")
            with pytest.raises(holdfast.Unreachable, match="unknown, expelled"):
                await net.in_time(items.get())
            await rest(net, 5)
            assert s.closed
            assert net.status("b1")["overlay"]["members"] == []


@scenario
async def test_a_client_that_leaves_leaves_nothing_behind() -> None:
    with memory.Network("left", brokers=3, delta=1, stepped=True) as net:
        async with holdfast.connect(net.url, broker="b2", name="p") as p:
            async with holdfast.connect(net.url, broker="b3", name="s") as s, s.subscribe("#"):
                await net.in_time(p.publish("a"))
            await rest(net, 1)
            await net.in_time(p.publish("a"))
            await rest(net, 1)
            for broker in net.brokers:
                assert net.status(broker)["subscriptions"]["installed"] == 0
                assert net.status(broker)["overlay"]["queued"] == 0
            assert net.status("b3")["overlay"]["members"] == []


@pytest.mark.parametrize(
    "message",
    [Accepted(9), Rejected(1, "no"), Deliveries("s", Batch([]), [], [])],
    ids=lambda message: type(message).__name__,
)
def test_another_client_cannot_speak_for_a_broker(message: Accepted | Rejected | Deliveries) -> None:
    member = MemberCore(Settings("me", 1, "b:1"), NodeSettings("me", 1, Role.SUBSCRIBER, home="b"))
    other = Station(Place("you", Role.PUBLISHER, ("b", "you")))
    hear: Any = member.on_deliveries if isinstance(message, Deliveries) else member.on_answer
    with pytest.raises(Breach, match="from a client"):
        hear(other, message)
