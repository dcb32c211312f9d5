"""Durable subscriptions through real brokers, in this process: leaving, returning, moving, dying [R1.2, R1.8, R1.32]"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import holdfast
from holdfast import memory
from holdfast.client.item import Item, LoggedEvent
from in_memory import until
from scenario import scenario

STREAMS = {"orders": ("orders/#", "durable"), "news": ("news/#", "best-effort")}


def network(name: str, *, stepped: bool = False) -> memory.Network:
    return memory.Network(name, brokers=3, streams=STREAMS, stepped=stepped)


async def publish(who: holdfast.Network, *numbers: int) -> list[holdfast.Receipt]:
    return [await who.publish("orders/eu", {"i": n}, n=n) for n in numbers]


async def take(items: holdfast.Subscription, count: int) -> list[Item]:
    return [await items.get() for _ in range(count)]


def numbers(items: list[Item]) -> list[int]:
    assert all(isinstance(item, LoggedEvent) for item in items), items
    return [item.n for item in items if isinstance(item, LoggedEvent)]


@scenario
async def test_everybody_sees_a_stream_in_total_order_in_the_same_order() -> None:
    with memory.Network("total", brokers=3, streams={"ledger": ("#", "durable", "total")}) as net:
        async with (
            holdfast.connect(net.url, broker="b1") as r,
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3", name="q") as q,
            p.subscribe("orders/#") as one,
            q.subscribe("orders/#") as other,
            r.subscribe("orders/#") as third,
        ):
            receipts = await asyncio.gather(publish(p, *range(1, 20)), publish(q, *range(1, 20)))
            assert {each.pubend for found in receipts for each in found} == {"ledger@b1/0"}
            seen = [await take(items, 38) for items in (one, other, third)]
            assert seen[0] == seen[1] == seen[2]


@scenario
async def test_receipts_and_events_name_the_same_place() -> None:
    with network("same-place") as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3") as s,
            s.subscribe("orders/#") as items,
        ):
            receipts = await publish(p, 1, 2, 3)
            events = await take(items, 3)
            assert numbers(events) == [1, 2, 3]
            places = [(item.pubend, item.tick) for item in events if isinstance(item, LoggedEvent)]
            assert places == [(each.pubend, each.tick) for each in receipts]
            assert not any(each.duplicate for each in receipts)
            assert items.token[receipts[0].pubend].tick >= receipts[-1].tick


@scenario
async def test_ticks_follow_a_clock_that_is_set_forward_and_grow_when_it_is_set_back() -> None:
    with network("clocks") as net:
        async with holdfast.connect(net.url, broker="b2", name="p") as p:
            [first] = await publish(p, 1)
            net.shift_clock("b2", 3600)
            [second] = await publish(p, 2)
            net.shift_clock("b2", -7200)
            [third] = await publish(p, 3)
    assert 3600 * 10**6 <= second.tick - first.tick < 3700 * 10**6
    assert 0 < third.tick - second.tick < 60 * 10**6


@scenario
async def test_r1_2_who_comes_back_gets_what_it_missed_and_what_it_did_not_commit() -> None:
    with network("coming-back") as net:
        async with holdfast.connect(net.url, broker="b2", name="p") as p:
            async with holdfast.connect(net.url, broker="b3", name="s") as s:
                async with s.subscribe("orders/#", durable="d") as items:
                    await publish(p, 1, 2, 3)
                    first, *_ = await take(items, 3)
                    await items.commit(first)
                await publish(p, 4)
                async with s.subscribe("orders/#", durable="d") as items:
                    assert numbers(await take(items, 3)) == [2, 3, 4]
                    await items.commit()
            await publish(p, 5)
            async with (
                holdfast.connect(net.url, broker="b3", name="somebody else") as s,
                s.subscribe("orders/#", durable="d") as items,
            ):
                assert numbers(await take(items, 1)) == [5]


@scenario
async def test_r1_32_it_goes_on_at_another_broker() -> None:
    with network("moving") as net:
        async with holdfast.connect(net.url, broker="b2", name="p") as p:
            async with (
                holdfast.connect(net.url, broker="b3", name="s") as s,
                s.subscribe("orders/#", durable="d") as items,
            ):
                await publish(p, 1, 2)
                assert numbers(await take(items, 2)) == [1, 2]
                token = items.token
            await publish(p, 3)
            async with (
                holdfast.connect(net.url, broker="b1", name="s") as s,
                s.subscribe("orders/#", durable="d", start=token) as items,
            ):
                assert numbers(await take(items, 1)) == [3]


@scenario
async def test_at_a_broker_that_is_alone_a_new_one_begins_where_it_wants_though_others_read_there() -> None:
    """The network knows the subscription at once, and the pubend as well."""
    with memory.Network("alone", brokers=1, streams=STREAMS) as net:
        async with (
            holdfast.connect(net.url, name="p") as p,
            holdfast.connect(net.url, name="s") as s,
            s.subscribe("orders/#") as others,
        ):
            await publish(p, 1, 2)
            await take(others, 2)
            async with s.subscribe("orders/#", durable="d", start="earliest") as items:
                assert numbers(await take(items, 2)) == [1, 2]


@scenario
async def test_automatic_commits_are_all_there_after_leaving() -> None:
    with network("by-the-way") as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3", name="s") as s,
        ):
            async with s.subscribe("orders/#", durable="d", acknowledge="auto") as items:
                await publish(p, 1, 2, 3)
                assert numbers(await take(items, 2)) == [1, 2]
            async with s.subscribe("orders/#", durable="d", acknowledge="auto") as items:
                assert numbers(await take(items, 1)) == [3]


@scenario
async def test_a_durable_subscription_that_was_ended_begins_anew() -> None:
    with network("ended") as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3", name="s") as s,
        ):
            async with s.subscribe("orders/#", durable="d") as items:
                [before] = await publish(p, 1)
                await items.unsubscribe()
            async with s.subscribe("orders/#", durable="d") as items:
                assert items.token[before.pubend].tick >= before.tick, (
                    "what was not committed is gone with it"
                )
                await publish(p, 2)
                assert numbers(await take(items, 1)) == [2]


@scenario
async def test_another_filter_under_the_same_name_is_refused_and_so_is_another_reader_told() -> None:
    with network("one-reader") as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3", name="s") as s,
            s.subscribe("orders/#", durable="d") as items,
        ):
            with pytest.raises(holdfast.OtherFilter):
                await s.subscribe("orders/us", durable="d").__aenter__()
            async with s.subscribe("orders/#", durable="d") as others:
                with pytest.raises(holdfast.TakenOver, match="'d'"):
                    await items.get()
                await publish(p, 1)
                assert numbers(await take(others, 1)) == [1]
            assert s.is_ready


async def come_to_read(net: memory.Network, name: str) -> None:
    async with (
        holdfast.connect(net.url, broker="b2", name="p") as p,
        holdfast.connect(net.url, broker="b3", name="a") as a,
        a.subscribe("orders/#", durable="d") as items,
    ):
        await publish(p, *range(1, 21))
        assert numbers(await take(items, 4)) == [1, 2, 3, 4]
        await items.commit()
        now = net.now
        await until(lambda: net.now > now + 1)  # the rest is here
        async with (
            holdfast.connect(net.url, broker="b3", name=name) as b,
            b.subscribe("orders/#", durable="d") as others,
        ):
            with pytest.raises(holdfast.TakenOver):
                await items.get()
            assert numbers(await take(others, 16)) == [*range(5, 21)]


@pytest.mark.parametrize("name", ["a", "b"])
@scenario
async def test_who_comes_to_read_gets_what_the_other_has_not_taken_yet(name: str) -> None:
    """Under the other's own name, or as another client."""
    with network(f"not-taken-{name}", stepped=True) as net:
        await net.in_time(come_to_read(net, name))


