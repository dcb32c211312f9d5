"""Durable subscriptions, where the network does what a test says: over a bare port; commits [R1.8, R1.30, R1.31]."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from logged_port import BEGIN, PUBEND, LoggedPort, turns

from holdfast.client import aio_committing
from holdfast.client import effect as effects
from holdfast.client import input as inputs
from holdfast.client.aio import Network, Subscription
from holdfast.client.errors import Closed, InvalidOption, OtherFilter, TakenOver, TimedOut, TokenAhead
from holdfast.client.item import Item, LoggedEvent, Silence
from holdfast.streams.checkpoint_token import Place, Token
from scenario import scenario


async def tick(items: Subscription) -> int:
    item = await items.get()
    return ticks([item])[0]


def ticks(items: list[Item]) -> list[int]:
    assert all(isinstance(item, LoggedEvent) for item in items), items
    return [item.tick for item in items if isinstance(item, LoggedEvent)]


# Reading


@scenario
async def test_items_have_their_places_and_the_token_is_after_what_was_taken() -> None:
    port = LoggedPort()
    async with port.connect() as network, network.subscribe("a", durable="d", start="earliest") as items:
        assert port.heard[-1] == inputs.AddSubscription(1, "a", 1000, "d", 0, None)
        assert items.durable == "d"
        assert items.token == BEGIN
        port.give(101, 105, 110, upto=120)
        assert await tick(items) == 101
        assert items.token == Token({PUBEND: Place(1, 101)})
        assert [getattr(item, "tick", None) for item in await items.get_batch()] == [105, 110]
        assert items.token == Token({PUBEND: Place(1, 120)}), "silence moves it too"
        assert port.logged_consumed == 3
        assert port.consumed == 0


@scenario
async def test_silence_is_an_item_for_those_who_ask() -> None:
    port = LoggedPort()
    async with port.connect() as network, network.subscribe("a", silence=True) as items:
        port.give(101, upto=120)
        assert await tick(items) == 101
        assert await items.get() == Silence(PUBEND, 101, 120)
        with pytest.raises(TimedOut):
            await items.get(timeout=0)


@scenario
async def test_a_token_is_where_another_subscription_begins() -> None:
    port = LoggedPort()
    async with port.connect() as network, network.subscribe("a") as items:
        port.give(101)
        await items.get()
        async with network.subscribe("b", start=Token.parse(str(items.token))):
            assert port.heard[-1] == inputs.AddSubscription(
                2, "b", 1000, token=Token({PUBEND: Place(1, 101)})
            )


@scenario
async def test_who_waits_is_not_woken_by_silence_it_did_not_ask_for() -> None:
    port = LoggedPort()
    async with port.connect() as network, network.subscribe("a") as items:
        waiting = asyncio.create_task(tick(items))
        await turns()
        port.give(upto=150)
        await turns()
        assert not waiting.done()
        assert items.token[PUBEND].tick == 150
        port.give(160)
        assert await waiting == 160


# Committing


@scenario
async def test_a_commit_waits_until_it_is_on_disk() -> None:
    port = LoggedPort()
    port.saves = False
    async with port.connect() as network, network.subscribe("a", durable="d") as items:
        port.give(101, 102, 103, upto=110)
        first = await items.get()
        await items.get()
        with pytest.raises(TimedOut):
            await items.commit(first, timeout=0.01)
        committing = [
            asyncio.create_task(items.commit(items.token)),
            asyncio.create_task(items.commit()),
        ]
        await turns()
        assert port.commits == [{PUBEND: 101}, {PUBEND: 102}, {PUBEND: 102}]
        assert not any(task.done() for task in committing)
        port.say(effects.Committed(1, 2))
        await committing[0]
        assert not committing[1].done()
        port.say(effects.Committed(1, 3))
        await committing[1]
        await items.commit()
        assert len(port.commits) == 3, "nothing was taken since"


@scenario
async def test_only_a_durable_subscription_is_committed() -> None:
    port = LoggedPort()
    async with port.connect() as network, network.subscribe("a") as items:
        with pytest.raises(InvalidOption, match="durable: has no name"):
            await items.commit()


@pytest.mark.parametrize("upto", ["x", 5, [], str(BEGIN)])
@scenario
async def test_what_is_neither_item_nor_token_is_not_committed(upto: Any) -> None:
    port = LoggedPort()
    async with port.connect() as network, network.subscribe("a", durable="d") as items:
        with pytest.raises(InvalidOption, match=r"upto: is .*; expected an item or a Token"):
            await items.commit(upto)
    assert port.commits == []


@scenario
async def test_nobody_waits_for_a_commit_that_will_have_no_answer() -> None:
    port = LoggedPort()
    port.saves = False
    async with port.connect() as network, network.subscribe("a", durable="d") as items:
        port.give(101)
        committing = asyncio.create_task(items.commit(await items.get(), timeout=None))
        await turns()
        port.say(effects.Ousted(1, "read by other since 12:00"))
        for call in (committing, items.get(), items.commit(), items.unsubscribe()):
            with pytest.raises(
                TakenOver, match="the durable subscription 'd': read by other since 12:00"
            ) as taken_over:
                await call
            assert taken_over.value.durable == "d"
        assert network.is_ready, "only this subscription is over"
    assert not any(isinstance(each, inputs.EndSubscription) for each in port.heard)


@pytest.mark.parametrize(
    "options", [{}, {"acknowledge": "auto"}, {"start": BEGIN}, {"on_gap": "raise"}], ids=str
)
@scenario
async def test_what_another_gets_by_now_is_not_handed_out(options: dict[str, Any]) -> None:
    port = LoggedPort()
    async with port.connect() as network, network.subscribe("a", durable="d", **options) as items:
        port.give(101, 102, 103, upto=110)
        assert await tick(items) == 101
        port.say(effects.Ousted(1, "read by other"))
        for call in (items.get(), items.get_batch(), anext(items), anext(items.batches()), items.commit()):
            with pytest.raises(TakenOver, match="'d': read by other"):
                await call
        assert items.token == Token({PUBEND: Place(1, 101)}), "what was dropped was not taken"
    assert port.commits == []


@scenario
async def test_a_loop_over_batches_ends_with_the_one_it_has_in_hand() -> None:
    port = LoggedPort()
    async with port.connect() as network, network.subscribe("a", durable="d") as items:
        port.give(101, 102)
        batches = items.batches()
        assert ticks(await anext(batches)) == [101, 102]
        port.give(103)
        port.say(effects.Ousted(1, "read by other"))
        with pytest.raises(TakenOver):
            await anext(batches)


@scenario
async def test_who_leaves_while_another_takes_over_waits_for_no_answer() -> None:
    """What its core had before it was asked to end it, the application has not heard yet."""
    port = LoggedPort()
    async with port.connect() as network:
        async with asyncio.timeout(5), network.subscribe("a", durable="d"):
            port.confirms = False  # nothing is left to be ended
            asyncio.get_running_loop().call_later(0.01, port.say, effects.Ousted(1, "read by other"))
        port.confirms = True
        async with network.subscribe("a", durable="e") as items:
            port.confirms = False
            ending = asyncio.create_task(items.unsubscribe())
            await turns()
            port.say(effects.Ousted(2, "read by other"))
            with pytest.raises(TakenOver, match="'e': read by other"):
                await ending


# By the way


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Automatic commits are due at once."""
    monkeypatch.setattr(aio_committing, "EVERY_SECONDS", 0.0)


