"""Latencies of any number of events in a little memory: a count for each of some hundred sizes.

Sizes grow by a factor of 2^(1/16), so what is read back is right within 4.5 per cent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil, log2
from typing import Final

__all__ = ["Latencies", "latency_text"]

STEPS: Final = 16  #: per doubling


class Latencies:
    """Counts by size; they can be added up, and sent as JSON."""

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self._counts: Counter[int] = Counter({int(size): count for size, count in (counts or {}).items()})

    def add(self, nanoseconds: int) -> None:
        """Count one."""
        self._counts[ceil(log2(max(nanoseconds, 1)) * STEPS)] += 1

    def merge(self, other: Latencies) -> None:
        """Count everything the other has counted."""
        self._counts.update(other._counts)

    def percentile(self, share: float) -> float | None:
        """The latency (ns) that this share of all do not exceed; None if there are none."""
        left = share * self._counts.total()
        for size in sorted(self._counts):
            left -= self._counts[size]
            if left <= 0:
                return float(2 ** (size / STEPS))
        return None

    def as_json(self) -> dict[str, int]:
        """What the constructor takes."""
        return {str(size): count for size, count in self._counts.items()}


def latency_text(nanoseconds: float | None) -> str:
    """For people, in at most seven characters up to 999 seconds."""
    if nanoseconds is None:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if nanoseconds >= size:
            value = nanoseconds / size
            return f"{value:.1f} {unit}" if value < 100 else f"{value:.0f} {unit}"
    return f"{nanoseconds / 1e3:.0f} µs"
