"""A durable subscription that was begun twice, by brokers that could not hear of each other, and is one again.

What was read at either is not told again if nothing is missing below it: it goes on where neither has been.
"""

from __future__ import annotations

from typing import Final

from holdfast.broker.durable.elsewhere import Claim
from holdfast.clock import SECOND
from holdfast.intervals import Span
from holdfast.messages.durable import Stand
from holdfast.messages.ticks import ORIGIN, Tick

__all__ = ["SKEW_MAX", "acknowledged", "begun", "had", "joined"]

#: Clocks of two brokers differ by less, mostly: what they disagree on is told as a gap.
SKEW_MAX: Final = 5 * SECOND // 1_000


def begun(born: Claim) -> Stand:
    """Where one stands in a pubend that is new to its broker: all since it was born is owed, by any clock."""
    since = max(ORIGIN, born[0] - SKEW_MAX)
    return Stand(since, since, since)


def had(stand: Stand, *, is_first: bool) -> Span:
    """What was certainly read of one, if it began there; and else only where it stands."""
    return min(stand.start, stand.released) if is_first else stand.released, stand.released


def joined(one: Span, other: Span) -> Tick:
    """Where it goes on: nothing below is missing at both."""
    (_, upto), (after, last) = sorted((one, other))
    return max(upto, last) if after <= upto else upto


def acknowledged(position: Tick, *stands: Stand) -> Tick:
    """What it has acknowledged where it goes on, by what all know together: nothing was for it in between."""
    for _ in stands:
        known = (each.acknowledged for each in stands if each.acknowledged <= position <= each.released)
        position = min(known, default=position)
    return position
