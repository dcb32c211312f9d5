"""`holdfast bench matching`: the index against the naive twin and, for XPath, against lxml, in one run.

Each measurement is a process of its own, one after the other, so that none warms the caches or grows the heap of
another; memory is what the process grew by while the index was filled, divided by the subscriptions. Filters are
generated, added and dropped one at a time. Events are matched in batches, three times over different events; the
median is reported. Times include everything from the event to the ids, for XPath the parsing of the document too.
"""

from __future__ import annotations

import gc
import multiprocessing
import random
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from lxml import etree

from holdfast.bench.predicate_workload import PredicateWorkload, TopicWorkload
from holdfast.bench.xpath_workload import documents, patterns
from holdfast.events.event import Event
from holdfast.filters.expression import Filter, XPath
from holdfast.filters.topic import ANYTHING
from holdfast.filters.xpath import parse_xpath
from holdfast.matching.engine import engines
from holdfast.matching.index import MatchingIndex
from holdfast.matching.naive import NaiveIndex

__all__ = ["Job", "Measurement", "jobs", "measure_all"]

SEED = 20_261_115
RUNS = 3
BATCH = 64
MATCHES = 10.0  # subscriptions that match an event, about, at every size
CHURN = 10_000  # subscriptions whose adding and removing is timed, at full size
CHANGING = 200  # documents, each after a change of the patterns
RUN_NS = 300_000_000  # spent in matching, in one run
WARM_NS = 100_000_000  # and before the first


class Workload(Protocol):
    """Filters and events that belong together."""

    def filter(self) -> Filter:
        """The next subscription."""

    def event(self) -> Event:
        """The next event."""


Matcher: TypeAlias = Callable[[list[Event]], list[list[int]]]


class PathWorkload:
    """XPath patterns and documents of [XNET §5.1]."""

    def __init__(self, rng: random.Random, subscriptions: int) -> None:
        self.paths = patterns(rng, subscriptions)
        self._next_path = iter(self.paths)
        self._rng = random.Random(SEED + 1)

    def filter(self) -> Filter:
        """The next pattern."""
        return Filter(ANYTHING, XPath(next(self._next_path)))

    def event(self) -> Event:
        """The next document."""
        return Event("bench", {}, documents(self._rng, 1)[0], "application/xml")


@dataclass(frozen=True, slots=True)
class Job:
    """One measurement: a kind of filter, an engine, a number of subscriptions."""

    kind: str
    engine: str
    size: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """What came out; times in microseconds."""

    job: Job
    event_us: float
    matches: float
    add_us: float | None = None
    remove_us: float | None = None
    bytes_each: float | None = None

    def as_json(self) -> dict[str, object]:
        """Flat, without what was not measured."""
        fields = {**asdict(self.job), **asdict(self)}
        del fields["job"]
        return {name: value for name, value in fields.items() if value is not None}


def jobs(*, largest: int = 1_000_000) -> list[Job]:
    """The whole programme, up to a number of subscriptions."""
    indexed = list(engines())
    found = [Job(kind, "naive", size) for kind in ("predicates", "topics") for size in (1_000, 10_000)]
    found += [
        Job(kind, engine, size)
        for kind in ("predicates", "topics")
        for engine in indexed
        for size in (1_000, 10_000, 100_000, 1_000_000)
    ]
    found += [Job("xpath", "lxml", size) for size in (1_000, 10_000)]
    found += [Job("xpath", engine, size) for engine in indexed for size in (1_000, 10_000, 50_000)]
    found += [Job("xpath, changing", engine, 10_000) for engine in indexed]
    return [job for job in found if job.size <= largest]


