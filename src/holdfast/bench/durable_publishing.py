"""Publishing that is acknowledged when it is on disk: one pipelined publisher, raw and real, beside a bare file.

How many events the broker commits at once follows from its window and its disk; the bare file then appends and syncs
batches of the same size, in turns with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import uvloop

import holdfast
from holdfast.bench.durable_bare import appended_per_second
from holdfast.bench.durable_load import WINDOW, DurableLoad
from holdfast.bench.durable_process import BrokerProcess
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.durable_wire import Publisher
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_wire import PUBLISHER

__all__ = ["ACKNOWLEDGED", "BARE_FILE", "RAW", "REAL", "publishing"]

ACKNOWLEDGED: Final = f"acknowledged publishing, window {WINDOW}"
RAW, REAL, BARE_FILE = "broker", "broker, real client", "bare file, the same batches"
WARM_SECONDS: Final = 0.2
PAYLOAD: Final = bytes(330)  #: with topic, attributes and number about 418 bytes


def publishing(scale: DurableScale) -> Iterator[Outcome]:
    """Events a second, in turns."""
    found: dict[str, list[float]] = {RAW: [], BARE_FILE: [], REAL: []}
    used: list[float] = []
    sizes: list[float] = []
    busy: list[float] = []
    written: list[float] = []
    with ExitStack() as stack:
        folder = stack.enter_context(scale.data())
        broker = stack.enter_context(BrokerProcess("phb", folder / "phb"))
        publisher = Publisher(broker.port, PUBLISHER)
        load = DurableLoad(publisher, (), 0)
        stack.callback(load.close)
        load.run(WARM_SECONDS)
        for _ in range(scale.repetitions):
            before, commits = broker.usage(), publisher.commits
            run = load.run(scale.seconds)
            usage = broker.usage().since(before)
            found[RAW].append(run.events_per_second)
            used.append(usage.cpu_seconds / run.events * 1e6)
            written.append(usage.written_bytes / run.events)
            sizes.append(run.events / (publisher.commits - commits))
            found[BARE_FILE].append(appended_per_second(folder, max(1, round(sizes[-1])), scale.seconds))
            cpu, began = time.process_time(), time.perf_counter()
            found[REAL].append(_with_real_client(broker.port, scale.seconds))
            busy.append((time.process_time() - cpu) / (time.perf_counter() - began))
    remarks = {
        RAW: f"{min(used):.1f} µs of processor time and {written[-1]:,.0f} bytes written an event; "
        f"{sizes[-1]:,.0f} events a commit",
        BARE_FILE: "append + fdatasync, one batch after the other",
        REAL: f"the client takes {100 * max(busy):.0f} % of a processor",
    }
    for variant, rates in found.items():
        yield Outcome(ACKNOWLEDGED, variant, "events/s", tuple(rates), remarks[variant])


def _with_real_client(port: int, seconds: float) -> float:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_publish(port, seconds))


async def _publish(port: int, seconds: float) -> float:
    async with holdfast.connect(f"holdfast://127.0.0.1:{port}", name="client") as network:
        began = time.perf_counter()
        events = 0
        async with network.publisher(window=WINDOW) as out:
            while time.perf_counter() - began < seconds:
                for _ in range(64):
                    await out.send("orders/eu", {"group": "g0", "quantity": events}, PAYLOAD)
                events += 64
        return events / (time.perf_counter() - began)
