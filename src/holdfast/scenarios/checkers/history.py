"""A trace as the checkers ask about it: who published, asked and got what, and when.

Lines of one node are ordered by their position ``i``; lines of different nodes only by time, and two at the same
instant not at all. No checker counts on the order of the trace itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from math import inf
from typing import TypeAlias

from holdfast.scenarios.checkers.logged import Log
from holdfast.scenarios.checkers.outages import Outage, left_broken, outages
from holdfast.scenarios.checkers.partitions import Partitions
from holdfast.scenarios.checkers.rematch import Rematch
from holdfast.scenarios.checkers.tree import Tree
from holdfast.scenarios.topology import MASTER
from holdfast.scenarios.trace import TraceLine
from holdfast.scenarios.trace_fields import FAULTS

__all__ = ["EventKey", "History", "SubscriptionKey", "Trace", "event_key", "precedes", "subscription_key"]

EventKey: TypeAlias = tuple[str, int]  #: publisher and n
SubscriptionKey: TypeAlias = tuple[str, str]  #: subscriber and subscription

_ASKING = ("subscribe", "subscribed", "unsubscribe", "unsubscribed")
_GOING = ("crash", "leave", "disconnect", "freeze")
_COMING = ("restart", "reconnect", "unfreeze")


def event_key(line: TraceLine) -> EventKey:
    """Which event a line speaks of."""
    return line["publisher"], line["n"]


def subscription_key(line: TraceLine) -> SubscriptionKey:
    """Which subscription a line speaks of."""
    return line["subscriber"], line["subscription"]


def precedes(line: TraceLine, other: TraceLine) -> bool:
    """Whether a line is certainly earlier than another."""
    if line["node"] == other["node"]:
        return bool(line["i"] < other["i"])
    return bool(line["t"] < other["t"])


class History:
    """The lines of a trace, sorted by what they are about."""

    def __init__(self, trace: Sequence[TraceLine]) -> None:
        self.run: TraceLine | None = None
        self.end: TraceLine | None = None
        self.published: dict[EventKey, list[TraceLine]] = defaultdict(list)  #: once each, if all is well
        self.accepted: set[EventKey] = set()
        self.receipts: dict[EventKey, list[TraceLine]] = defaultdict(list)  #: once each, if all is well
        self.asking: dict[SubscriptionKey, list[TraceLine]] = defaultdict(list)  #: in the subscriber's order
        self.delivered: dict[SubscriptionKey, list[TraceLine]] = defaultdict(list)  #: likewise
        self.upgraded: dict[SubscriptionKey, list[TraceLine]] = defaultdict(list)  #: likewise
        self.gaps: dict[SubscriptionKey, list[TraceLine]] = defaultdict(list)  #: likewise
        self.silences: dict[SubscriptionKey, list[TraceLine]] = defaultdict(list)  #: likewise
        self.forwarded: list[TraceLine] = []
        self.faults: list[TraceLine] = []
        self.rematch = Rematch()
        self._faults_of: dict[str, list[TraceLine]] = defaultdict(list)
        for line in sorted(trace, key=lambda line: (line["node"], line["i"])):
            self._file(line)

    @classmethod
    def of(cls, trace: Trace) -> History:
        """The history of a trace, unless it is one already."""
        return trace if isinstance(trace, History) else cls(trace)

    def _file(self, line: TraceLine) -> None:
        match line["kind"]:
            case "publish":
                self.published[event_key(line)].append(line)
            case "accepted":
                self.accepted.add(event_key(line))
                self.receipts[event_key(line)].append(line)
            case "deliver":
                self.delivered[subscription_key(line)].append(line)
            case "upgraded":
                self.upgraded[subscription_key(line)].append(line)
            case "gap":
                self.gaps[subscription_key(line)].append(line)
            case "silence":
                self.silences[subscription_key(line)].append(line)
            case "forward":
                self.forwarded.append(line)
            case "run":
                self.run = line
            case "end":
                self.end = line
            case kind if kind in _ASKING:
                self.asking[subscription_key(line)].append(line)
            case kind if kind in FAULTS:
                self.faults.append(line)
                for node in line["nodes"]:
                    self._faults_of[node].append(line)

    @cached_property
    def changes(self) -> list[float]:
        """When a subscription came or went, or something broke or was repaired, ascending."""
        asking = (line for lines in self.asking.values() for line in lines)
        upgraded = (line for lines in self.upgraded.values() for line in lines)
        return sorted(line["t"] for line in (*asking, *upgraded, *self.faults))

    def is_unsettled(self, t: float, grace_seconds: float) -> bool:
        """Whether something changed in the time before, or is broken."""
        changed = bisect_right(self.changes, t)
        if changed and t - self.changes[changed - 1] < grace_seconds:
            return True
        begun = bisect_right(self._outages, (t, inf))
        return begun > 0 and t < self._outages[begun - 1][1]

    @cached_property
    def _outages(self) -> list[Outage]:
        """From when to when something was broken."""
        return outages(self.faults)

    @cached_property
    def tree(self) -> Tree:
        """The tree of the run."""
        return Tree(self.run["tree"] if self.run is not None else {})

    def partitions(self, key: SubscriptionKey, subscribed: TraceLine) -> Partitions:
        """What a confirmation left out, and when that ended; until the subscription is made again, or ends."""
        position = subscribed["i"]
        ends = [line["i"] for line in self.asking[key] if line["i"] > position]
        return Partitions(
            self.tree,
            subscribed,
            [line for line in self.upgraded[key] if position < line["i"] < min(ends, default=line["i"] + 1)],
            self._is_stranger,
        )

    def _is_stranger(self, node: str, other: str, at: float) -> bool:
        """Whether a node has met nobody since another was started again and met its first."""
        begun = max((line["t"] for line in self.faults_of(other, "restart") if line["t"] <= at), default=-inf)
        met = [line["t"] for line in self.faults_of(other, "recovered") if begun < line["t"] <= at]
        last = max((line["t"] for line in self.faults_of(node, "recovered") if line["t"] < at), default=-inf)
        return begun > -inf and (not met or last < min(met))

    def faults_of(self, node: str, *kinds: str) -> list[TraceLine]:
        """What happened to one process."""
        return [line for line in self._faults_of.get(node, ()) if line["kind"] in kinds]

    def life_of(self, line: TraceLine) -> int:
        """In which of its lives a subscriber got this, from 0: every restart begins a new one."""
        restarts = self.faults_of(line["subscriber"], "restart")
        return sum(precedes(restart, line) for restart in restarts)

    @cached_property
    def _clients(self) -> set[str]:
        return {publisher for publisher, _ in self.published} | {subscriber for subscriber, _ in self.asking}

    def left_at(self, client: str) -> float | None:
        """When a client went away for the last time, if it was away at the end."""
        told = [line for line in self._faults_of.get(client, ()) if line["node"] in (MASTER, client)]
        went: float | None = None
        for line in sorted(told, key=lambda line: (line["t"], line["node"] == client)):
            if line["kind"] in _GOING:
                went = line["t"] if went is None else went
            elif line["kind"] in _COMING:
                went = None
        return went

    @property
    def is_durable(self) -> bool:
        """Whether the run's one stream is logged."""
        return self.run is not None and self.run["guarantee"] == "durable"

    @cached_property
    def log(self) -> Log:
        """What the logs of a durable run must hold."""
        return Log(self.published, self.receipts, self.delivered)

    def owes_everything(self, healed_at: float) -> bool:
        """Whether what was published after ``healed_at`` must have been accepted and, where wanted, delivered.

        Only a run that was drained owes that; a best-effort one only if nothing broke any more, a durable one, where
        nobody waits for what a broker's log has, only if no broker was left broken.
        """
        if self.run is None or self.end is None or not self.end["drained"]:
            return False
        if self.is_durable and any(self._clients.isdisjoint(nodes) for nodes in left_broken(self.faults)):
            return False
        return self.run["guarantee"] != "best-effort" or all(line["t"] <= healed_at for line in self.faults)


#: What a checker is given: a trace, or its history if somebody has worked that out before.
Trace: TypeAlias = Sequence[TraceLine] | History
