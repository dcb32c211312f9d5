"""Sorted bounds against a plain dict, through splits and deletions."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.filters.region import Cut
from holdfast.matching.bounds import Bounds
from holdfast.matching.posting import Bucket, Entry


def entries_at(bounds: Bounds, cut: Cut, *, above: bool) -> list[int]:
    found: list[list[Entry]] = []
    if above:
        bounds.collect_above(cut, found)
    else:
        bounds.collect_upto(cut, found)
    return sorted(entry.subscription for entries in found for entry in entries)


@pytest.mark.parametrize("seed", range(5))
def test_bounds_agree_with_a_dict(seed: int) -> None:
    rng = Random(seed)
    bounds, plain = Bounds(), {}
    values: list[int | float] = [*range(2_000), *(i + 0.5 for i in range(200))]
    for step in range(6_000):
        cut = (rng.choice(values), rng.randrange(2))
        # Grow first, so that blocks split; then shrink, so that they empty.
        if cut not in plain and step < 4_000:
            bucket = Bucket()
            bucket.file(Entry(step))
            bounds[cut] = bucket
            plain[cut] = step
        elif cut in plain and (step >= 4_000 or rng.random() < 0.2):
            del bounds[cut]
            del plain[cut]
        if step % 100 == 0:
            at = (rng.choice(values), 0)
            assert entries_at(bounds, at, above=False) == sorted(i for c, i in plain.items() if c <= at)
            assert entries_at(bounds, at, above=True) == sorted(i for c, i in plain.items() if c > at)
    assert len(bounds) == len(plain)
    for cut in list(plain):
        del bounds[cut]
    assert entries_at(bounds, (10**9, 1), above=False) == []
    assert entries_at(bounds, (-1, 0), above=True) == []
