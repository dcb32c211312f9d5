"""A trace that does not contradict itself: complete, counted, and never going back in time."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import FilterError
from holdfast.filters.parse import parse_filter
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["wellformed"]


def wellformed(trace: Sequence[TraceLine]) -> list[Violation]:
    """``run`` first and ``end`` last, once each; per node i = 1, 2, 3 … and t never less; filters that are filters."""
    return [*_frame(trace), *_counting(trace), *_filters(trace)]


def _frame(trace: Sequence[TraceLine]) -> list[Violation]:
    found = []
    for kind, at, place in (("run", 0, "first"), ("end", len(trace) - 1, "last")):
        places = [i for i, line in enumerate(trace) if line["kind"] == kind]
        if places != [at]:
            lines = tuple(trace[i] for i in places)
            found.append(Violation("malformed", f"'{kind}' is not the {place} line and no other", lines))
    return found


def _counting(trace: Sequence[TraceLine]) -> list[Violation]:
    found = []
    latest: dict[str, TraceLine] = {}
    for line in trace:
        node = line["node"]
        before = latest.get(node)
        latest[node] = line
        lines = (line,) if before is None else (before, line)
        expected = 1 if before is None else before["i"] + 1
        if line["i"] != expected:
            found.append(Violation("malformed", f"{node} wrote line {line['i']}, not {expected}", lines))
        if before is not None and line["t"] < before["t"]:
            message = f"{node} went back in time from {before['t']} to {line['t']}"
            found.append(Violation("malformed", message, lines))
    return found


def _filters(trace: Sequence[TraceLine]) -> list[Violation]:
    found = []
    for line in trace:
        if line["kind"] == "subscribe":
            try:
                parse_filter(line["filter"])
            except FilterError as error:
                message = f"{line['subscriber']} asked for what is no filter: {error}"
                found.append(Violation("malformed", message, (line,)))
    return found
