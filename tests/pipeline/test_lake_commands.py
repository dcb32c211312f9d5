"""`holdfast lake` and `holdfast history` as people call them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

from hand_written import PUBEND, HandWritten, event, events
from lakes import logged, stored

from holdfast.cli.main import main
from holdfast.events.json_form import event_from_json

NETWORK = """
name = "small"
[[broker]]
name = "lisbon"
listen = "127.0.0.1:7000"
data = "."
[[stream]]
name = "orders"
topics = ["orders/#"]
attributes = "i BIGINT, price DOUBLE, sym STRING"
[[stream]]
name = "fast"
topics = ["fast/#"]
guarantee = "best-effort"
"""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HandWritten]:
    monkeypatch.chdir(tmp_path)
    Path("network.toml").write_text(NETWORK)
    with HandWritten(tmp_path / "streams") as folder:
        yield folder


def test_a_lake_from_beginning_to_end(
    written: HandWritten, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written.publish({1_000_010: event(1, price=1.5), 1_000_020: event(2, price=2)})
    written.vouch(1_000_020)
    assert main(["lake", "ls"]) == 0
    assert "no table yet" in capsys.readouterr().out
    run = ["lake", "run", "--once", "--local-segments"]
    assert main(run) == 0
    said = capsys.readouterr().out
    assert said.startswith("orders: two rows, ")
    assert said.endswith("up to 1970-01-01T00:00:01.000020Z: version 1; one value of another type in price\n")
    assert main(run) == 0
    assert capsys.readouterr().out == "", "there is nothing new"
    written.publish(events([1_000_030]))
    written.vouch(1_000_030)
    assert main([*run, "--stream", "orders"]) == 0
    assert stored(tmp_path) == logged(tmp_path, 1_000_030)
    capsys.readouterr()
    assert main(["lake", "compact"]) == 0
    assert capsys.readouterr().out == "orders: two files into one file; no old files deleted\n"
    assert main(["lake", "ls", "--output", "json"]) == 0
    [table] = json.loads(capsys.readouterr().out)["tables"]
    assert (table["rows"], table["files"], table["pubends"][PUBEND]["upto"]) == (3, 1, 1_000_030)
    assert main(["lake", "show", "orders"]) == 0
    shown = capsys.readouterr().out
    assert "columns of attributes: i BIGINT, price DOUBLE, sym STRING" in shown
    assert (
        f"{PUBEND}: three rows in one file, 1970-01-01T00:00:00.000000Z to 1970-01-01T00:00:01.000030Z"
        in shown
    )


def test_history_in_all_its_forms(
    written: HandWritten, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written.publish(events([10, 20, 30, 40]))
    written.vouch(40)
    assert main(["lake", "run", "--once", "--local-segments"]) == 0
    written.release(20)
    capsys.readouterr()
    command = ["history", "orders/# WHERE i >= 20", "--local-segments"]
    assert main([*command, "--stats"]) == 0
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert [json.loads(line)["tick"] for line in lines] == [20, 30, 40]
    assert event_from_json(lines[0]).attributes == {"i": 20}
    assert output.err.startswith("holdfast: three rows; ")
    assert main([*command, "--format", "table", "--count", "2"]) == 0
    output = capsys.readouterr()
    assert "payload 30;" in output.out
    assert "payload 40;" not in output.out
    assert output.err == "holdfast: the first 2; --count has more, --format jsonl all\n"
    assert main([*command, "--format", "parquet", "--out", "found.parquet"]) == 0
    assert main([*command, "--out", "found.jsonl", "--until", "1970-01-01T00:00:00.00003Z"]) == 0
    assert len(Path("found.jsonl").read_text().splitlines()) == 1
    assert main(["history", "fast/#", "--local-segments"]) == 0
    assert capsys.readouterr().out == "", "it is not logged"


@pytest.mark.parametrize(
    ("command", "status", "problem"),
    [
        (
            "lake run --once --stream fast",
            2,
            "there is no durable stream 'fast' in network.toml; expected orders",
        ),
        ("lake run --once", 2, "network.toml has no reader for lisbon"),
        ("lake show orders", 2, "orders has no table yet; 'holdfast lake run' makes it"),
        ("lake run --once --local-segments --set lake.path=file", 1, "file/orders: "),
        ("history --format parquet", 2, "--format parquet needs --out FILE"),
        ("history --count 0", 2, "--count is 0; expected a number from 1"),
        ("history x --since then", 2, "is not an RFC 3339 time"),
        ("history --from lake", 2, "there is no table here; 'holdfast lake run' makes it"),
        ("history --local-segments --out no/where --format parquet", 1, "no/where: cannot be written"),
        (
            "history --local-segments --out no/where",
            1,
            "no/where: cannot be written: No such file or directory",
        ),
    ],
)
def test_what_will_not_do_is_said_once(
    written: HandWritten, capsys: pytest.CaptureFixture[str], command: str, status: int, problem: str
) -> None:
    Path("file").write_text("")
    assert main(command.split()) == status
    said = capsys.readouterr().err
    assert problem in said
    assert said.count("\n") == 1


def test_what_is_declared_has_to_make_sense(written: HandWritten, capsys: pytest.CaptureFixture[str]) -> None:
    Path("network.toml").write_text(NETWORK.replace("price DOUBLE", "price DATE"))
    assert main(["lake", "run", "--once"]) == 2
    problem = 'attributes is "i BIGINT, price DATE, sym STRING": price is DATE; expected BOOLEAN, BIGINT'
    assert f"network.toml, line 10: {problem}" in capsys.readouterr().err
    Path("network.toml").write_text(NETWORK)
    written.publish(events([10]))
    written.vouch(10)
    assert main(["lake", "run", "--once", "--local-segments"]) == 0
    capsys.readouterr()
    Path("network.toml").write_text(NETWORK.replace("price DOUBLE", "price BIGINT"))
    assert main(["lake", "run", "--once", "--local-segments"]) == 2
    assert "the attribute price is DOUBLE in the table, and declared BIGINT" in capsys.readouterr().err
