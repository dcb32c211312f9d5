"""Subscribing, where the network does what a test says: over a bare port."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bare_port import BarePort
from holdfast.client import effect as effects
from holdfast.client import input as inputs
from holdfast.client.aio import Network, Subscription
from holdfast.client.errors import Closed, GapFound, InvalidOption, Refused, TakenOver, TimedOut, Unreachable
from holdfast.client.item import Gap
from holdfast.errors import FilterError
from holdfast.events.event import Event
from holdfast.events.packed import pack
from holdfast.messages.publications import Publication
from holdfast.messages.session import Farewell
from holdfast.messages.subscriptions import Partition
from scenario import scenario


def event(n: int) -> Event:
    return Event("a", {"n": n}, b"", "", "them", n, None)


def delivered(*items: int | Gap) -> effects.Delivered:
    packed = [
        Publication("them", item, pack(event(item))) if isinstance(item, int) else item for item in items
    ]
    return effects.Delivered(1, packed, [None] * len(items))


GAP = Gap("them", 2, 5, "disconnected")


@scenario
async def test_items_come_in_order_one_by_one_or_in_batches() -> None:
    port = BarePort()
    async with port.connect() as network, network.subscribe("a") as items:
        port.say(delivered(1, 2, GAP, 6))
        assert await items.get() == event(1)
        assert await anext(items) == event(2)
        port.say(delivered(7))
        assert await items.get_batch() == [GAP, event(6), event(7)]
        port.say(delivered(8))
        async for item in items:
            assert item == event(8)
            break
        port.say(delivered(9))
        async for batch in items.batches():
            assert batch == [event(9)]
            break
        assert port.consumed == 7


@scenario
async def test_who_asked_for_it_gets_gaps_as_exceptions_and_goes_on_behind_them() -> None:
    port = BarePort()
    async with port.connect() as network, network.subscribe("a", on_gap="raise") as items:
        port.say(delivered(1, 2, GAP, 6, 7))
        assert await items.get_batch() == [event(1), event(2)]
        with pytest.raises(GapFound, match=r"\(2\.\.5\] of them: disconnected") as found:
            await items.get_batch()
        assert found.value.gap == GAP
        assert await items.get() == event(6)
        port.say(delivered(GAP, 8))
        assert await items.get_batch() == [event(7)]
        with pytest.raises(GapFound):
            await items.get()
        assert await items.get() == event(8)
        assert port.consumed == 7


@scenario
async def test_what_is_taken_is_reported_before_anybody_waits_and_not_for_every_item() -> None:
    port = BarePort()
    async with port.connect() as network, network.subscribe("a", buffer=40) as items:
        port.say(delivered(*range(1, 38)))
        for n in range(1, 38):
            assert await items.get() == event(n)
        assert port.consumed == 37
        assert sum(isinstance(each, inputs.Consumed) for each in port.heard) <= 5


@scenario
async def test_each_item_goes_to_one_of_those_who_wait() -> None:
    port = BarePort()
    async with port.connect() as network, network.subscribe("a") as items:
        waiting = [asyncio.create_task(items.get()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        port.say(delivered(1))
        await asyncio.sleep(0)
        port.say(delivered(2))
        assert await asyncio.gather(*waiting[1:]) == [event(1), event(2)]


@scenario
async def test_entering_waits_for_the_confirmation() -> None:
    port = BarePort()
    port.confirms = False
    async with port.connect() as network:
        subscription = network.subscribe("a where x>1")
        entering = asyncio.create_task(subscription.__aenter__())
        await asyncio.sleep(0)
        assert port.heard[-1] == inputs.AddSubscription(1, "a WHERE x > 1", 1000)
        assert not entering.done()
        missing = (Partition("b2", 1, 1, ("b3", "b4")),)
        port.say(effects.Subscribed(1, missing))
        items = await entering
        assert items.partial == missing
        with pytest.raises(Closed, match="entered once"):
            await subscription.__aenter__()
        leaving = asyncio.create_task(items.__aexit__(None, None, None))
        await asyncio.sleep(0)
        assert port.heard[-1] == inputs.EndSubscription(1)
        assert not leaving.done()
        port.say(effects.Unsubscribed(1))
        await leaving


@scenario
async def test_a_confirmation_that_does_not_come_ends_the_subscription() -> None:
    port = BarePort()
    port.confirms = False
    async with port.connect() as network:
        with pytest.raises(TimedOut, match=r"no confirmation of 'a': nothing within 0\.01 s"):
            await network.subscribe("a", timeout=0.01).__aenter__()
        assert port.heard[-1] == inputs.EndSubscription(1)


@scenario
async def test_cancelling_the_entry_ends_the_subscription() -> None:
    port = BarePort()
    port.confirms = False
    async with port.connect() as network:
        entering = asyncio.create_task(network.subscribe("a").__aenter__())
        await asyncio.sleep(0)
        entering.cancel()
        await asyncio.gather(entering, return_exceptions=True)
        assert port.heard[-1] == inputs.EndSubscription(1)


@scenario
async def test_a_filter_the_broker_will_not_have_is_refused() -> None:
    port = BarePort()
    port.confirms = False
    async with port.connect() as network:
        entering = asyncio.create_task(network.subscribe("a").__aenter__())
        await asyncio.sleep(0)
        port.say(effects.SubscriptionRefused(1, "too dear"))
        with pytest.raises(Refused, match="too dear"):
            await entering
        assert inputs.EndSubscription(1) not in port.heard  # the core has ended it already


@scenario
async def test_leaving_while_the_session_is_lost_waits_for_nothing() -> None:
    port = BarePort()
    port.confirms = False
    async with port.connect() as network:
        entering = asyncio.create_task(network.subscribe("a").__aenter__())
        await asyncio.sleep(0)
        port.say(effects.Subscribed(1, ()))
        items = await entering
        leaving = asyncio.create_task(items.__aexit__(None, None, None))
        await asyncio.sleep(0)
        port.say(effects.Away("lost"))
        await leaving


@scenario
async def test_what_has_arrived_is_dropped_by_a_takeover() -> None:
    port = BarePort()
    async with port.connect() as network, network.subscribe("a") as items:
        port.say(delivered(1, 2, 3))
        assert await items.get() == event(1)
        port.say(effects.Ended(Farewell.TAKEN_OVER, "another came"))
        for call in (items.get(), items.get_batch(), anext(items), anext(items.batches())):
            with pytest.raises(TakenOver, match="another client connected"):
                await call


@pytest.mark.parametrize(
    ("over", "error"),
    [
        (effects.Ended(Farewell.LEAVING, "closed"), Closed),
        (effects.Ended(Farewell.UNKNOWN, "expelled"), Unreachable),
        (effects.SubscriptionRefused(1, "no more"), Refused),
    ],
    ids=lambda value: type(value).__name__,
)
@scenario
async def test_what_has_arrived_can_still_be_taken_after_any_other_end(
    over: object, error: type[Exception]
) -> None:
    port = BarePort()
    async with port.connect() as network, network.subscribe("a") as items:
        port.say(delivered(1, 2))
        port.say(over)
        assert await items.get() == event(1)
        assert await items.get() == event(2)
        with pytest.raises(error):
            await items.get()


@scenario
async def test_a_subscription_that_was_left_gives_nothing_more() -> None:
    port = BarePort()
    async with port.connect() as network:
        async with network.subscribe("a") as items:
            port.say(delivered(1, 2))
        with pytest.raises(Closed, match="the subscription was left"):
            await items.get()


@scenario
async def test_a_timeout_that_is_no_time_is_refused() -> None:
    port = BarePort()
    no_time: Any = "x"
    async with port.connect() as network, network.subscribe("a") as items:
        for call in (items.get, items.get_batch, items.unsubscribe):
            with pytest.raises(InvalidOption, match="timeout: is 'x'; expected seconds"):
                await call(no_time)
        port.say(delivered(1))
        assert await items.get() == event(1), "it was not ended"


@scenario
async def test_a_loop_over_items_ends_with_an_error_when_the_network_is_closed() -> None:
    port = BarePort()
    network = await port.connect()
    items = await network.subscribe("a").__aenter__()
    waiting = asyncio.create_task(items.get(None))
    await asyncio.sleep(0)
    await network.close()
    with pytest.raises(Closed, match="the network was closed"):
        await waiting


ASKED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"durable": ""}, InvalidOption, "durable: is empty"),
    ({"start": "yesterday"}, InvalidOption, "start: is 'yesterday'; expected 'now', 'earliest', a datetime"),
    ({"acknowledge": "auto"}, InvalidOption, "acknowledge: 'auto' is for durable subscriptions"),
    ({"on_gap": "ignore"}, InvalidOption, "on_gap: is 'ignore'; expected 'item' or 'raise'"),
    ({"buffer": 0}, InvalidOption, "buffer: is 0; expected a number of items from 1"),
    ({"buffer": 10**9}, InvalidOption, "buffer: is 1000000000; expected a number of items from 1 to 1000000"),
    ({"filter": "a WHERE"}, FilterError, "line 1, column 8"),
    ({"filter": None}, FilterError, "the filter is null; expected text"),
    ({"filter": b"a"}, FilterError, "the filter is bytes; expected text"),
    ({"timeout": "x"}, InvalidOption, "timeout: is 'x'; expected seconds"),
]


@pytest.mark.parametrize(("options", "error", "text"), ASKED, ids=lambda value: str(value)[:30])
def test_what_cannot_be_had_is_refused_at_once(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    def ask(network: Network) -> Subscription:
        return network.subscribe(**{"filter": "a", **options})

    @scenario
    async def refused() -> None:
        port = BarePort()
        async with port.connect() as network:
            with pytest.raises(error, match=text):
                ask(network)
        assert not any(isinstance(each, inputs.AddSubscription) for each in port.heard)

    refused()