@pytest.mark.usefixtures("soon")
@scenario
async def test_r1_31_what_was_taken_is_committed_when_more_is_asked_for() -> None:
    port = LoggedPort()
    async with port.connect() as network, network.subscribe("a", durable="d", acknowledge="auto") as items:
        port.give(101, 102, 103)
        await items.get()
        await turns(5)
        assert port.commits == [], "nobody knows that it has been dealt with"
        await items.get()
        await items.get()
        await turns(5)
        assert port.commits == [{PUBEND: 102}], "many at once"
        with pytest.raises(TimedOut):
            await items.get(timeout=0.01)
        assert port.commits == [{PUBEND: 102}, {PUBEND: 103}]


@scenario
async def test_r1_30_automatic_commits_do_not_come_one_by_one() -> None:
    port = LoggedPort()
    async with port.connect() as network, network.subscribe("a", durable="d", acknowledge="auto") as items:
        port.give(*range(101, 201))
        for _ in range(100):
            await items.get()
            await asyncio.sleep(0)
        assert port.commits == []
    assert port.commits == [{PUBEND: 200}], "and all of it at the end"
    assert isinstance(port.heard[-2], inputs.EndSubscription)


@pytest.mark.parametrize(
    ("over", "is_left"), [(effects.Away("lost"), True), (effects.Ousted(1, "read by other"), False)]
)
@scenario
async def test_leaving_waits_for_the_last_commit_while_that_may_be_answered(
    over: effects.Effect, is_left: bool
) -> None:
    port = LoggedPort()
    port.saves = False
    async with port.connect() as network:
        items = await network.subscribe("a", durable="d", acknowledge="auto").__aenter__()
        port.give(101)
        await items.get()
        leaving = asyncio.create_task(items.__aexit__(None, None, None))
        await turns()
        assert port.commits == [{PUBEND: 101}]
        assert not leaving.done()
        port.say(over)
        await turns()
        assert leaving.done()
        assert (port.heard[-1] == inputs.EndSubscription(1, keep=True)) == is_left


