"""I36: how a network acknowledges and routes is nobody's business but its own: the same is delivered.

Two runs of one script are compared, as multisets: what came to which subscription, how many times. It is claimed where
both owe the same: subscriptions are confirmed before anything is published and do not end while anything is on its way,
publishers and subscribers do not crash, and no more fails at a time than the guarantee allows.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from holdfast.scenarios.checkers.history import EventKey, History, SubscriptionKey, Trace, event_key
from holdfast.scenarios.checkers.violation import Violation

__all__ = ["equivalence"]

_Delivery: TypeAlias = tuple[SubscriptionKey, EventKey]


def equivalence(trace: Trace, other: Trace) -> list[Violation]:
    """What was delivered more often in one of two runs than in the other."""
    history, reference = History.of(trace), History.of(other)
    mine, theirs = _deliveries(history), _deliveries(reference)
    found = []
    for key in sorted(mine.keys() | theirs.keys()):
        if mine[key] != theirs[key]:
            (subscriber, subscription), (publisher, n) = key
            message = (
                f"{publisher}#{n} came to {subscriber} for {subscription} {mine[key]} times,"
                f" and {theirs[key]} times in the other run"
            )
            lines = [
                line
                for each in (history, reference)
                for line in each.delivered.get(key[0], ())
                if event_key(line) == key[1]
            ]
            found.append(Violation("differs", message, tuple(lines)))
    return found


def _deliveries(history: History) -> Counter[_Delivery]:
    return Counter((key, event_key(line)) for key, lines in history.delivered.items() for line in lines)
