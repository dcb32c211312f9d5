"""The swarm's scenarios with real processes: ``python tests/real_swarm.py SECONDS SEED``.

What the simulator draws, with faults and without, is performed by processes on free ports and judged in the same way. A
run takes some twenty seconds, since its waits are real; a failing one prints its seed and its scenario.
"""

from __future__ import annotations

import sys
import time

from holdfast.puppet.run import perform
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.simulator.swarm import judge
from holdfast.simulator.swarm_scenarios import draw_scenario
from performances import on_free_ports

#: Larger networks are left to the simulator.
PROCESSES_MAX = 14


def campaign(seconds: float, seed: int) -> tuple[int, list[str]]:
    """Perform scenarios from this seed on until the time is up: how many, and what was wrong with those that failed."""
    runs, failures = 0, []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        problems = performed_seed(seed, faults=seed % 2 == 1)
        if problems is not None:
            runs += 1
            failures += problems
        seed += 1
    return runs, failures


def performed_seed(seed: int, *, faults: bool) -> list[str] | None:
    """What went wrong with one scenario; None if it is too large."""
    drawn = draw_scenario(seed, faults=faults)
    configuration = parse_configuration(on_free_ports(drawn.configuration))
    if len(configuration.processes) > PROCESSES_MAX:
        return None
    result = perform(configuration, parse_script(drawn.script, "script", configuration))
    found = [str(violation) for violation in judge(result.trace, faults=faults)]
    if result.failure is not None:
        found.append(str(result.failure))
    if not result.drained:
        found.append("not drained")
    return [f"seed {seed}, faults {faults}:", *found, str(drawn)] if found else []


if __name__ == "__main__":
    count, wrong = campaign(float(sys.argv[1]), int(sys.argv[2]))
    print(f"{count} scenarios with real processes")  # noqa: T201
    sys.exit("\n".join(wrong) if wrong else 0)
