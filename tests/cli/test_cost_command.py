"""`holdfast cost` as a user meets it: its table, its JSON, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cli.main import main

FILTERS = "-- held\norders/# WHERE price > 100\n\norders/# WHERE price > 150\nnews/#\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    filters, events = tmp_path / "filters", tmp_path / "events"
    filters.write_text(FILTERS)
    lines = [
        {
            "topic": "orders/eu",
            "attributes": {"price": price},
            "payload": "x" * 50,
            "time": f"2026-01-01T00:00:{price - 141:02}Z",
        }
        for price in range(141, 161)
    ]
    events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(filters), str(events)


def test_the_table_says_who_matched_and_who_is_covered(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cost", *files, "--new", "orders/eu WHERE price > 155", "--new", "weather"]) == 0
    out = capsys.readouterr().out
    lines = {line.split()[0]: line.split() for line in out.splitlines() if line.split()[:1]}
    assert lines["2"][1:4] == ["20", "100.0%", "1.05"]
    assert lines["4"][1:8] == ["10", "50.0%", "0.526", lines["4"][4], "0", "line", "2"]
    assert lines["5"][1:3] == ["0", "0.0%"]
    assert "new: orders/eu WHERE price > 155\n" in out
    assert "covered    by line 2, line 4: it can never add anything between brokers" in out
    assert "is there   5 of these come to the broker already" in out
    assert "adds       no events" in out


def test_json_has_everything(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", *files, "--new", "orders/+", "--seconds", "5", "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["engine"], found["events"], found["flowing"], found["seconds"]) == ("local", 20, 20, 5)
    assert [each["matches"] for each in found["held"]] == [20, 10, 0]
    assert [each["covered_by"] for each in found["held"]] == [[], [2], []]
    offered = found["offered"][0]
    assert (offered["line"], offered["matches"], offered["added"]) == (None, 20, 0)
    assert offered["bytes_per_second"] == offered["match_bytes"] / 5


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--new", "a WHERE"], "--new, column 8"),
        (["nowhere"], "nowhere: there is no such file or folder"),
    ],
)
def test_what_is_wrong_is_said(
    files: tuple[str, str], more: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cost", *files, *more]) == 2
    assert problem in capsys.readouterr().err


def test_an_event_that_is_none_is_named(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad"
    bad.write_text('{"topic": "a"}\n[]\n')
    assert main(["cost", files[0], str(bad)]) == 2
    assert f"{bad}, line 2:" in capsys.readouterr().err


def test_no_filters_are_refused(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none").write_text("-- nothing\n")
    assert main(["cost", str(tmp_path / "none"), files[1]]) == 2
    assert "no filters" in capsys.readouterr().err
