"""Results are written, and read as they were; a file that is none is named with what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.bench import overlay, sesdad
from holdfast.bench.matching import Job, Measurement
from holdfast.bench.overlay_finding import Check, Finding
from holdfast.bench.result import BadResult, read_results, result_of, write_result
from holdfast.bench.router import router_finding
from holdfast.bench.sesdad import POLICIES, Policy, SesdadPlan, configuration, intervals, links, script
from holdfast.cli.main import main
from simulations import SESDAD

FOUND = Finding(
    "load",
    "A load (E0.1)",
    ("second", "node"),
    [(1, "n1"), (2, "n2")],
    ("node", "in/s"),
    [("n1", 2.5)],
    [Check("it holds", "it does", True)],
    "A remark.",
)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    result = result_of(FOUND, "E0.1", "holdfast bench overlay load")
    path = write_result(tmp_path, result)
    assert path.name == "E0.1.json"
    assert read_results(tmp_path) == {"E0.1": result}
    assert (result.title, result.holdfast, result.size) == ("A load", "0.1.0", "full")
    assert '  [1,"n1"],\n' in path.read_text(), "a row in a line"


def test_numbers_are_looked_up_by_row_and_column() -> None:
    result = result_of(FOUND, "E0.1", "x")
    assert result.found("in/s", {"node": "n1"}) == 2.5
    assert result.numbers("second") == [1, 2]
    for ask in (
        lambda: result.found("in/s", {"node": "n9"}),
        lambda: result.found("out/s", {"node": "n1"}),
        lambda: result.found("node", {"node": "n1"}),
        lambda: result.numbers("node"),
        lambda: result.column("third"),
    ):
        with pytest.raises(BadResult, match=r"^E0\.1: "):
            ask()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"title": 7},
            r"E0\.1\.json: no result of an experiment: Expected `str`, got `int` - at `\$\.title`",
        ),
        ({"mood": "good"}, "unknown field `mood`"),
        ({"command": None}, r"at `\$\.command`"),
        ({"version": 2}, "version 2; expected 1"),
        ({"experiment": "E0.2"}, r"holds E0\.2; expected E0\.1"),
        ({"data": [[1]]}, "a row of 1 cells for 2 columns"),
        ({"summary": []}, "without rows of node, in/s"),
        ({"size": "huge"}, "Invalid enum value 'huge'"),
    ],
)
def test_a_file_that_is_no_result_is_named(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    path = write_result(tmp_path, result_of(FOUND, "E0.1", "x"))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BadResult, match=problem):
        read_results(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadResult, match="nowhere: No such file"):
        read_results(tmp_path / "nowhere")


def test_benchmarks_write_their_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(overlay.EXPERIMENTS, "load", lambda: FOUND)
    assert main(["bench", "overlay", "load", "--out", str(tmp_path), "--results", str(tmp_path)]) == 0
    monkeypatch.setitem(sesdad.SESDAD_EXPERIMENTS, "E3.2", lambda plan: FOUND)
    assert main(["bench", "sesdad", "E3.2", "--results", str(tmp_path)]) == 0
    assert [each.command for each in read_results(tmp_path).values()] == [
        "holdfast bench overlay load",
        "holdfast bench sesdad E3.2",
    ]


@pytest.mark.parametrize(
    "command",
    [["overlay", "load"], ["durable", "--experiment", "E1.3"], ["matching"], ["sesdad", "E3.2"]],
)
def test_a_folder_for_results_is_looked_for_before_anything_is_measured(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *command, "--results", "nowhere"]) == 2
    assert "--results nowhere: there is no such folder" in capsys.readouterr().err


def test_jobs_of_the_durable_benchmark_have_no_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "durable", "--results", str(tmp_path)]) == 2
    assert "expected --experiment, too" in capsys.readouterr().err


def test_the_router_is_read_off_the_matching_benchmark() -> None:
    """E2.3: XPath only, and only engines in which subscriptions come and go."""
    measured = [
        Measurement(Job("xpath", "lxml", 1_000), 1_000.0, 20.0),
        Measurement(Job("xpath", "pure", 1_000), 80.0, 20.0, 30.0, 38.0, 3_000.0),
        Measurement(Job("xpath", "pure", 50_000), 800.0, 270.0, 95.0, 22.0, 3_000.0),
        Measurement(Job("topics", "pure", 1_000), 3.0, 8.0, 5.0, 1.0, 300.0),
    ]
    finding = router_finding(measured)
    assert finding.data == [
        ("pure", 1_000, 20.0, 80.0, 30.0, 38.0),
        ("pure", 50_000, 270.0, 800.0, 95.0, 22.0),
    ]
    assert [(check.found, check.holds) for check in finding.checks] == [
        ("10.0 times for 50 times as many", True)
    ]


# SESDAD


def meant(text: str) -> list[str]:
    """The lines of a scenario that say something, in one order."""
    return sorted(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))


def test_configuration_and_script_are_those_of_the_paper() -> None:
    """E3.2, E3.3: the files of the examples, but for what a policy sets."""
    policy = ("RoutingPolicy", "Ordering", "LoggingLevel")
    ours, theirs = (
        [line for line in meant(text) if not line.startswith(policy)]
        for text in (configuration(Policy("filter", "FIFO")), (SESDAD / "configuration1.txt").read_text())
    )
    assert ours == theirs
    assert meant(script(SesdadPlan(), 200)) == meant((SESDAD / "script1.txt").read_text())


def test_e32_filtering_saves_copies_in_every_order() -> None:
    finding = links(SesdadPlan(events=30))
    assert finding.holds
    assert len(finding.checks) == 3
    assert sum(row[2] for row in finding.summary if isinstance(row[2], int)) == sum(
        row[2] for row in finding.data if isinstance(row[2], int)
    )


def test_e33_promises_are_kept_at_every_interval_and_a_broken_one_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = SesdadPlan(events=20, intervals_ms=(50, 1))
    finding = intervals(plan)
    assert finding.holds
    assert len(finding.summary) == 2 * len(POLICIES)
    monkeypatch.setattr(sesdad, "check_all", lambda trace, grace_seconds: ["lost"])
    assert not any(check.holds for check in intervals(plan).checks)
