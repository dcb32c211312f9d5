"""The clock of the real world."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from holdfast.clock import Instant

__all__ = ["now"]


#: CLOCK_MONOTONIC in nanoseconds: the same for all processes of a machine, and never set back.
now: Final[Callable[[], Instant]] = time.monotonic_ns
