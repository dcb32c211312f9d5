"""How long a swarm goes on inside `make test`: by the clock, but a slow or busy machine runs a few seeds too."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

__all__ = ["for_seconds"]


def for_seconds(seconds: float, runs_min: int) -> Callable[[], bool]:
    """Asked before each seed: whether time is up, and so many have run."""
    end, asked = time.monotonic() + seconds, count()
    return lambda: next(asked) >= runs_min and time.monotonic() >= end
