"""Durable fan-out: a publisher's broker, a subscribers' broker, a hundred durable subscribers, 25 deliveries an event.

Besides deliveries a second: what all brokers together have written to their disks for an event, and that its payload
is there once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from holdfast.bench.durable_load import DurableLoad, subscribe_groups
from holdfast.bench.durable_process import start_chain
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.durable_wire import Publisher
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_wire import PUBLISHER
from holdfast.bench.network_workload import GROUPS

__all__ = ["FAN_OUT_JOB", "NETWORK", "SHORT", "SUSTAINED", "WRITTEN_JOB", "fan_out"]

FAN_OUT_JOB, WRITTEN_JOB = "durable fan-out", "written to disk"
SHORT, SUSTAINED, NETWORK = "short runs", "sustained", "the whole network"
WARM_SECONDS: Final = 0.5


def fan_out(scale: DurableScale) -> Iterator[Outcome]:
    """Short runs, and one that lasts."""
    rates: list[float] = []
    with ExitStack() as stack:
        folder = stack.enter_context(scale.data())
        brokers = start_chain(stack, folder, ("phb", "shb"))
        phb, shb = brokers
        each = scale.subscribers // GROUPS
        load = DurableLoad(
            Publisher(phb.port, PUBLISHER), subscribe_groups(shb.port, scale.subscribers), each
        )
        stack.callback(load.close)
        load.run(min(WARM_SECONDS, scale.seconds))
        for _ in range(scale.repetitions):
            rates.append(load.run(scale.seconds).deliveries_per_second)
        before, cpu = [broker.usage() for broker in brokers], time.process_time()
        run = load.run(scale.sustained_seconds)
        cpu = time.process_time() - cpu
        used = [broker.usage().since(then) for broker, then in zip(brokers, before, strict=True)]
    yield Outcome(FAN_OUT_JOB, SHORT, "deliveries/s", tuple(rates))
    parts = [f"{b.name} {u.cpu_seconds / run.events * 1e6:.1f}" for b, u in zip(brokers, used, strict=True)]
    remark = f"{run.seconds:.0f} s; µs an event: {', '.join(parts)}, load {cpu / run.events * 1e6:.1f}"
    yield Outcome(FAN_OUT_JOB, SUSTAINED, "deliveries/s", (run.deliveries_per_second,), remark)
    for broker, usage in zip(brokers, used, strict=True):
        yield Outcome(WRITTEN_JOB, broker.name, "bytes/event", (usage.written_bytes / run.events,))
    total = sum(usage.written_bytes for usage in used)
    yield Outcome(WRITTEN_JOB, NETWORK, "bytes/event", (total / run.events,))
