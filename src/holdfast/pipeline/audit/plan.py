"""What is to be judged in a run, and by which measure: worked out once from its chronicle, the same for both engines.

Which promises a run has made depends on its guarantee and on what broke [design.md §2]:

- *best-effort* owes delivery and acceptance only in a run without faults; never a duplicate, whatever breaks.
- *reliable* owes everything; what is gone must be announced by a gap, and while no more than δ are down at a time there
  is nothing to announce. Beyond δ a publisher may wait for its receipt for ever.
- *durable* owes everything that was accepted, whatever breaks; what a policy has let go is announced by a gap that says
  why. While a broker is down nobody waits for what only its log has.

What has not come by the end of a run is lost only if the run was drained: ``is_complete``. In any run an event is lost
if a later one of its publisher came.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import inf
from typing import Final, NamedTuple

from holdfast.pipeline.audit.chronicle import Chronicle
from holdfast.pipeline.audit.hidden import Bars, Hidden, hidden_of
from holdfast.pipeline.audit.line import Line, Tag
from holdfast.pipeline.audit.tenure import Key, Tenure, tenures_of
from holdfast.pipeline.audit.tree import Tree
from holdfast.pipeline.audit.troubles import Trouble, away_since, exceeds, troubles_of

__all__ = ["KNOWN_SECONDS", "Cover", "Plan", "Tagged"]

#: So long after an event was published everybody who is there has been told of it, or of nothing, up to its tick.
KNOWN_SECONDS: Final = 2.0

#: Why a log may give up what somebody still wants [durable.md, *Reasons of gaps*]. Not that it was damaged, or is gone:
#: nothing that stands in a trace does that to a disk.
_RELEASED: Final = ("max_retain", "max_bytes", "expired", "released")


class Cover(NamedTuple):
    """Ticks of a pubend that were announced as gone to a tenure: (after, upto]."""

    tenure: int
    pubend: str
    after: int
    upto: int


class Tagged(NamedTuple):
    """A delivery that carries tags."""

    key: Key
    i: int
    publisher: str
    n: int
    tags: Sequence[Tag]


class Plan:
    """The measures of one run. ``publishers`` are all who published anything in it."""

    def __init__(self, chronicle: Chronicle, publishers: Iterable[str]) -> None:
        head = chronicle.head
        assert head is not None
        self.chronicle = chronicle
        self.run = chronicle.run
        self.guarantee = head.guarantee or ""
        self.delta = head.delta or 0
        self.tree = Tree(head.tree or {})
        self.publishers = sorted(publishers)
        self.is_logged = self.guarantee in ("durable", "archived")
        self.is_total = head.order == "TOTAL"
        self.is_fifo = head.order != "NO"
        self.is_filtered = head.routing != "flooding"
        self.is_drained = chronicle.end is not None and bool(chronicle.end.drained)
        self.troubles = troubles_of(chronicle.faults)
        self.tenures = tenures_of(chronicle.asking, chronicle.upgraded, self.troubles, self.guarantee)

    @cached_property
    def owes(self) -> bool:
        """Whether deliveries are owed at all."""
        return self.guarantee != "best-effort" or not self.chronicle.faults

    @cached_property
    def is_complete(self) -> bool:
        """Whether what has not come by the end will never come."""
        return self.is_drained and not (self.is_logged and self.left_broken)

    @cached_property
    def left_broken(self) -> list[Trouble]:
        """What the script broke and did not repair, clients apart."""
        left = [each for each in self.troubles if each.by_script and each.end == inf]
        return [each for each in left if self.clients.isdisjoint(each.nodes)]

    @cached_property
    def clients(self) -> frozenset[str]:
        """All who published, or asked for anything."""
        return frozenset([*self.publishers, *(subscriber for subscriber, _ in self.chronicle.asking)])

    @cached_property
    def is_beyond_delta(self) -> bool:
        """Whether more may have been down at a time than a reliable network bears."""
        return self.guarantee == "reliable" and exceeds(self.troubles, self.delta, self.tree, self.clients)

    @cached_property
    def accepts(self) -> bool:
        """Whether everything that was published must have been accepted."""
        return self.owes and self.is_complete and not self.is_beyond_delta

    @cached_property
    def accepted_from(self) -> dict[str, float]:
        """By publisher, from when on what it published must have been accepted: it died with no event of that life."""
        return {publisher: self._accepted_from(publisher) for publisher in self.publishers}

    def _accepted_from(self, publisher: str) -> float:
        if away_since(self.troubles, publisher) < inf:
            return inf
        crashes = [each for each in self.troubles if each.kind == "crash" and publisher in each.nodes]
        return max((each.end for each in crashes), default=-inf)

    @cached_property
    def unannounced(self) -> frozenset[str]:
        """Publishers that nobody announces losses of: beyond δ only those who live do."""
        if not self.is_beyond_delta:
            return frozenset()
        crashed = {node for each in self.troubles if each.kind in ("crash", "leave") for node in each.nodes}
        return frozenset(crashed.intersection(self.publishers))

    @cached_property
    def known_at(self) -> float:
        """Up to when everybody has been told what was logged; minus infinity if that is not judged."""
        end = self.chronicle.end
        return end.t - KNOWN_SECONDS if end is not None and self.is_logged and self.is_complete else -inf

    def stands(self, tenure: Tenure) -> bool:
        """Whether a tenure was confirmed in time, and its subscriber there, up to the end."""
        return tenure.since <= self.known_at and tenure.until == inf and tenure.lines[-1].kind == "subscribed"

    @cached_property
    def covers(self) -> list[Cover]:
        """The gaps that explain why something did not come."""
        return [
            Cover(tenure.number, gap.pubend, gap.after, gap.upto)
            for tenure, gap in self.gaps
            if self._explains(tenure, gap)
            and gap.pubend is not None
            and gap.after is not None
            and gap.upto is not None
        ]

    @cached_property
    def gaps(self) -> list[tuple[Tenure, Line]]:
        """All gaps, with the tenures they were told to."""
        return [
            (tenure, gap)
            for tenure in self.tenures
            for gap in self.chronicle.gaps.get(tenure.key, ())
            if tenure.begin_i < gap.i < tenure.end_i
        ]

    def _explains(self, tenure: Tenure, gap: Line) -> bool:
        """Whether a gap tells why something may be gone, as far as the trace shows that it may.

        What was never delivered was never acknowledged; and who knew of all pubends could reach them.
        """
        if not self.is_logged:
            return self.guarantee != "reliable" or self.is_beyond_delta
        if not tenure.durable:
            return bool(gap.reason)
        return gap.reason in _RELEASED or (gap.reason == "could not be reached" and tenure.is_partial)

    def hidden(self, bars: Bars) -> list[Hidden]:
        """What partial confirmations left out. On logged streams a gap says so."""
        if self.is_logged:
            return []
        started: dict[str, list[float]] = {}
        for line in self.chronicle.faults:
            if line.kind in ("restart", "join"):
                for node in line.nodes or ():
                    started.setdefault(node, []).append(line.t)
        return hidden_of(self.tenures, self.tree, self.publishers, started, bars)

    def bars(self, deliveries: Iterable[Tagged]) -> Bars:
        """The first barred events of every tenure; one that carries a plain tag too tells nothing."""
        by_key: dict[Key, list[Tenure]] = {}
        for tenure in self.tenures:
            by_key.setdefault(tenure.key, []).append(tenure)
        found: dict[tuple[int, str], dict[tuple[str, int, int], int]] = {}
        for each in deliveries:
            if not all(tag.bar for tag in each.tags):
                continue
            for tenure in by_key.get(each.key, ()):
                if tenure.begin_i < each.i < tenure.end_i:
                    barred = found.setdefault((tenure.number, each.publisher), {})
                    for tag in each.tags:
                        barred[tag.name] = min(each.n, barred.get(tag.name, each.n))
        return found
