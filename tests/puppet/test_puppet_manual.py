"""The examples of docs/puppet.md do what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.language import ScenarioError
from holdfast.scenarios.script import parse_script
from performances import performed
from simulations import of_kind, promises_kept, simulated

MANUAL = Path(__file__).parents[2] / "docs" / "puppet.md"


def blocks(kind: str) -> list[str]:
    found = re.findall(rf"^```{kind}\n(.*?)^```$", MANUAL.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found, f"no block of {kind}"
    return found


(NETWORK,) = blocks("network")
SCRIPTS = blocks("script")


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_runs_in_the_simulator_and_keeps_its_promises(script: str) -> None:
    result = simulated(NETWORK, script)
    assert result.drained
    assert promises_kept(result.trace)
    assert of_kind(result.trace, "deliver")


def test_the_first_scenario_runs_with_real_processes_too() -> None:
    result = performed(NETWORK, SCRIPTS[0])
    assert result.drained
    assert promises_kept(result.trace)
    assert len(of_kind(result.trace, "status")) == 6


def test_service_is_restored_after_everything_that_was_broken() -> None:
    trace = simulated(NETWORK, SCRIPTS[-1]).trace
    assert [line["n"] for line in of_kind(trace, "deliver")][-20:] == list(range(401, 421))


def test_a_reliable_network_loses_nothing_in_either_world_and_drains_when_the_dead_are_expelled() -> None:
    [added], [script] = blocks("reliable"), blocks("reliable-script")
    for world in (simulated, performed):
        result = world(NETWORK + added, script)
        assert [line["n"] for line in of_kind(result.trace, "deliver", subscriber="otto")] == list(
            range(1, 401)
        )
        assert result.drained
        assert check_all(result.trace, grace_seconds=5) == []  # a real broker takes its time to be back
    assert not simulated(NETWORK + added, script.replace("Expel wim\n", "")).drained


def test_a_durable_network_keeps_everything_for_who_is_away_in_either_world() -> None:
    [added], [script] = blocks("durable"), blocks("durable-script")
    for world in (simulated, performed):
        result = world(NETWORK + added, script)
        assert result.drained
        assert [line["n"] for line in of_kind(result.trace, "deliver", subscriber="otto")] == list(
            range(1, 401)
        )
        dear = [line["n"] for line in of_kind(result.trace, "publish") if line["attributes"]["price"] > 100]
        assert [line["n"] for line in of_kind(result.trace, "deliver", subscriber="anna")] == dear
        assert check_all(result.trace) == []
        assert not of_kind(result.trace, "gap")


@pytest.mark.parametrize("line", [line for block in blocks("refused") for line in block.splitlines()])
def test_what_does_not_exist_yet_is_refused_by_name(line: str) -> None:
    text = NETWORK.replace("Ordering FIFO\n", "") + line + "\n"
    with pytest.raises(ScenarioError, match=r"does not exist yet|do not exist yet") as caught:
        parse_configuration(text, "network.txt")
    assert caught.value.line == len(text.splitlines())


@pytest.mark.parametrize("line", [line for block in blocks("refused-command") for line in block.splitlines()])
def test_commands_that_do_not_exist_yet_are_refused_by_name(line: str) -> None:
    with pytest.raises(ScenarioError, match="does not exist yet"):
        parse_script(line, "script.txt", parse_configuration(NETWORK))
