"""One tick for each event, and one event for each tick, whoever tells of it [I18, I19]."""

from __future__ import annotations

from holdfast.scenarios.checkers.history import EventKey, History, Trace, event_key
from holdfast.scenarios.checkers.logged import Position, position_of
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["ticks"]


def ticks(trace: Trace) -> list[Violation]:
    """Events that stand in two places, and places where two events stand; only logs have ticks."""
    history = History.of(trace)
    if not history.is_durable:
        return []
    placed: dict[EventKey, tuple[Position, TraceLine]] = {}
    taken: dict[Position, tuple[EventKey, TraceLine]] = {}
    found = []
    told = [*history.receipts.values(), *history.delivered.values()]
    for line in (line for lines in told for line in lines):
        position = position_of(line)
        if position is None:
            continue
        key = event_key(line)
        event, place = f"{key[0]}#{key[1]}", f"tick {position.tick} of {position.pubend}"
        before, there = placed.setdefault(key, (position, line))
        if before != position:
            message = f"{event} is at {place}, and at tick {before.tick} of {before.pubend}"
            found.append(Violation("duplicate", message, (there, line)))
        other, here = taken.setdefault(position, (key, line))
        if other != key:
            message = f"{event} is at {place}, and so is {other[0]}#{other[1]}"
            found.append(Violation("wrong", message, (here, line)))
    return found
