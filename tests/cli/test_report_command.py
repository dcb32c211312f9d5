"""`holdfast report` as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.bench import simulated
from holdfast.bench.result import read_results
from holdfast.cli.main import main

RESULTS = Path(__file__).resolve().parent.parent.parent / "docs" / "experiments" / "results"


def test_the_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "page.html"
    assert main(["report", str(RESULTS), "--output", str(output)]) == 0
    assert output.read_text().startswith("<!DOCTYPE html>\n<html")
    assert capsys.readouterr().out.startswith(
        f"{output}: {len(read_results(RESULTS))} experiments of the papers"
    )


def test_what_the_simulator_can_tell_is_run_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of them really, at their quick size; what is there already is not run again."""
    monkeypatch.setattr(simulated, "SIMULATED", dict.fromkeys(("E0.6", "E3.2"), "x"))
    (tmp_path / "E0.6.json").write_bytes((RESULTS / "E0.6.json").read_bytes())
    output = tmp_path / "page.html"
    assert main(["report", str(tmp_path), "--simulate", "quick", "--output", str(output)]) == 0
    found = read_results(tmp_path)
    assert {name: result.size for name, result in found.items()} == {"E0.6": "full", "E3.2": "quick"}
    assert "a quick run" in output.read_text()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "no results; expected"),
        (["nowhere"], "nowhere: No such file or directory"),
        ([str(RESULTS), "--output", "nowhere/page.html"], "there is no folder nowhere"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *arguments]) == 2
    assert problem in capsys.readouterr().err


def test_a_bad_file_is_named_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "E0.1.json").write_text("{")
    assert main(["report", str(tmp_path), "--output", str(tmp_path / "page.html")]) == 2
    assert "E0.1.json: no result of an experiment" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()
