"""The tally of a stretch of history: what each filter matched, and what only it did.

Some filters are *held*: somebody subscribes to them at the broker in question. The others are *offered*, to learn what
they would add. An event is *owing* to a filter if no held filter beside it matches: it would not come to the broker
otherwise. Tallies of parts add up to that of the whole, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from holdfast.events.event import Content
from holdfast.matching.index import MatchingIndex

__all__ = ["Count", "Sample", "Tally", "added", "tally"]


class Sample(NamedTuple):
    """One event of the history."""

    content: Content
    bytes: int  #: as it lies in a log, and travels
    time: int | None  #: in ns since 1970


class Count(msgspec.Struct, array_like=True):
    """Of one filter."""

    matches: int = 0
    match_bytes: int = 0
    owing: int = 0
    owing_bytes: int = 0

    def add(self, other: Count) -> None:
        """Take in what was counted elsewhere."""
        self.matches += other.matches
        self.match_bytes += other.match_bytes
        self.owing += other.owing
        self.owing_bytes += other.owing_bytes


class Tally(msgspec.Struct, array_like=True):
    """Of a stretch: all events, those that any held filter matched, and each filter's own."""

    counts: list[Count]
    events: int = 0
    event_bytes: int = 0
    flowing: int = 0
    flowing_bytes: int = 0
    first: int | None = None
    last: int | None = None
    gaps: int = 0

    @property
    def seconds(self) -> float:
        """From the first event that has a time to the last; 0 if there are no two."""
        return 0.0 if self.first is None or self.last is None else (self.last - self.first) / 1e9

    def see(self, time: int) -> None:
        """There was something at this time."""
        self.first = time if self.first is None else min(self.first, time)
        self.last = time if self.last is None else max(self.last, time)


def added(tallies: Iterable[Tally], filters: int) -> Tally:
    """The tally of all stretches together."""
    whole = Tally([Count() for _ in range(filters)])
    for part in tallies:
        for count, more in zip(whole.counts, part.counts, strict=True):
            count.add(more)
        whole.events += part.events
        whole.event_bytes += part.event_bytes
        whole.flowing += part.flowing
        whole.flowing_bytes += part.flowing_bytes
        whole.gaps += part.gaps
        for time in (part.first, part.last):
            if time is not None:
                whole.see(time)
    return whole


def tally(index: MatchingIndex, held: int, batches: Iterable[Sequence[Sample] | None]) -> Tally:
    """Count a stretch; None among the batches is a gap. The index has the held filters first, under 0 to held - 1."""
    found = Tally([Count() for _ in range(len(index))])
    for batch in batches:
        if batch is None:
            found.gaps += 1
            continue
        matched = index.match([sample.content for sample in batch])
        for sample, filters in zip(batch, matched, strict=True):
            _count(found, sample, filters, held)
    return found


def _count(found: Tally, sample: Sample, filters: Sequence[int], held: int) -> None:
    size = sample.bytes
    found.events += 1
    found.event_bytes += size
    if sample.time is not None:
        found.see(sample.time)
    holding = sum(number < held for number in filters)
    if holding:
        found.flowing += 1
        found.flowing_bytes += size
    for number in filters:
        count = found.counts[number]
        count.matches += 1
        count.match_bytes += size
        if holding == (number < held):  # none of the held, or itself alone
            count.owing += 1
            count.owing_bytes += size
