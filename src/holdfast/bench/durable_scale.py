"""How long and how large the benchmarks of durable streams are made, and where their brokers keep their data."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["DurableScale"]


@dataclass(frozen=True, slots=True)
class DurableScale:
    """The defaults are what is promised; tests, and those in a hurry, use less."""

    folder: Path = field(default_factory=Path)  #: on the disk that is to be measured
    seconds: float = 2.0  #: of one run, about
    repetitions: int = 3
    sustained_seconds: float = 30.0  #: of the fan-out
    subscribers: int = 100  #: a quarter of them gets each event
    brokers: int = 5  #: in the chain
    missed: int = 5_000  #: events, while away
    together: int = 40  #: subscribers that catch up at once
    outage_seconds: float = 25.0
    filtered: int = 80_000  #: events of the filtering log

    def quick(self) -> DurableScale:
        """The same shape in a minute, and with less to say."""
        return DurableScale(
            self.folder, seconds=0.5, repetitions=3, sustained_seconds=3.0, outage_seconds=3.0, filtered=8_000
        )

    @contextmanager
    def data(self) -> Iterator[Path]:
        """A folder for brokers; it is gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=self.folder) as folder:
            yield Path(folder)
