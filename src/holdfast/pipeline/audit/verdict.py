"""The verdict on any number of runs: how often each promise was broken, where, and what could not be judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.pipeline.audit.plan import Plan
from holdfast.pipeline.audit.violation import KINDS, Violation

__all__ = ["ROWS_MAX", "Verdict", "first_of_each", "in_order", "notes_on", "verdict_of"]

#: So many rows of each kind are kept, however many there are; all are counted.
ROWS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an audit."""

    runs: int
    lines: Mapping[str, int]  #: by kind
    counts: Mapping[str, int]  #: of violations, by kind, in the order of ``KINDS``
    violations: Sequence[Violation]  #: the first of each kind
    notes: Sequence[str]  #: what was not judged, and why

    @property
    def is_kept(self) -> bool:
        """Whether every promise that could be judged was kept."""
        return not self.counts

    def as_json(self) -> dict[str, Any]:
        """The verdict as JSON has it."""
        return {
            "kept": self.is_kept,
            "runs": self.runs,
            "lines": dict(sorted(self.lines.items())),
            "violations": dict(self.counts),
            "rows": [{**_given(each), "words": each.words} for each in self.violations],
            "not_judged": list(self.notes),
        }


def _given(violation: Violation) -> dict[str, Any]:
    return {name: value for name, value in violation._asdict().items() if value not in ("", -1)}


def verdict_of(plans: Sequence[Plan], lines: Mapping[str, int], found: Iterable[Violation]) -> Verdict:
    """The verdict, of all violations."""
    violations = list(found)
    counts = Counter(each.kind for each in violations)
    return Verdict(len(plans), dict(lines), in_order(counts), first_of_each(violations), notes_on(plans))


def first_of_each(violations: Iterable[Violation]) -> list[Violation]:
    """The first of each kind, in order."""
    kept: Counter[str] = Counter()
    rows = []
    for each in sorted(violations):
        kept[each.kind] += 1
        if kept[each.kind] <= ROWS_MAX:
            rows.append(each)
    return rows


def in_order(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by kind, in the order of the contract, without noughts."""
    return {kind: counts[kind] for kind in KINDS if counts.get(kind)}


_NOTES: Final[tuple[tuple[Callable[[Plan], bool], str], ...]] = (
    (
        lambda plan: plan.chronicle.end is None,
        "no end: what had not come and was not passed over is not judged, nor what was not accepted",
    ),
    (
        lambda plan: plan.chronicle.end is not None and not plan.is_drained,
        "not drained: what had not come and was not passed over is not judged, nor what was not accepted",
    ),
    (
        lambda plan: not plan.owes,
        "best-effort, and something broke: no delivery and no acceptance is owed",
    ),
    (
        lambda plan: plan.is_drained and not plan.is_complete,
        "durable, and a broker was left broken: what only its log may have is not judged, nor what was not accepted",
    ),
    (
        lambda plan: plan.is_beyond_delta,
        "reliable, and more than delta may have been down at a time: gaps explain losses, and acceptance is not owed",
    ),
)


def notes_on(plans: Iterable[Plan]) -> list[str]:
    """What was not judged, and in which runs."""
    told = list(plans)
    notes = []
    for applies, note in _NOTES:
        runs = [plan.run for plan in told if applies(plan)]
        if runs:
            which = runs[0] if len(runs) == 1 else f"{len(runs)} of {len(told)} runs, such as {runs[0]}"
            notes.append(f"{which}: {note}")
    return notes
