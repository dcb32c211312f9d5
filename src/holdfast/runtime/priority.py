"""Who goes first: those who read what is past leave the processor to those who deliver what is new.

A lower niceness is not enough for that. Whoever is woken may have to wait for the next tick of the clock, four
milliseconds on many a machine, if all cores are busy, however nice they are who keep them busy; and an event on its way
wakes several threads, one after the other. So one core is left to others altogether.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

__all__ = ["back_cores", "give_way"]

NICENESS: Final = 10


def back_cores() -> set[int]:
    """Those that this process may use, but for one if there are several."""
    if not hasattr(os, "sched_getaffinity"):
        return set()  # they are not ours to choose
    cores = os.sched_getaffinity(0)
    return cores - {min(cores)} or cores


def give_way(thread: int = 0, cores: set[int] | None = None) -> None:
    """A thread, this one unless another is named, and whatever it starts: it is nicer, and keeps to some cores."""
    os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
    cores = back_cores() if cores is None else cores
    if cores:
        with suppress(PermissionError):  # a sandbox may forbid it; then it is only nicer
            os.sched_setaffinity(thread, cores)
