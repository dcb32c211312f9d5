"""`holdfast puppet` as its users see it: exit status, what it says, what it leaves behind (nothing)."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.cli.main import main
from holdfast.puppet.trace_file import read_trace_file
from holdfast.scenarios.checkers import Violation
from performances import PAIR
from running import Running

SCRIPT = "Subscriber u2 Subscribe orders As s\nPublisher p Publish 10 Ontopic orders Interval 2\n"

#: Clients of a reliable network are dialled too, and so must be on this machine.
RELIABLE = f"Guarantee reliable{PAIR}"
FAR = "Process u3 is subscriber On s2 URL tcp://example.net:0/u"


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[[str, str], list[str]]:
    """Writes a configuration and a script; their paths as arguments."""

    def write(configuration: str, script: str) -> list[str]:
        for name, text in (("network.txt", configuration), ("script.txt", script)):
            (tmp_path / name).write_text(text, "utf-8")
        return ["puppet", str(tmp_path / "network.txt"), str(tmp_path / "script.txt")]

    return write


Scenario = Callable[[str, str], list[str]]


@pytest.mark.parametrize("world", [["--sim"], []])
def test_a_script_that_ran_to_its_end_is_summed_up(
    scenario: Scenario, world: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.jsonl"
    assert main([*scenario(PAIR, SCRIPT), *world, "--trace", str(trace), "--check"]) == 0
    said = capsys.readouterr()
    figures = dict(line.rsplit(maxsplit=1) for line in said.out.splitlines() if not line.endswith(" s"))
    assert figures["published"] == figures["accepted"] == figures["delivered"] == "10"
    assert figures["forwarded b1 -> b2"] == "10"
    assert figures["drained"] == "yes"
    assert said.out.endswith("promises kept\n")
    assert said.err == ""
    lines = read_trace_file(trace)
    assert (lines[0]["kind"], lines[-1]["kind"]) == ("run", "end")
    assert lines[0]["world"] == ("simulator" if world else "processes")


def test_broken_promises_are_named_and_decide_the_exit_status_if_asked_to(
    scenario: Scenario, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Violation("lost", "p#7 never reached u2 for s")
    monkeypatch.setattr("holdfast.cli.puppet.check_all", lambda trace, slow: [broken])
    arguments = [*scenario(PAIR, SCRIPT), "--sim"]
    assert main(arguments) == 0
    assert main([*arguments, "--check"]) == 1
    assert capsys.readouterr().out.endswith("promises broken: 1\nlost: p#7 never reached u2 for s\n")


def test_the_checkers_hear_which_subscribers_are_slow(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[set[str]] = []

    def check_all(trace: object, slow: set[str]) -> list[Violation]:
        heard.append(slow)
        return []

    monkeypatch.setattr("holdfast.cli.puppet.check_all", check_all)
    main([*scenario(PAIR, SCRIPT), "--sim"])
    main([*scenario(PAIR, "Slow u2 5\n" + SCRIPT), "--sim"])
    assert heard == [set(), {"u2"}]


@pytest.mark.parametrize(
    ("configuration", "script", "expected"),
    [
        ("Site s\n", "", "network.txt, line 1: the line ends; expected Parent"),
        (PAIR, "Wait 5\nDance\n", "script.txt, line 2: unexpected 'Dance'"),
        (PAIR + "Guarantee archived\n", "", "expected Guarantee best-effort"),
        (PAIR, "Subscriber u2 Subscribe orders Durable\n", "script.txt, line 1: nothing is kept for anybody"),
        (PAIR.replace("localhost:0/b", "example.net:0/b", 1), "", "network.txt, line 8: the address"),
        (RELIABLE.replace("localhost:0/p", "example.net:0/p"), "", "network.txt, line 10: the address"),
        (RELIABLE, f"Wait 5\nJoin {FAR}\n", "script.txt, line 2: the address"),
        (RELIABLE, f"Wait 5\nAt 9 Join {FAR}\n", "script.txt, line 2: the address"),
    ],
)
def test_a_bad_scenario_is_refused_with_file_line_and_what_was_expected(
    scenario: Scenario,
    configuration: str,
    script: str,
    expected: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(scenario(configuration, script)) == 2
    said = capsys.readouterr()
    assert expected in said.err
    assert said.out == ""


def test_where_a_best_effort_client_lives_does_not_matter_since_nobody_dials_it(
    scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(scenario(PAIR.replace("localhost:0/p", "example.net:0/p"), SCRIPT)) == 0
    assert capsys.readouterr().err == ""


def test_files_that_cannot_be_read_or_written_are_refused(
    scenario: Scenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = scenario(PAIR, SCRIPT)
    assert main(["puppet", str(tmp_path / "nothing"), arguments[2], "--sim"]) == 2
    assert "nothing: No such file" in capsys.readouterr().err
    assert main([*arguments, "--sim", "--trace", str(tmp_path / "no" / "where")]) == 2
    assert "where: No such file" in capsys.readouterr().err
    (tmp_path / "script.txt").write_bytes(b"Wait 1\n\xff\n")
    assert main([*arguments, "--sim"]) == 2
    assert "script.txt, line 2, column 1" in capsys.readouterr().err


def test_links_and_clocks_are_for_the_simulator_and_that_is_said(
    scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = scenario(
        PAIR + "Link s1 s2 Delay 500\n",
        "Link s1 s2 Loss 1\nAt 1 Link s1 s2 Loss 0\nClock b1 Shift 10\n" + SCRIPT,
    )
    assert main(arguments) == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        "holdfast: 3 Link lines have no effect without --sim, where links are real",
        "holdfast: 1 Clock line has no effect without --sim, where clocks are the machine's",
    ]
    assert "promises kept" in said.out


def test_a_process_that_cannot_start_is_named(scenario: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        network = PAIR.replace(
            "b2 is broker On s2 URL tcp://localhost:0", f"b2 is broker On s2 URL tcp://localhost:{port}"
        )
        assert main(scenario(network, SCRIPT)) == 1
    expected = f"holdfast: b2 cannot listen on localhost:{port}: address already in use\n"
    assert capsys.readouterr() == ("", expected)


# Ends that were not in the script

LONG = "Freeze u1\nPublisher p Publish 100000 Ontopic orders Interval 1\nWait 600000\n"


class Family:
    """The processes a process has started, by what Linux tells of them."""

    def __init__(self, pid: int) -> None:
        self.parent = pid
        self.members: set[int] = set()

    def look(self) -> dict[int, str]:
        """Those that live, with their states."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, parent = path.read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue  # it is gone by now
            pid = int(path.parent.name)
            if int(parent) == self.parent:
                self.members.add(pid)
            if pid in self.members and state not in "ZX":
                found[pid] = state
        return found


