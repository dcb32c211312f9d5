"""The durable swarm: as many seeds as fit into its time, what it prints, and that a seed is always the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from broken_brokers import Skipping
from holdfast.broker.broker import Broker
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.simulator.durable_scenarios import draw_durable
from holdfast.simulator.durable_swarm import main, run_durable, run_durable_swarm
from holdfast.streams.storing import ReadMatches
from swarm_time import for_seconds

SECONDS = 8.0
#: So many run, however long that takes.
RUNS_MIN = 6

#: Seeds that found something, each in its time: pubends that were born while somebody was away, silence from before a
#: subscription, receipts that were lost with a session, release behind an unfinished reader, logs never begun, silence
#: that was taken for acknowledged at a move, places that went with the client that had brought them, a confirmation
#: that came too soon, what was given up while a subscription moved, partitions that were over and another
#: that was not, or whose lead had died; pubends that came to rest before everybody was told of all; silence that was
#: released before its subscriber was told of it.
ONCE_FAILED = (
    (24, False),
    (26, False),
    (21127, False),
    (2, True),
    (4, True),
    (5, True),
    (13, True),
    (36, True),
    (50, True),
    (100, True),
    (107, True),
    (145, True),
    (220, True),
    (235, True),
    (401, True),
    (669, True),
    (711, True),
    (2573, True),
    (2586, True),
    (2607, True),
    (3883, True),
    (5146, True),
    (6865, True),
    (7933, True),
    (8823, True),
    (3001054, True),
    (3001062, True),
    (3001225, True),
    (1132, True),
    (11205, True),
    (12140, True),
    (10234, True),
)


@pytest.mark.parametrize("faults", [False, True])
def test_no_seed_breaks_a_promise(faults: bool) -> None:
    report = run_durable_swarm(range(1_000_000), faults=faults, is_time_up=for_seconds(SECONDS, RUNS_MIN))
    assert not report.failures, "\n".join(map(str, report.failures))
    assert report.tally.runs >= RUNS_MIN


def test_no_seed_breaks_a_promise_to_whoever_has_hardly_any_room() -> None:
    report = run_durable_swarm(
        range(1_000_000), faults=True, tight=True, is_time_up=for_seconds(SECONDS, RUNS_MIN)
    )
    assert not report.failures, "\n".join(map(str, report.failures))
    assert report.tally.runs >= RUNS_MIN


@pytest.mark.parametrize("tight", [False, True])
def test_who_has_hardly_any_room_falls_behind_and_nobody_else_does(tight: bool) -> None:
    class Counting(Broker):
        readings = 0

        def step(self, stimulus: Any, now: int) -> list[Any]:
            effects = super().step(stimulus, now)
            Counting.readings += sum(isinstance(each, ReadMatches) for each in effects)
            return effects

    outcome = run_durable(3, faults=False, tight=tight, make_broker=Counting)
    assert not outcome.violations
    assert outcome.command.endswith("--tight") == tight
    assert (Counting.readings > 10) == tight


@pytest.mark.parametrize(("seed", "faults"), ONCE_FAILED)
def test_what_failed_once_does_not_fail_again(seed: int, faults: bool) -> None:
    outcome = run_durable(seed, faults=faults)
    assert not outcome.violations, str(outcome)


def test_a_seed_is_always_the_same_run() -> None:
    first, second = (run_durable(5, faults=True) for _ in range(2))
    assert first.digest == second.digest
    assert first.digest != run_durable(6, faults=True).digest


def test_what_is_drawn_is_a_scenario_and_has_all_that_can_happen() -> None:
    drawn = [draw_durable(seed, faults=True) for seed in range(80)]
    for scenario in drawn:
        network = parse_configuration(scenario.configuration, "configuration")
        parse_script(scenario.script, "script", network)
    text = "".join(map(str, drawn))
    for word in (
        "TOTAL",
        "Retain",
        "Pubends 3",
        "Durable",
        "Reconnect On",
        "Crash b",
        "Clock",
        "Slow",
        "Cut p",
    ):
        assert word in text
    assert {hazard.kind for scenario in drawn for hazard in scenario.hazards} == {"full", "failing"}
    assert {len(others) for scenario in drawn for others in scenario.others.values()} == {1, 2}
    assert "also goes to" in text


def test_a_failing_run_prints_the_line_that_repeats_it() -> None:
    outcome = next(
        outcome
        for seed in range(20)
        if (outcome := run_durable(seed, faults=False, make_broker=Skipping)).violations
    )
    assert str(outcome).endswith(f"repeat it with: {outcome.command}")
    assert outcome.command == f"python -m holdfast.simulator.durable_swarm --seed {outcome.seed}"
    assert "# configuration\n" in str(outcome)


def test_the_command_runs_seeds_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "2", "--count", "2"]) == 0
    counts = json.loads(capsys.readouterr().out.removeprefix("counts: "))
    assert counts["runs"] == 2
    assert counts["accepted"] == counts["events"] > 0


def test_the_command_shows_one_seed_with_its_transcript(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "2"]) == 0
    shown = capsys.readouterr().out
    assert "started, incarnation 1" in shown
    assert shown.splitlines()[-1].startswith("seed 2: well, ")
