from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.clock import SECOND, Instant
from holdfast.runtime import clock
from holdfast.runtime.collector import FULL_EVERY_NS, OLDER_AFTER, YOUNG_OBJECTS, Collector


@contextmanager
def collecting(pause_max_ns: int = 10**12) -> Iterator[Collector]:
    collector = Collector(pause_max_ns).start()
    try:
        yield collector
    finally:
        collector.stop()


@contextmanager
def counted() -> Iterator[list[int]]:
    """The generations that are collected, in order."""
    found: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(info["generation"])

    gc.callbacks.append(note)
    try:
        yield found
    finally:
        gc.callbacks.remove(note)


def test_what_survives_a_long_collection_is_not_looked_at_again() -> None:
    with collecting(pause_max_ns=-1):
        before = gc.get_freeze_count()
        survivors = [[i] for i in range(10_000)]
        gc.collect()
        assert gc.get_freeze_count() >= before + len(survivors)
        assert len(gc.get_objects()) < len(survivors)


def test_a_short_collection_freezes_nothing_and_frees_cycles() -> None:
    with collecting():
        before = gc.get_freeze_count()
        cycle: list[object] = []
        cycle.append(cycle)
        survivors = [[i] for i in range(10_000)]
        del cycle
        assert gc.collect() >= 1
        assert gc.get_freeze_count() <= before
        assert len(survivors) == 10_000


def test_only_full_collections_count() -> None:
    with collecting(pause_max_ns=-1):
        before = gc.get_freeze_count()
        gc.collect(0)
        gc.collect(1)
        assert gc.get_freeze_count() <= before


def test_the_way_back_leaves_the_collector_as_it_was() -> None:
    callbacks, thresholds = list(gc.callbacks), gc.get_threshold()
    with collecting(pause_max_ns=-1):
        assert len(gc.callbacks) == len(callbacks) + 1
    assert gc.callbacks == callbacks
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() == 0


def test_it_comes_when_nothing_waits_and_not_before() -> None:
    with collecting() as collector, counted() as collected:
        gc.collect(0)
        kept = [[i] for i in range(2 * YOUNG_OBJECTS)]
        assert collected == [0], "a few thousand objects are left for later"
        collector.rest()
        assert collected == [0, 0]
        collector.rest()
        assert collected == [0, 0], "there is nothing new"
        assert len(kept) == 2 * YOUNG_OBJECTS


def test_if_something_always_waits_it_comes_by_itself() -> None:
    with collecting(), counted() as collected:
        kept = [[i] for i in range(100_000)]
        assert len(collected) >= 3
        assert len(kept) == 100_000


def test_older_objects_are_looked_at_less_often_and_all_of_them_every_half_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now: list[Instant] = [clock.now()]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    with collecting() as collector, counted() as collected:
        gc.collect()
        kept: list[list[int]] = []
        turns = 3 * (OLDER_AFTER + 2) * (OLDER_AFTER + 2)

        def work() -> list[int]:
            del collected[:]
            for _ in range(turns):
                kept.extend([i] for i in range(YOUNG_OBJECTS + 10))
                collector.rest()
            return [collected.count(generation) for generation in range(3)]

        young, middle, full = work()
        assert full == 0, "the last is not long ago"
        assert young > 8 * middle > 0
        now[0] += FULL_EVERY_NS + SECOND
        assert work()[2] == 1
