"""Real processes and sockets: the brokers of a publisher and of a subscriber are killed while they are at work [R0.8].

    b1 ── b2 (publisher)
     └─── b3 (subscriber)

delta = 1: one at a time, and the next when everybody has met again.
"""

from __future__ import annotations

import asyncio
import json
import tomllib
import urllib.request
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import holdfast
from running import PATIENCE_S, Running, write_network
from scenario import scenario


class Brokers:
    """The processes of a network file."""

    def __init__(self, path: Path, stack: AsyncExitStack) -> None:
        self._path = path
        self._stack = stack
        self._running: dict[str, Running] = {}
        self._admin = {each["name"]: each["admin"] for each in tomllib.loads(path.read_text())["broker"]}

    def start(self, name: str) -> None:
        running = Running("broker", name, "--network", str(self._path), "--log-format", "json")
        self._running[name] = self._stack.enter_context(running)
        running.wait_for('"listening"', "err")

    def kill(self, name: str) -> None:
        self._running[name].process.kill()
        self._running[name].process.wait()

    def overlay(self, name: str) -> dict[str, Any]:
        url = f"http://{self._admin[name]}/status"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as response:
            found: dict[str, Any] = json.loads(response.read())["overlay"]
            return found

    async def wait_met(self, name: str, client: str) -> None:
        """Until a broker and its client have met, and nobody near the broker is down."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                near = await asyncio.to_thread(self.overlay, name)
                root = await asyncio.to_thread(self.overlay, "b1")
                if client in near["members"] and not near["down"] and not root["down"] + root["bypassing"]:
                    return
                await asyncio.sleep(0.02)


async def keep_publishing(network: holdfast.Network, is_over: Callable[[], bool]) -> int:
    """An event every few milliseconds; how many."""
    count = 0
    async with network.publisher(window=100_000, timeout=PATIENCE_S) as out:
        while not is_over():
            count += 1
            await out.send("a", n=count)
            await asyncio.sleep(0.004)
    return count


class Collected:
    """The numbers of what a subscription has brought, and whoever waits for more of them."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._more = asyncio.Condition()

    async def read(self, items: holdfast.Subscription) -> None:
        async for batch in items.batches():
            async with self._more:
                self.numbers += [item.n if isinstance(item, holdfast.Event) else -1 for item in batch]
                self._more.notify_all()

    async def wait_for(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S), self._more:
            await self._more.wait_for(lambda: len(self.numbers) >= count)


@scenario
async def test_nothing_is_lost_repeated_or_reordered_when_a_clients_own_broker_is_killed(
    tmp_path: Path,
) -> None:
    path, urls = write_network(tmp_path, "b1", "b1", extra="delta = 1", guarantee="reliable")
    async with AsyncExitStack() as stack:
        brokers = Brokers(path, stack)
        for name in ("b1", "b2", "b3"):
            brokers.start(name)
        p = await stack.enter_async_context(holdfast.connect(urls[1], name="p"))
        s = await stack.enter_async_context(holdfast.connect(urls[2], name="s", listen="127.0.0.1:0"))
        assert p.is_member
        items = await stack.enter_async_context(s.subscribe("#"))
        assert items.partial == ()
        got = Collected()
        reader = asyncio.create_task(got.read(items))
        is_over = asyncio.Event()
        publishing = asyncio.create_task(keep_publishing(p, is_over.is_set))
        for broker, client in (("b2", "p"), ("b3", "s")):
            await brokers.wait_met(broker, client)
            before = len(got.numbers)
            brokers.kill(broker)
            await got.wait_for(before + 100)  # it goes on, past the broker that is gone
            assert (p.state, s.state) == ("ready", "ready")
            brokers.start(broker)
        is_over.set()
        published = await publishing
        await got.wait_for(published)
        reader.cancel()
        assert got.numbers == list(range(1, published + 1))
