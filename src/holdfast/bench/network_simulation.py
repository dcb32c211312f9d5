"""What the simulator costs: a network of twenty brokers for a minute of virtual time, in a process of its own.

The brokers form a binary tree. Four publishers publish 250 events a second each, on a topic of their own that five
subscribers, spread over the tree, have subscribed to. The trace must hold every delivery that is due, no more and no
less.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from holdfast.bench.network_outcome import Outcome, Scale
from holdfast.bench.network_wire import BenchFailed
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.simulator.run import simulate

__all__ = ["simulator"]

PUBLISHERS: Final = 4
SUBSCRIBERS_EACH: Final = 5
INTERVAL_MS: Final = 4


def simulator(scale: Scale) -> Iterator[Outcome]:
    """Seconds of wall time."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context, max_tasks_per_child=1) as pool:
        runs = [
            pool.submit(run, scale.brokers, scale.virtual_seconds).result() for _ in range(scale.repetitions)
        ]
    job = f"simulator, {scale.brokers} brokers, {scale.virtual_seconds} virtual seconds"
    remark = f"{min(used for _, used in runs):.1f} s of processor time"
    yield Outcome(job, "1,000 events/s, 5 subscribers each", "s", tuple(took for took, _ in runs), remark)


def configuration(brokers: int) -> str:
    """A binary tree, with the publishers and subscribers dealt out to its sites."""
    lines = ["Seed 1", "Ordering FIFO"]
    for i in range(brokers):
        lines.append(f"Site s{i} Parent {f's{(i - 1) // 2}' if i else 'none'}")
        lines.append(f"Process b{i} is broker On s{i} URL tcp://localhost:0/b{i}")
    for i in range(PUBLISHERS):
        site = (brokers - 1 - i) % brokers
        lines.append(f"Process p{i} is publisher On s{site} URL tcp://localhost:0/p{i}")
    for i in range(PUBLISHERS * SUBSCRIBERS_EACH):
        lines.append(f"Process u{i} is subscriber On s{i % brokers} URL tcp://localhost:0/u{i}")
    return "".join(f"{line}\n" for line in lines)


def script(seconds: int) -> str:
    """Everybody subscribes, then everybody publishes."""
    lines = [f"Subscriber u{i} Subscribe t{i % PUBLISHERS}" for i in range(PUBLISHERS * SUBSCRIBERS_EACH)]
    count = seconds * 1_000 // INTERVAL_MS
    for i in range(PUBLISHERS):
        lines.append(
            f"Publisher p{i} Publish {count} Ontopic t{i} Interval {INTERVAL_MS} With price=uniform(1,200)"
        )
    lines.append(f"Wait {seconds * 1_000}")
    return "".join(f"{line}\n" for line in lines)


def run(brokers: int, seconds: int) -> tuple[float, float]:
    """Simulate it once; the seconds it took, and those of the processor.

    :raises BenchFailed: if the trace has not exactly the deliveries that are due.
    """
    network = parse_configuration(configuration(brokers))
    play = parse_script(script(seconds), "script", network)
    began, used = time.perf_counter(), time.process_time()
    result = simulate(network, play)
    took, used = time.perf_counter() - began, time.process_time() - used
    due = PUBLISHERS * (seconds * 1_000 // INTERVAL_MS) * SUBSCRIBERS_EACH
    delivered = [
        (line["subscription"], line["publisher"], line["n"])
        for line in result.trace
        if line["kind"] == "deliver"
    ]
    if not len(delivered) == len(set(delivered)) == due or not result.drained:
        raise BenchFailed(
            f"the simulator delivered {len(set(delivered))} of {due}, "
            f"{len(delivered) - len(set(delivered))} again; drained: {result.drained}"
        )
    return took, used
