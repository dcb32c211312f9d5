"""Rules for single deliveries and their order: *wrong*, *late*, *duplicate*, *misorder* [I1, I2, I4, I18, I26].

Each tenure is judged by itself. A delivery is reported once per kind at most, for the first reason that holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.events.topic import canonical_topic
from holdfast.pipeline.audit.facts import Delivery, EventKey, Facts
from holdfast.pipeline.audit.plan import Plan
from holdfast.pipeline.audit.tenure import Key, Tenure
from holdfast.pipeline.audit.violation import Violation

__all__ = ["delivered_violation", "deliveries", "events"]


def delivered_violation(
    run: str, key: Key, line: Delivery, kind: str, rule: str, against: str = ""
) -> Violation:
    """The row of a delivery."""
    return Violation(
        run,
        kind,
        line.node,
        line.i,
        *key,
        line.publisher,
        line.n,
        line.pubend,
        line.tick,
        rule,
        against,
        line.t,
    )


def deliveries(plan: Plan, facts: Facts) -> Iterator[Violation]:
    """What is wrong with what was delivered."""
    judged: dict[Key, set[Delivery]] = {}
    for tenure in plan.tenures:
        yield from _repeated(plan, facts, tenure)
        if not plan.is_logged and plan.is_fifo:
            yield from _misordered(plan, facts, tenure)
        for line in facts.of(tenure):
            judged.setdefault(tenure.key, set()).add(line)
            found = _wrong(plan, facts, tenure, line)
            if found is not None:
                yield delivered_violation(plan.run, tenure.key, line, "wrong", *found)
            elif line.i > tenure.ended_i:
                yield delivered_violation(plan.run, tenure.key, line, "late", "ended")
            yield from _misplaced(plan, facts, tenure, line)
    for key, lines in facts.delivered.items():
        for line in lines:
            if line not in judged.get(key, ()):
                found = _wrong(plan, facts, None, line, key) or ("unasked", "")
                yield delivered_violation(plan.run, key, line, "wrong", *found)


def _wrong(
    plan: Plan, facts: Facts, tenure: Tenure | None, line: Delivery, key: Key | None = None
) -> tuple[str, str] | None:
    """The rule that a delivery breaks, and against what."""
    subscriber = tenure.key[0] if tenure is not None else (key or ("", ""))[0]
    if line.node != subscriber:
        return "foreign", line.node
    if line.event not in facts.published:
        return "unpublished", ""
    first = facts.first(line.event)
    if line.t < first.t:
        return "early", ""
    if canonical_topic(line.topic) != canonical_topic(first.topic):
        return "topic", first.topic
    if not plan.is_logged and (line.pubend, line.tick) != line.event:
        return "position", ""
    if tenure is not None and facts.filters[tenure.filter] not in facts.possible[line.event]:
        return "unmatched", tenure.filter
    return None


def _misplaced(plan: Plan, facts: Facts, tenure: Tenure, line: Delivery) -> Iterator[Violation]:
    """Every event has one tick, whoever tells of it [I18]."""
    position = facts.positions.get(line.event)
    if plan.is_logged and position is not None and position != (line.pubend, line.tick):
        kind = "total-order" if plan.is_total else "duplicate"
        against = f"tick {position[1]} of {position[0]}"
        yield delivered_violation(plan.run, tenure.key, line, kind, "placed", against)


def _repeated(plan: Plan, facts: Facts, tenure: Tenure) -> Iterator[Violation]:
    had: set[EventKey] = set()
    for line in facts.of(tenure):
        if line.event in had:
            yield delivered_violation(plan.run, tenure.key, line, "duplicate", "again")
        had.add(line.event)


def _misordered(plan: Plan, facts: Facts, tenure: Tenure) -> Iterator[Violation]:
    """Where nothing is logged, publishers' numbers rise; a repeat is no order of any kind."""
    highest: dict[str, int] = {}
    had: set[EventKey] = set()
    for line in facts.of(tenure):
        before = highest.get(line.publisher, line.n)
        if line.n < before and line.event not in had:
            against = f"{line.publisher}#{before}"
            yield delivered_violation(plan.run, tenure.key, line, "misorder", "fifo", against)
        highest[line.publisher] = max(before, line.n)
        had.add(line.event)


def events(plan: Plan, facts: Facts) -> Iterator[Violation]:
    """What is wrong with events whoever gets them: ids used twice, ticks used twice, logs in disorder; not accepted."""
    for (publisher, n), lines in facts.published.items():
        for line in lines[1:]:
            yield Violation(
                plan.run,
                "duplicate",
                line.node,
                line.i,
                "",
                "",
                publisher,
                n,
                "",
                -1,
                "published",
                "",
                line.t,
            )
    if plan.accepts:
        yield from _unaccepted(plan, facts)
    if plan.is_logged:
        yield from _receipts(plan, facts)
        yield from _log(plan, facts)


def _unaccepted(plan: Plan, facts: Facts) -> Iterator[Violation]:
    for (publisher, n), (line, *_) in facts.published.items():
        if (publisher, n) not in facts.accepted and line.t >= plan.accepted_from[publisher]:
            yield Violation(
                plan.run, "unaccepted", line.node, line.i, "", "", publisher, n, "", -1, "refused", "", line.t
            )


def _receipts(plan: Plan, facts: Facts) -> Iterator[Violation]:
    for event, receipts in facts.accepted.items():
        for line in receipts:
            known = facts.positions.get(event)
            if line.tick and known is not None and known != (line.pubend, line.tick):
                kind = "total-order" if plan.is_total else "duplicate"
                against = f"tick {known[1]} of {known[0]}"
                place = (line.pubend, line.tick)
                yield Violation(
                    plan.run, kind, line.node, line.i, "", "", *event, *place, "placed", against, line.t
                )


def _log(plan: Plan, facts: Facts) -> Iterator[Violation]:
    """One event at a tick, one log in total order, and each publisher's events in a log as they were published."""
    logged = sorted(
        (position, event) for event, position in facts.positions.items() if event in facts.published
    )
    only = min((pubend for (pubend, _), _ in logged), default="")
    seen: dict[str, tuple[int, EventKey]] = {}
    highest: dict[tuple[str, str], int] = {}
    for (pubend, tick), (publisher, n) in logged:
        line = facts.first((publisher, n))
        row = (line.node, line.i, "", "", publisher, n, pubend, tick)
        before = seen.get(pubend)
        if before is not None and before[0] == tick:
            other = f"{before[1][0]}#{before[1][1]}"
            yield Violation(plan.run, "wrong", *row, "taken", other, line.t)
        elif plan.is_total and before is None and pubend != only:
            yield Violation(plan.run, "total-order", *row, "sequencers", only, line.t)
        if before is None or before[0] != tick:
            seen[pubend] = tick, (publisher, n)
        last = highest.get((publisher, pubend), n)
        if plan.is_fifo and n < last:
            yield Violation(plan.run, "misorder", *row, "logged", f"{publisher}#{last}", line.t)
        highest[publisher, pubend] = max(last, n)
