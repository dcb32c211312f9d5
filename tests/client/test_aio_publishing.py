"""Publishing, where the network does what a test says: over a bare port."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bare_port import BarePort
from holdfast.client import effect as effects
from holdfast.client import input as inputs
from holdfast.client.aio import Receipt
from holdfast.client.errors import Closed, InvalidOption, Refused, TakenOver, TimedOut, Unknown
from holdfast.client.numbers import Numbers
from holdfast.errors import InvalidEvent
from holdfast.messages.session import Farewell
from scenario import scenario


def deaf_port() -> BarePort:
    """One that never acknowledges by itself."""
    port = BarePort()
    port.accepts = False
    return port


def fresh(n: int) -> Receipt:
    return Receipt("me", n, duplicate=False)


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@scenario
async def test_events_of_one_turn_go_out_in_their_order_and_each_gets_its_receipt() -> None:
    port = BarePort()
    async with port.connect() as network:
        receipts = await asyncio.gather(*(network.publish("a", {"i": i}) for i in range(5)))
        assert receipts == [fresh(n) for n in range(1, 6)]
        assert [publication.n for publication in port.published] == [1, 2, 3, 4, 5]


@scenario
async def test_an_event_without_an_answer_is_unknown_and_can_be_asked_for_again() -> None:
    port = deaf_port()
    async with port.connect() as network:
        with pytest.raises(
            Unknown, match=r"me#1: not known whether it was accepted: nothing within 0\.01 s; retry with n=1"
        ) as unknown:
            await network.publish("a", timeout=0.01)
        assert unknown.value.id == ("me", 1)
        again = asyncio.create_task(network.publish("a", n=unknown.value.id.n))
        await turns()
        port.say(effects.Acknowledged(1, ()))
        assert await again == fresh(1)
        assert await network.publish("a", n=1) == Receipt("me", 1, duplicate=True)
        assert len(port.published) == 1  # it was sent once


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"topic": None}, InvalidEvent, "topic: must be text, not null"),
        ({"attributes": ["price"]}, InvalidEvent, "attributes: must map names to values, not be an array"),
        ({"payload": "text"}, InvalidEvent, "payload: must be bytes, not text"),
        ({"n": "1"}, InvalidEvent, "n: must be an int, not str"),
        ({"n": []}, InvalidEvent, "n: must be an int, not list"),
        ({"timeout": "x"}, InvalidOption, "timeout: is 'x'; expected seconds"),
    ],
)
@scenario
async def test_what_can_never_be_published_is_refused_by_name(
    given: dict[str, Any], error: type[Exception], text: str
) -> None:
    port = BarePort()
    async with port.connect() as network:
        with pytest.raises(error, match=text):
            await network.publish(**{"topic": "a", **given})
        with pytest.raises(InvalidOption, match="timeout: is 'x'"):
            network.publisher(timeout="x")  # type: ignore[arg-type]
        assert port.published == []


@scenario
async def test_what_a_publisher_left_behind_can_be_asked_for_too() -> None:
    port = deaf_port()
    async with port.connect() as network:
        out = network.publisher()
        for n in (2, 4):
            await out.send("a", n=n)
        with pytest.raises(InvalidEvent, match="n: is 2, not above 4"):
            await network.publish("a", n=2)  # it is waited for: this is another event under its number
        with pytest.raises(Unknown, match="me#2"):
            await out.flush(timeout=0)
        early = asyncio.create_task(network.publish("a", n=2))
        await turns()
        port.say(effects.Acknowledged(4, ()))
        assert await early == fresh(2)
        assert await network.publish("a", n=4) == Receipt("me", 4, duplicate=True)
        assert [publication.n for publication in port.published] == [2, 4]


@scenario
async def test_a_cancelled_publish_is_still_on_its_way() -> None:
    port = deaf_port()
    async with port.connect() as network:
        publishing = asyncio.create_task(network.publish("a"))
        await turns()
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)
        port.say(effects.Acknowledged(1, ()))
        assert (await network.publish("a", n=1)).tick == 1
        assert len(port.published) == 1


@scenario
async def test_duplicates_are_told_apart() -> None:
    port = deaf_port()
    async with port.connect() as network, network.publisher() as out:
        sent = [await out.send("a", n=n) for n in (3, 5, 9)]
        port.say(effects.Acknowledged(9, (3, 9)))
        assert [each.outcome for each in sent] == [Receipt("me", 3, True), fresh(5), Receipt("me", 9, True)]


@scenario
async def test_the_window_holds_senders_back_until_receipts_come() -> None:
    port = deaf_port()
    async with port.connect() as network:
        out = network.publisher(window=3)
        for _ in range(3):
            await asyncio.wait_for(out.send("a"), 1)
        fourth = asyncio.create_task(out.send("a"))
        await turns()
        assert not fourth.done()
        assert [publication.n for publication in port.published] == [1, 2, 3]
        port.say(effects.Acknowledged(1, ()))
        assert (await fourth).n == 4
        with pytest.raises(TimedOut):
            await out.send("a", timeout=0.01)
        with pytest.raises(Unknown, match="me#2"):
            await out.flush(timeout=0.01)
        port.say(effects.Acknowledged(4, ()))
        await out.flush()


@scenario
async def test_all_that_waits_for_its_acknowledgement_is_bounded() -> None:
    port = deaf_port()
    async with port.connect(unacknowledged_max=10) as network:
        publishing = [asyncio.create_task(network.publish("a")) for _ in range(25)]
        await turns()
        assert len(port.published) == 10
        port.say(effects.Acknowledged(10, ()))
        await turns()
        assert len(port.published) == 20
        port.accepts = True
        port.say(effects.Acknowledged(20, ()))
        assert await asyncio.gather(*publishing) == [fresh(n) for n in range(1, 26)]


@scenario
async def test_a_refused_event_is_settled_in_its_turn() -> None:
    port = deaf_port()
    async with port.connect() as network:
        publishing = [asyncio.create_task(network.publish("a")) for _ in range(4)]
        await turns()
        port.say(effects.NotAccepted(2, "too sweet"))
        port.say(effects.NotAccepted(4, "too sour"))
        await turns()
        assert not any(task.done() for task in publishing)
        port.say(effects.Acknowledged(3, ()))
        outcomes = await asyncio.gather(*publishing, return_exceptions=True)
        assert outcomes[0] == fresh(1)
        assert isinstance(outcomes[1], Refused)
        assert (outcomes[1].id, outcomes[1].reason) == (("me", 2), "too sweet")
        assert outcomes[2] == fresh(3)
        assert isinstance(outcomes[3], Refused)  # nothing that waits stands before it


@scenario
async def test_a_refusal_ends_a_publisher_and_comes_out_of_its_block() -> None:
    port = BarePort()
    port.refuses[2] = "too sweet", "event"

    async def publish_three() -> None:
        async with port.connect() as network, network.publisher() as out:
            for _ in range(3):
                await out.send("a")

    with pytest.raises(Refused, match="me#2: too sweet"):
        await publish_three()
    assert [publication.n for publication in port.published] == [1, 2, 3]


@scenario
async def test_leaving_a_publisher_by_an_exception_waits_for_nothing() -> None:
    port = deaf_port()
    async with port.connect() as network:

        async def break_off() -> None:
            async with network.publisher() as out:
                await out.send("a")
                raise KeyError("mine")

        with pytest.raises(KeyError):
            await asyncio.wait_for(break_off(), 1)


@scenario
async def test_a_publisher_that_was_left_sends_nothing_more() -> None:
    async with BarePort().connect() as network:
        async with network.publisher() as out:
            await out.send("a")
        with pytest.raises(Closed, match="the publisher was closed"):
            await out.send("a")


@scenario
async def test_an_event_that_breaks_a_rule_uses_no_number() -> None:
    port = BarePort()
    async with port.connect() as network:
        with pytest.raises(InvalidEvent, match="topic"):
            await network.publish("a/#")
        with pytest.raises(InvalidEvent, match="n: is 0"):
            await network.publish("a", n=0)
        assert await network.publish("a") == fresh(1)


@scenario
async def test_numbers_go_on_above_what_the_broker_has_seen() -> None:
    port = BarePort()
    port.last_number = 41
    async with port.connect(numbers=Numbers(7)) as network:
        assert await network.publish("a") == fresh(42)


@scenario
async def test_closing_leaves_what_is_on_its_way_unknown() -> None:
    port = deaf_port()
    async with port.connect() as network:
        publishing = asyncio.create_task(network.publish("a"))
        await turns()
    with pytest.raises(Unknown, match="the network was closed"):
        await publishing


@scenario
async def test_what_was_gathered_in_the_last_turn_still_goes_out_before_the_goodbye() -> None:
    port = deaf_port()
    network = await port.connect()
    await network.publisher().send("a")
    await network.close()
    assert [publication.n for publication in port.published] == [1]
    assert isinstance(port.heard[-1], inputs.Leave)


@scenario
async def test_after_a_takeover_every_call_says_so() -> None:
    port = deaf_port()
    async with port.connect() as network:
        out = network.publisher(window=1)
        publishing = asyncio.create_task(network.publish("a"))
        await out.send("a")
        sending = asyncio.create_task(out.send("a"))
        await turns()
        port.say(effects.Ended(Farewell.TAKEN_OVER, "another came"))
        for call in (publishing, sending):
            with pytest.raises(TakenOver, match="another client connected as 'me'"):
                await call
        with pytest.raises(TakenOver):
            await out.flush()
        with pytest.raises(TakenOver):
            network.publisher()
        assert network.closed


@pytest.mark.parametrize("window", [0, -1, 1.5, "many", None])
def test_a_window_is_a_number_from_1(window: int) -> None:
    @scenario
    async def ask() -> None:
        async with BarePort().connect() as network:
            with pytest.raises(InvalidOption, match=r"window: is .*; expected a number of events from 1"):
                network.publisher(window=window)

    ask()
