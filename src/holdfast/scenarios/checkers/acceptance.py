"""Everything published is accepted, unless its publisher crashed before it was; what a later life publishes is owed."""

from __future__ import annotations

from math import inf

from holdfast.scenarios.checkers.history import History, Trace
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["acceptance"]


def acceptance(trace: Trace, *, healed_at: float = -inf) -> list[Violation]:
    """Events published after ``healed_at`` and never accepted; claimed only where the run owes everything."""
    history = History.of(trace)
    if not history.owes_everything(healed_at):
        return []
    found = []
    for (publisher, n), (line, *_) in history.published.items():
        is_accepted = (publisher, n) in history.accepted
        if line["t"] > healed_at and not is_accepted and not _died_with_its_life(history, line):
            message = f"{publisher}#{n} was published and never accepted"
            found.append(Violation("unaccepted", message, (line,)))
    return found


def _died_with_its_life(history: History, published: TraceLine) -> bool:
    """Whether the publisher crashed later in the life in which it published this.

    A crash stands in the trace before it is done, so what was published at the last moment may seem to come after it.
    """
    publisher = published["publisher"]
    restarts = [line["t"] for line in history.faults_of(publisher, "restart") if line["t"] <= published["t"]]
    return any(line["t"] >= max(restarts, default=-inf) for line in history.faults_of(publisher, "crash"))
