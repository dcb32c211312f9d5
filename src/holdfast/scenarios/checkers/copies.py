"""I32: at rest an event crosses a link once, and no link but those of the tree.

Bypasses and resends are what failures cost; while nothing has failed for a while there are none. Needs the ``forward``
lines of LoggingLevel full. Best-effort makes one copy per link by its nature and is judged all the same.
"""

from __future__ import annotations

from holdfast.scenarios.checkers.history import EventKey, History, Trace, event_key
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["copies"]


def copies(trace: Trace, *, grace_seconds: float = 1.0) -> list[Violation]:
    """Copies past a node, or for the second time, ``grace_seconds`` or more after the last change."""
    history = History.of(trace)
    if history.run is None:
        return []
    found = []
    first: dict[tuple[str, str, EventKey], TraceLine] = {}
    for line in history.forwarded:
        published = history.published.get(event_key(line))
        if not published or any(
            history.is_unsettled(t, grace_seconds) for t in (published[0]["t"], line["t"])
        ):
            continue
        event = f"{line['publisher']}#{line['n']}"
        if not history.tree.is_edge(line["from"], line["to"]):
            message = f"{event} went from {line['from']} to {line['to']}, which are no neighbours"
            found.append(Violation("copies", message, (line,)))
        before = first.setdefault((line["from"], line["to"], event_key(line)), line)
        if before is not line:
            message = f"{event} went from {line['from']} to {line['to']} again"
            found.append(Violation("copies", message, (before, line)))
    return found
