"""What a subscriber reads: events, and in their order what is not there.

An event matched. A silence says that nothing did, a gap that something may have and is gone, with the reason. Both
cover the ticks (after, upto] of a pubend; on best-effort and reliable streams that is the publisher, and a tick is
its number.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.events.event import Event

__all__ = ["Gap", "Item", "Silence"]


@dataclass(frozen=True, slots=True)
class Gap:
    """Something may have matched here, and is gone."""

    pubend: str
    after: int
    upto: int
    reason: str


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing matched here, certainly."""

    pubend: str
    after: int
    upto: int


Item = Event | Gap | Silence