def measure_all(programme: Sequence[Job]) -> Iterator[Measurement]:
    """One after the other, each in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context, max_tasks_per_child=1) as pool:
        yield from pool.map(measure, programme)


def measure(job: Job) -> Measurement:
    """Carry out one job, in this process."""
    if job.engine == "lxml":
        return _measure_lxml(job)
    workload = _workload(job)
    index: MatchingIndex = NaiveIndex() if job.engine == "naive" else engines()[job.engine]()
    bytes_each, add_us = _fill(index, workload, job.size)
    _time(index.match, workload, WARM_NS)
    timed = _time_changing if job.kind == "xpath, changing" else _time_steady
    runs = [timed(index, workload) for _ in range(RUNS)]
    removed = random.Random(SEED).sample(range(job.size), min(CHURN, job.size // 2))
    return Measurement(
        job,
        event_us=statistics.median(us for us, _ in runs),
        matches=statistics.fmean(matches for _, matches in runs),
        add_us=add_us,
        remove_us=None if job.engine == "naive" else _time_removal(index, removed),
        bytes_each=bytes_each,
    )


def _workload(job: Job) -> Workload:
    rng = random.Random(SEED)
    if job.kind == "predicates":
        return PredicateWorkload(rng, subscriptions=job.size, matches=MATCHES)
    if job.kind == "topics":
        return TopicWorkload(rng, subscriptions=job.size, matches=MATCHES)
    return PathWorkload(rng, job.size)


def _fill(index: MatchingIndex, workload: Workload, size: int) -> tuple[float, float]:
    """Add the subscriptions; the memory of each, and the time for one at full size."""
    gc.collect()
    before = _resident_bytes()
    spent = 0
    for i in range(size):
        filter = workload.filter()
        start = time.perf_counter_ns()
        index.add(filter)
        if i >= size - CHURN:
            spent += time.perf_counter_ns() - start
    gc.collect()
    return (_resident_bytes() - before) / size, spent / min(size, CHURN) / 1_000


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _time(match: Matcher, workload: Workload, enough_ns: int, batch: int = BATCH) -> tuple[float, float]:
    """Microseconds and matches per event, over fresh batches until enough time was spent in matching.

    Each batch is made just before it is matched, as a broker decodes it: what is measured is the index and not the
    fetching of old events from memory.
    """
    spent = matches = events = 0
    while spent < enough_ns:
        made = [workload.event() for _ in range(batch)]
        start = time.perf_counter_ns()
        found = match(made)
        spent += time.perf_counter_ns() - start
        matches += sum(map(len, found))
        events += batch
    return spent / events / 1_000, matches / events


def _time_steady(index: MatchingIndex, workload: Workload) -> tuple[float, float]:
    """One run over subscriptions that stay as they are."""
    return _time(index.match, workload, RUN_NS)


def _time_changing(index: MatchingIndex, workload: Workload) -> tuple[float, float]:
    """The worst for the automaton: a pattern comes and goes before every document, so nothing learnt can be used."""
    unlike = Filter(ANYTHING, XPath(parse_xpath("/unlike/all[others]")))
    spent = matches = 0
    for _ in range(CHANGING):
        index.remove(index.add(unlike))
        event = workload.event()
        start = time.perf_counter_ns()
        matches += len(index.match([event])[0])
        spent += time.perf_counter_ns() - start
    return spent / CHANGING / 1_000, matches / CHANGING


def _time_removal(index: MatchingIndex, removed: list[int]) -> float:
    start = time.perf_counter_ns()
    for subscription in removed:
        index.remove(subscription)
    return (time.perf_counter_ns() - start) / len(removed) / 1_000


def _measure_lxml(job: Job) -> Measurement:
    """Every pattern as a compiled lxml XPath, asked one by one of the document lxml parsed."""
    workload = PathWorkload(random.Random(SEED), job.size)
    paths = [etree.XPath(str(path)) for path in workload.paths]

    def match(events: list[Event]) -> list[list[int]]:
        results: list[list[int]] = []
        for event in events:
            document = etree.fromstring(event.payload)
            results.append([i for i, path in enumerate(paths) if path(document)])
        return results

    runs = [_time(match, workload, RUN_NS, batch=1) for _ in range(RUNS)]
    return Measurement(
        job,
        event_us=statistics.median(us for us, _ in runs),
        matches=statistics.fmean(matches for _, matches in runs),
    )
