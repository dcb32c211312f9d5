"""Processes that were started here: what they and theirs have used of the processor, and having them give way.

Processor time can be compared on a machine that is busy; seconds cannot.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.runtime import priority

__all__ = ["processor_seconds", "subdue"]

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
#: Of what follows the name in /proc/PID/stat.
PARENT: Final = 1
TIMES: Final = slice(11, 15)  #: user and system, its own and of children that have ended


class _Process(NamedTuple):
    name: str
    parent: int
    ticks: int


def _processes() -> dict[int, _Process]:
    found: dict[int, _Process] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            head, _, rest = path.read_text().rpartition(")")
            fields = rest.split()
            name = head.partition("(")[2]
            found[int(path.parent.name)] = _Process(name, int(fields[PARENT]), sum(map(int, fields[TIMES])))
    return found


def _below(process: int, processes: dict[int, _Process]) -> Iterator[int]:
    """It, and everything that it has started."""
    yield process
    for each, found in processes.items():
        if found.parent == process:
            yield from _below(each, processes)


def processor_seconds() -> float:
    """Of this process and all below it, so far; of one that has ended, once its parent has heard of it."""
    processes = _processes()
    return sum(processes[each].ticks for each in _below(os.getpid(), processes)) / TICKS_PER_SECOND


def subdue(name: str) -> None:
    """Have all processes of a name below this one, and everything below them, give way to others, for good."""
    processes = _processes()
    cores = priority.back_cores()
    for process in list(_below(os.getpid(), processes)):
        if processes[process].name == name:
            for each in _below(process, processes):
                _give_way(each, cores)


def _give_way(process: int, cores: set[int]) -> None:
    with suppress(FileNotFoundError, ProcessLookupError):  # it, or one of its threads, has ended meanwhile
        for thread in Path(f"/proc/{process}/task").iterdir():
            priority.give_way(int(thread.name), cores)
