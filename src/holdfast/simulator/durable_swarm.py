"""Many durable networks, each drawn from a seed, run, and judged: whatever breaks, nothing accepted is lost [BZA].

From the command line::

    python -m holdfast.simulator.durable_swarm --seed 17 --faults              one seed, with its transcript
    python -m holdfast.simulator.durable_swarm --seed 17 --count 500 --faults  500 seeds from 17 on, and their counts

With ``--lake`` there is one behind every log, which gives up early: then nobody may miss anything that was owed. With
``--tight`` subscribers take an event or a few at a time, so that they fall behind and catch up over and over.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from math import inf
from traceback import format_exception
from typing import Final

from holdfast.broker.broker import Broker
from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.checkers.acceptance import acceptance
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.scenarios.topology import MASTER
from holdfast.scenarios.trace import TraceLine, digest
from holdfast.simulator.cast import MakeBroker
from holdfast.simulator.durable_scenarios import DurableScenario, draw_durable
from holdfast.simulator.liveness import stuck
from holdfast.simulator.oracle.durable import DurableOracle
from holdfast.simulator.run import simulate
from holdfast.simulator.seeds import seeds_of, seeds_until, swarm_parser
from holdfast.simulator.transcript import LINES_MAX

__all__ = ["Outcome", "Report", "Tally", "judge", "run_durable", "run_durable_swarm"]

#: One seed in so many has its messages encoded and decoded on the way.
WIRE_EVERY: Final = 4
#: So long after its disk has come to itself a broker may still refuse.
REFUSING_SECONDS: Final = 3.0
_TROUBLES: Final = ("crash", "freeze", "cut", "disconnect")


@dataclass(slots=True)
class Tally:
    """What runs amount to."""

    runs: int = 0
    events: int = 0
    accepted: int = 0
    deliveries: int = 0
    faults: int = 0
    moves: int = 0
    gaps: int = 0
    silences: int = 0

    def add(self, other: Tally) -> None:
        """Add one to another."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one seed."""

    seed: int
    faults: bool
    scenario: DurableScenario
    violations: list[Violation]
    digest: str
    tally: Tally

    @property
    def command(self) -> str:
        """The line that repeats it."""
        options = " --faults" * self.faults + " --lake" * self.scenario.lake
        options += " --tight" * self.scenario.is_tight
        return f"python -m holdfast.simulator.durable_swarm --seed {self.seed}{options}"

    def __str__(self) -> str:
        if not self.violations:
            return f"seed {self.seed}: well, {self.digest}"
        found = "\n".join(f"  {violation.kind}: {violation.message}" for violation in self.violations[:20])
        return f"seed {self.seed}:\n{found}\n{self.scenario}repeat it with: {self.command}"


@dataclass(slots=True)
class Report:
    """What became of a swarm."""

    tally: Tally = field(default_factory=Tally)
    failures: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count one run."""
        self.tally.add(outcome.tally)
        if outcome.violations:
            self.failures.append(outcome)


def run_durable(
    seed: int,
    *,
    faults: bool,
    lake: bool = False,
    tight: bool = False,
    make_broker: MakeBroker = Broker,
    oracle: DurableOracle | None = None,
    wire: bool | None = None,
) -> Outcome:
    """Draw, run and judge one scenario. ``wire`` is the seed's own choice unless given."""
    scenario = draw_durable(seed, faults=faults, lake=lake, tight=tight)
    configuration = parse_configuration(scenario.configuration, "configuration")
    script = parse_script(scenario.script, "script", configuration)
    watching = oracle or DurableOracle()
    encoded = seed % WIRE_EVERY == 0 if wire is None else wire
    try:
        result = simulate(
            configuration,
            script,
            wire=encoded,
            transcript=watching,
            make_broker=make_broker,
            beside=scenario.beside,
            others=scenario.others,
            lake=lake,
            buffer=scenario.buffer,
        )
    except Exception as error:  # whatever a core lets escape is a bug, and the seed must be told
        escaped = Violation("crash", "".join(format_exception(error)))
        return Outcome(seed, faults, scenario, [escaped], "", Tally(runs=1))
    found = [*judge(result.trace, scenario), *watching.broken(releases_early=scenario.retain_ms is not None)]
    return Outcome(seed, faults, scenario, found, digest(result.trace), _tally(result.trace, scenario))


def judge(trace: Sequence[TraceLine], scenario: DurableScenario) -> list[Violation]:
    """What the trace says of a run; a disk that has no room is a reason to refuse, and no other is."""
    retain = inf if scenario.retain_ms is None or scenario.lake else scenario.retain_ms / 1000
    slow = {line["subscriber"] for line in trace if line["kind"] == "subscribe" and scenario.is_tight}
    found = [
        *check_all(trace, retain_seconds=retain, clock_seconds=scenario.clock_ms / 1000, slow=slow),
        *stuck(trace),
    ]
    if scenario.hazards:
        well_at = max(hazard.end_ms for hazard in scenario.hazards) / 1000 + REFUSING_SECONDS
        found = [violation for violation in found if violation.kind != "unaccepted"]
        found += acceptance(trace, healed_at=well_at)
    return found


def _tally(trace: Sequence[TraceLine], scenario: DurableScenario) -> Tally:
    kinds = [line["kind"] for line in trace]
    return Tally(
        runs=1,
        events=kinds.count("publish"),
        accepted=kinds.count("accepted"),
        deliveries=kinds.count("deliver"),
        faults=sum(line["kind"] in _TROUBLES and line["node"] == MASTER for line in trace)
        + len(scenario.hazards)
        + scenario.script.count(" Clock "),
        moves=scenario.script.count(" Reconnect On "),
        gaps=kinds.count("gap"),
        silences=kinds.count("silence"),
    )


def run_durable_swarm(
    seeds: Iterable[int],
    *,
    faults: bool,
    lake: bool = False,
    tight: bool = False,
    is_time_up: Callable[[], bool] = lambda: False,
    make_broker: MakeBroker = Broker,
) -> Report:
    """Run seeds until there are no more, or the clock given in says so."""
    report = Report()
    for seed in seeds_until(seeds, is_time_up):
        report.add(run_durable(seed, faults=faults, lake=lake, tight=tight, make_broker=make_broker))
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Repeat one seed, or run many and count; the exit status is 1 if any failed."""
    parser = swarm_parser("holdfast.simulator.durable_swarm", "Simulated durable networks.")
    parser.add_argument("--faults", action="store_true", help="let things break")
    parser.add_argument("--lake", action="store_true", help="with a lake behind every log")
    parser.add_argument("--tight", action="store_true", help="with subscribers that have hardly any room")
    options = parser.parse_args(arguments)
    run = partial(run_durable, faults=options.faults, lake=options.lake, tight=options.tight)
    if options.count == 1:
        watching = DurableOracle(lines_max=LINES_MAX)
        outcome = run(options.seed, oracle=watching)
        sys.stdout.write(f"{watching}{outcome}\n")
        return 1 if outcome.violations else 0
    report = Report()
    for seed in seeds_of(options):
        outcome = run(seed)
        report.add(outcome)
        if outcome.violations:
            sys.stdout.write(f"{outcome}\n")
            sys.stdout.flush()
    sys.stdout.write(f"counts: {json.dumps(asdict(report.tally))}\n")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
