"""Time as every core sees it: integer nanoseconds, handed in, with no date attached."""

from __future__ import annotations

from typing import Final

__all__ = ["MICROSECOND", "MILLISECOND", "SECOND", "Instant"]

#: A reading of a clock that only goes forward; only differences mean anything.
Instant = int

MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
