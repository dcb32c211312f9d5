"""A dial that is answered at the moment it is given up: no connection may be left that nobody closes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.overlay.transport import Connected, Disconnected
from holdfast.runtime import connections
from holdfast.runtime.connections import Connections
from holdfast.runtime.link import LinkLimits

uvloop = pytest.importorskip("uvloop")

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
PATIENCE = 0.05


def play(
    make_loop: Callable[[], asyncio.AbstractEventLoop], on_connected: Callable[[Connections], None]
) -> list[Any]:
    """Dial, do something as soon as the connection stands, and stop; what the core was told."""
    told: list[Any] = []

    async def dial() -> None:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        def submit(stimulus: Any) -> None:
            told.append(stimulus)
            if isinstance(stimulus, Connected):
                on_connected(dialling)

        dialling = Connections(
            submit,
            lambda: None,
            lambda *said: None,
            faults=None,
            limits=LinkLimits(),
            links_max=9,
            insecure=False,
        )
        dialling.dial("b", f"127.0.0.1:{port}")
        async with asyncio.timeout(10):
            while not told:
                await asyncio.sleep(0.001)
            await asyncio.sleep(2 * PATIENCE)
            await dialling.close_all()
        server.close()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(dial())
    return told


@pytest.mark.parametrize("make_loop", LOOPS[1:])  # in asyncio's own loop it is in time
def test_who_answers_at_the_last_moment_is_lost_again_and_the_core_hears_both(
    make_loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECT_SECONDS", PATIENCE)
    # a busy process: the timer is due before it goes on
    told = play(make_loop, lambda _: time.sleep(2 * PATIENCE))
    assert [type(stimulus) for stimulus in told] == [Connected, Disconnected]


@pytest.mark.parametrize("make_loop", LOOPS)
def test_who_answers_while_we_stop_leaves_nothing_open(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    def stop(dialling: Connections) -> None:
        for task in dialling._dialling:
            task.cancel()

    assert [type(stimulus) for stimulus in play(make_loop, stop)] == [Connected, Disconnected]
