"""What a user is told of the connection: that it is waited for, that the network is away, that it is back."""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path

import pytest

from bare_port import BarePort
from holdfast.cli import connection as module
from holdfast.cli.connection import connected, tell
from holdfast.cli.failure import Trouble
from holdfast.cli.targets import Target
from holdfast.client.effect import Away, Ready
from running import Running, write_network
from scenario import scenario

TARGET = Target("bare://", insecure=False)
LOGGER = logging.getLogger("holdfast.client")


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> BarePort:
    port = BarePort()
    monkeypatch.setattr(module, "connect", lambda url, *, timeout, **_: port.connect(timeout=timeout))
    return port


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@scenario
async def test_a_network_that_comes_and_goes_is_said_to(
    port: BarePort, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "PROMPT_S", 0.0)
    async with connected(TARGET, "me", 5.0):
        await turns()
        capsys.readouterr()
        await turns()
        assert capsys.readouterr().err == "", "a network that is there is nothing to talk about"
        port.say(Away("nothing heard for 5 s\x1b"))
        await turns()
        assert capsys.readouterr().err == (
            "holdfast: the network is away (nothing heard for 5 s·); waiting for it\n"
        )
        port.say(Ready("bare", 0))
        await turns()
        assert capsys.readouterr().err == "holdfast: the network is back\n"
    assert capsys.readouterr().err == ""


@scenario
async def test_who_is_back_at_once_was_not_away(port: BarePort, capsys: pytest.CaptureFixture[str]) -> None:
    """A member whose own broker fails has nobody for a moment."""
    async with connected(TARGET, "me", 5.0):
        await turns()
        for _ in range(3):
            port.say(Away("nobody can be reached"))
            await turns()
            port.say(Ready("bare", 0))
            await turns()
        port.say(Away("nobody can be reached"))
        await turns()
    assert capsys.readouterr().err == ""


@scenario
async def test_a_first_session_that_takes_long_is_said_to_be_waited_for(
    port: BarePort, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "PROMPT_S", 0.0)
    port.is_there = False
    with pytest.raises(Trouble, match=r"^bare://: no answer \(nothing within 0.05 s\); is the network up"):
        async with connected(TARGET, "me", 0.05):
            pass
    assert capsys.readouterr().err == (
        "holdfast: bare:// does not answer yet; waiting for it, 0.05 s at most\n"
    )


@scenario
async def test_what_the_client_warns_of_is_said_in_words_and_once(
    port: BarePort, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with connected(TARGET, "me", 5.0):
        port.log("warning", "events may be lost", {"node": "me", "noticed by": "b1"})
        port.log("warning", "odd", {})
        port.log("warning", "events may be lost", {"node": "me", "noticed by": "b2"})
        port.log("info", "nothing much", {})
    assert capsys.readouterr().err == "holdfast: events may be lost (noticed by b1)\nholdfast: odd\n"
    assert not LOGGER.handlers
    monkeypatch.setattr(module, "WARN_AGAIN_S", 0.0)
    async with connected(TARGET, "me", 5.0):
        port.log("warning", "odd", {})
        port.log("warning", "odd", {})
    assert capsys.readouterr().err == "holdfast: odd\n" * 2


def test_what_a_stranger_wrote_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    tell("a\x1b[2Jb")
    assert capsys.readouterr().err == "holdfast: a·[2Jb\n"


def test_a_subscriber_whose_broker_is_killed_says_so_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    path, (url,) = write_network(tmp_path)
    start = ("broker", "b1", "--network", str(path))
    with Running("sub", "#", "--url", url, "--timeout", "30", "--count", "2") as sub:
        with Running(*start) as broker:
            sub.wait_for("subscribed", "err")
            publish(url, 1)
            sub.wait_for("p#1 ")
            broker.tell(signal.SIGKILL)
            sub.wait_for("holdfast: the network is away (", "err")
        with Running(*start):
            sub.wait_for("holdfast: the network is back\n", "err")
            publish(url, 3)
            status, out, _ = sub.ended()
    assert status == 0
    assert out.splitlines() == [
        "p#1  a",
        "-- gap: event 2 of p may be missing here: this subscriber was disconnected",
        "p#3  a",
    ]


def publish(url: str, n: int) -> None:
    with Running("pub", "a", "--url", url, "--name", "p") as pub:
        pub.write(f'{{"n": {n}}}\n')
        assert pub.ended()[0] == 0
