"""Many reliable networks that forget more than they may, each drawn from a seed, run under an oracle, and judged.

They are judged as wild ones are (``reliable_swarm``): nothing repeated, reordered, made up, untagged or lost without a
gap, no law of the wire broken, alive and at rest again at the end. But here much is lost, and counted: what was owed
and did not come, every one of which a gap has announced. From the command line::

    python -m holdfast.simulator.reliable_lapse_swarm --seed 17                one seed, with its transcript
    python -m holdfast.simulator.reliable_lapse_swarm --seed 17 --count 500    500 seeds from 17 on, and their counts
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.checkers.completeness import completeness
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.topology import Configuration
from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.convergence import convergence
from holdfast.simulator.liveness import liveness, settled_at
from holdfast.simulator.oracle.oracle import Oracle
from holdfast.simulator.reliable_lapse_scenarios import REST_MS, draw_lapsing
from holdfast.simulator.reliable_swarm import (
    BEYOND_DELTA,
    Outcome,
    Report,
    Tally,
    play,
    repeat_or_count,
    tally_of,
)
from holdfast.simulator.seeds import swarm_parser

__all__ = ["LapseTally", "run_lapsing"]


@dataclass(slots=True)
class LapseTally(Tally):
    """What runs amount to, and what they have lost."""

    losing: int = 0  #: runs in which anything was lost
    losses: int = 0  #: what was owed to a subscription, and did not come


def run_lapsing(seed: int, oracle: Callable[[Configuration], Oracle] = Oracle) -> Outcome:
    """Draw, run and judge one scenario."""
    scenario = draw_lapsing(seed)

    def judged(
        trace: Sequence[TraceLine], configuration: Configuration, watching: Oracle
    ) -> tuple[list[Violation], Tally]:
        found = [*check_all(trace, grace_seconds=REST_MS / 1000), *convergence(trace), *watching.broken]
        found = [violation for violation in found if violation.kind not in BEYOND_DELTA]
        found += liveness(trace, settled_at(trace, REST_MS / 1000))
        losses = len(completeness([line for line in trace if line["kind"] != "gap"]))
        tally = tally_of(trace, scenario, watching)
        counts = {each.name: getattr(tally, each.name) for each in fields(tally)}
        return found, LapseTally(**counts, losing=int(losses > 0), losses=losses)

    command = f"python -m holdfast.simulator.reliable_lapse_swarm --seed {seed}"
    return play(seed, scenario, judged, command, oracle=oracle)


def main(arguments: Sequence[str] | None = None) -> int:
    """Repeat one seed, or run many and count; the exit status is 1 if any failed."""
    parser = swarm_parser("holdfast.simulator.reliable_lapse_swarm", "Reliable networks that lose something.")
    return repeat_or_count(parser.parse_args(arguments), Report(LapseTally()), run_lapsing)


if __name__ == "__main__":
    sys.exit(main())
