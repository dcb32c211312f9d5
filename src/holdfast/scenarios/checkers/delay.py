"""I33: a failure delays an event by the time to notice it, and no more.

With at most δ failures at a time, each on the way costs the detector's patience and a call; a network that only
delivers again when something is repaired is found here. What its own publisher or subscriber was down for is not
judged.
"""

from __future__ import annotations

from holdfast.scenarios.checkers.history import History, Trace, event_key
from holdfast.scenarios.checkers.violation import Violation

__all__ = ["delay"]

_AWAY = ("crash", "restart", "freeze", "unfreeze", "cut", "heal", "disconnect", "reconnect")


def delay(trace: Trace, *, within_seconds: float) -> list[Violation]:
    """Events that took longer, though those at both ends were there all the time."""
    history = History.of(trace)
    found = []
    for (subscriber, subscription), lines in history.delivered.items():
        for line in lines:
            published = history.published.get(event_key(line))
            if not published or line["t"] - published[0]["t"] <= within_seconds:
                continue
            ends = [*history.faults_of(subscriber, *_AWAY), *history.faults_of(line["publisher"], *_AWAY)]
            if not any(published[0]["t"] - within_seconds <= fault["t"] <= line["t"] for fault in ends):
                took = line["t"] - published[0]["t"]
                message = (
                    f"{line['publisher']}#{line['n']} took {took:.3f} s to {subscriber} for {subscription}"
                )
                found.append(Violation("delayed", message, (published[0], line)))
    return found
