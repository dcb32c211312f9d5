"""What was owed and did not come: *lost* [I3, I30].

Owed to a tenure are accepted events that certainly match, published while it stood; but for what a partial
confirmation hides, what a gap announces, and what was still on its way when the tenure, or the run, ended: per
publisher, a suffix. On logged streams an event is lost, too, that a subscription was told nothing of although it was
told of what stands before and behind it, whenever that was published [I16].
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import inf

from holdfast.pipeline.audit.facts import EventKey, Facts, Position
from holdfast.pipeline.audit.hidden import Hidden
from holdfast.pipeline.audit.plan import Cover, Plan
from holdfast.pipeline.audit.tenure import Tenure
from holdfast.pipeline.audit.violation import Violation

__all__ = ["owed"]


def owed(plan: Plan, facts: Facts) -> Iterator[Violation]:
    """What never came, and what was passed over."""
    by_filter: dict[int, list[EventKey]] = defaultdict(list)
    for event, filters in facts.certain.items():
        for place in filters:
            by_filter[place].append(event)
    hidden = plan.hidden(plan.bars(facts.tagged))
    for tenure in plan.tenures:
        judge = _Judge(plan, facts, tenure, hidden)
        for event in by_filter.get(facts.filters[tenure.filter], ()):
            rule = judge(event)
            if rule is not None:
                line = facts.first(event)
                position = facts.positions.get(event, ("", -1))
                yield Violation(
                    plan.run, "lost", line.node, line.i, *tenure.key, *event, *position, rule, "", line.t
                )


class _Judge:
    """One tenure: which of the events that match it are lost."""

    def __init__(self, plan: Plan, facts: Facts, tenure: Tenure, hidden: list[Hidden]) -> None:
        self.plan = plan
        self.facts = facts
        self.tenure = tenure
        self.arrived = {line.event for line in facts.of(tenure)}
        self.latest: dict[str, int] = {}
        for publisher, n in self.arrived:
            self.latest[publisher] = max(n, self.latest.get(publisher, 0))
        self.hidden = [each for each in hidden if each.tenure == tenure.number]
        self.covers = [each for each in plan.covers if each.tenure == tenure.number]
        self.gaps = [
            Cover(tenure.number, gap.pubend or "", gap.after or 0, gap.upto or 0)
            for whose, gap in plan.gaps
            if whose is tenure
        ]
        self.told = _told(facts, tenure) if plan.is_logged else {}

    def __call__(self, event: EventKey) -> str | None:
        if event in self.arrived:
            return None
        if self._is_missing(event):
            return "missing"
        return "passed" if self._is_passed(event) else None

    def _is_missing(self, event: EventKey) -> bool:
        publisher, n = event
        t = self.facts.first(event).t
        position = self.facts.positions.get(event) if self.plan.is_logged else event
        is_open_ended = self.tenure.until < inf or not self.plan.is_complete
        return (
            self.plan.owes
            and event in self.facts.accepted
            and self.tenure.since < t < self.tenure.until
            and not (is_open_ended and n > self.latest.get(publisher, 0))
            and publisher not in self.plan.unannounced
            and not any(
                each.publisher == publisher and each.after < t <= each.upto and n <= each.upto_n
                for each in self.hidden
            )
            and not _is_within(position, self.covers)
        )

    def _is_passed(self, event: EventKey) -> bool:
        position = self.facts.positions.get(event)
        if position is None or position[0] not in self.told:
            return False
        begin, end = self.told[position[0]]
        return begin < position[1] < end and not _is_within(position, self.gaps)


def _is_within(position: Position | None, covers: list[Cover]) -> bool:
    """Whether it was announced; where an event stands that nobody tells the tick of, any gap may be about it."""
    if position is None:
        return bool(covers)
    pubend, tick = position
    return any(each.pubend == pubend and each.after < tick <= each.upto for each in covers)


def _told(facts: Facts, tenure: Tenure) -> dict[str, tuple[int, int]]:
    """By pubend, from where and up to where a tenure was told of it, while it stood."""
    ended = tenure.ended_i
    ranges = [(line.pubend, line.tick - 1, line.tick) for line in facts.of(tenure) if line.i < ended]
    ranges += [(item.pubend, item.after, item.upto) for item in facts.items_of(tenure) if item.i < ended]
    told: dict[str, tuple[int, int]] = {}
    for pubend, after, upto in ranges:
        begin, end = told.get(pubend, (after, upto))
        told[pubend] = min(begin, after), max(end, upto)
    return told