@pytest.mark.parametrize("broker", ["b1", "b3"])
@scenario
async def test_who_was_interrupted_does_not_take_it_back_from_who_came_meanwhile(broker: str) -> None:
    with network(f"meanwhile-{broker}") as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3", name="a") as a,
            a.subscribe("orders/#", durable="d") as items,
        ):
            await publish(p, 1)
            assert numbers(await take(items, 1)) == [1]
            net.cut("a", "b3")
            async with (
                holdfast.connect(net.url, broker=broker, name="b") as b,
                b.subscribe("orders/#", durable="d") as others,
            ):
                assert numbers(await take(others, 1)) == [1], "it was not committed"
                await others.commit()
                net.heal("a", "b3")
                with pytest.raises(holdfast.TakenOver, match="has come to read d since"):
                    await items.get()
                await publish(p, 2)
                assert numbers(await take(others, 1)) == [2]


@pytest.mark.parametrize("broker", ["b1", "b3"])
@scenario
async def test_nor_does_it_end_what_who_came_meanwhile_reads(broker: str) -> None:
    with network(f"not-ended-{broker}") as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3", name="a") as a,
            a.subscribe("orders/#", durable="d") as items,
        ):
            net.cut("a", "b3")
            async with (
                holdfast.connect(net.url, broker=broker, name="b") as b,
                b.subscribe("orders/#", durable="d") as others,
            ):
                ending = asyncio.create_task(items.unsubscribe())
                await asyncio.sleep(0)  # it has said so, and there is nobody to hear it
                net.heal("a", "b3")
                with pytest.raises(holdfast.TakenOver, match="has come to read d since"):
                    await ending
                await publish(p, 1)
                assert numbers(await take(others, 1)) == [1]


