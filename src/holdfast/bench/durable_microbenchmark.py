"""E1.4: the filtering log against event logs for each subscriber, as the paper's microbenchmark has it [BZA §5.2]."""

from __future__ import annotations

import statistics

from holdfast.bench.durable_filtering import (
    BARE_MANY,
    BARE_ONE,
    FILTERING,
    GATHERED,
    MANY_LOGS,
    ONE_LOG,
    SUBSCRIBERS,
    Cost,
    measured,
)
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.overlay_finding import Check, Finding

__all__ = ["filtering_finding", "run_filtering"]


def run_filtering(scale: DurableScale) -> Finding:
    """Directly on storage."""
    return filtering_finding(measured(scale), scale.filtered)


def filtering_finding(found: dict[str, list[Cost]], events: int) -> Finding:
    """What the costs mean."""
    cpu = {way: statistics.median(cost.cpu_us for cost in costs) for way, costs in found.items()}
    written = {way: statistics.median(cost.written for cost in costs) for way, costs in found.items()}
    wall = {way: statistics.median(cost.wall_us for cost in costs) for way, costs in found.items()}
    data, one = written[ONE_LOG] / written[FILTERING], cpu[ONE_LOG] / cpu[FILTERING]
    ways = (MANY_LOGS, BARE_ONE, BARE_MANY, GATHERED)
    many, one_file, many_files, gathered = (cpu[way] / cpu[FILTERING] for way in ways)
    return Finding(
        "durable-filtering-log",
        "The filtering log (E1.4)",
        ("way", "run", "cpu µs/event", "bytes/event", "wall µs/event"),
        [
            (way, i, round(cost.cpu_us, 3), round(cost.written, 1), round(cost.wall_us, 3))
            for way, costs in found.items()
            for i, cost in enumerate(costs)
        ],
        ("way", "processor time, µs/event", "written, bytes/event", "wall time, s in all"),
        [(way, cpu[way], written[way], wall[way] * events / 1e6) for way in found],
        [
            Check(
                "25 times less data than logging events for each subscriber", f"{data:.1f} times", data >= 25
            ),
            Check("2.5 times less processor time than one event log", f"{one:.1f} times", one >= 2.5),
            Check("2.5 times less than one bare file", f"{one_file:.1f} times", one_file >= 2.5),
            Check("20 times less than an event log each", f"{many:.1f} times", many >= 20),
            Check("20 times less than a bare file each", f"{many_files:.1f} times", many_files >= 20),
            Check("20 times less than those, 200 events a write", f"{gathered:.1f} times", gathered >= 20),
        ],
        f"Directly on storage: {events:,} events of 418 bytes, 25 of {SUBSCRIBERS} subscribers each, synced whenever a "
        "subscriber has had 200. In the paper 25 times less data, over 5 times faster, 11.1 s for 80,000 events.",
    )
