"""What the network benchmarks hand back, and how large they are made."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from holdfast.clock import MICROSECOND

__all__ = ["Outcome", "Scale", "latency_outcomes"]


@dataclass(frozen=True, slots=True)
class Scale:
    """How long and how large; the defaults are what is promised, tests use less."""

    seconds: float = 2.0  #: of one run, about
    repetitions: int = 3
    connections: int = 100
    content_sizes: tuple[int, ...] = (10_000, 100_000)
    clients: int = 1_000  #: connected at once
    brokers: int = 20  #: simulated
    virtual_seconds: int = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """One figure: a value per repetition, in the order of the repetitions."""

    job: str
    variant: str
    unit: str
    runs: tuple[float, ...]
    remark: str = ""

    @property
    def value(self) -> float:
        """The median."""
        return statistics.median(self.runs)

    def over(self, other: Outcome) -> float:
        """How many times the other it is: the median over repetitions, which ran side by side."""
        return statistics.median(own / its for own, its in zip(self.runs, other.runs, strict=True))

    def as_json(self) -> dict[str, object]:
        """Plain data."""
        return {**asdict(self), "value": self.value}


def latency_outcomes(job: str, found: Mapping[str, Sequence[Sequence[int]]]) -> Iterator[Outcome]:
    """The median and the 99th percentile of each variant's latencies, which are in ns, run by run."""
    for percent in (50, 99):
        for variant, runs in found.items():
            yield Outcome(
                f"{job}, p{percent}", variant, "µs", tuple(_percentile(run, percent) for run in runs)
            )


def _percentile(latencies: Sequence[int], percent: int) -> float:
    ordered = sorted(latencies)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] / MICROSECOND
