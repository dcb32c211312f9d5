"""What a subscription is told of a log: *unexplained*, and *misorder* or *total-order* by ticks [I16, I26, I35].

Every item speaks for the ticks since the one before: an event at t says that nothing else matched in between, a silence
that nothing did, a gap that something may have. So each goes on where the last one ended, and whoever is there at the
end has been told of everything that was logged some time before.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.pipeline.audit.facts import Delivery, EventKey, Facts, Item
from holdfast.pipeline.audit.plan import Plan
from holdfast.pipeline.audit.rules_deliveries import delivered_violation
from holdfast.pipeline.audit.tenure import Tenure
from holdfast.pipeline.audit.violation import Violation

__all__ = ["streams"]


def streams(plan: Plan, facts: Facts) -> Iterator[Violation]:
    """Where the streams of a run go back, jump, or stay behind; only logs have streams."""
    if not plan.is_logged:
        return
    due = _due(plan, facts)
    for tenure in plan.tenures:
        places: dict[str, int] = {}
        had: set[EventKey] = set()
        told: list[Delivery | Item] = [*facts.of(tenure), *facts.items_of(tenure)]
        for line in sorted(told, key=lambda line: (line.i, line.t, isinstance(line, Item), line)):
            place = places.get(line.pubend)
            if isinstance(line, Delivery):
                if place is not None and line.tick <= place and line.event not in had:
                    kind = "total-order" if plan.is_total else "misorder"
                    yield delivered_violation(plan.run, tenure.key, line, kind, "tick", str(place))
                had.add(line.event)
                upto = line.tick
            else:
                yield from _item(plan, tenure, line, place)
                upto = line.upto
            places[line.pubend] = upto if place is None else max(place, upto)
        if plan.stands(tenure):
            yield from _lagging(plan, tenure, places, due)


def _item(plan: Plan, tenure: Tenure, item: Item, place: int | None) -> Iterator[Violation]:
    found: tuple[str, str, str] | None = None
    if item.upto <= item.after:
        found = "unexplained", "empty", str(item.after)
    elif place is not None and item.after < place:
        found = "misorder", "behind", str(item.after)
    elif place is not None and item.after > place:
        found = "unexplained", "hole", f"{place} and {item.after}"
    if found is not None:
        kind, rule, against = found
        row = (item.node, item.i, *tenure.key, "", -1, item.pubend, item.upto)
        yield Violation(plan.run, kind, *row, rule, against, item.t)


def _due(plan: Plan, facts: Facts) -> dict[str, tuple[int, float]]:
    """By pubend, the last tick that everybody must have been told of, and when its event was published."""
    due: dict[str, tuple[int, float]] = {}
    for event, (pubend, tick) in facts.positions.items():
        if event in facts.published:
            t = facts.first(event).t
            if t <= plan.known_at:
                due[pubend] = max((tick, t), due.get(pubend, (tick, t)))
    return due


def _lagging(
    plan: Plan, tenure: Tenure, places: dict[str, int], due: dict[str, tuple[int, float]]
) -> Iterator[Violation]:
    last = tenure.lines[-1]
    for pubend, (tick, t) in due.items():
        place = places.get(pubend, 0)
        if t > tenure.since and place < tick:
            row = (last.node, last.i, *tenure.key, "", -1, pubend, tick)
            yield Violation(plan.run, "unexplained", *row, "lagging", str(place), last.t)
