"""Many reliable networks, each drawn from a seed, run under an oracle, and judged.

*Calm* runs keep to the guarantee: everything is owed, and every law holds. *Wild* runs do not: nothing may be
repeated, reordered, made up, untagged or lost without a gap, and no law of the wire may be broken. Both must be alive
and at rest again at their end. From the command line::

    python -m holdfast.simulator.reliable_swarm --seed 17 --wild            one seed, with its transcript
    python -m holdfast.simulator.reliable_swarm --seed 17 --count 500      500 seeds from 17 on, and their counts
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from traceback import format_exception
from typing import Final, TypeAlias

from holdfast.broker.broker import Broker
from holdfast.clock import SECOND
from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.checkers.delay import delay
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.scenarios.topology import MASTER, Configuration
from holdfast.scenarios.trace import TraceLine, digest
from holdfast.simulator.cast import MakeBroker
from holdfast.simulator.convergence import convergence
from holdfast.simulator.liveness import liveness, settled_at, stuck
from holdfast.simulator.oracle.oracle import Oracle
from holdfast.simulator.reliable_scenarios import WILD_SETTLE_MS, draw_reliable, settle_ms
from holdfast.simulator.run import simulate
from holdfast.simulator.seeds import seeds_of, seeds_until, swarm_parser
from holdfast.simulator.swarm_scenarios import Scenario
from holdfast.simulator.transcript import LINES_MAX

__all__ = [
    "BEYOND_DELTA",
    "Judge",
    "Outcome",
    "Report",
    "Tally",
    "play",
    "repeat_or_count",
    "run_reliable",
    "run_reliable_swarm",
    "tally_of",
]

#: One seed in so many has its messages encoded and decoded on the way.
WIRE_EVERY: Final = 8

#: And one in so many has so little room between brokers, and to clients an eighth of it: some ten events.
CRAMPED_EVERY: Final = 3
CRAMPED_BYTES: Final = 4_000

#: What the guarantee rules out, and a wild run may show.
BEYOND_DELTA: Final = ("unaccepted", "I2", "I8", "I10", "I12")
_TROUBLES: Final = ("crash", "freeze", "cut", "disconnect")


@dataclass(slots=True)
class Tally:
    """What runs amount to."""

    runs: int = 0
    events: int = 0
    deliveries: int = 0
    faults: int = 0
    suppressions: int = 0  #: of repeats, by edges
    rejections: int = 0  #: of late copies, by nodes that had not seen them, and rightly
    refills: int = 0
    resent: int = 0
    partial: int = 0  #: subscriptions that were confirmed partially
    gaps: int = 0

    def add(self, other: Tally) -> None:
        """Add one to another."""
        for each in fields(other):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one seed."""

    seed: int
    scenario: Scenario
    violations: list[Violation]
    digest: str
    tally: Tally
    command: str  #: the line that repeats it

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


#: What is said of a run, and what it amounts to; by its trace, its configuration and the oracle that watched it.
Judge: TypeAlias = Callable[[Sequence[TraceLine], Configuration, Oracle], tuple[list[Violation], Tally]]


def play(
    seed: int,
    scenario: Scenario,
    judge: Judge,
    command: str,
    *,
    make_broker: MakeBroker = Broker,
    oracle: Callable[[Configuration], Oracle] = Oracle,
    wire: bool | None = None,
) -> Outcome:
    """Run and judge one scenario. ``wire`` is the seed's own choice unless given."""
    configuration = parse_configuration(scenario.configuration, "configuration")
    script = parse_script(scenario.script, "script", configuration)
    watching = oracle(configuration)
    encoded = seed % WIRE_EVERY == 0 if wire is None else wire
    try:
        result = simulate(
            configuration,
            script,
            wire=encoded,
            transcript=watching,
            make_broker=make_broker,
            relayed_bytes=CRAMPED_BYTES if seed % CRAMPED_EVERY == CRAMPED_EVERY - 1 else None,
        )
    except Exception as error:  # whatever a core lets escape is a bug, and the seed must be told
        escaped = Violation("crash", "".join(format_exception(error)))
        return Outcome(seed, scenario, [escaped], "", Tally(runs=1), command)
    violations, tally = judge(result.trace, configuration, watching)
    return Outcome(seed, scenario, violations, digest(result.trace), tally, command)


