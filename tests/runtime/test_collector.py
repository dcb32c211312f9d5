from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.runtime.collector import freeze_after_long_pauses


@contextmanager
def freezing(pause_max_ns: int) -> Iterator[None]:
    undo = freeze_after_long_pauses(pause_max_ns)
    try:
        yield
    finally:
        undo()


def test_what_survives_a_long_collection_is_not_looked_at_again() -> None:
    with freezing(pause_max_ns=-1):
        before = gc.get_freeze_count()
        survivors = [[i] for i in range(10_000)]
        gc.collect()
        assert gc.get_freeze_count() >= before + len(survivors)
        assert len(gc.get_objects()) < len(survivors)


def test_a_short_collection_freezes_nothing_and_frees_cycles() -> None:
    with freezing(pause_max_ns=10**12):
        before = gc.get_freeze_count()
        cycle: list[object] = []
        cycle.append(cycle)
        survivors = [[i] for i in range(10_000)]
        del cycle
        assert gc.collect() >= 1
        assert gc.get_freeze_count() <= before
        assert len(survivors) == 10_000


def test_only_full_collections_count() -> None:
    with freezing(pause_max_ns=-1):
        before = gc.get_freeze_count()
        gc.collect(0)
        gc.collect(1)
        assert gc.get_freeze_count() <= before


def test_the_way_back_leaves_the_collector_as_it_was() -> None:
    callbacks = list(gc.callbacks)
    with freezing(pause_max_ns=-1):
        assert len(gc.callbacks) == len(callbacks) + 1
    assert gc.callbacks == callbacks
    assert gc.get_freeze_count() == 0
