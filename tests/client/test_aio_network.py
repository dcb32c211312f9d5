"""Connecting and its ends, where the network does what a test says: over a bare port."""

from __future__ import annotations

import asyncio
import logging

import pytest

import holdfast
from bare_port import BarePort
from holdfast.client import effect as effects
from holdfast.client import input as inputs
from holdfast.client.aio import State
from holdfast.client.errors import Closed, InvalidOption, Unknown, Unreachable
from holdfast.errors import HoldfastError
from holdfast.messages.session import Farewell
from scenario import scenario


@scenario
async def test_a_connection_is_made_once() -> None:
    connecting = BarePort().connect()
    async with connecting:
        with pytest.raises(Closed, match="a connection is made once"):
            await connecting


@scenario
async def test_nobody_there_is_unreachable_with_the_last_reason() -> None:
    port = BarePort()
    port.is_there = False
    connecting = asyncio.create_task(_entered(port, timeout=0.02))
    await asyncio.sleep(0)
    port.log("info", "cannot reach the broker: refused", {})
    with pytest.raises(
        Unreachable, match=r"bare://: cannot reach the broker: refused \(nothing within 0\.02 s\)"
    ):
        await connecting
    assert isinstance(port.heard[-1], inputs.Leave)


async def _entered(port: BarePort, timeout: float | None) -> None:
    async with port.connect(timeout=timeout):
        pass


@scenario
async def test_cancelling_a_connection_in_the_making_leaves_nothing_behind() -> None:
    port = BarePort()
    port.is_there = False
    connecting = asyncio.create_task(_entered(port, timeout=None))
    await asyncio.sleep(0)
    connecting.cancel()
    await asyncio.gather(connecting, return_exceptions=True)
    assert isinstance(port.heard[-1], inputs.Leave)


@scenario
async def test_a_broker_that_will_never_have_us_is_told_at_once() -> None:
    port = BarePort()
    port.is_there = False
    connecting = asyncio.create_task(_entered(port, timeout=None))
    await asyncio.sleep(0)
    port.say(effects.Ended(Farewell.VERSION, "versions 1 to 1 offered, 2 to 3 spoken"))
    with pytest.raises(Unreachable, match="the broker ended the session: version, versions 1 to 1"):
        await connecting


@scenario
async def test_the_state_follows_the_session() -> None:
    port = BarePort()
    async with port.connect() as network:
        states = [network.state]
        port.say(effects.Away("reset"))
        states.append(network.state)
        assert network.reason == "reset"
        port.say(effects.Ready("other", 0))
        states.append(network.state)
        assert network.broker == "other"
    states.append(network.state)
    assert states == [State.READY, State.AWAY, State.READY, State.CLOSED]


@scenario
async def test_a_driver_that_fails_leaves_nobody_waiting() -> None:
    port = BarePort()
    port.accepts = False
    async with port.connect() as network, network.subscribe("a") as items:
        waiting = [asyncio.create_task(items.get(None)), asyncio.create_task(network.publish("a"))]
        await asyncio.sleep(0)
        port.fail(HoldfastError("a bug"))
        for result in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(result, HoldfastError)
            assert "a bug" in str(result)
        assert network.closed


@scenario
async def test_a_timeout_says_why_nothing_may_have_come() -> None:
    port = BarePort()
    port.accepts = False
    async with port.connect() as network, network.subscribe("a", buffer=1):
        port.say(effects.Delivered(1, [holdfast.Gap("them", 1, 2, "lost")], [None]))
        with pytest.raises(Unknown, match="does not read while the buffer of 'a' is full: take items"):
            await network.publish("a", timeout=0.01)
        port.say(effects.Away("reset"))
        with pytest.raises(Unknown, match="there is no session: reset"):
            await network.publish("a", timeout=0.01)


@scenario
async def test_logs_go_to_the_logging_module_and_nowhere_else(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    port = BarePort()
    async with port.connect():
        with caplog.at_level(logging.INFO, "holdfast.client"):
            port.log("warning", "something", {"peer": "b1"})
    assert caplog.record_tuples == [("holdfast.client", logging.WARNING, "something {'peer': 'b1'}")]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"name": ""}, "name: is empty"),
        ({"name": "x" * 300}, "name: has 300 bytes, more than 256"),
        ({"name": 7}, "name: must be text, not an int"),
        ({"state": "folder"}, "state: needs a name"),
    ],
)
def test_an_option_that_cannot_work_is_refused_at_once(options: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem):
        holdfast.connect("holdfast://localhost:1", **options)  # type: ignore[arg-type]