@scenario
async def test_reading_begins_where_it_is_told_to() -> None:
    with network("beginning") as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3") as s,
        ):
            await s.subscribe("orders/#", durable="pin").__aenter__()  # so that nothing is released
            await publish(p, 1, 2)
            between = await s.subscribe("orders/#").__aenter__()
            token = between.token
            await publish(p, 3)
            async with s.subscribe("orders/#", start="earliest") as items:
                assert numbers(await take(items, 3)) == [1, 2, 3]
            async with s.subscribe("orders/#", start=token) as items:
                assert numbers(await take(items, 1)) == [3]
            async with s.subscribe("orders/#", start=datetime.now(UTC) - timedelta(hours=1)) as items:
                assert numbers(await take(items, 3)) == [1, 2, 3]
            with pytest.raises(holdfast.TokenAhead, match="a time that has not come yet"):
                await s.subscribe("orders/#", start=datetime.now(UTC) + timedelta(hours=1)).__aenter__()


@scenario
async def test_silence_is_told_to_those_who_ask() -> None:
    with network("silence") as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3") as s,
            s.subscribe("orders/us", silence=True) as items,
        ):
            [receipt] = await publish(p, 1)
            while True:
                item = await items.get()
                assert isinstance(item, holdfast.Silence)
                if item.upto >= receipt.tick:
                    break


@scenario
async def test_best_effort_streams_go_on_beside_it() -> None:
    with network("beside") as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3") as s,
            s.subscribe("#", durable="d") as items,
        ):
            assert await p.publish("news/x", n=1) == holdfast.Receipt("p", 1, duplicate=False)
            plain = await items.get()
            assert not isinstance(plain, LoggedEvent)
            await publish(p, 2)
            assert numbers(await take(items, 1)) == [2]
            await items.commit(plain)


@scenario
async def test_more_than_the_buffer_comes_as_it_is_taken() -> None:
    with network("small-buffer") as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3") as s,
            s.subscribe("orders/#", buffer=7) as items,
        ):
            async with p.publisher() as out:
                for n in range(1, 201):
                    await out.send("orders/eu", n=n)
            assert numbers(await take(items, 200)) == list(range(1, 201))


# Faults


@pytest.mark.parametrize("victim", ["b1", "b2", "b3"])
def test_r1_2_whoever_crashes_nothing_is_lost_or_repeated(victim: str) -> None:
    @scenario
    async def crash() -> None:
        with network("crashing", stepped=True) as net:
            async with (
                holdfast.connect(net.url, broker="b2", name="p") as p,
                holdfast.connect(net.url, broker="b3", name="s") as s,
            ):
                items = await net.in_time(s.subscribe("orders/#", durable="d").__aenter__())
                await net.in_time(publish(p, 1, 2, 3))
                assert numbers(await net.in_time(take(items, 2))) == [1, 2]
                await net.in_time(items.commit())
                net.crash(victim)
                publishing = asyncio.create_task(publish(p, 4, 5))
                await net.in_time(asyncio.sleep(0), 5)
                net.advance(3)
                net.restart(victim)
                await net.in_time(publishing)
                assert numbers(await net.in_time(take(items, 3))) == [3, 4, 5]
                await net.in_time(items.__aexit__(None, None, None))
                again = await net.in_time(s.subscribe("orders/#", durable="d").__aenter__())
                assert numbers(await net.in_time(take(again, 3))) == [3, 4, 5], "none of these was committed"

    crash()


@scenario
async def test_b1_4_a_repeat_is_answered_with_its_place() -> None:
    with network("repeat", stepped=True) as net:
        async with holdfast.connect(net.url, broker="b2", name="p") as p:
            [first] = await net.in_time(publish(p, 1))
        net.crash("b2")
        net.restart("b2")
        async with holdfast.connect(net.url, broker="b2", name="p") as p:
            again = await net.in_time(p.publish("orders/eu", n=1))
            assert again == holdfast.Receipt(first.pubend, first.tick, duplicate=True)


@scenario
async def test_a_full_disk_refuses_what_is_sent_behind_as_well_and_with_room_all_is_taken() -> None:
    """One publisher's events stay in order: none is logged behind one that is refused, before it has heard of that."""
    with network("full", stepped=True) as net:
        async with holdfast.connect(net.url, broker="b2", name="p") as p:
            await net.in_time(p.publish("orders/eu", n=1))
            net.fill_disk("b2")
            with pytest.raises(holdfast.Refused, match="no space left"):
                await net.in_time(p.publish("orders/eu", n=2))
            net.free_disk("b2")
            with pytest.raises(holdfast.Refused, match="no space left"):
                await net.in_time(p.publish("orders/eu", n=3))
            net.advance(2)
            assert not (await net.in_time(p.publish("orders/eu", n=4))).duplicate
        with pytest.raises(holdfast.InvalidOption, match="no 'b9'"):
            net.fill_disk("b9")
