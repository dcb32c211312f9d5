"""What a client becomes: a plain one, or a node of the network; by itself, and with what it was asked for [R0.7]."""

from __future__ import annotations

import pytest

import holdfast
from holdfast import memory
from holdfast.client.effect import Acknowledged, Ready, Subscribed
from holdfast.client.input import AddSubscription, Open, Submit
from holdfast.client.newcomer import Newcomer
from holdfast.client.settings import Settings
from holdfast.clock import SECOND
from holdfast.embedded.brokers import common_settings, new_broker
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.messages.publications import Publication
from holdfast.overlay.transport import Connected
from holdfast.simulator.world import World, address_of
from holdfast.streams.storing import Recovered
from in_memory import number, rest, taken
from scenario import scenario

MIXED = {"orders": ("orders/#", "reliable"), "rest": ("logs/#", "best-effort")}


@scenario
async def test_where_nothing_is_reliable_a_client_is_a_plain_one() -> None:
    with memory.Network("plain", stepped=True) as net:
        async with holdfast.connect(net.url) as client:
            assert not client.is_member
            assert net.status("b1")["clients"]["connected"] == 1


@scenario
async def test_where_a_stream_is_reliable_it_becomes_a_member() -> None:
    with memory.Network("joined", stepped=True, streams=MIXED) as net:
        async with holdfast.connect(net.url, name="me") as client:
            assert client.is_member
            assert client.broker == "b1"
            assert net.status("b1")["overlay"]["members"] == ["me"]
            assert net.status("b1")["clients"]["connected"] == 0


@scenario
async def test_unless_it_does_not_want_to() -> None:
    with memory.Network("aloof", delta=1, stepped=True) as net:
        async with (
            holdfast.connect(net.url, name="p", member=False) as p,
            holdfast.connect(net.url, name="s", member=False) as s,
            s.subscribe("#") as items,
        ):
            assert not p.is_member
            await net.in_time(p.publish("a", n=1))
            assert number(await items.get()) == 1
            assert net.status("b1")["overlay"]["members"] == []


@scenario
async def test_members_and_plain_clients_reach_each_other() -> None:
    with memory.Network("both", brokers=3, delta=1, stepped=True) as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="m") as member,
            holdfast.connect(net.url, broker="b3", name="q", member=False) as plain,
            member.subscribe("a") as to_member,
            plain.subscribe("a") as to_plain,
        ):
            await net.in_time(member.publish("a", n=1))
            await net.in_time(plain.publish("a", n=2))
            for items in (to_member, to_plain):
                assert [number(await items.get()), number(await items.get())] == [1, 2]


@scenario
async def test_a_member_takes_over_the_name_of_a_plain_client_and_of_a_member() -> None:
    with memory.Network("names", delta=0, stepped=True) as net:
        async with (
            holdfast.connect(net.url, name="x", member=False) as first,
            holdfast.connect(net.url, name="x") as second,
        ):
            with pytest.raises(holdfast.TakenOver):
                await first.publish("a")
            async with holdfast.connect(net.url, name="x") as third, third.subscribe("a") as items:
                with pytest.raises(holdfast.TakenOver):
                    await second.publish("a")
                await net.in_time(third.publish("a", n=5))
                assert number(await items.get()) == 5


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "taken over"])
@scenario
async def test_a_name_may_move_to_another_broker(is_closed: bool) -> None:
    """A later life has another place in the tree, and everything owed to it goes there."""
    with memory.Network("moved", brokers=3, delta=1, stepped=True) as net:
        async with (
            holdfast.connect(net.url, broker="b3", name="p") as p,
            holdfast.connect(net.url, broker="b2", name="s") as early,
        ):
            async with early.subscribe("#"):
                await net.in_time(p.publish("a", n=1))
            if is_closed:
                await early.close()
            async with holdfast.connect(net.url, broker="b1", name="s") as late, late.subscribe("#") as items:
                assert items.partial == ()
                for n in (2, 3, 4):
                    await net.in_time(p.publish("a", n=n))
                    await rest(net, 1)
                assert [number(item) for item in await taken(items)] == [2, 3, 4]
                assert early.closed
                assert [net.status(broker)["overlay"]["members"] for broker in net.brokers] == [
                    ["s"],
                    [],
                    ["p"],
                ]


@scenario
async def test_a_name_whose_clock_was_set_back_is_a_later_life_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Incarnations are read from clocks; the network knows the last one, and the next is above it."""
    with memory.Network("clocks", delta=1, stepped=True) as net:
        async with holdfast.connect(net.url, name="x") as early:
            monkeypatch.setattr("holdfast.client.aio.time.time_ns", lambda: 1_000_000)
            async with holdfast.connect(net.url, name="x") as late, late.subscribe("a") as items:
                with pytest.raises(holdfast.TakenOver):
                    await early.publish("a")
                await net.in_time(late.publish("a", n=7))
                assert number(await items.get()) == 7


def test_what_was_asked_for_before_the_network_is_known_is_done_by_the_member() -> None:
    """Subscriptions and events that came before the Welcome are not lost in the change."""
    world = World(0, on_effect=lambda node, effect: told.append(effect))
    told: list[object] = []
    common = common_settings(1, None, "b1")
    world.add("b", lambda incarnation: new_broker("b", {"b": None}, common, Recovered, incarnation))
    world.run_for(SECOND)
    world.add("me", lambda incarnation: Newcomer(Settings("me", 5, address_of("b"))))
    for stimulus in (
        AddSubscription(1, "a", 10),
        Submit([Publication("me", 1, pack(make_event("a")))]),
        Open(),
    ):
        world.submit("me", stimulus)
    world.run_for(3 * SECOND)
    assert told == [Acknowledged(1, ()), Ready("b", 0), Subscribed(1, ())]


def test_who_dials_a_client_that_is_no_member_is_turned_away() -> None:
    client = Newcomer(Settings("me", 5, "b:1"))
    client.step(Open("me:1"), 0)
    [close] = client.step(Connected(3, None), 0)
    assert (type(close).__name__, close.connection) == ("Close", 3)


def test_listening_is_for_members() -> None:
    with memory.Network("listening"), pytest.raises(holdfast.InvalidOption, match="listen"):
        holdfast.connect("memory://listening", member=False, listen="any:1")
    with pytest.raises(holdfast.InvalidOption, match="listen"):
        holdfast.connect("holdfast://127.0.0.1:7000", listen="nowhere")
    with pytest.raises(holdfast.InvalidOption, match="loopback"):
        holdfast.connect("holdfast://127.0.0.1:7000", listen="192.0.2.1:7000")
