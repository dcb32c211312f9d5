"""No copy on a link beyond which nobody asked for it: what filter routing promises and flooding does not.

Subscriptions take time to travel, so only copies sent while everything had been quiet for a while are judged: no
subscription came or went, and nothing broke. Needs the ``forward`` lines of LoggingLevel full. On best-effort the
publisher's own link to its broker is exempt, for a broker is told of everything its publishers publish; a reliable
publisher knows who wants it [B0.27]. A durable subscriber that came back may be at any broker: the trace does not say.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from holdfast.scenarios.checkers.history import EventKey, History, Trace, event_key
from holdfast.scenarios.checkers.tree import Tree
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["no_interest"]


def no_interest(trace: Trace, *, grace_seconds: float = 1.0) -> list[Violation]:
    """Copies nobody beyond the link had asked for, sent ``grace_seconds`` or more after the last change."""
    history = History.of(trace)
    if history.run is None or history.run["routing"] == "flooding":
        return []
    interest = _Interest(history)
    subscribers = sorted({subscriber for subscriber, _ in history.asking})
    beyond = _Beyond(history.tree, subscribers)
    movers = [each for each in subscribers if history.is_durable and history.faults_of(each, "reconnect")]
    is_best_effort = history.run["guarantee"] == "best-effort"
    found = []
    for line in history.forwarded:
        published = history.published.get(event_key(line))
        if (
            (is_best_effort and line["from"] == line["publisher"])
            or not published
            or history.is_unsettled(line["t"], grace_seconds)
        ):
            continue
        wanting = interest.in_event(published[0], line["t"])
        if wanting.isdisjoint(beyond(line["from"], line["to"])) and wanting.isdisjoint(movers):
            message = (
                f"{line['publisher']}#{line['n']} ({published[0]['topic']}) went from {line['from']} to {line['to']},"
                " beyond which nobody had asked for it"
            )
            found.append(Violation("no-interest", message, (line,)))
    return found


class _Interest:
    """Who asks for an event at a time, from ``subscribe`` to ``unsubscribed``."""

    def __init__(self, history: History) -> None:
        self._asking = history.asking
        self._changes = history.changes
        self._rematch = history.rematch
        self._standing: dict[int, dict[str, set[str]]] = {}
        self._interested: dict[tuple[int, EventKey], set[str]] = {}

    def in_event(self, published: TraceLine, t: float) -> set[str]:
        """The subscribers who asked for this event at ``t``."""
        epoch = bisect_right(self._changes, t)
        key = (epoch, event_key(published))
        if key not in self._interested:
            if epoch not in self._standing:
                self._standing[epoch] = self._standing_at(t)
            self._interested[key] = set().union(
                *(
                    subscribers
                    for text, subscribers in self._standing[epoch].items()
                    if self._rematch.matches(text, published) is not False
                )
            )
        return self._interested[key]

    def _standing_at(self, t: float) -> dict[str, set[str]]:
        """By filter, who asks so."""
        standing: dict[str, set[str]] = {}
        for (subscriber, _), lines in self._asking.items():
            before = [line for line in lines if line["t"] <= t]
            if before and before[-1]["kind"] != "unsubscribed":
                standing.setdefault(before[-1]["filter"], set()).add(subscriber)
        return standing


class _Beyond:
    """The subscribers whose way from one node leads over another, by the tree of the run."""

    def __init__(self, tree: Tree, subscribers: Sequence[str]) -> None:
        self._tree = tree
        self._subscribers = subscribers
        self._known: dict[tuple[str, str], frozenset[str]] = {}

    def __call__(self, sender: str, receiver: str) -> frozenset[str]:
        link = (sender, receiver)
        if link not in self._known:
            self._known[link] = frozenset(
                subscriber
                for subscriber in self._subscribers
                if receiver in self._tree.path(sender, subscriber)
            )
        return self._known[link]
