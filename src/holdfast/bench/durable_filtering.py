"""The filtering log on the paper's workload (E1.4), directly on storage: no network, no broker [BZA §5.2].

800 events a second for 100 seconds, each for 25 of 100 subscribers; everything is synced whenever a subscriber has had
200 events. Against it stand subscribers' own event logs, as a broker would need them that does not know the filtering
log: all in one log, and one for each of a hundred. They use the same storage. Beside them, bare files: without indexes,
segments and whatever else makes a log readable, one write for each event, or for each delivery; or for 200 deliveries
gathered in memory, which is the cheapest a broker with a file for each subscriber could do.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from google_crc32c import value

from holdfast.bench.durable_node import written_bytes
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_workload import EVENT_BYTES, SEED
from holdfast.storage.filtering_log import FilteringLog
from holdfast.storage.log import SegmentLog
from holdfast.storage.real_files import RealFiles

__all__ = [
    "BARE_MANY",
    "BARE_ONE",
    "BYTES_JOB",
    "CPU_JOB",
    "FILTERING",
    "GATHERED",
    "MANY_LOGS",
    "ONE_LOG",
    "filtering_log",
    "measured",
]

SUBSCRIBERS: Final = 100
MATCHES: Final = 25
SYNC_EVENTS: Final = 200  #: of one subscriber
SYNC_ALL: Final = SYNC_EVENTS * SUBSCRIBERS // MATCHES  #: events, after which everybody has had so many
LISTS: Final = 1_000  #: different sets of subscribers

CPU_JOB, BYTES_JOB = "filtering log, processor time", "filtering log, written"
FILTERING, ONE_LOG, MANY_LOGS = "filtering log", "event log of all subscribers", "an event log each"
BARE_ONE, BARE_MANY, GATHERED = "one bare file", "a bare file each", "a bare file each, 200 events a write"


class Cost(NamedTuple):
    """Of one event."""

    cpu_us: float
    written: float
    wall_us: float


def filtering_log(scale: DurableScale) -> Iterator[Outcome]:
    """Processor time and bytes an event, in turns."""
    found = measured(scale)
    for variant, costs in found.items():
        runs = tuple(cost.cpu_us for cost in costs)
        wall = min(cost.wall_us for cost in costs)
        yield Outcome(CPU_JOB, variant, "µs/event", runs, f"{wall:,.0f} µs of wall time")
    for variant, costs in found.items():
        yield Outcome(BYTES_JOB, variant, "bytes/event", tuple(cost.written for cost in costs))


def measured(scale: DurableScale) -> dict[str, list[Cost]]:
    """What each way of it costs, run by run."""
    found: dict[str, list[Cost]] = {variant: [] for variant in WAYS}
    event = random.Random(SEED).randbytes(EVENT_BYTES)
    rng = random.Random(SEED)
    lists = [sorted(rng.sample(range(SUBSCRIBERS), MATCHES)) for _ in range(LISTS)]
    matches = [lists[i % LISTS] for i in range(scale.filtered)]
    for _ in range(scale.repetitions):
        for variant, way in WAYS.items():
            with scale.data() as folder, ExitStack() as stack:
                found[variant].append(_cost(way, folder, stack, matches, event))
    return found


Way = Callable[[Path, ExitStack, Sequence[Sequence[int]], bytes], None]


def _cost(way: Way, folder: Path, stack: ExitStack, matches: Sequence[Sequence[int]], event: bytes) -> Cost:
    before, cpu, began = written_bytes(), time.process_time(), time.perf_counter()
    way(folder, stack, matches, event)
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    events = len(matches)
    return Cost(cpu / events * 1e6, (written_bytes() - before) / events, took / events * 1e6)


def _log(folder: Path, stack: ExitStack) -> SegmentLog:
    files = RealFiles(folder)
    stack.callback(files.close)
    return SegmentLog(files, os.urandom(16))


def _filtering(folder: Path, stack: ExitStack, matches: Sequence[Sequence[int]], event: bytes) -> None:
    files = RealFiles(folder / "matches")
    stack.callback(files.close)
    log = FilteringLog(files, os.urandom(16))
    for tick, subscribers in enumerate(matches, start=1):
        log.write([(tick, subscribers)])
        if tick % SYNC_ALL == 0:
            log.commit()
    log.commit()


def _one_log(folder: Path, stack: ExitStack, matches: Sequence[Sequence[int]], event: bytes) -> None:
    log = _log(folder / "events", stack)
    last = 0
    for i, subscribers in enumerate(matches, start=1):
        log.append(range(last + 1, last + 1 + len(subscribers)), [event] * len(subscribers))
        last += len(subscribers)
        if i % SYNC_ALL == 0:
            log.commit()
    log.commit()


def _many_logs(folder: Path, stack: ExitStack, matches: Sequence[Sequence[int]], event: bytes) -> None:
    logs = [_log(folder / str(each), stack) for each in range(SUBSCRIBERS)]
    counts = [0] * SUBSCRIBERS
    for subscribers in matches:
        for each in subscribers:
            counts[each] += 1
            logs[each].append((counts[each],), (event,))
            if counts[each] % SYNC_EVENTS == 0:
                logs[each].commit()
    for log in logs:
        log.commit()


def _bare(path: Path, stack: ExitStack) -> int:
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    stack.callback(os.close, file)
    return file


def _one_file(folder: Path, stack: ExitStack, matches: Sequence[Sequence[int]], event: bytes) -> None:
    file = _bare(folder / "events", stack)
    for i, subscribers in enumerate(matches, start=1):
        crc = value(event).to_bytes(4)
        os.write(file, b"".join([crc + each.to_bytes(4) + event for each in subscribers]))
        if i % SYNC_ALL == 0:
            os.fdatasync(file)
    os.fdatasync(file)


def _many_files(folder: Path, stack: ExitStack, matches: Sequence[Sequence[int]], event: bytes) -> None:
    files = [_bare(folder / str(each), stack) for each in range(SUBSCRIBERS)]
    counts = [0] * SUBSCRIBERS
    for subscribers in matches:
        record = value(event).to_bytes(4) + event
        for each in subscribers:
            os.write(files[each], record)
            counts[each] += 1
            if counts[each] % SYNC_EVENTS == 0:
                os.fdatasync(files[each])
    for file in files:
        os.fdatasync(file)


def _gathered(folder: Path, stack: ExitStack, matches: Sequence[Sequence[int]], event: bytes) -> None:
    files = [_bare(folder / str(each), stack) for each in range(SUBSCRIBERS)]
    waiting: list[list[bytes]] = [[] for _ in files]

    def write(each: int) -> None:
        os.write(files[each], b"".join(waiting[each]))
        os.fdatasync(files[each])
        waiting[each].clear()

    for subscribers in matches:
        record = value(event).to_bytes(4) + event
        for each in subscribers:
            waiting[each].append(record)
            if len(waiting[each]) == SYNC_EVENTS:
                write(each)
    for each in range(SUBSCRIBERS):
        write(each)


WAYS: Final[dict[str, Way]] = {
    FILTERING: _filtering,
    ONE_LOG: _one_log,
    MANY_LOGS: _many_logs,
    BARE_ONE: _one_file,
    BARE_MANY: _many_files,
    GATHERED: _gathered,
}
