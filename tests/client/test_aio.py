"""What a user touches, over TCP and inside the process: the same tests, the same client."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Event, Gap, Receipt
from holdfast.client.aio import Network
from holdfast.client.item import Item
from holdfast.errors import EnvironmentsFault
from holdfast.events.event import Limits
from holdfast.events.value import Value
from scenario import scenario
from two_worlds import OneBroker, both_worlds, tcp_world


async def state_of(network: Network, state: holdfast.State) -> None:
    while network.state is not state:
        await asyncio.sleep(0.005)


def numbers_of(items: list[Item]) -> list[int]:
    return [item.n for item in items if isinstance(item, Event)]


async def take(items: holdfast.Subscription, count: int) -> list[Item]:
    return [await items.get() for _ in range(count)]


@both_worlds
async def test_what_is_published_arrives_as_it_was(world: OneBroker) -> None:
    connecting = holdfast.connect(world.url, name="trader-7")
    async with connecting as network, network.subscribe("orders/# where price>100") as items:
        assert items.filter == "orders/# WHERE price > 100"
        attributes: dict[str, Value] = {
            "price": 101.5,
            "qty": 3,
            "sym": "IBM",
            "urgent": True,
            "raw": b"\0\1",
        }
        receipt = await network.publish("/orders/eu", attributes, b"<x/>", content_type="text/xml")
        assert receipt == Receipt("trader-7", receipt.tick, duplicate=False)
        item = await items.get()
        assert isinstance(item, Event)
        assert item.time is not None
        assert item == Event(
            "orders/eu", attributes, b"<x/>", "text/xml", "trader-7", receipt.tick, item.time
        )


@both_worlds
async def test_only_what_matches_arrives_and_everything_that_does(world: OneBroker) -> None:
    async with (
        holdfast.connect(world.url) as network,
        network.subscribe("orders/#") as some,
        network.subscribe("# WHERE price > 5") as dear,
    ):
        for price in range(10):
            await network.publish("orders/eu" if price % 2 else "news", {"price": price})
        assert numbers_of(await take(some, 5)) == [2, 4, 6, 8, 10]
        assert numbers_of(await take(dear, 4)) == [7, 8, 9, 10]
        with pytest.raises(holdfast.TimedOut):
            await some.get(timeout=0.01)


@both_worlds
async def test_a_connection_may_be_awaited_and_closed(world: OneBroker) -> None:
    network = await holdfast.connect(world.url)
    assert network.state is holdfast.State.READY
    assert network.broker == "b1"
    assert not network.closed
    await network.close()
    await network.close()
    assert network.closed
    with pytest.raises(holdfast.Closed):
        await network.publish("a")
    with pytest.raises(holdfast.Closed):
        network.subscribe("a")


@both_worlds
async def test_a_publisher_keeps_order_and_gives_receipts_in_order(world: OneBroker) -> None:
    async with holdfast.connect(world.url, name="p") as network, network.subscribe("#") as items:
        async with network.publisher(window=16) as out:
            sent = [await out.send("a", {"i": i}) for i in range(500)]
        receipts = [each.outcome for each in sent]
        assert receipts == [Receipt("p", each.n, duplicate=False) for each in sent]
        assert [each.n for each in sent] == sorted({each.n for each in sent})
        got = await take(items, 500)
        assert [item.attributes["i"] for item in got if isinstance(item, Event)] == list(range(500))


@both_worlds
async def test_a_subscriber_that_takes_nothing_loses_nothing(world: OneBroker) -> None:
    async with (
        holdfast.connect(world.url) as publisher,
        holdfast.connect(world.url) as subscriber,
        subscriber.subscribe("#", buffer=10) as items,
    ):
        async with publisher.publisher() as out:
            for _ in range(2000):
                await out.send("a", payload=b"x" * 100)
        taken: list[Item] = []
        async for batch in items.batches():
            taken += batch
            if len(taken) >= 2000:
                break
        assert numbers_of(taken) == list(range(1, 2001))


@both_worlds
async def test_a_subscriber_that_takes_nothing_for_too_long_is_dropped_and_told_by_a_gap(
    world: OneBroker,
) -> None:
    async with (
        holdfast.connect(world.url, name="p") as publisher,
        holdfast.connect(world.url) as subscriber,
        subscriber.subscribe("#", buffer=1) as items,
    ):
        n = 0
        while world.status()["clients"]["connected"] == 2:  # it takes as much as the kernel likes to hold
            n += 1
            await publisher.publish("a", payload=b"x" * 500_000, n=n)
        taken: list[Item] = []
        while not taken or isinstance(taken[-1], Event):
            try:
                taken.append(await items.get(timeout=0.1))
            except holdfast.TimedOut:  # it is not back yet
                n += 1
                await publisher.publish("a", n=n)
        *events, gap = taken
        assert numbers_of(events) == list(range(1, len(taken)))
        first = await items.get()
        assert isinstance(first, Event)
        assert gap == Gap("p", len(events), first.n - 1, "disconnected")
        assert first.n <= n


@both_worlds
async def test_leaving_a_block_unsubscribes_even_with_items_unread(world: OneBroker) -> None:
    async with holdfast.connect(world.url) as network, holdfast.connect(world.url) as other:
        async with network.subscribe("#", buffer=1), other.publisher() as out:
            for _ in range(50):
                await out.send("a", payload=b"x" * 1000)
        async with network.subscribe("#") as items:
            await other.publish("a")
            assert isinstance(await items.get(), Event)
        assert world.status()["subscriptions"]["own"] == 0


@both_worlds
async def test_another_client_under_the_name_takes_over(world: OneBroker) -> None:
    async with holdfast.connect(world.url, name="me") as older, older.subscribe("#") as items:
        waits = asyncio.create_task(items.get(None))
        async with holdfast.connect(world.url, name="me") as newer:
            with pytest.raises(holdfast.TakenOver):
                await waits
            with pytest.raises(holdfast.TakenOver):
                await older.publish("a")
            with pytest.raises(holdfast.TakenOver):
                older.subscribe("a")
            assert older.closed
            assert (await newer.publish("a")).pubend == "me"
            assert newer.state is holdfast.State.READY


@both_worlds
async def test_a_number_of_ones_own_may_be_asked_for_again_in_another_life(world: OneBroker) -> None:
    async with holdfast.connect(world.url) as reader, reader.subscribe("#") as items:
        async with holdfast.connect(world.url, name="me") as network:
            assert await network.publish("a", n=5) == Receipt("me", 5, duplicate=False)
            with pytest.raises(holdfast.InvalidEvent, match="n: is 5, not above 5, the last number used"):
                await network.publish("a", n=5)
            assert await network.publish("a", n=7) == Receipt("me", 7, duplicate=False)
        async with holdfast.connect(world.url, name="me") as network:
            assert await network.publish("a", n=5) == Receipt("me", 5, duplicate=True)
            assert await network.publish("a", n=9) == Receipt("me", 9, duplicate=False)
            async with holdfast.connect(world.url, name="me") as again:
                assert await again.publish("a", n=9) == Receipt("me", 9, duplicate=True)
                assert (await again.publish("a")).tick > 9
        assert numbers_of(await take(items, 3)) == [5, 7, 9]


@both_worlds
async def test_after_a_crash_of_the_broker_publishing_and_subscriptions_go_on(world: OneBroker) -> None:
    async with (
        holdfast.connect(world.url, name="p") as p,
        holdfast.connect(world.url, name="s") as s,
        s.subscribe("#") as items,
    ):
        await p.publish("a", n=1)
        assert numbers_of(await take(items, 1)) == [1]
        await world.crash()
        late = asyncio.create_task(p.publish("a", n=3, timeout=None))
        await asyncio.sleep(0)
        await world.restart()
        await late
        # The first event may have been published before the subscription was back; later ones are told of it.
        n = 3
        while not (arrived := await _next_of(items)):
            n += 1
            await p.publish("a", n=n)
        gap, first = arrived
        assert gap == Gap("p", 1, first.n - 1, "disconnected")
        await p.publish("a", n=n + 1)
        assert (await items.get()).n == n + 1  # type: ignore[union-attr]


async def _next_of(items: holdfast.Subscription) -> tuple[Gap, Event] | None:
    try:
        gap = await items.get(timeout=0.2)
    except holdfast.TimedOut:
        return None
    event = await items.get()
    assert isinstance(gap, Gap)
    assert isinstance(event, Event)
    return gap, event


@both_worlds
async def test_a_cancelled_call_leaves_everything_in_order(world: OneBroker) -> None:
    async with holdfast.connect(world.url, name="me") as network, network.subscribe("#") as items:
        waiting = asyncio.create_task(items.get(None))
        publishing = asyncio.create_task(network.publish("a", n=3))
        await asyncio.sleep(0)
        waiting.cancel()
        publishing.cancel()
        await asyncio.gather(waiting, publishing, return_exceptions=True)
        assert numbers_of([await items.get()]) == [3]
        assert (await network.publish("a", n=3)).tick == 3  # it is on its way, and was not sent twice
        await network.publish("a", n=4)
        assert numbers_of([await items.get()]) == [4]


@scenario
async def test_with_a_state_folder_a_clock_that_is_set_back_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    highest = 0
    for now in (5_000_000_000, 9_000_000_000, 7_000_000_000, 1_000):
        monkeypatch.setattr("time.time_ns", lambda now=now: now)
        async with (
            tcp_world() as world,  # a broker that remembers nothing
            holdfast.connect(world.url, name="me", state=tmp_path / "me") as network,
        ):
            ticks = [(await network.publish("a")).tick for _ in range(3)]
        assert ticks == list(range(ticks[0], ticks[0] + 3))
        assert ticks[0] > max(highest, now // 1000)
        highest = ticks[-1]


@scenario
async def test_a_state_folder_that_fails_later_is_said_by_the_publish_and_by_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "me"
    async with tcp_world() as world, holdfast.connect(world.url, name="me", state=folder) as network:
        shutil.rmtree(folder)
        folder.write_text("in the way")
        for publishing in (network.publish("a"), network.publish("a", n=5), network.publisher().send("a")):
            with pytest.raises(EnvironmentsFault, match=str(folder)):
                await publishing
        folder.unlink()
        assert (await network.publish("a")).pubend == "me"


@scenario
async def test_a_state_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(holdfast.InvalidOption, match=r"state: .*: (Not a directory|File exists)"):
        await holdfast.connect("holdfast://127.0.0.1:1", name="me", state=tmp_path / "file")


@scenario
async def test_an_event_over_the_brokers_limit_is_refused_and_others_are_not() -> None:
    async with (
        tcp_world(limits=Limits(payload_bytes=10)) as world,
        holdfast.connect(world.url, name="me") as network,
        network.subscribe("#") as items,
    ):
        with pytest.raises(holdfast.Refused) as refused:
            await network.publish("a", payload=b"x" * 11, n=1)
        assert refused.value.id == ("me", 1)
        await network.publish("a", payload=b"x" * 10, n=2)
        assert numbers_of([await items.get()]) == [2]
        out = network.publisher()
        sent = [await out.send("a", payload=b"x" * size, n=size) for size in (9, 11, 12)]
        with pytest.raises(holdfast.Refused, match="me#11"):
            await out.flush()
        assert isinstance(sent[0].outcome, Receipt)
        assert isinstance(sent[2].outcome, holdfast.Refused)
        with pytest.raises(holdfast.Refused, match="me#11"):
            await out.send("a")


@scenario
async def test_nobody_there_is_told_in_time() -> None:
    async with tcp_world() as world:
        url = world.url
    with pytest.raises(holdfast.Unreachable, match="connection refused") as unreachable:
        await holdfast.connect(url, timeout=0.1)
    assert unreachable.value.url == url


@scenario
@pytest.mark.parametrize(
    ("answer", "seen"),
    [(b"", " (nothing within "), (b"HTTP/1.0 400 Bad Request\r\n\r\n", "; peer given up, protocol: ")],
)
async def test_who_takes_the_connection_and_is_no_broker_is_told_so(answer: bytes, seen: str) -> None:
    """A web server, an admin port, a broker that stands still: not one that has left."""

    async def on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(on_client, "127.0.0.1", 0) as server:
        where = "{}:{}".format(*server.sockets[0].getsockname())
        with pytest.raises(holdfast.Unreachable) as unreachable:
            await holdfast.connect(f"holdfast://{where}", timeout=0.2)
    expected = f"whoever is at {where} has not answered as a broker of Holdfast does{seen}"
    assert unreachable.value.reason.startswith(expected)
    assert "left" not in unreachable.value.reason


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"url": None}, holdfast.InvalidUrl, "None: is null"),
        ({"url": 7000}, holdfast.InvalidUrl, "7000: is an int"),
        ({"broker": 5}, holdfast.InvalidOption, "broker: is 5; expected the name of a broker"),
        ({"state": 5}, holdfast.InvalidOption, "state: is 5; expected a folder"),
        ({"listen": 5}, holdfast.InvalidOption, "listen: is 5; expected host:port"),
        ({"timeout": "x"}, holdfast.InvalidOption, "timeout: is 'x'; expected seconds"),
    ],
)
def test_what_can_never_be_connected_is_refused_at_once(
    given: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        holdfast.connect(**{"url": "holdfast://localhost:7000", "name": "me", **given})
