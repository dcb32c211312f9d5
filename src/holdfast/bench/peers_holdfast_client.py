"""Holdfast once more, with the client everybody uses instead of raw sockets.

The client decodes events, keeps windows and wakes tasks, and a hundred of them share the processor of the load: this
says what an application in Python gets, beside what the brokers can do (``peers_holdfast``). The clients live in a
thread with a loop that never stops, since they must be heard between turns too.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, TypeVar

import uvloop

import holdfast
from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.peers_holdfast_brokers import (
    ON_DISK,
    PHB,
    SHB,
    Brokers,
    attributes,
    payload,
)
from holdfast.bench.peers_load import AHEAD, STALL_SECONDS, WRITE_EVENTS
from holdfast.bench.peers_peer import GROUPS, WINDOW, OnDisk, Run, Usage
from holdfast.clock import SECOND
from holdfast.events.event import Event

__all__ = ["HoldfastClient"]

BUFFER: Final = 4_096  #: items that may wait in a subscription
#: An event says its number in its payload, like those of the other peers.
_NUMBER = re.compile(rb"(\d{12})\Z")
_T = TypeVar("_T")


class HoldfastClient:
    """The same brokers as ``Holdfast``; a client for the publisher, and one for each subscriber."""

    name = "Holdfast, its Python client"

    def __init__(self) -> None:
        self._brokers: Brokers | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stack = AsyncExitStack()
        self._publisher: holdfast.Network
        self._numbers = {"logged": 0, "kept": 0, "stream": 0, "fan": 0}  #: the next one of each workload
        self._arrivals: dict[str, _Arrivals] = {}
        self._each = 0  #: deliveries of an event of the fan-out

    def missing(self) -> None:
        """Nothing."""

    def version(self) -> str:
        """As installed."""
        return holdfast.__version__

    def on_disk_statement(self) -> OnDisk:
        """What the receipt promises."""
        return ON_DISK

    @property
    def brokers(self) -> Brokers:
        """While they run."""
        assert self._brokers is not None
        return self._brokers

    def process_ids(self) -> list[int]:
        """Of both brokers."""
        return self.brokers.process_ids()

    def usage(self) -> Usage:
        """Of both brokers."""
        return self.brokers.usage()

    def rest(self) -> None:
        """Nothing: the clients do that."""

    # From start to stop

    def start(self, folder: Path) -> None:
        """Both brokers, the publisher, one subscriber who is away and one who is there."""
        folder.mkdir(parents=True)
        self._brokers = Brokers(folder)
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._run(self._connect())

    async def _connect(self) -> None:
        async with self._connected(PHB, "away") as away, _subscribed(away, "kept", "away"):
            pass
        self._publisher = await self._stack.enter_async_context(self._connected(PHB, "publisher"))
        self._arrivals["stream"] = _Arrivals()
        await self._receive("stream", PHB, "reader", "stream", first=0, step=1)

    def _connected(self, broker: str, name: str) -> Any:
        port = self.brokers.servers[broker].port
        return holdfast.connect(f"holdfast://127.0.0.1:{port}", name=name)

    async def _receive(
        self, workload: str, broker: str, name: str, filter: str, *, first: int, step: int
    ) -> None:
        network = await self._stack.enter_async_context(self._connected(broker, name))
        items = await self._stack.enter_async_context(_subscribed(network, filter, name))
        reading = asyncio.create_task(self._arrivals[workload].take_all(name, items, first, step))
        self._stack.callback(reading.cancel)

    def stop(self) -> None:
        """Hang up, and end the brokers."""
        if self._loop is not None and self._thread is not None:
            self._run(self._stack.aclose())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = None
        if self._brokers is not None:
            self._brokers.stop()
            self._brokers = None

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Have the loop do it, and wait."""
        assert self._loop is not None
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except holdfast.HoldfastError as error:
            raise BenchFailed(f"{self.name}: {error}") from error

    # The workloads

    def publish_pipelined(self, seconds: float, window: int, *, is_awaited: bool) -> Run:
        """Publish to the one who is away, or to nobody."""
        return self._run(self._publish("kept" if is_awaited else "logged", seconds, window))

    def subscribe_many(self, subscribers: int) -> None:
        """Connect them all to the other broker."""
        self._each = subscribers // GROUPS
        self._run(self._subscribe_many(subscribers))

    async def _subscribe_many(self, subscribers: int) -> None:
        self._arrivals["fan"] = _Arrivals()
        for i in range(subscribers):
            group = i % GROUPS
            filter = f"fan WHERE group = 'g{group}'"
            await self._receive("fan", SHB, f"fan-{i}", filter, first=group, step=GROUPS)

    def fan_out(self, seconds: float) -> Run:
        """Publish to all of them."""
        return self._run(self._publish("fan", seconds, WINDOW, self._each))

    async def _publish(self, topic: str, seconds: float, window: int, each: int = 0) -> Run:
        first = n = self._numbers[topic]
        began = time.perf_counter()
        async with self._publisher.publisher(window=window) as out:
            while time.perf_counter() - began < seconds:
                if each:
                    await self._arrivals[topic].wait_reached((n - AHEAD) * each)
                for number in range(n, n + min(window, WRITE_EVENTS)):
                    await out.send(topic, attributes(number), payload(number))
                n += min(window, WRITE_EVENTS)
        if each:
            await self._arrivals[topic].wait_reached(n * each)
        self._numbers[topic] = n
        return Run(n - first, (n - first) * each, time.perf_counter() - began)

    def latencies_ns(self, per_second: float, seconds: float) -> list[int]:
        """Publish to the one who is there."""
        return self._run(self._paced(per_second, seconds))

    async def _paced(self, per_second: float, seconds: float) -> list[int]:
        arrivals = self._arrivals["stream"]
        arrivals.latencies_ns.clear()
        at = time.monotonic_ns()
        first = self._numbers["stream"]
        after = first + max(1, round(per_second * seconds))
        async with self._publisher.publisher(window=WINDOW) as out:
            for n in range(first, after):
                at += round(SECOND / per_second)
                await asyncio.sleep(max(0, at - time.monotonic_ns()) / SECOND)
                arrivals.sent_at[n] = time.monotonic_ns()
                await out.send("stream", attributes(n), payload(n))
        await arrivals.wait_reached(after)
        self._numbers["stream"] = after
        arrivals.sent_at.clear()
        return list(arrivals.latencies_ns)


