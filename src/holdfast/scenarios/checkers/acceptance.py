"""Everything published is accepted, unless its publisher crashed."""

from __future__ import annotations

from math import inf

from holdfast.scenarios.checkers.history import History, Trace
from holdfast.scenarios.checkers.violation import Violation

__all__ = ["acceptance"]


def acceptance(trace: Trace, *, healed_at: float = -inf) -> list[Violation]:
    """Events published after ``healed_at`` and never accepted; claimed only where the run owes everything."""
    history = History.of(trace)
    if not history.owes_everything(healed_at):
        return []
    found = []
    for (publisher, n), (line, *_) in history.published.items():
        crashes = history.faults_of(publisher, "crash")
        has_crashed = any(crash["t"] > healed_at for crash in crashes)
        if line["t"] > healed_at and (publisher, n) not in history.accepted and not has_crashed:
            message = f"{publisher}#{n} was published and never accepted"
            found.append(Violation("unaccepted", message, (line,)))
    return found