def run_reliable(
    seed: int,
    *,
    wild: bool,
    make_broker: MakeBroker = Broker,
    oracle: Callable[[Configuration], Oracle] = Oracle,
    wire: bool | None = None,
) -> Outcome:
    """Draw, run and judge one scenario."""
    scenario = draw_reliable(seed, wild=wild)
    command = f"python -m holdfast.simulator.reliable_swarm --seed {seed}{' --wild' if wild else ''}"

    def judged(
        trace: Sequence[TraceLine], configuration: Configuration, watching: Oracle
    ) -> tuple[list[Violation], Tally]:
        found = [*judge(trace, configuration, scenario, wild=wild), *watching.broken]
        if wild:
            found = [violation for violation in found if violation.kind not in BEYOND_DELTA]
            found += liveness(trace, settled_at(trace, WILD_SETTLE_MS / 1000 - 0.5))
        return found, tally_of(trace, scenario, watching)

    return play(seed, scenario, judged, command, make_broker=make_broker, oracle=oracle, wire=wire)


def judge(
    trace: Sequence[TraceLine], configuration: Configuration, scenario: Scenario, *, wild: bool
) -> list[Violation]:
    """What the trace says of a run."""
    dack_ms = configuration.dack_every_ns * 1000 // SECOND
    grace_ms = WILD_SETTLE_MS - 4_000 if wild else settle_ms(dack_ms)
    found = [*check_all(trace, grace_seconds=grace_ms / 1000), *convergence(trace)]
    if wild:
        return found
    found += stuck(trace)
    found += [Violation("gap", "announced within delta", (line,)) for line in trace if line["kind"] == "gap"]
    if " Link " not in scenario.script:  # a slow link stands in no trace
        found += delay(trace, within_seconds=_delay_max(configuration))
    return found


def _delay_max(configuration: Configuration) -> float:
    """k·(detector timeout + call) + the way, for k up to δ [I33]; with some room."""
    slowest = max((link.quality.delay_ns + link.quality.jitter_ns for link in configuration.links), default=0)
    hop = max(slowest, configuration.quality("", "").delay_ns) / SECOND
    noticed = (
        configuration.detect_after_ns + configuration.heartbeat_ns + configuration.probe_every_ns
    ) / SECOND
    return (configuration.delta + 1) * (noticed + 8 * hop) + 2 * hop * len(configuration.processes)


def tally_of(trace: Sequence[TraceLine], scenario: Scenario, oracle: Oracle) -> Tally:
    """Count one run."""
    counts = oracle.counts
    kinds = [line["kind"] for line in trace]
    troubles = sum(line["kind"] in _TROUBLES and line["node"] == MASTER for line in trace)
    return Tally(
        runs=1,
        events=kinds.count("publish"),
        deliveries=kinds.count("deliver"),
        faults=troubles + scenario.script.count(" Link ") // 2,
        suppressions=counts.suppressed,
        rejections=counts.rejected,
        refills=counts.refilled,
        resent=counts.resent,
        partial=sum(line["kind"] == "subscribed" and bool(line["partial"]) for line in trace),
        gaps=kinds.count("gap"),
    )


def run_reliable_swarm(
    seeds: Iterable[int],
    *,
    wild: bool,
    is_time_up: Callable[[], bool] = lambda: False,
    make_broker: MakeBroker = Broker,
) -> Report:
    """Run seeds until there are no more, or the clock given in says so."""
    report = Report()
    for seed in seeds_until(seeds, is_time_up):
        report.add(run_reliable(seed, wild=wild, make_broker=make_broker))
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Repeat one seed, or run many and count; the exit status is 1 if any failed."""
    parser = swarm_parser("holdfast.simulator.reliable_swarm", "Simulated reliable networks.")
    parser.add_argument("--wild", action="store_true", help="break more than the guarantee allows")
    options = parser.parse_args(arguments)
    return repeat_or_count(
        options, Report(), lambda seed, oracle: run_reliable(seed, wild=options.wild, oracle=oracle)
    )


def repeat_or_count(
    options: Namespace, report: Report, run: Callable[[int, Callable[[Configuration], Oracle]], Outcome]
) -> int:
    """One seed with its transcript, or many and their counts; 1 if any failed."""
    if options.count == 1:
        return _show(options.seed, run)
    for seed in seeds_of(options):
        outcome = run(seed, Oracle)
        report.add(outcome)
        if outcome.violations:
            sys.stdout.write(f"{outcome}\n")
            sys.stdout.flush()
    sys.stdout.write(f"counts: {json.dumps(asdict(report.tally))}\n")
    return 1 if report.failures else 0


def _show(seed: int, run: Callable[[int, Callable[[Configuration], Oracle]], Outcome]) -> int:
    watched: list[Oracle] = []

    def watch(configuration: Configuration) -> Oracle:
        watched.append(Oracle(configuration, lines_max=LINES_MAX))
        return watched[0]

    outcome = run(seed, watch)
    sys.stdout.write(f"{watched[0]}{outcome}\n")
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