class _Arrivals:
    """What has come to the subscribers of one workload, and somebody who waits for it."""

    def __init__(self) -> None:
        self.sent_at: dict[int, int] = {}
        self.latencies_ns: list[int] = []
        self._count = 0
        self._problem: Exception | None = None
        self._changed = asyncio.Event()

    async def take_all(self, name: str, items: holdfast.Subscription, due: int, step: int) -> None:
        """Take what is due, for ever; anything else is a problem."""
        try:
            while True:
                batch = await items.get_batch(timeout=None)
                arrived = time.monotonic_ns()
                numbers = [_number(item) for item in batch]
                after = due + step * len(numbers)
                if numbers != list(range(due, after, step)):
                    raise BenchFailed(f"{name}: {numbers[0]} … {numbers[-1]} came where {due} was due")
                due = after
                self._count += len(numbers)
                if self.sent_at:
                    self.latencies_ns += [arrived - self.sent_at[n] for n in numbers]
                self._changed.set()
        except holdfast.HoldfastError as error:
            self._problem = error
            self._changed.set()

    async def wait_reached(self, count: int) -> None:
        while self._count < count:
            if self._problem is not None:
                raise self._problem
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), STALL_SECONDS)
            except TimeoutError:
                missing = count - self._count
                raise BenchFailed(
                    f"nothing came for {STALL_SECONDS:g} s: {missing} deliveries are missing"
                ) from None


def _subscribed(network: holdfast.Network, filter: str, name: str) -> Any:
    """A durable subscription that acknowledges by itself what was taken."""
    options: dict[str, Any] = {"durable": name, "acknowledge": "auto", "buffer": BUFFER}
    return network.subscribe(filter, **options)


def _number(item: object) -> int:
    if not isinstance(item, Event):
        raise BenchFailed(f"{item} came in the place of an event")
    found = _NUMBER.search(item.payload)
    assert found is not None
    return int(found[1])
