"""How a load that publishes and receives in one process keeps its pace.

One that has fallen behind must not publish everything it owes before it reads again: what came meanwhile would wait in
its sockets, and the wait would be measured as the broker's.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable

from holdfast.clock import SECOND

__all__ = ["read_until"]


def read_until(at_ns: int, epoll: select.epoll, read: Callable[[], object]) -> None:
    """Read whenever something is there, until a time has come; if it has, still once."""
    is_due = False
    while not is_due:
        wait_ns = at_ns - time.monotonic_ns()
        is_due = wait_ns <= 0
        # epoll alone would round the time up to a whole millisecond
        if select.select([epoll], [], [], max(0, wait_ns) / SECOND)[0]:
            read()
