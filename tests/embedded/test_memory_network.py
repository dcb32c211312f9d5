"""``memory://``: faults made at will, and time that passes when it is told to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sized
from typing import Any

import pytest

import holdfast
from holdfast import Event, Gap, Item, memory
from holdfast.client.errors import InvalidOption
from scenario import scenario


@pytest.fixture
def stepped() -> Iterator[memory.Network]:
    with memory.Network("stepped", brokers=3, stepped=True) as net:
        yield net


async def settle() -> None:
    """Let the clients see what has happened."""
    for _ in range(20):
        await asyncio.sleep(0)


def numbers_of(items: list[Item]) -> list[int]:
    return [item.n for item in items if isinstance(item, Event)]


@scenario
async def test_a_network_of_seven_brokers_delivers_from_anywhere_to_anywhere() -> None:
    with memory.Network("seven", brokers=7) as net:
        assert net.brokers == ("b1", "b2", "b3", "b4", "b5", "b6", "b7")
        async with (
            holdfast.connect(net.url, broker="b4", name="p") as p,
            holdfast.connect(net.url, broker="b7") as s,
            s.subscribe("a") as items,
        ):
            assert (p.broker, s.broker) == ("b4", "b7")
            await p.publish("a", n=1)
            assert numbers_of([await items.get()]) == [1]


@scenario
async def test_time_that_is_stepped_stands_still_until_it_is_told_to_pass(stepped: memory.Network) -> None:
    stepped.slow("b1", "b2", 0.1)
    stepped.advance(5)
    async with (
        holdfast.connect(stepped.url, broker="b2", name="p") as p,
        holdfast.connect(stepped.url, broker="b3") as s,
    ):
        subscription = s.subscribe("a")
        entering = asyncio.create_task(subscription.__aenter__())
        await settle()
        assert not entering.done()  # the confirmation of b2 takes its time
        stepped.advance(0.2)
        items = await entering
        await p.publish("a", n=1)
        before = stepped.now
        with pytest.raises(holdfast.TimedOut):
            await items.get(timeout=0.01)
        stepped.advance(0.1)
        assert numbers_of([await items.get()]) == [1]
        assert stepped.now == pytest.approx(before + 0.1)


@scenario
async def test_a_crashed_broker_is_missed_and_comes_back(stepped: memory.Network) -> None:
    async with (
        holdfast.connect(stepped.url, broker="b2", name="p") as p,
        holdfast.connect(stepped.url, broker="b3", name="s") as s,
        s.subscribe("a") as items,
    ):
        await p.publish("a", n=1)
        assert numbers_of([await items.get()]) == [1]
        stepped.crash("b3")
        assert stepped.status("b3") == {}
        stepped.advance(10)
        await settle()
        assert s.state is holdfast.State.AWAY
        await p.publish("a", n=2)
        stepped.restart("b3")
        stepped.advance(10)
        await settle()
        assert s.state.value == "ready"
        await p.publish("a", n=3)
        assert await items.get() == Gap("p", 1, 2, "disconnected")
        assert numbers_of([await items.get()]) == [3]


@scenario
async def test_a_frozen_broker_goes_on_where_it_stood(stepped: memory.Network) -> None:
    async with (
        holdfast.connect(stepped.url, broker="b2", name="p") as p,
        holdfast.connect(stepped.url, broker="b2") as s,
        s.subscribe("a") as items,
    ):
        stepped.freeze("b2")
        publishing = asyncio.create_task(p.publish("a", n=1))
        await settle()
        assert not publishing.done()
        stepped.unfreeze("b2")
        await publishing
        assert numbers_of([await items.get()]) == [1]


@scenario
async def test_a_cut_is_silent_and_heals(stepped: memory.Network) -> None:
    async with (
        holdfast.connect(stepped.url, broker="b2", name="p") as p,
        holdfast.connect(stepped.url, broker="b1", name="s") as s,
        s.subscribe("a") as items,
    ):
        stepped.cut("s", "b1")
        await p.publish("a", n=1)
        with pytest.raises(holdfast.TimedOut):
            await items.get(timeout=0.01)
        stepped.advance(10)
        await settle()
        assert s.state is holdfast.State.AWAY
        stepped.heal("s")
        stepped.advance(10)
        await p.publish("a", n=2)
        assert numbers_of([await items.get()]) == [2]


@scenario
async def test_without_steps_time_follows_the_clock() -> None:
    with memory.Network("clock", delay=0.02) as net:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        async with holdfast.connect(net.url) as network:
            await network.publish("a")
        assert loop.time() - begun >= 0.08  # to connect, to say hello, to publish: six times there or back
        with pytest.raises(InvalidOption, match="time follows the clock"):
            net.advance(1)


@scenario
async def test_the_same_steps_give_the_same_run() -> None:
    async def run() -> list[tuple[float, int]]:
        seen: list[tuple[float, int]] = []
        with memory.Network("again", brokers=3, stepped=True, seed=7) as net:
            net.slow("b1", "b2", 0.01, jitter=0.1)
            net.advance(5)
            async with (
                holdfast.connect(net.url, broker="b2", name="p") as p,
                holdfast.connect(net.url, broker="b1") as s,
            ):
                entering = asyncio.create_task(s.subscribe("a").__aenter__())
                while not entering.done():
                    net.advance(0.01)
                    await settle()
                items = entering.result()
                for n in range(1, 6):
                    await p.publish("a", n=n)
                    while True:
                        try:
                            seen += [(net.now, k) for k in numbers_of(await items.get_batch(timeout=0.001))]
                            break
                        except holdfast.TimedOut:
                            net.advance(0.01)
        return seen

    first = await run()
    assert [n for _, n in first] == [1, 2, 3, 4, 5]
    assert await run() == first


def test_clients_in_several_threads_share_a_network() -> None:
    with memory.Network("threads", brokers=3) as net:
        failures: list[BaseException] = []

        def work(k: int) -> None:
            try:
                with (
                    holdfast.sync.connect(net.url, broker=f"b{k % 3 + 1}", name=f"p{k}") as network,
                    network.subscribe(f"t{k}") as items,
                ):
                    for n in range(1, 30):
                        network.publish(f"t{k}", n=n)
                        assert numbers_of([items.get()]) == [n]
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures


@scenario
async def test_a_bug_in_the_network_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = "the network inside the process failed"
    with memory.Network("buggy") as net:
        async with (
            holdfast.connect(net.url) as network,
            holdfast.connect(net.url) as other,
            other.subscribe("a") as items,
        ):
            waiting = asyncio.create_task(items.get(None))
            monkeypatch.setattr("holdfast.broker.broker.Broker.step", None)
            with pytest.raises(holdfast.HoldfastError, match=failed):
                await network.publish("a")
            with pytest.raises(holdfast.HoldfastError, match=failed):
                await waiting
            with pytest.raises(holdfast.HoldfastError, match=failed):
                await holdfast.connect(net.url)


@pytest.mark.parametrize("name", ["me", None])
@scenario
async def test_a_client_that_has_left_leaves_nothing_behind(name: str | None) -> None:
    def size_of(net: memory.Network) -> list[int]:
        world = net._world
        kept: list[Sized] = [world.nodes, world.network._hosts, world.network._links, net._ports, net._hosts]
        return [len(each) for each in kept]

    with memory.Network("hotel", brokers=2) as net:
        before = size_of(net)
        for _ in range(3):
            async with holdfast.connect(net.url, name=name) as network, network.subscribe("a") as items:
                await network.publish("a")
                assert len(numbers_of([await items.get()])) == 1
        net.crash("b1")
        with pytest.raises(holdfast.Unreachable):
            await holdfast.connect(net.url, name=name, timeout=0.01)
        assert size_of(net) == before


@scenario
async def test_a_client_that_leaves_twice_does_not_put_out_the_next_of_its_name() -> None:
    with memory.Network("hotel") as net:
        first = await holdfast.connect(net.url, name="me")
        await first.close()
        async with holdfast.connect(net.url, name="me") as network:
            await first.close()
            net.cut("me", "b1")
            net.heal("me")
            assert (await network.publish("a")).pubend == "me"


@scenario
async def test_a_client_that_is_gone_without_goodbye_is_missed_at_once(stepped: memory.Network) -> None:
    network = await holdfast.connect(stepped.url, name="me")
    await network._port.stop()
    stepped.advance(0)
    assert stepped.status("b1")["clients"] == {"connected": 0, "away": 1}
    with pytest.raises(holdfast.TimedOut):
        await network.close(timeout=0)


@scenario
async def test_why_a_broker_cannot_be_reached_is_said_as_over_tcp() -> None:
    with memory.Network("down") as net:
        net.crash("b1")
        with pytest.raises(holdfast.Unreachable, match="cannot reach the broker: refused"):
            await holdfast.connect(net.url, timeout=0.01)


def test_a_name_is_free_again_once_the_network_is_closed() -> None:
    with memory.Network("once"), pytest.raises(InvalidOption, match=r"there is a network 'once' .* already"):
        memory.Network("once")
    with memory.Network("once") as net:
        assert net.url == "memory://once"
        net.close()
        with memory.Network("once"):
            net.close()
            with pytest.raises(InvalidOption, match="already"):
                memory.Network("once")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"brokers": 0}, "brokers: is 0; expected a number from 1 to 1000"),
    ({"brokers": 1001}, "brokers: is 1001"),
    ({"brokers": "many"}, "brokers: is 'many'"),
    ({"tree": {}}, "tree: has 0 roots"),
    ({"tree": {"a": None, "b": None}}, "tree: has 2 roots; expected one broker whose parent is None"),
    ({"tree": {"a": None, "b": "c"}}, "tree: the parent of 'b' is 'c', which is no broker"),
    ({"tree": {"a": None, "b": "c", "c": "b"}}, "tree: b, c: not below the root, but in a circle"),
    ({"delay": -1}, "delay: is -1; expected seconds from 0"),
    ({"delay": float("nan")}, "delay: is nan"),
    ({"streams": {"s": "a/#"}}, "streams: s is 'a/#'; expected its topics, its guarantee, and its order"),
    ({"streams": {"s": (5, "durable")}}, "streams: s is .*; expected its topics"),
    ({"streams": {"s": ("a/#",)}}, "streams: s is .*; expected its topics"),
    (
        {"streams": {"s": ("a/#", "lasting")}},
        "streams: s: its guarantee is 'lasting'; expected best-effort, reliable, durable",
    ),
    (
        {"streams": {"s": ("a/#", "durable", "any")}},
        "streams: s: its order is 'any'; expected none, fifo, total",
    ),
    (
        {"streams": {"s": ("a/#", "reliable", "total")}},
        "s: its order is total, and it is reliable; expected durable",
    ),
    ({"name": ""}, "name: is ''; expected what can stand in memory://NAME"),
    ({"name": "a/b"}, "name: is 'a/b'"),
]


@pytest.mark.parametrize(("options", "problem"), BAD, ids=[problem[:24] for _, problem in BAD])
def test_a_network_that_cannot_be_is_refused_by_name(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem):
        memory.Network(**{"name": "bad", **options})


def test_faults_name_what_there_is(stepped: memory.Network) -> None:
    for fault in (stepped.crash, stepped.restart, stepped.freeze, stepped.unfreeze, stepped.status):
        with pytest.raises(InvalidOption, match="broker: there is no 'b9'; there are b1, b2, b3"):
            fault("b9")
    with pytest.raises(
        InvalidOption, match="neither a broker nor a client is called 'me'; there are b1, b2, b3"
    ):
        stepped.cut("b1", "me")
    with pytest.raises(InvalidOption, match="b1 is up; crash it first"):
        stepped.restart("b1")
    stepped.crash("b1")
    with pytest.raises(InvalidOption, match="b1 is down already"):
        stepped.crash("b1")


def test_a_tree_of_ones_own_may_come_in_any_order() -> None:
    with memory.Network("own", tree={"leaf": "middle", "top": None, "middle": "top"}) as net:
        assert net.brokers == ("top", "middle", "leaf")
