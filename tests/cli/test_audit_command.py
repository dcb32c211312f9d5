"""`holdfast audit` as a user meets it: exit status, words, JSON [contracts.md §6]."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from audited import clean, encoded, plant_duplicate, plant_lost
from holdfast.cli.main import main


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.jsonl"
    path.write_bytes(b"".join(encoded(clean("reliable"))))
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    trace = clean("reliable")
    plant_lost(trace)
    plant_duplicate(trace)
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"".join(encoded(trace)))
    return path


def test_kept_promises_are_status_0(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(good)]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("1 run, ")
    assert "80 published, 80 accepted" in first
    assert last == "promises kept"


def test_broken_promises_are_status_1_with_every_violation(
    bad: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(bad)]) == 1
    out = capsys.readouterr().out
    assert "promises broken: 2\n  lost                  1\n  duplicate             1\n" in out
    assert "never reached v for all  (p line " in out or "never reached v for all  (q line " in out
    assert "u got p#" in out


def test_the_verdict_as_json(good: Path, bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--json", str(good), str(bad)]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["engine"] == "local"
    assert verdict["runs"] == 2
    assert verdict["violations"] == {"lost": 1, "duplicate": 1}
    assert {row["run"] for row in verdict["rows"]} == {str(bad)}
    assert {row["kind"] for row in verdict["rows"]} == {"lost", "duplicate"}
    assert all(row["words"] and row["node"] and row["i"] for row in verdict["rows"])


def test_an_unreadable_trace_is_status_2_and_named(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad.write_bytes(bad.read_bytes()[:-20])
    assert main(["audit", str(bad)]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(f"holdfast: {bad}, line ")
    assert "not JSON" in err


def test_a_trace_of_the_puppet_master_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration, script, trace = (tmp_path / name for name in ("network", "script", "trace"))
    configuration.write_text(
        "Guarantee durable\nSite s Parent none\nProcess b is broker On s URL tcp://localhost:0/b\n"
        "Process p is publisher On s URL tcp://localhost:0/p\nProcess u is subscriber On s URL tcp://localhost:0/u\n"
    )
    script.write_text("Subscriber u Subscribe # As all Durable\nPublisher p Publish 9 Ontopic a Interval 1\n")
    assert main(["puppet", "--sim", "--trace", str(trace), str(configuration), str(script)]) == 0
    assert main(["audit", str(trace)]) == 0
    assert capsys.readouterr().out.endswith(
        "9 published, 9 accepted, 9 delivered (local engine)\npromises kept\n"
    )


def test_without_spark_its_engine_is_refused_with_how_to_get_it(
    good: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.pipeline.audit.engine.find_spec", lambda name: None)
    assert main(["audit", "--engine", "spark", str(good)]) == 2
    assert "pip install 'holdfast[spark]'" in capsys.readouterr().err


def test_without_pyarrow_parquet_is_refused_with_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "holdfast.pipeline.audit.columns", raising=False)
    assert main(["audit", str(path)]) == 2
    assert (
        "reading Parquet needs pyarrow; install it with: pip install 'holdfast[spark]'"
        in capsys.readouterr().err
    )
