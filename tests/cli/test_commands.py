"""The other commands, as a user sees them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from holdfast.cli.main import COMMANDS, main
from holdfast.filters.parse import parse_filter

LONG = "orders/# where price between 100 and 200 and not sym in ('IBM','SAP')"


def test_explain_shows_form_cost_access_and_spark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["filter", "explain", LONG]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "filter      orders/# WHERE price BETWEEN 100 AND 200 AND sym NOT IN ('IBM', 'SAP')"
    assert lines[1] == "cost        4 of at most 1000"
    assert lines[2] == "indexed on  price >= 100 AND price <= 200  (grid of intervals)"
    assert lines[3].startswith("Spark SQL   (topic = 'orders' OR startswith(topic, 'orders/')) AND ")


def test_explain_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["filter", "explain", LONG, "--output", "json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert parse_filter(explained["filter"]) == parse_filter(LONG)
    assert explained["cost"] == 4
    assert explained["indexed_on"] == ["price >= 100 AND price <= 200  (grid of intervals)"]
    assert explained["spark_sql"]


def test_a_bad_filter_is_pointed_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["filter", "explain", "a WHERE x != 3"]) == 2
    expected = (
        "holdfast: line 1, column 11: unexpected '!='; expected '<>'\n\n    a WHERE x != 3\n              ^\n"
    )
    assert capsys.readouterr().err == expected


def test_a_bad_filter_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["filter", "explain", "a WHERE", "--output", "json"]) == 2
    assert json.loads(capsys.readouterr().out) == {
        "error": {
            "line": 1,
            "column": 8,
            "problem": "unexpected end of the filter",
            "expected": "a condition",
        }
    }


@pytest.mark.parametrize(
    ("text", "access"),
    [
        ("#", ["nothing: every event is a candidate"]),
        ("a/b", ["topic = a/b  (hash of values)"]),
        ("a/+/#", ["topic a/+/#  (trie of patterns)"]),
        ("# WHERE x = 1 AND x = 2", ["nothing: it can never be true"]),
        ("# WHERE s = 'a'", ["s = 'a'  (hash of values)"]),
        ("# WHERE s IN ('a', 'b', 3)", ["s IN (3, 'a', 'b')  (hash of values)"]),
        ("# WHERE x > 5", ["x > 5  (sorted bounds)"]),
        ("# WHERE x <> 5", ["x < 5 OR x > 5  (sorted bounds)"]),
        ("# WHERE NOT x BETWEEN 1 AND 2", ["x < 1 OR x > 2  (sorted bounds)"]),
        ("# WHERE s LIKE 'ab%'", ["s >= 'ab' AND s < 'ac'  (hash of prefixes)"]),
        ("# WHERE x IS NULL", ["x IS NULL  (events without it)"]),
        ("# WHERE x IS NOT NULL", ["x IS NOT NULL  (events that have it)"]),
        ("# WHERE NOT flag", ["flag = FALSE  (hash of values)"]),
        ("# WHERE SHARD(k, 8) = 3", ["SHARD(k, 8) = 3  (hash of values)"]),
        ("# WHERE a + 1 > 2", ["a + 1 > 2  (sorted bounds)"]),
        ("# WHERE a > b", ["b < a  (hash of values)"]),
        ("# WHERE NOT a = b", ["NOT a = b  (hash of values)"]),
        ("# WHERE XPATH '/a'", ["XPATH '/a'  (automaton over documents)"]),
        ("# WHERE x = 1 OR y = 2", ["x = 1  (hash of values)", "y = 2  (hash of values)"]),
    ],
)
def test_what_a_filter_is_indexed_on(
    capsys: pytest.CaptureFixture[str], text: str, access: list[str]
) -> None:
    assert main(["filter", "explain", text, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["indexed_on"] == access


def test_bench_reports_every_job_and_writes_the_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "benchmarks.md"
    assert main(["bench", "matching", "--json", "--largest", "1000", "--markdown", str(page)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    measured = {(row["kind"], row["engine"]) for row in rows}
    assert measured >= {
        ("predicates", "naive"),
        ("predicates", "pure"),
        ("topics", "pure"),
        ("xpath", "lxml"),
    }
    assert all(row["size"] == 1000 and row["event_us"] > 0 for row in rows)
    by_kind = {(row["kind"], row["engine"]): row["matches"] for row in rows}
    assert by_kind["predicates", "naive"] == pytest.approx(by_kind["predicates", "pure"], rel=0.3)
    assert page.read_text().count("| predicates |") >= 2


@pytest.mark.parametrize("arguments", [["--largest", "10"], ["--markdown", "no/such/folder/page.md"]])
def test_bench_refuses_what_cannot_work_before_it_measures(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "matching", *arguments]) == 2
    assert arguments[0] in capsys.readouterr().err


def test_without_a_command_all_of_them_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    shown = capsys.readouterr().err
    assert all(re.search(rf"^    {command}\s", shown, re.MULTILINE) for command in COMMANDS)


@pytest.mark.parametrize(
    ("command", "actions"),
    [
        ("network", "{plan}"),
        ("filter", "{explain}"),
        ("bench", "{matching,network,overlay,"),
        ("stream", "ACTION"),
        ("subscription", "ACTION"),
    ],
)
def test_what_a_command_can_do_is_said_where_nothing_was_asked(
    command: str, actions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command])
    assert f"the following arguments are required: {actions}" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["nonsense"], ["match"], ["filter", "explain"]])
def test_wrong_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: holdfast" in capsys.readouterr().err
