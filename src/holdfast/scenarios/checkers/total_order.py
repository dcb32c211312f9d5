"""I26: under ``Ordering TOTAL`` whoever gets two events gets them in the same order, which is that of the sequencer.

The second half is told by ticks, which one pubend gives out; the first is judged without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from holdfast.scenarios.checkers.history import EventKey, History, SubscriptionKey, Trace, event_key
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["total_order"]


def total_order(trace: Trace) -> list[Violation]:
    """Events that two subscriptions got in different orders, or one against the sequencer's."""
    history = History.of(trace)
    if history.run is None or history.run["order"] != "TOTAL":
        return []
    found = list(_sequencers(history))
    for key, lines in history.delivered.items():
        found += _against_ticks(history, key, lines)
    for (a, ours), (b, theirs) in combinations(history.delivered.items(), 2):
        found += _disagreements(a, _firsts(ours), b, _firsts(theirs))
    return found


def _sequencers(history: History) -> Iterator[Violation]:
    """One pubend has them all."""
    told = [line for lines in (*history.receipts.values(), *history.delivered.values()) for line in lines]
    first: dict[str, TraceLine] = {}
    for line in told:
        first.setdefault(line["pubend"], line)
    if len(first) > 1:
        yield Violation("total-order", f"events are in {', '.join(sorted(first))}", tuple(first.values()))


def _against_ticks(history: History, key: SubscriptionKey, lines: list[TraceLine]) -> Iterator[Violation]:
    """A subscription that is not kept has forgotten what an earlier life of it got."""
    latest: dict[int, TraceLine] = {}
    for line in lines:
        life = history.life_of(line)
        before = latest.get(life)
        if before is not None and line["tick"] < before["tick"]:
            message = f"{key[0]} got {_name(line)} after {_name(before)} for {key[1]}, against their ticks"
            yield Violation("total-order", message, (before, line))
        else:
            latest[life] = line


def _firsts(lines: list[TraceLine]) -> dict[EventKey, TraceLine]:
    firsts: dict[EventKey, TraceLine] = {}
    for line in lines:
        firsts.setdefault(event_key(line), line)
    return firsts


def _disagreements(
    a: SubscriptionKey,
    ours: dict[EventKey, TraceLine],
    b: SubscriptionKey,
    theirs: dict[EventKey, TraceLine],
) -> Iterator[Violation]:
    places = {event: place for place, event in enumerate(theirs)}
    before: EventKey | None = None
    for event in ours:
        if event not in places:
            continue
        if before is not None and places[event] < places[before]:
            names = f"{_name(ours[before])} before {_name(ours[event])}"
            message = f"{a[0]} got {names} for {a[1]}, and {b[0]} the other way round for {b[1]}"
            yield Violation(
                "total-order", message, (ours[before], ours[event], theirs[event], theirs[before])
            )
        else:
            before = event


def _name(line: TraceLine) -> str:
    return f"{line['publisher']}#{line['n']}"
