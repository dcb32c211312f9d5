"""Caps on one filter, refused with the place where they are exceeded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["DEFAULT_LIMITS", "FilterLimits"]


@dataclass(frozen=True, slots=True)
class FilterLimits:
    """Caps on one filter. The defaults are far above what people write and far below what hurts."""

    text_chars: int = 65_536
    nesting: int = 48  #: of parentheses, NOT, signs and chains of arithmetic; each costs a few Python frames
    cost: int = 1_000
    topic_levels: int = 64
    topic_chars: int = 1_024
    shards: int = 65_536


DEFAULT_LIMITS: Final = FilterLimits()
