from __future__ import annotations

import pytest

from broken_brokers import Dropping
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.simulator.swarm import main, run_seed, run_swarm
from holdfast.simulator.swarm_scenarios import BROKERS_MAX, draw_scenario


@pytest.mark.parametrize("faults", [False, True])
def test_every_drawn_scenario_can_be_read(faults: bool) -> None:
    sizes = set()
    for seed in range(100):
        scenario = draw_scenario(seed, faults=faults)
        configuration = parse_configuration(scenario.configuration, "configuration")
        parse_script(scenario.script, "script", configuration)
        sizes.add(len(configuration.of_kind("broker")))
    assert sizes == set(range(1, BROKERS_MAX + 1))


def test_things_break_only_where_they_may() -> None:
    faulty = ("Crash", "Freeze", "Cut", "Isolate", "Loss", "Duplicate", "Reorder", "Disconnect")
    for word in faulty:
        assert not any(word in str(draw_scenario(seed, faults=False)) for seed in range(100))
        assert any(word in str(draw_scenario(seed, faults=True)) for seed in range(100)), word


def test_a_failure_tells_its_scenario_and_the_line_that_repeats_it() -> None:
    report = run_swarm(range(6), faults=False, make_broker=Dropping)
    failure = report.failures[0]
    text = str(failure)
    assert f"repeat it with: python -m holdfast.simulator.swarm --seed {failure.seed}\n" in f"{text}\n"
    assert str(failure.scenario) in text
    assert "lost: " in text
    again = run_seed(failure.seed, faults=False, make_broker=Dropping)
    assert again.digest == failure.digest


def test_a_swarm_stops_when_its_time_is_up() -> None:
    turns = iter([False, False, True])
    assert run_swarm(range(100), faults=False, is_time_up=lambda: next(turns)).runs == 2


def test_the_command_shows_the_transcript_of_one_seed_and_a_line_for_each_of_many(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seed", "5", "--faults"]) == 0
    one = capsys.readouterr().out.splitlines()
    assert one[0].split() == ["time", "node", "what"]
    assert one[-1].startswith("seed 5: well, ")
    assert main(["--seed", "5", "--count", "2", "--faults"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == one[-1]
    assert second.startswith("seed 6: well, ")
