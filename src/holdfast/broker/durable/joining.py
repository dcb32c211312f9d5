"""A durable subscription that was begun twice, by brokers that could not hear of each other, and is one again.

What was read at either is not told again if nothing is missing below it: it goes on where neither has been.
"""

from __future__ import annotations

from holdfast.broker.durable.elsewhere import Claim
from holdfast.broker.durable.greeting import SKEW_MAX
from holdfast.intervals import Span
from holdfast.messages.durable import Stand
from holdfast.messages.ticks import ORIGIN, Tick

__all__ = ["begun", "had", "joined"]


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