def wait_until(condition: Callable[[], bool], within_s: float = 30.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def wait_until_frozen(family: Family) -> None:
    wait_until(lambda: "T" in family.look().values())
    assert len(family.members) == 5


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_everything_and_keeps_the_trace(
    scenario: Scenario, tmp_path: Path, stop: signal.Signals
) -> None:
    trace = tmp_path / "trace.jsonl"
    folders = tmp_path / "folders"
    folders.mkdir()
    environment = {"TMPDIR": str(folders)}
    with Running(*scenario(PAIR, LONG), "--trace", str(trace), environment=environment) as run:
        family = Family(run.process.pid)
        wait_until_frozen(family)
        run.tell(stop)
        status, said, _ = run.ended()
        assert status == 130
        assert family.look() == {}
    assert not list(folders.iterdir())
    assert ["drained", "no"] in [line.split() for line in said.splitlines()]
    lines = read_trace_file(trace)
    assert [line["kind"] for line in lines if line["node"] == "master"] == ["run", "freeze", "end"]
    assert lines[-1]["drained"] is False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")
def test_no_process_outlives_a_master_that_is_killed_not_even_a_frozen_one(
    scenario: Scenario, tmp_path: Path
) -> None:
    with Running(*scenario(PAIR, LONG), environment={"TMPDIR": str(tmp_path)}) as run:
        family = Family(run.process.pid)
        wait_until_frozen(family)
        run.process.kill()
        run.process.wait()
        wait_until(lambda: not family.look())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")
def test_a_process_that_dies_unasked_ends_the_run(scenario: Scenario) -> None:
    with Running(*scenario(PAIR, LONG)) as run:
        family = Family(run.process.pid)
        wait_until_frozen(family)
        os.kill(next(pid for pid, state in family.look().items() if state != "T"), signal.SIGKILL)
        status, _, problem = run.ended()
        assert status == 1
        assert "was killed by signal 9" in problem
        assert family.look() == {}
