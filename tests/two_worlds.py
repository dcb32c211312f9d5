"""The same network for the same test, over TCP and inside the process: one broker, that can crash and come back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import pytest

from holdfast.broker.broker import Broker
from holdfast.broker.settings import Settings
from holdfast.embedded.network import Network
from holdfast.overlay.transport import Wake
from holdfast.runtime.driver import Driver
from scenario import run_scenario

__all__ = ["OneBroker", "both_worlds", "memory_world", "tcp_world"]


class OneBroker(Protocol):
    """A network of one broker."""

    @property
    def url(self) -> str: ...
    async def crash(self) -> None: ...
    async def restart(self) -> None: ...
    def status(self) -> dict[str, Any]: ...


class _TcpWorld:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._incarnation = 0
        self._port = 0
        self._driver: Driver | None = None

    @property
    def url(self) -> str:
        return f"holdfast://127.0.0.1:{self._port}"

    async def restart(self) -> None:
        self._incarnation += 1
        self._broker = Broker(Settings("b1", self._incarnation, **self._settings))
        self._driver = Driver(self._broker)
        await self._driver.start(Wake())
        self._port = await self._driver.listen("127.0.0.1", self._port)

    async def crash(self) -> None:
        if self._driver is not None:
            await self._driver.stop()
            self._driver = None

    def status(self) -> dict[str, Any]:
        return self._broker.status()


class _MemoryWorld:
    def __init__(self, network: Network) -> None:
        self.url = network.url
        self._network = network

    async def restart(self) -> None:
        self._network.restart("b1")

    async def crash(self) -> None:
        self._network.crash("b1")

    def status(self) -> dict[str, Any]:
        return self._network.status("b1")


@asynccontextmanager
async def tcp_world(**settings: Any) -> AsyncIterator[OneBroker]:
    world = _TcpWorld(settings)
    await world.restart()
    try:
        yield world
    finally:
        await world.crash()


@asynccontextmanager
async def memory_world() -> AsyncIterator[OneBroker]:
    with Network("both-worlds") as network:
        yield _MemoryWorld(network)


def both_worlds(test: Callable[[OneBroker], Awaitable[None]]) -> Any:
    """A test in both worlds."""

    @pytest.mark.parametrize("make_world", [tcp_world, memory_world], ids=["tcp", "memory"])
    def run(make_world: Any) -> None:
        async def in_world() -> None:
            async with make_world() as world:
                await test(world)

        run_scenario(in_world())

    run.__name__ = test.__name__
    return run
