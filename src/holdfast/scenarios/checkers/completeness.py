"""Everything that is owed arrives: matching, accepted events published while the subscription stood [contracts.md §5].

A subscription stands from ``subscribed`` to ``unsubscribe``, or to its subscriber's crash, or to its disconnection;
who is cut off from a reliable network is only one more that is down. A durable one stands through all that: it is owed
what is published while nobody is there to read it, if somebody was there at the end. What was still in flight
when it ended is not owed: per publisher, the events after the last one that arrived. Nor is what was published behind a
partition that ``subscribed`` named, until it is cleared, nor what a gap announces [I3]; on a durable stream the gap
stands for both [B1.11]. In a run that was healed, only what was published afterwards is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from holdfast.scenarios.checkers.history import History, SubscriptionKey, Trace, event_key
from holdfast.scenarios.checkers.logged import Log
from holdfast.scenarios.checkers.partitions import Partition, Partitions, partition_of
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["completeness"]


@dataclass(frozen=True, slots=True)
class _Standing:
    key: SubscriptionKey
    filter: str
    since: float
    until: float
    delivered: Sequence[TraceLine]  #: while it stood, and what came late
    partitions: Partitions | None
    gaps: Sequence[TraceLine]
    log: Log | None  #: of a durable run


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
        arrived = {event_key(line) for line in standing.delivered}
        for owed in _owed_by_publisher(standing, matching.accepted_events(standing.filter)):
            latest = max((line["n"] for line in owed if event_key(line) in arrived), default=0)
            for line in owed:
                is_in_flight = line["n"] > latest and standing.until - line["t"] <= in_flight_seconds
                is_excused = is_in_flight and standing.until < inf
                if event_key(line) not in arrived and not is_excused and not _is_announced(standing, line):
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
    is_reliable = history.run is not None and history.run["guarantee"] == "reliable"
    for key, asking in history.asking.items():
        crashes = [line["t"] for line in history.faults_of(key[0], "crash", "leave")]
        losses = [] if is_reliable else [line["t"] for line in history.faults_of(key[0], "disconnect")]
        for i, line in enumerate(asking):
            if line["kind"] == "subscribed" and not (line["durable"] and _is_made_again(asking[:i])):
                since = max(line["t"], healed_at)
                if line["durable"]:
                    ends = _ends_of_durable(history, key, asking[i:])
                else:
                    ends = [later["t"] for later in asking[i + 1 : i + 2]]
                    ends += [t for t in crashes if t >= line["t"]]
                    ends += [t for t in losses if t >= since]  # healing brought back who was away before
                yield _Standing(
                    key,
                    line["filter"],
                    since,
                    min(ends, default=inf),
                    _delivered(history, key, asking, i),
                    history.partitions(key, line) if line["partial"] and not history.is_durable else None,
                    history.gaps.get(key, ()),
                    history.log if history.is_durable else None,
                )


def _delivered(
    history: History, key: SubscriptionKey, asking: Sequence[TraceLine], i: int
) -> list[TraceLine]:
    """What came since a subscription was asked for, until it is made again, unless that is the same one."""
    begin = asking[max(0, i - 1)]["i"]
    again = [] if asking[i]["durable"] else [line["i"] for line in asking[i:] if line["kind"] == "subscribe"]
    return [
        line
        for line in history.delivered.get(key, ())
        if begin < line["i"] < min(again, default=line["i"] + 1)
    ]


def _is_made_again(before: Sequence[TraceLine]) -> bool:
    """Whether a durable subscription stood already when it was confirmed once more."""
    confirmed = [line["kind"] for line in before if line["kind"] != "subscribe"]
    return bool(confirmed) and confirmed[-1] == "subscribed"


def _ends_of_durable(history: History, key: SubscriptionKey, asking: Sequence[TraceLine]) -> list[float]:
    """It ends for good; or nobody was there to read it at the end."""
    left = history.left_at(key[0])
    ends = [line["t"] for line in asking if line["kind"] == "unsubscribe"]
    return ends[:1] if ends or left is None else [left]


def _owed_by_publisher(standing: _Standing, matching: Sequence[TraceLine]) -> list[list[TraceLine]]:
    by_publisher: dict[str, list[TraceLine]] = {}
    barred = _first_barred(standing)
    for line in matching:
        if standing.since < line["t"] < standing.until and not _is_hidden(standing, line, barred):
            by_publisher.setdefault(line["publisher"], []).append(line)
    return list(by_publisher.values())


def _first_barred(standing: _Standing) -> dict[tuple[str, Partition], int]:
    """By publisher and partition the first event that came with its bar: nothing is missing after it [B0.31].

    Unless it carries a plain tag too, of a partition behind that one.
    """
    barred: dict[tuple[str, Partition], int] = {}
    for line in standing.delivered:
        if all(tag["bar"] for tag in line["tags"]):
            for tag in line["tags"]:
                barred.setdefault((line["publisher"], partition_of(tag)), line["n"])
    return barred


def _is_hidden(standing: _Standing, line: TraceLine, barred: dict[tuple[str, Partition], int]) -> bool:
    if standing.partitions is None:
        return False
    hiding = standing.partitions.hiding(line["publisher"], at=line["t"])
    return any(line["n"] <= barred.get((line["publisher"], each), inf) for each in hiding)


def _is_announced(standing: _Standing, line: TraceLine) -> bool:
    pubend, tick = line["publisher"], line["n"]
    if standing.log is not None:
        pubend, tick = standing.log.positions.get(event_key(line), (pubend, 0))
    return any(gap["pubend"] == pubend and gap["after"] < tick <= gap["upto"] for gap in standing.gaps)
