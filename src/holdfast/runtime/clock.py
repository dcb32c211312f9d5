"""The clock of the real world."""

from __future__ import annotations

import time

from holdfast.clock import Instant

__all__ = ["now"]


def now() -> Instant:
    """CLOCK_MONOTONIC in nanoseconds: the same for all processes of a machine, and never set back."""
    return time.monotonic_ns()
