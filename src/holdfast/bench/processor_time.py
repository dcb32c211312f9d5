"""Processor time of this process and everything it has started: what can be compared on a machine that is busy."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["processor_seconds"]

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
#: Of what follows the name in /proc/PID/stat.
PARENT: Final = 1
TIMES: Final = slice(11, 15)  #: user and system, its own and of children that have ended


def processor_seconds() -> float:
    """So far; of a process that has ended, once its parent has heard of it."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            fields = path.read_text().rpartition(")")[2].split()
            process = int(path.parent.name)
            parents[process] = int(fields[PARENT])
            ticks[process] = sum(map(int, fields[TIMES]))
    ours = os.getpid()

    def is_ours(process: int) -> bool:
        while process not in (0, ours):
            process = parents.get(process, 0)
        return process == ours

    return sum(ticks[process] for process in ticks if is_ours(process)) / TICKS_PER_SECOND
