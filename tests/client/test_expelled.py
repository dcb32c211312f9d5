"""What an application sees whose client was away for too long: why, and that it may connect again [B0.25]."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

import holdfast
from holdfast import memory
from holdfast.client import aio
from holdfast.client.numbers import Numbers
from holdfast.clock import SECOND
from holdfast.embedded import network
from holdfast.embedded.brokers import common_settings
from in_memory import number, rest
from scenario import scenario

#: A member's grace, and longer than a broker asks for one it misses, both in seconds.
GRACE = 3
GIVEN_UP = GRACE + 4

WHY = "unknown, s was away for too long, or expelled; a new connection under the same name will work"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    def common(delta: int | None, streams: Mapping[str, tuple[str, ...]] | None, root: str) -> dict[str, Any]:
        return {**common_settings(delta, streams, root), "member_grace_ns": GRACE * SECOND}

    monkeypatch.setattr(network, "common_settings", common)


def members(net: memory.Network, broker: str) -> list[str]:
    found: list[str] = net.status(broker)["overlay"]["members"]
    return found


@pytest.mark.parametrize("delta", [0, 1, 2])
@scenario
async def test_who_was_away_for_too_long_hears_why_and_a_new_connection_works(delta: int) -> None:
    with memory.Network("away", brokers=3, delta=delta, stepped=True) as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as p,
            holdfast.connect(net.url, broker="b3", name="s") as s,
        ):
            items = s.subscribe("#")
            await items.__aenter__()
            await net.in_time(p.publish("a", n=1))
            assert number(await net.in_time(items.get())) == 1
            for broker in net.brokers:
                net.cut("s", broker)
            await p.publisher().send("a", n=2)
            await rest(net, GRACE - 1)
            assert members(net, "b3") == ["s"]
            await rest(net, GIVEN_UP)
            assert members(net, "b3") == []
            assert [net.status(each)["overlay"]["queued"] for each in net.brokers] == [0, 0, 0]
            assert not s.closed, "nobody could tell it"
            net.heal("s")
            with pytest.raises(holdfast.Unreachable, match=WHY):
                await net.in_time(items.get())
            assert s.closed
            async with (
                holdfast.connect(net.url, broker="b3", name="s") as again,
                again.subscribe("#") as more,
            ):
                await net.in_time(p.publish("a", n=3))
                assert number(await net.in_time(more.get())) == 3
                await rest(net, GIVEN_UP)
                assert members(net, "b3") == ["s"]


@scenario
async def test_a_member_whose_clock_went_back_comes_in_after_one_that_was_expelled() -> None:
    """A life that is over is remembered; the next is above it, whatever the clock of its machine says."""
    lives = iter([2_000_000, 1_000_000])
    with pytest.MonkeyPatch.context() as patch, memory.Network("clock", delta=0, stepped=True) as net:
        patch.setattr(aio, "_identity", lambda name, state: (next(lives), Numbers()))
        async with holdfast.connect(net.url, name="s") as s, s.subscribe("#"):
            net.expel("s")
        async with holdfast.connect(net.url, name="s") as s, s.subscribe("#") as items:
            await net.in_time(s.publish("a", n=7))
            assert number(await net.in_time(items.get())) == 7


@scenario
async def test_what_an_expelled_publisher_had_on_its_way_may_have_been_accepted() -> None:
    """Nobody can tell it any more: it publishes the same number again, and that makes it certain."""
    with memory.Network("unsure", brokers=2, delta=0, stepped=True) as net:
        async with (
            holdfast.connect(net.url, broker="b1", name="s") as s,
            s.subscribe("#"),
            holdfast.connect(net.url, broker="b2", name="p") as p,
        ):
            await net.in_time(p.publish("a", n=1))
            net.cut("p", "b2")
            waiting = asyncio.ensure_future(p.publish("a", n=2, timeout=None))
            await rest(net, GRACE + GIVEN_UP)
            net.heal("p")
            with pytest.raises(holdfast.Unknown, match="retry with n=2"):
                await net.in_time(waiting)
