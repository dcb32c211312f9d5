"""The fan-out once more with the real client, as receiver and as publisher, beside the raw ones.

A real client decodes every event, keeps windows and buffers and wakes the tasks that wait. A hundred of them share one
process and its processor, so this says what the client costs, not what the broker can do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Final

import holdfast
from holdfast.bench.network_load import WINDOW, Load
from holdfast.bench.network_outcome import Outcome, Scale
from holdfast.bench.network_process import Measured
from holdfast.bench.network_sink import Acknowledgements, Due, Sink
from holdfast.bench.network_wire import PUBLISHER, BenchFailed, RawConnection
from holdfast.bench.network_workload import Shape, Workload
from holdfast.events.event import Event
from holdfast.events.packed import unpack

__all__ = ["PUBLISHING", "RAW", "RECEIVING", "real_clients"]

RAW, RECEIVING, PUBLISHING = (
    "raw publisher, raw sinks",
    "raw publisher, real subscribers",
    "real publisher, raw sinks",
)
JOB: Final = "fan-out with the real client"
UNIT: Final = "deliveries/s"
EVENTS_PER_SECOND: Final = 4_000  #: how many are published for each second a run is to take
BUFFER: Final = 100_000  #: items that may wait in a subscription


def real_clients(scale: Scale) -> Iterator[Outcome]:
    """All three, taking turns, each with a broker of its own."""
    shape = Shape("fan-out", scale.connections, scale.connections)
    events = max(100, round(EVENTS_PER_SECOND * scale.seconds))
    workload = shape.workload()
    runs: dict[str, list[float]] = {RAW: [], RECEIVING: [], PUBLISHING: []}
    for _ in range(scale.repetitions):
        with Measured("broker") as broker, Load(workload.fresh(), broker.port) as load:
            runs[RAW].append(load.run(events).deliveries_per_second)
        with Measured("broker") as broker:
            runs[RECEIVING].append(asyncio.run(_received(broker.port, workload.fresh(), events)))
        with Measured("broker") as broker:
            runs[PUBLISHING].append(asyncio.run(_published(broker.port, workload.fresh(), events)))
    for variant, values in runs.items():
        yield Outcome(JOB, variant, UNIT, tuple(values))


async def _received(port: int, workload: Workload, events: int) -> float:
    """Deliveries a second to real subscribers."""
    segment = workload.segment(events)
    publisher = RawConnection(port, PUBLISHER)
    frames = [publisher.frame(kind, body) for kind, body in segment.bodies]
    progress = _Progress(sum(segment.deliveries))
    async with AsyncExitStack() as stack:
        stack.callback(publisher.close)
        readers: list[asyncio.Task[None]] = []
        for i, (filters, rows) in enumerate(zip(workload.filters, segment.rows, strict=True)):
            url = f"holdfast://127.0.0.1:{port}"
            network = await stack.enter_async_context(holdfast.connect(url, name=f"client-{i}"))
            items = await stack.enter_async_context(network.subscribe(filters[0], buffer=BUFFER))
            readers.append(asyncio.create_task(_take(items, rows, progress)))
        publisher.start()
        acknowledgements = Acknowledgements(PUBLISHER, publisher.socket, publisher.received_frames)
        loop = asyncio.get_running_loop()
        loop.add_reader(publisher.socket, acknowledgements.on_readable)
        began = time.perf_counter()
        slack = WINDOW * progress.total // events
        owed = 0
        for frame, deliveries in zip(frames, segment.deliveries, strict=True):
            owed += deliveries
            await progress.wait_reached(owed - slack)
            await loop.sock_sendall(publisher.socket, frame)
        await asyncio.gather(*readers)
        took = time.perf_counter() - began
        loop.remove_reader(publisher.socket)
    return progress.total / took


class _Progress:
    """How many deliveries have come, and somebody who waits for them."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._count = 0
        self._changed = asyncio.Event()

    def add(self, count: int) -> None:
        self._count += count
        self._changed.set()

    async def wait_reached(self, count: int) -> None:
        while self._count < count:
            self._changed.clear()
            await self._changed.wait()


def _read(sink: Sink, progress: _Progress) -> None:
    progress.add(sink.on_readable())


async def _take(items: holdfast.Subscription, rows: Sequence[Due], progress: _Progress) -> None:
    """Take what is due, and nothing else."""
    at = 0
    while at < len(rows):
        batch = await items.get_batch()
        for item, row in zip(batch, rows[at : at + len(batch)], strict=True):
            if not isinstance(item, Event) or item.n != row.publication.n:
                raise BenchFailed(f"a real client got {item} where {row} was due")
        at += len(batch)
        progress.add(len(batch))


async def _published(port: int, workload: Workload, events: int) -> float:
    """Deliveries a second of what a real publisher publishes."""
    contents = [unpack(packed) for packed in workload.packed]
    segment = workload.segment(events)
    connections = [RawConnection(port, f"sink-{i}") for i in range(len(workload.filters))]
    loop = asyncio.get_running_loop()
    progress = _Progress(sum(segment.deliveries))
    sinks: list[Sink] = []
    async with AsyncExitStack() as stack:
        for connection, filters in zip(connections, workload.filters, strict=True):
            stack.callback(connection.close)
            connection.subscribe(filters)
            connection.wait_confirmed(len(filters))
            connection.start()
            sinks.append(Sink(connection.name, connection.socket, connection.received_frames))
        network = await stack.enter_async_context(
            holdfast.connect(f"holdfast://127.0.0.1:{port}", name=PUBLISHER)
        )
        for sink, rows in zip(sinks, segment.rows, strict=True):
            sink.expect(rows)
            loop.add_reader(sink.socket, _read, sink, progress)
            stack.callback(loop.remove_reader, sink.socket)
        began = time.perf_counter()
        first = segment.numbers[-1] - events + 1
        async with network.publisher(window=WINDOW) as publisher:
            for i in range(events):
                event = contents[i % len(contents)]
                await publisher.send(event.topic, event.attributes, event.payload, n=first + i)
        await progress.wait_reached(progress.total)
        took = time.perf_counter() - began
    return progress.total / took