@scenario
async def test_who_leaves_by_an_error_has_not_dealt_with_what_it_took_last() -> None:
    port = LoggedPort()

    async def deal_with(network: Network) -> None:
        async with network.subscribe("a", durable="d", acknowledge="auto") as items:
            port.give(101, 102)
            await items.get()
            await items.get()
            raise KeyError("mine")

    async with port.connect() as network:
        with pytest.raises(KeyError):
            await deal_with(network)
    assert port.commits == [{PUBEND: 101}]


# Leaving, and ending


@pytest.mark.parametrize("durable", ["d", None])
def test_a_durable_subscription_is_kept_when_it_is_left(durable: str | None) -> None:
    @scenario
    async def leave() -> None:
        port = LoggedPort()
        async with port.connect() as network, network.subscribe("a", durable=durable) as items:
            port.give(101)
        assert port.heard[-2] == inputs.EndSubscription(1, keep=durable is not None)
        with pytest.raises(Closed, match="the subscription was left"):
            await items.get()

    leave()


@scenario
async def test_one_that_is_not_confirmed_in_time_is_kept_too() -> None:
    port = LoggedPort()
    port.confirms = False
    async with port.connect() as network:
        with pytest.raises(TimedOut):
            await network.subscribe("a", durable="d", timeout=0.01).__aenter__()
        assert port.heard[-1] == inputs.EndSubscription(1, keep=True)


@scenario
async def test_it_is_ended_for_good_by_name() -> None:
    port = LoggedPort()
    async with port.connect() as network, network.subscribe("a", durable="d") as items:
        port.give(101)
        port.confirms = False
        ending = asyncio.create_task(items.unsubscribe())
        await turns()
        assert port.heard[-1] == inputs.EndSubscription(1, keep=False)
        assert not ending.done()
        with pytest.raises(Closed, match="the subscription was ended"):
            await items.get()
        port.say(effects.Unsubscribed(1))
        await ending
    assert sum(isinstance(each, inputs.EndSubscription) for each in port.heard) == 1


@scenario
async def test_an_end_that_is_not_known_in_time_says_so() -> None:
    port = LoggedPort()
    async with port.connect() as network, network.subscribe("a", durable="d") as items:
        port.confirms = False
        with pytest.raises(TimedOut):
            await items.unsubscribe(timeout=0.01)


@scenario
async def test_an_end_that_will_never_be_known_says_so() -> None:
    port = LoggedPort()
    network = await port.connect()
    items = await network.subscribe("a", durable="d").__aenter__()
    port.confirms = False
    ending = asyncio.create_task(items.unsubscribe(timeout=None))
    await turns()
    await network.close()
    with pytest.raises(Closed, match="the network was closed before the subscription was ended"):
        await ending


@pytest.mark.parametrize(("code", "kind"), [("token-ahead", TokenAhead), ("durable", OtherFilter)])
def test_a_refusal_is_typed(code: str, kind: type[Exception]) -> None:
    @scenario
    async def enter() -> None:
        port = LoggedPort()
        port.confirms = False
        async with port.connect() as network:
            entering = asyncio.create_task(network.subscribe("a", durable="d").__aenter__())
            await turns()
            port.say(effects.SubscriptionRefused(1, "that is why", code))
            with pytest.raises(kind, match="that is why"):
                await entering

    enter()
