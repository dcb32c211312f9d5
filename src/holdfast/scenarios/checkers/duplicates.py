"""Nothing twice: one event per (publisher, n), and each of them once to each subscription.

A subscriber that crashed has forgotten what it got, so each of its lives is judged by itself.
"""

from __future__ import annotations

from holdfast.scenarios.checkers.history import EventKey, History, Trace, event_key
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["duplicates"]


def duplicates(trace: Trace) -> list[Violation]:
    """Ids published twice, and events delivered twice."""
    history = History.of(trace)
    found = [
        Violation("duplicate", f"{publisher}#{n} was published {len(lines)} times", tuple(lines))
        for (publisher, n), lines in history.published.items()
        if len(lines) > 1
    ]
    for (subscriber, subscription), lines in history.delivered.items():
        first: dict[tuple[int, EventKey], TraceLine] = {}
        for line in lines:
            earlier = first.setdefault((history.life_of(line), event_key(line)), line)
            if earlier is not line:
                message = f"{subscriber} got {line['publisher']}#{line['n']} again for {subscription}"
                found.append(Violation("duplicate", message, (earlier, line)))
    return found
