"""On which cores the load and what it measures run.

Left to themselves two processes that talk to each other lie on one core or on two, as the system likes at that moment,
and a round trip takes 60 µs or 140. So where there are two cores the load has one, and whatever is measured the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["apart"]


@contextmanager
def apart(processes: Iterable[int]) -> Iterator[None]:
    """Within, this process has the first core for itself, and these have the second; nothing changes on one core."""
    cores = sorted(os.sched_getaffinity(0))
    measured = list(processes)
    if len(cores) > 1:
        _bind(os.getpid(), cores[:1])
        for process in measured:
            _bind(process, cores[1:2])
    try:
        yield
    finally:
        for process in (os.getpid(), *measured):
            _bind(process, cores)


def _bind(process: int, cores: Iterable[int]) -> None:
    """All threads it has now."""
    for task in Path(f"/proc/{process}/task").iterdir():
        with suppress(ProcessLookupError):  # it ended meanwhile
            os.sched_setaffinity(int(task.name), cores)
