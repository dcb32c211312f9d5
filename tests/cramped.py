"""Durable networks in which every limit is a small one: what takes thousands elsewhere takes a few here.

Windows, batches, caches, segments and what is remembered are bounded everywhere, by numbers that a simulated network
never comes near. So a seed draws some of them small, and the scenario of that seed of the durable swarm is run with
these [FoundationDB does so with its knobs]. Limits that are promises (how long something is kept) stay as they are, and
those for which small is slower than a scenario lasts, or forgets what judges go by (receipts, reasons), are larger.

    python tests/cramped.py CHUNK NUMBER [--faults] [--tight]      a chunk of seeds, for the soak
    python tests/cramped.py --seed 17 [--faults] [--tight]         one seed, and which of its limits it takes to fail
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from random import Random
from typing import Any, Final

from holdfast.broker.broker import Broker
from holdfast.broker.settings import Settings
from holdfast.simulator.durable_swarm import Outcome, Report, run_durable
from holdfast.storage.log import LogSettings
from holdfast.streams import catchup, curiosity, store

__all__ = ["cramped", "draw_limits", "run_cramped"]

Limits = Mapping[str, int]

#: What is drawn, by module and name.
LIMITS: Final[dict[str, tuple[int, ...]]] = {
    "broker.coalescing.ENOUGH": (1, 5),
    "broker.durable.audience.ANSWERS_MAX": (0, 2),
    "broker.durable.beyond.ANSWERS_MAX": (0, 2),
    "broker.durable.flow.TAKEN_PARTS": (2, 4),
    "broker.durable.following.ANSWER_MAX": (1, 2, 7),
    "broker.durable.following.ITEMS_MAX": (1, 2, 7),
    "broker.durable.following.READ_PARTS": (1, 8),
    "broker.durable.hosted.ASKED_MIN": (1, 4),
    "broker.durable.hosted.BATCHES_MAX": (1, 2),
    "broker.durable.hosted.STRETCH_MAX": (2, 7),
    "broker.durable.letters.CHOP_EVERY": (100_000,),
    "broker.durable.letters.RESIGN_AFTER": (1, 3),
    "broker.durable.letters.SAVE_EVERY": (1_000,),
    "broker.durable.own.QUIET_AFTER": (300_000,),
    "broker.durable.plane.NOTE_EVENTS": (1, 3, 20),
    "broker.durable.plane.TURN_MAX": (20, 100),
    "broker.durable.publishing.ERRAND_BYTES_MAX": (4_000, 8_000),
    "broker.durable.publishing.REQUESTS_MAX": (1, 2, 5),
    "client.stream_map.TOPICS_MAX": (1, 2),
    "messages.credit.CREDIT_BYTES": (30,),
    "messages.publications.PART_EVENTS_MAX": (1, 3),
    "messages.ticks.SPANS_MAX": (1, 3),
    "storage.filtering_log.RECENT_TICKS": (1, 5),
    "storage.segment.ENTRY_BLOCKS": (1, 3),
    "storage.segment.ENTRY_BYTES": (100, 300),
    "storage.view.LOOK_UP_BYTES": (100, 300),
    "storage.view.RECENT_BLOCKS": (1, 2),
    "streams.catchup.READING_MAX": (1, 2, 7),
    "streams.catchup.WINDOW": (1, 2, 7),
    "streams.catchup._AGAIN": (1, 2),
    "streams.constream.UNSTABLE_MAX": (20, 50),
    "streams.curiosity.WINDOW": (1, 2, 7),
    "streams.knowledge.RANGES_MAX": (1, 3, 10),
    "streams.knowledge.VERSIONS_MAX": (2, 3, 6),
    "streams.pubend.LEASE_TICKS": (150_000,),
    "streams.pubend.REASONS_MAX": (20, 40),
    "streams.store_events.RECENT_BYTES": (6_000,),
    "streams.store_events.RECENT_EVENTS": (60, 90),
    "streams.store_events.WAITING_BYTES": (1, 200),
    "streams.store_matches.CHECKPOINT_RECORDS": (1, 5),
    "streams.store_matches.READS_MAX": (0, 1),
    "streams.store_reads.WINDOW_BYTES": (200, 1_000),
}

#: Modules that have them, too, under the same name.
ALSO_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "messages.credit.CREDIT_BYTES": ("broker.durable.hosted",),
    "messages.ticks.SPANS_MAX": ("broker.durable.following",),
    "streams.catchup.READING_MAX": ("broker.durable.hosted",),
    "streams.knowledge.VERSIONS_MAX": ("streams.istream",),
}

#: Those that are settings, of brokers and of logs.
CACHE, SEGMENT = "cache_bytes", "segment_bytes"
SETTINGS: Final[dict[str, tuple[int, ...]]] = {
    CACHE: (0, 400, 1_500, 4_500),
    SEGMENT: (300, 1_000, 5_000),
}

PASSED: Final = "max_retain, although it was there all the time"


def draw_limits(seed: int) -> Limits:
    """Few of them or nearly all, each at one of its small values."""
    random = Random(f"cramped {seed}")
    share = random.choice((0.15, 0.5, 0.9))
    drawn = {name: random.choice(values) for name, values in (LIMITS | SETTINGS).items()}
    return {name: value for name, value in drawn.items() if random.random() < share}


@contextmanager
def cramped(limits: Limits) -> Iterator[None]:
    """Everything here has these limits, but for settings of brokers."""
    undone: list[tuple[Any, str, Any]] = []

    def put(where: Any, name: str, value: Any) -> None:
        undone.append((where, name, getattr(where, name)))
        setattr(where, name, value)

    for name, value in limits.items():
        home, _, constant = name.rpartition(".")
        for module in (home, *ALSO_IN.get(name, ())) if name in LIMITS else ():
            put(import_module(f"holdfast.{module}"), constant, value)
    # Defaults were bound when these were defined.
    for made, window in (
        (curiosity.Curiosity.__init__, curiosity.WINDOW),
        (catchup.CatchUp.__init__, catchup.WINDOW),
    ):
        put(made, "__kwdefaults__", {**(made.__kwdefaults__ or {}), "window": window})
    if SEGMENT in limits:
        size = limits[SEGMENT]
        small = partial(LogSettings, segment_bytes=size, retired_bytes=size // 3, prepared_bytes=100)
        put(store, "LogSettings", small)
    try:
        yield
    finally:
        for where, name, value in reversed(undone):
            setattr(where, name, value)


def run_cramped(
    seed: int, limits: Limits, *, faults: bool, tight: bool = False, make_broker: type[Broker] = Broker
) -> Outcome:
    """The seed of the durable swarm, under these limits."""

    def make(settings: Settings, **more: Any) -> Broker:
        return make_broker(replace(settings, cache_bytes=limits.get(CACHE, settings.cache_bytes)), **more)

    with cramped(limits):
        outcome = run_durable(seed, faults=faults, tight=tight, make_broker=make)
    # Who catches up an event at a time may be passed by ``max_retain`` though nobody was away (seed 822).
    passed = [each for each in outcome.violations if each.message.endswith(PASSED)]
    return replace(outcome, violations=[each for each in outcome.violations if each not in passed])


def least(seed: int, limits: Limits, *, faults: bool, tight: bool) -> Limits:
    """Limits of a seed that fails, without those that it also fails without."""
    for name in limits:
        fewer = {each: value for each, value in limits.items() if each != name}
        if run_cramped(seed, fewer, faults=faults, tight=tight).violations:
            limits = fewer
    return limits


def main() -> int:
    """A chunk of seeds, or one; the status is 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chunk", nargs="?", type=int, default=1)
    parser.add_argument("number", nargs="?", type=int, default=1)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--tight", action="store_true")
    options = parser.parse_args()
    first = (options.number - 1) * options.chunk if options.seed is None else options.seed
    faults, tight = options.faults, options.tight
    report = Report()
    for seed in range(first, first + options.chunk):
        limits = draw_limits(seed)
        outcome = run_cramped(seed, limits, faults=faults, tight=tight)
        report.add(outcome)
        if outcome.violations:
            fewest = least(seed, limits, faults=faults, tight=tight)
            given = " --faults" * faults + " --tight" * tight
            sys.stdout.write(
                f"{outcome}\nunder {json.dumps(fewest)}: tests/cramped.py --seed {seed}{given}\n"
            )
            sys.stdout.flush()
    sys.stdout.write(f"counts: {json.dumps(asdict(report.tally))}\n")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
