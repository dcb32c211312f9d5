"""Everything that is owed arrives: matching, accepted events published while the subscription stood.

A subscription stands from ``subscribed`` to ``unsubscribe``, or to its subscriber's crash, or to its disconnection
unless it is durable. What was still in flight when it ended is not owed: per publisher, the events after the last one
that arrived. In a run that was healed, only what was published afterwards is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

from holdfast.scenarios.checkers.history import History, SubscriptionKey, Trace, event_key
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["completeness"]


class _Standing(NamedTuple):
    key: SubscriptionKey
    filter: str
    since: float
    until: float


def completeness(trace: Trace, *, healed_at: float = -inf, in_flight_seconds: float = inf) -> list[Violation]:
    """Events published after ``healed_at`` that were owed and did not come; claimed where the run owes everything.

    Nothing is in flight for longer than ``in_flight_seconds``, where the caller knows a bound.
    """
    history = History.of(trace)
    if not history.owes_everything(healed_at):
        return []
    matching = _Matching(history)
    found = []
    for standing in _standings(history, healed_at):
        arrived = {event_key(line) for line in history.delivered.get(standing.key, ())}
        for owed in _owed_by_publisher(standing, matching.accepted_events(standing.filter)):
            latest = max((line["n"] for line in owed if event_key(line) in arrived), default=0)
            for line in owed:
                is_in_flight = line["n"] > latest and standing.until - line["t"] <= in_flight_seconds
                is_excused = is_in_flight and standing.until < inf
                if event_key(line) not in arrived and not is_excused:
                    subscriber, subscription = standing.key
                    message = f"{line['publisher']}#{line['n']} never reached {subscriber} for {subscription}"
                    found.append(Violation("lost", message, (line,)))
    return found


class _Matching:
    """Per filter, the accepted events that match it, worked out once."""

    def __init__(self, history: History) -> None:
        self._rematch = history.rematch
        accepted = [lines[0] for key, lines in history.published.items() if key in history.accepted]
        self._accepted = sorted(accepted, key=event_key)
        self._known: dict[str, list[TraceLine]] = {}

    def accepted_events(self, text: str) -> list[TraceLine]:
        """The ``publish`` lines of those that certainly match, in order per publisher."""
        if text not in self._known:
            self._known[text] = [line for line in self._accepted if self._rematch.matches(text, line)]
        return self._known[text]


def _standings(history: History, healed_at: float) -> Iterator[_Standing]:
    for key, asking in history.asking.items():
        crashes = [line["t"] for line in history.faults_of(key[0], "crash")]
        losses = [line["t"] for line in history.faults_of(key[0], "disconnect")]
        for i, line in enumerate(asking):
            if line["kind"] == "subscribed":
                since = max(line["t"], healed_at)
                ends = [later["t"] for later in asking[i + 1 : i + 2]]
                ends += [t for t in crashes if t >= line["t"]]
                if not line["durable"]:
                    ends += [t for t in losses if t >= since]  # healing brought back who was away before
                yield _Standing(key, line["filter"], since, min(ends, default=inf))


def _owed_by_publisher(standing: _Standing, matching: Sequence[TraceLine]) -> list[list[TraceLine]]:
    by_publisher: dict[str, list[TraceLine]] = {}
    for line in matching:
        if standing.since < line["t"] < standing.until:
            by_publisher.setdefault(line["publisher"], []).append(line)
    return list(by_publisher.values())
