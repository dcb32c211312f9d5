"""Waiting for the network to come or go, with and without async."""

from __future__ import annotations

import asyncio

import pytest

from bare_port import BarePort
from holdfast import memory, sync
from holdfast.client.aio import State
from holdfast.client.effect import Away, Ready
from holdfast.client.errors import TimedOut
from scenario import scenario


@scenario
async def test_who_waits_for_a_change_is_woken_by_it() -> None:
    port = BarePort()
    async with port.connect() as network:
        with pytest.raises(TimedOut):
            await network.wait_while(State.READY, 0.01)
        await network.wait_while(State.AWAY)  # it is not, so there is nothing to wait for
        waiting = asyncio.create_task(network.wait_while(State.READY))
        await asyncio.sleep(0)
        assert not waiting.done()
        port.say(Away("nobody is there"))
        await waiting
        assert (network.state, network.reason) == (State.AWAY, "nobody is there")
        waiting = asyncio.create_task(network.wait_while(State.AWAY))
        await asyncio.sleep(0)
        port.say(Ready("bare", 0))
        await waiting
        waiting = asyncio.create_task(network.wait_while(State.READY))
        await asyncio.sleep(0)
    await waiting
    assert network.closed


def test_without_async_it_is_the_same() -> None:
    with memory.Network("waited-for", stepped=True) as net, sync.connect("memory://waited-for") as network:
        with pytest.raises(TimedOut):
            network.wait_while(State.READY, 0.01)
        net.crash("b1")
        net.advance(10)
        network.wait_while(State.READY)
        assert str(network.state) == "away"
        assert network.reason
        net.restart("b1")
        net.advance(10)
        network.wait_while(State.AWAY)
        assert str(network.state) == "ready"
