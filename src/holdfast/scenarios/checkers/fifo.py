"""The order of publication: to each subscription, the events of one publisher with rising numbers.

Under ``Ordering NO`` nobody promised that. A repeated number is a duplicate and not an order of any kind.
"""

from __future__ import annotations

from holdfast.scenarios.checkers.history import History, Trace
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["fifo"]


def fifo(trace: Trace) -> list[Violation]:
    """Events that came after a later one of the same publisher."""
    history = History.of(trace)
    if history.run is None or history.run["order"] == "NO":
        return []
    found = []
    for (subscriber, subscription), lines in history.delivered.items():
        highest: dict[tuple[int, str], TraceLine] = {}
        for line in lines:
            source = (history.life_of(line), line["publisher"])
            before = highest.setdefault(source, line)
            if line["n"] < before["n"]:
                message = f"{subscriber} got {line['publisher']}#{line['n']} after #{before['n']} for {subscription}"
                found.append(Violation("misorder", message, (before, line)))
            else:
                highest[source] = line
    return found
