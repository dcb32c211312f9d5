"""The local engine: plain Python over all lines in memory, the reference for any other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from holdfast.pipeline.audit.chronicle import chronicles_of
from holdfast.pipeline.audit.facts import Facts
from holdfast.pipeline.audit.line import CONTROL, Line
from holdfast.pipeline.audit.plan import Plan
from holdfast.pipeline.audit.rules_deliveries import deliveries, events
from holdfast.pipeline.audit.rules_owed import owed
from holdfast.pipeline.audit.rules_streams import streams
from holdfast.pipeline.audit.rules_traffic import traffic
from holdfast.pipeline.audit.verdict import Verdict, verdict_of
from holdfast.pipeline.audit.violation import Violation

__all__ = ["audit_lines"]


def audit_lines(lines: Iterable[tuple[str, Line]], *, unfinished: bool = False) -> Verdict:
    """Judge runs, of all of whose lines, each with the name of its run, these are.

    :raises ChronicleError: if the beginning of a run is missing, or its end where it is not ``unfinished``.
    """
    control: list[tuple[str, Line]] = []
    facts: dict[str, Facts] = defaultdict(Facts)
    counts: Counter[str] = Counter()
    for run, line in lines:
        counts[line.kind] += 1
        facts[run].add(line)
        if line.kind in CONTROL:
            control.append((run, line))
    chronicles = chronicles_of(facts, control, unfinished=unfinished)
    plans = [Plan(chronicle, facts[run].publishers) for run, chronicle in chronicles.items()]
    found = [violation for plan in plans for violation in judge(plan, facts.pop(plan.run))]
    return verdict_of(plans, counts, found)


def judge(plan: Plan, facts: Facts) -> list[Violation]:
    """All that is wrong with one run."""
    facts.settle(plan)
    return [
        *deliveries(plan, facts),
        *events(plan, facts),
        *owed(plan, facts),
        *streams(plan, facts),
        *traffic(plan, facts),
    ]
