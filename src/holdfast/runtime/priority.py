"""Who goes first: those who read what is past leave the processor to those who deliver what is new.

A lower niceness is not enough for that. A process of whatever niceness keeps the processor until its slice is used up,
some milliseconds, and an event on its way is waiting for several processes, one after the other. Linux takes it at once
from one whose policy is ``SCHED_IDLE``; such a process gets what the others leave, and a little where they leave none.
"""

from __future__ import annotations

import os
from typing import Final

__all__ = ["give_way"]

NICENESS: Final = 19  #: where there is no such policy


def give_way(thread: int = 0) -> None:
    """A thread, this one unless another is named, and whatever it starts, runs when nobody else wants to."""
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
    else:
        os.setpriority(os.PRIO_PROCESS, thread, NICENESS)
