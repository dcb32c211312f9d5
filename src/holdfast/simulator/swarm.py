"""Many small networks, each drawn from a seed, run, and judged: safety while anything may fail, then liveness.

A run that fails prints the line that repeats it and the scenario as text. From the command line::

    python -m holdfast.simulator.swarm --seed 17 --faults              one seed, with its transcript
    python -m holdfast.simulator.swarm --seed 17 --count 500 --faults  500 seeds from 17 on
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from traceback import format_exception
from typing import Final

from holdfast.broker.broker import Broker
from holdfast.clock import MILLISECOND, SECOND
from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.scenarios.trace import TraceLine, digest
from holdfast.simulator.cast import MakeBroker
from holdfast.simulator.convergence import convergence
from holdfast.simulator.liveness import liveness, settled_at
from holdfast.simulator.run import simulate
from holdfast.simulator.seeds import seeds_of, seeds_until, swarm_parser
from holdfast.simulator.swarm_scenarios import SETTLE_MS, Scenario, draw_scenario
from holdfast.simulator.transcript import Transcript

__all__ = ["Outcome", "Report", "run_seed", "run_swarm"]

#: One seed in so many has its messages encoded and decoded on the way.
WIRE_EVERY: Final = 4
#: The subscriptions of a network at rest are everywhere within this time; of one that was broken, within the other.
GRACE_SECONDS: Final = 3.0
GRACE_AFTER_FAULTS_SECONDS: Final = 8.0
_SETTLE_SECONDS: Final = (SETTLE_MS - 500) * MILLISECOND / SECOND


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one seed."""

    seed: int
    faults: bool
    scenario: Scenario
    violations: list[Violation]
    digest: str

    @property
    def command(self) -> str:
        """The line that repeats it."""
        return f"python -m holdfast.simulator.swarm --seed {self.seed}{' --faults' if self.faults else ''}"

    def __str__(self) -> str:
        if not self.violations:
            return f"seed {self.seed}: well, {self.digest}"
        found = "\n".join(f"  {violation.kind}: {violation.message}" for violation in self.violations)
        return f"seed {self.seed}:\n{found}\n{self.scenario}repeat it with: {self.command}"


@dataclass(slots=True)
class Report:
    """What became of a swarm."""

    runs: int = 0
    failures: list[Outcome] = field(default_factory=list)


def run_seed(
    seed: int,
    *,
    faults: bool,
    make_broker: MakeBroker = Broker,
    transcript: Transcript | None = None,
    wire: bool | None = None,
) -> Outcome:
    """Draw, run and judge one scenario. ``wire`` is the seed's own choice unless given."""
    scenario = draw_scenario(seed, faults=faults)
    configuration = parse_configuration(scenario.configuration, "configuration")
    script = parse_script(scenario.script, "script", configuration)
    encoded = seed % WIRE_EVERY == 0 if wire is None else wire
    try:
        result = simulate(configuration, script, wire=encoded, transcript=transcript, make_broker=make_broker)
    except Exception as error:  # whatever a core lets escape is a bug, and the seed must be told
        escaped = Violation("crash", "".join(format_exception(error)), ())
        return Outcome(seed, faults, scenario, [escaped], "")
    return Outcome(seed, faults, scenario, judge(result.trace, faults=faults), digest(result.trace))


def judge(trace: Sequence[TraceLine], *, faults: bool) -> list[Violation]:
    """Safety of the whole run, then liveness once it had settled, and that nothing is left of its troubles.

    A bad link leaves no line in the trace, so with faults nothing is owed of the time before.
    """
    grace = GRACE_AFTER_FAULTS_SECONDS if faults else GRACE_SECONDS
    since = settled_at(trace, _SETTLE_SECONDS) if faults else 0.0
    found = check_all(trace, grace_seconds=grace)
    if faults:
        found = [violation for violation in found if violation.kind not in ("lost", "unaccepted")]
    return [*found, *liveness(trace, since), *convergence(trace)]


def run_swarm(
    seeds: Iterable[int],
    *,
    faults: bool,
    is_time_up: Callable[[], bool] = lambda: False,
    make_broker: MakeBroker = Broker,
) -> Report:
    """Run seeds until there are no more, or the clock given in says so."""
    report = Report()
    for seed in seeds_until(seeds, is_time_up):
        outcome = run_seed(seed, faults=faults, make_broker=make_broker)
        report.runs += 1
        if outcome.violations:
            report.failures.append(outcome)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Repeat one seed, or run many; the exit status is 1 if any failed."""
    parser = swarm_parser("holdfast.simulator.swarm", "Simulated networks.")
    parser.add_argument("--faults", action="store_true", help="let things break")
    options = parser.parse_args(arguments)
    failed = 0
    for seed in seeds_of(options):
        transcript = Transcript() if options.count == 1 else None
        outcome = run_seed(seed, faults=options.faults, transcript=transcript)
        failed += bool(outcome.violations)
        if transcript is not None:
            sys.stdout.write(str(transcript))
        sys.stdout.write(f"{outcome}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
