"""Who goes first: those who read what is past leave the processor to those who deliver what is new.

A lower niceness is not enough for that. Whoever is woken may have to wait for the next tick of the clock, four
milliseconds on many a machine, if all cores are busy, however nice they are who keep them busy; and an event on its way
wakes several threads, one after the other. So one core is left to others altogether: that on which devices interrupt
most, since who waits for the disk is woken there.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["back_cores", "give_way", "interrupts_in"]

NICENESS: Final = 10
_INTERRUPTS: Final = Path("/proc/interrupts")


def back_cores() -> set[int]:
    """Those that this process may use, but for one if there are several."""
    if not hasattr(os, "sched_getaffinity"):
        return set()  # they are not ours to choose
    cores = os.sched_getaffinity(0)
    interrupts: Counter[int] = Counter()
    with suppress(OSError):
        interrupts = interrupts_in(_INTERRUPTS.read_text())
    front = max(sorted(cores), key=lambda core: interrupts[core])
    return cores - {front} or cores


def interrupts_in(text: str) -> Counter[int]:
    """By core how often devices have interrupted there, as Linux tells it; clocks have no number, or are called so."""
    found: Counter[int] = Counter()
    head, *lines = text.splitlines() or [""]
    cores = list(map(int, re.findall(r"\bCPU(\d+)", head)))
    for line in lines:
        source, _, counts = line.partition(":")
        if source.strip().isdigit() and "timer" not in counts:
            for core, count in zip(cores, counts.split(), strict=False):
                found[core] += int(count) if count.isdigit() else 0
    return found


def give_way(thread: int = 0, cores: set[int] | None = None) -> None:
    """A thread, this one unless another is named, and whatever it starts: it is nicer, and keeps to some cores."""
    os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
    cores = back_cores() if cores is None else cores
    if cores:
        with suppress(PermissionError):  # a sandbox may forbid it; then it is only nicer
            os.sched_setaffinity(thread, cores)
