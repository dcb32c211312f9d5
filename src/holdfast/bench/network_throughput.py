"""How many events and deliveries a second: brokers with each engine, and the bare loop, taking turns.

All processes of a comparison live at the same time and run one after the other, again and again, so that whatever
else the machine does befalls all of them. How many events a run has follows from how long the first ones took.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

from holdfast.bench.network_load import Load, Run
from holdfast.bench.network_outcome import Outcome, Scale
from holdfast.bench.network_process import Measured
from holdfast.bench.network_wire import RECEIVE_BYTES
from holdfast.bench.network_workload import EVENT_BYTES, Shape
from holdfast.matching.engine import engines

__all__ = ["BARE", "content", "fan_out", "loopback", "one_subscriber"]

BARE: Final = "bare loop"
DELIVERIES, EVENTS = "deliveries/s", "events/s"
WARM_EVENTS: Final = 2_000
EVENTS_MAX: Final = 400_000  #: in one run: they are all encoded beforehand


def fan_out(scale: Scale) -> Iterator[Outcome]:
    """A quarter of the subscribers get each event."""
    shape = Shape("fan-out", scale.connections, scale.connections)
    yield from _compare("fan-out", shape, scale, DELIVERIES)


def one_subscriber(scale: Scale) -> Iterator[Outcome]:
    """One subscriber gets everything."""
    yield from _compare("one subscriber", Shape("stream", 1, 1), scale, EVENTS)


def content(scale: Scale) -> Iterator[Outcome]:
    """Equality and ranges."""
    for size in scale.content_sizes:
        shape = Shape("content", scale.connections, size)
        yield from _compare(f"content, {size:,} subscriptions", shape, scale, EVENTS)


def _compare(job: str, shape: Shape, scale: Scale, unit: str) -> Iterator[Outcome]:
    rate: Callable[[Run], float] = (
        (lambda run: run.deliveries_per_second) if unit == DELIVERIES else (lambda run: run.events_per_second)
    )
    workload = shape.workload()
    variants = {engine: ("broker", "--engine", engine) for engine in reversed(engines())}
    variants[BARE] = ("fan-out", "--shape", str(shape))
    with ExitStack() as stack:
        processes = {
            variant: stack.enter_context(Measured(*arguments)) for variant, arguments in variants.items()
        }
        loads = {
            variant: stack.enter_context(Load(workload.fresh(), process.port))
            for variant, process in processes.items()
        }
        counts = {variant: _events_in(load, scale.seconds) for variant, load in loads.items()}
        runs: dict[str, list[float]] = {variant: [] for variant in loads}
        used: dict[str, list[float]] = {variant: [] for variant in loads}
        for _ in range(scale.repetitions):
            for variant, load in loads.items():
                before = _cpu(processes[variant])
                run = load.run(counts[variant])
                runs[variant].append(rate(run))
                used[variant].append((_cpu(processes[variant]) - before) / run.events * 1e6)
        for load in loads.values():
            load.finish()
    for variant in loads:
        remark = f"{min(used[variant]):.1f} µs of processor time an event"
        if variant != BARE and shape.kind == "content":
            remark += f"; subscribing took {loads[variant].subscribing_seconds:.1f} s"
        yield Outcome(job, variant, unit, tuple(runs[variant]), remark)


def _cpu(process: Measured) -> float:
    return float(process.ask()["cpu"])


def _events_in(load: Load, seconds: float) -> int:
    """How many events keep the load busy for so long, found by publishing some."""
    load.run(min(WARM_EVENTS, max(100, int(WARM_EVENTS * seconds))))
    run = load.run(min(WARM_EVENTS, max(100, int(WARM_EVENTS * seconds))))
    return max(100, min(EVENTS_MAX, int(run.events_per_second * seconds)))


def loopback(scale: Scale) -> Iterator[Outcome]:
    """What the machine gives at most: one connection, one sender that does nothing but send."""
    for chunk in (64 * 1024, EVENT_BYTES):
        with Measured("source", "--chunk", str(chunk)) as source:
            rates = [_pour(source.port, scale.seconds) for _ in range(scale.repetitions)]
        yield Outcome("loopback", f"writes of {chunk:,} bytes", "writes/s", tuple(r / chunk for r in rates))


def _pour(port: int, seconds: float) -> float:
    """Bytes a second."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        began = time.perf_counter()
        received = 0
        while (took := time.perf_counter() - began) < seconds:
            received += len(connection.recv(RECEIVE_BYTES))
    return received / took
