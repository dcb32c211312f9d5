"""A run in a few lines: what was published, accepted, delivered and forwarded, and whether promises were kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from holdfast.scenarios.checkers import Violation
from holdfast.scenarios.checkers.history import History
from holdfast.scenarios.topology import MASTER
from holdfast.scenarios.trace import TraceLine
from holdfast.scenarios.traffic import link_traffic

__all__ = ["Summary", "rows", "summarise", "verdict"]

#: How many violations are shown of however many there are.
VIOLATIONS_SHOWN_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of one run."""

    world: str
    published: int
    accepted: int
    delivered: int
    gaps: int
    sessions_lost: int  #: as each end that noticed has told; what the script disconnects is not lost
    forwards: dict[tuple[str, str], int]  #: copies by link; empty unless LoggingLevel is full
    drained: bool
    owes_everything: bool  #: it was drained and, where the guarantee is best-effort, nothing broke
    seconds: float  #: from the beginning of the script to its end, by the clock of its world


def summarise(trace: Sequence[TraceLine]) -> Summary:
    """The figures of a trace; all nought if the script never began."""
    kinds = Counter(line["kind"] for line in trace)
    run = next((line for line in trace if line["kind"] == "run"), None)
    end = next((line for line in trace if line["kind"] == "end"), None)
    return Summary(
        world="" if run is None else run["world"],
        published=kinds["publish"],
        accepted=kinds["accepted"],
        delivered=kinds["deliver"],
        gaps=kinds["gap"],
        sessions_lost=sum(line["kind"] == "disconnect" and line["node"] != MASTER for line in trace),
        forwards=dict(sorted(link_traffic(trace).items())),
        drained=end is not None and end["drained"],
        owes_everything=History.of(trace).owes_everything(-inf),
        seconds=0.0 if end is None else end["t"],
    )


def rows(summary: Summary, wall_seconds: float) -> Iterator[tuple[str, str]]:
    """The summary as names and values."""
    yield "published", f"{summary.published:,}"
    yield "accepted", f"{summary.accepted:,}"
    yield "delivered", f"{summary.delivered:,}"
    if summary.gaps:
        yield "gaps announced", f"{summary.gaps:,}"
    if summary.sessions_lost:
        yield "sessions lost", f"{summary.sessions_lost:,}"
    for (sender, receiver), copies in summary.forwards.items():
        yield f"forwarded {sender} -> {receiver}", f"{copies:,}"
    yield "drained", "yes" if summary.drained else "no"
    if summary.world == "simulator":
        yield "virtual time", f"{summary.seconds:,.3f} s"
    yield "wall time", f"{wall_seconds:,.3f} s"


def verdict(violations: Sequence[Violation], *, owes_everything: bool = True) -> str:
    """Whether the run kept its promises, and if not, which it broke."""
    if not violations:
        excuse = "" if owes_everything else "; with faults, or undrained, no delivery is owed"
        return f"promises kept{excuse}"
    shown = [str(violation) for violation in violations[:VIOLATIONS_SHOWN_MAX]]
    if len(violations) > len(shown):
        shown.append(f"… and {len(violations) - len(shown):,} more")
    return "\n".join([f"promises broken: {len(violations):,}", *shown])
