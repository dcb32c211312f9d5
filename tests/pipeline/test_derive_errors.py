"""Queries that cannot be derived are refused in a line that names the file and the place [issue 6 §6]."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from derivations import STREAMS, wanted

from holdfast.cli.main import main
from holdfast.pipeline.derive.checkpoint import Begun, held_checkpoint
from holdfast.pipeline.derive.errors import BadQuery, OtherCheckpoint
from holdfast.pipeline.derive.run import start
from holdfast.pipeline.derive.views import columns_for
from tested_spark import spark

NETWORK = f"""
name = "small"
[[broker]]
name = "lisbon"
listen = "127.0.0.1:7000"
reader = "127.0.0.1:7200"
{STREAMS}
"""


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("network.toml")
    path.write_text(NETWORK)
    return path


GROUPED = "GROUP BY window(accepted, '1 minute')"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELEC 1", "query.sql, line 1, column 1: Syntax error at or near 'SELEC'; expected one SELECT"),
        ("-- why\nDROP TABLE x", "line 2, column 1: Syntax error at or near 'DROP'; expected one SELECT"),
        ("SELECT 1; SELECT 2", "line 1, column 9: Syntax error at or near ';'"),
        (
            "SELECT a.i FROM orders,\n trades",
            "line 2, column 2: there is no stream trades in network.toml; expected orders",
        ),
        ("SELECT * FROM fast", "line 1, column 15: fast is best-effort, and only durable streams are logged"),
        ("SELECT 1 AS one", "query.sql: names no stream; expected FROM one of orders, news, quiet, derived"),
        (
            "SELECT prize FROM orders",
            "line 1, column 8: there is no column `prize`; a stream has kind, stream,",
        ),
        (
            "SELECT a.prize FROM orders",
            "line 1, column 8: No such struct field `prize` in `i`, `price`, `sym`",
        ),
        ("SELECT nosuch(topic) AS x FROM orders", "line 1, column 8: "),
        (
            "SELECT a.sym, count(*) AS n FROM orders GROUP BY a.sym",
            "streaming aggregations without watermark here",
        ),
        (f"SELECT count(*) AS n FROM orders {GROUPED.replace('accepted', 'time')}", "without watermark here"),
        ("SELECT a.i FROM orders ORDER BY a.i", "Sorting is not supported on streaming"),
        (
            "SELECT a.i, a.i FROM orders",
            "two columns of the result are called i; expected AS and other names",
        ),
        (
            "SELECT a FROM orders",
            "the column a is STRUCT<I:BIGINT,PRICE:DOUBLE,SYM:STRING>, which no attribute is",
        ),
        ("SELECT attributes FROM orders", "the column attributes is VARIANT, which no attribute is"),
        (
            "SELECT CAST(1 AS DECIMAL(9,2)) AS d FROM orders",
            "the column d is DECIMAL(9,2), which no attribute is",
        ),
        (
            f"SELECT window, 1 AS window_end FROM orders {GROUPED}",
            "two columns of the result make the attribute window_end",
        ),
        ("SELECT 'x' AS topic FROM orders", "the result has a column topic, and there is --topic as well"),
        ("SELECT a.i FROM derived", "there is no column `a`.`i`"),
        ("SELECT n FROM derived", "reads derived, into which its results go: it would never end"),
        ("SELECT 1 AS payload FROM orders", "the column payload is INT; expected STRING or BINARY"),
        (f"SELECT 1 AS `{'x' * 300}` FROM orders", "the result cannot be events: attributes."),
    ],
)
def test_a_query_that_cannot_be_derived(network: Path, text: str, problem: str) -> None:
    with pytest.raises(BadQuery) as caught:
        start(spark(), wanted(network, Path(), text, "derived/x"))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("query.sql")


@pytest.mark.parametrize(
    ("select", "problem"),
    [
        ("a.i", "the result has no column topic, and no --topic is given; expected one of the two"),
        ("1 AS topic", "the column topic is INT; expected STRING"),
    ],
)
def test_results_need_a_topic(network: Path, select: str, problem: str) -> None:
    with pytest.raises(BadQuery, match=problem):
        start(spark(), wanted(network, Path(), f"SELECT {select} FROM orders", None))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("missing.sql --into derived", "missing.sql: No such file or directory"),
        ("query.sql --into nowhere", "there is no stream nowhere in network.toml; expected orders, news"),
        ("query.sql --into fast", "fast is best-effort; only durable streams can be written exactly once"),
        (
            "query.sql --into derived --topic orders/x",
            "orders/x is not of the stream derived; expected one of derived/#",
        ),
        ("query.sql --into derived --topic derived/+", "topic: "),
        ("query.sql --into derived --since then", "option since: "),
        ("query.sql --into derived --topic derived/x --network no.toml", "no.toml"),
        ("empty.sql --into derived", "empty.sql: is empty; expected one SELECT"),
        (
            "query.sql --into derived --checkpoint query.sql",
            "query.sql: File exists; expected a folder for the checkpoint",
        ),
        (
            "query.sql --into derived --checkpoint .",
            "was not begun by 'holdfast derive'; expected an empty folder",
        ),
    ],
)
def test_what_is_wrong_is_said_before_spark_is_started(
    network: Path, capsys: pytest.CaptureFixture[str], arguments: str, problem: str
) -> None:
    Path("query.sql").write_text("SELECT a.i FROM orders")
    Path("empty.sql").write_text("\n")
    assert main(["derive", *arguments.split()]) == 2
    said = capsys.readouterr().err
    assert problem in said
    assert said.count("\n") == 1


def test_what_is_not_installed_is_named(
    network: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("query.sql").write_text("SELECT a.i FROM orders")
    monkeypatch.setattr("holdfast.pipeline.history.find_spec", lambda name: None)
    assert main(["derive", "query.sql", "--into", "derived"]) == 2
    said = capsys.readouterr().err
    assert said == "holdfast: this needs pyspark, pyarrow and deltalake; pip install 'holdfast[spark]'\n"


def test_a_broker_without_a_reader_is_named(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("query.sql").write_text("SELECT a.i FROM orders")
    network.write_text(NETWORK.replace("reader =", "admin ="))
    assert main(["derive", "query.sql", "--into", "derived"]) == 2
    assert "network.toml has no reader for lisbon" in capsys.readouterr().err


BEGUN = Begun("small", "SELECT a.i\nFROM orders", "derived", "derived/x")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            {"query": "SELECT a.i  \n\tFROM orders\n"},
            "another query: line 2 was 'FROM orders' and is '\\tFROM orders'",
        ),
        (
            {"query": "SELECT a.i\nFROM orders\nWHERE a.i > 1"},
            "another query: line 3 was '' and is 'WHERE a.i > 1'",
        ),
        ({"network": "large"}, "the network small, and this is large"),
        ({"into": "other"}, "the target derived, and this is other"),
        ({"topic": None}, "--topic derived/x, and this is None"),
    ],
)
def test_a_checkpoint_is_of_one_query(tmp_path: Path, changed: dict[str, str], problem: str) -> None:
    folder = tmp_path / "query.checkpoint"
    with held_checkpoint(folder, Begun("small", "SELECT a.i\nFORM orders", "derived")):
        (folder / "offsets").mkdir()  # nothing was done yet: it may be mended
    with held_checkpoint(folder, BEGUN):
        (folder / "offsets" / "0").touch()
    same = Begun("small", "SELECT a.i \nFROM orders\n\n", "derived", "derived/x")
    with (
        held_checkpoint(folder, same),
        pytest.raises(OtherCheckpoint, match="is in use"),
        held_checkpoint(folder, same),
    ):
        pass
    fields = {"network": "small", "query": BEGUN.query, "into": "derived", "topic": "derived/x", **changed}
    with pytest.raises(OtherCheckpoint) as caught, held_checkpoint(folder, Begun(**fields)):
        pass
    assert f"the checkpoint {folder} was begun with {problem}; go on with what it was" in str(caught.value)


def test_a_checkpoint_that_was_torn_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "derive.new").write_text("{")  # killed before it was begun
    with held_checkpoint(tmp_path, BEGUN):
        (tmp_path / "offsets").mkdir()
        (tmp_path / "offsets" / "0").touch()
    (tmp_path / "derive.json").write_text("{")
    with (
        pytest.raises(OtherCheckpoint, match=r"derive.json cannot be read"),
        held_checkpoint(tmp_path, BEGUN),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT count( * ) FROM orders", ["kind", "accepted"]),
        ("SELECT A.price, Topic FROM orders", ["kind", "topic", "accepted", "a"]),
        ("SELECT a.price * 2 FROM orders", 17),
        ("SELECT * FROM orders", 17),
    ],
)
def test_only_columns_that_a_query_may_mean_are_read(text: str, columns: list[str] | int) -> None:
    found = columns_for(text, has_attributes=True)
    assert columns in (found, len(found))
