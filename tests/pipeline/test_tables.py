"""A stream as a DataFrame of Spark's own: the rows of the source, whoever reads them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

import pyarrow.parquet as pq
from hand_written import NETWORK, STREAM, HandWritten, event, events
from lakes import DECLARED, table_in, take_all
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import holdfast.pipeline
from holdfast.events.event import Event
from holdfast.events.timestamp import time_from_text
from holdfast.pipeline import tables
from holdfast.pipeline.columns import COLUMNS
from holdfast.pipeline.errors import BadOption, CannotRead, Gap
from holdfast.pipeline.lake.compact import compact
from holdfast.pipeline.lake.errors import NoTable
from holdfast.runtime.declarations import ddl_of
from tested_spark import load, spark

ERRORS = (Py4JJavaError, PySparkException)
AS_USERS_HAVE_IT = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
ODD = {"${x}": "STRING", 'it\'s "odd"': "STRING", "bit": "BOOLEAN", "raw `x`": "BINARY"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One whose name means something else to those who look for patterns."""
    found = tmp_path / "a {b,c} [d]*? é %"
    found.mkdir()
    (found / "network.toml").write_text(NETWORK)
    return found


@pytest.fixture
def written(folder: Path) -> Iterator[HandWritten]:
    with HandWritten(folder / "streams") as written:
        yield written


def table(folder: Path, **options: Any) -> Any:
    given = {"network": folder / "network.toml", "stream": STREAM, "local_segments": True, **options}
    return holdfast.pipeline.table(spark(), **given)


def shown(frame: Any) -> list[dict[str, Any]]:
    found = [row.asDict(recursive=True) for row in frame.orderBy("tick").collect()]
    for row in found:
        if row["attributes"] is not None:
            row["attributes"] = row["attributes"].toPython()
    return found


@contextmanager
def set_to(settings: dict[str, str]) -> Iterator[None]:
    """The session has settings, and then those it had before."""
    before = {name: spark().conf.get(name) for name in settings}
    for name, text in settings.items():
        spark().conf.set(name, text)
    try:
        yield
    finally:
        for name, text in before.items():
            spark().conf.set(name, text)


def ticks(frame: Any) -> list[int]:
    return sorted(row.tick for row in frame.select("tick").collect())


def flip_in(path: Path, name: str) -> None:
    """Change one bit of what a column has in a file, such that nothing but a checksum tells."""
    whole = path.read_bytes()
    before = pq.read_table(path, columns=[name])
    group = pq.read_metadata(path).row_group(0)
    [column] = [group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema == name]
    first = column.dictionary_page_offset or column.data_page_offset
    for at in range(first, first + column.total_compressed_size):
        path.write_bytes(whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :])
        with suppress(OSError):
            if pq.read_table(path, columns=[name]) != before:
                return
    raise AssertionError("whatever is changed, reading fails")


def by_source(folder: Path, attributes: dict[str, str], **options: object) -> list[dict[str, Any]]:
    frame = load(
        folder / "network.toml", STREAM, localSegments=True, attributes=ddl_of(attributes), **options
    )
    return shown(frame)


def test_rows_are_those_of_the_source(written: HandWritten, folder: Path) -> None:
    """Of files with all columns, from before an attribute was declared, with a gap, and of the log."""
    odd: dict[str, Any] = {"${x}": "z", 'it\'s "odd"': "y", "bit": True, "raw `x`": b"\x00\xff"}
    written.publish(
        {tick: event(tick, i=tick, price=tick / 2, sym="é", **odd) for tick in range(10, 200, 10)}
    )
    written.publish({200: event(200, i=2.5, price=3, sym=b"b", bit="no")})
    written.vouch(200)
    take_all(folder)
    written.publish({tick: event(tick, price=tick / 2, **odd) for tick in range(210, 300, 10)})
    written.publish({tick: event(tick, price=tick / 2) for tick in range(300, 350, 10)})
    written.vouch(290)
    written.flip(b"payload 250;")
    table_in(folder, {**DECLARED, **ODD})
    take_all(folder)
    written.vouch(340)
    wanted = {"price": "DOUBLE", "i": "DOUBLE", "sym": "STRING", "x": "BIGINT", **ODD}
    expected = by_source(folder, wanted, onGap="row")
    assert [row["kind"] for row in expected].count("gap") == 1
    assert len(expected) == 34
    found = table(folder, attributes=ddl_of(wanted), on_gap="row")
    assert found.columns == list(COLUMNS)
    assert shown(found) == expected
    assert shown(table(folder, attributes=ddl_of(wanted), on_gap="row", read_from="lake")) == expected[:-5]
    with_silence = by_source(folder, wanted, onGap="row", emitSilence=True)
    assert [row["kind"] for row in with_silence].count("silence") == 1
    assert shown(table(folder, attributes=ddl_of(wanted), on_gap="row", emit_silence=True)) == with_silence
    events_alone = [row for row in expected if row["kind"] == "event"]
    assert shown(table(folder, attributes=ddl_of(wanted), on_gap="ignore")) == events_alone
    for settings in (AS_USERS_HAVE_IT, {"spark.sql.parser.escapedStringLiterals": "true"}):
        with set_to(settings):
            assert shown(table(folder, attributes=ddl_of(wanted), on_gap="row")) == expected
    compact(table_in(folder, {}))
    assert shown(table(folder, attributes=ddl_of(wanted), on_gap="row")) == expected
    with pytest.raises(Gap, match=r"has lost \(249, 250\]: damaged"):
        table(folder)


def test_attributes_are_those_that_are_declared(written: HandWritten, folder: Path) -> None:
    written.publish({10: event(10, i=1, price=2.5)})
    written.vouch(10)
    assert "a" not in table(folder).columns
    assert table(folder).count() == 1, "without a lake all is in the log"
    take_all(folder)
    [row] = shown(table(folder))
    assert row["a"] == {"i": 1, "price": 2.5, "sym": None}
    text = NETWORK.replace("data =", 'reader = "127.0.0.1:7200"\ndata =') + 'attributes = "bit BOOLEAN"\n'
    (folder / "network.toml").write_text(text)
    [row] = shown(table(folder, read_from="lake"))
    assert row["a"] == {"i": 1, "price": 2.5, "sym": None, "bit": None}
    (folder / "network.toml").write_text(text.replace("bit BOOLEAN", "Price DOUBLE"))
    [row] = shown(table(folder, read_from="lake"))
    assert row["a"] == {"i": 1, "sym": None, "Price": None}, "of two that are one to Spark that of the file"


def test_it_is_what_there_was_whatever_becomes_of_table_and_log(written: HandWritten, folder: Path) -> None:
    frames = {}
    for first, last in pairwise((0, 60, 61, 90, 100)):
        written.publish(events(range(first + 1, last + 1)))
        written.vouch(last)
        frames[last] = table(folder)
        take_all(folder)
        compact(table_in(folder))
        written.release(last)
        for upto, frame in frames.items():
            assert ticks(frame) == list(range(1, upto + 1)), "some of it from other files than were planned"


def test_spark_reads_what_a_query_needs_and_no_more(written: HandWritten, folder: Path) -> None:
    written.publish({tick: event(tick, price=tick / 2) for tick in range(1, 20)})
    written.vouch(19)
    take_all(folder)
    query = table(folder, read_from="lake").where("a.price > 5").select("topic")
    plan = query._jdf.queryExecution().executedPlan().toString()
    assert "GreaterThan(a.price,5.0)" in plan
    assert "payload" not in plan
    assert query.count() == 9


def test_what_is_not_as_it_was_written_is_an_error(written: HandWritten, folder: Path) -> None:
    """Though a session would pass over it."""
    written.publish({tick: event(tick, price=tick / 2) for tick in range(1, 50)})
    written.vouch(49)
    take_all(folder)
    frame = table(folder)
    [path] = (folder / "lake" / STREAM).glob("*.parquet")
    flip_in(path, "payload")
    with set_to({f"spark.sql.files.ignore{what}Files": "true" for what in ("Missing", "Corrupt")}):
        with pytest.raises(ERRORS, match=path.name):
            frame.collect()
        path.unlink()
        with pytest.raises(ERRORS, match=path.name):
            frame.collect()
        for attributes in ("other DOUBLE", "price DOUBLE"):
            with pytest.raises(CannotRead, match=path.name):
                table(folder, attributes=attributes)


def test_files_that_are_replaced_meanwhile_are_found_again(
    written: HandWritten, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = tables._lake

    def replaced(*given: Any, **options: Any) -> Any:
        lake = opened(*given, **options)
        assert compact(table_in(folder)).before > 1
        assert table_in(folder).vacuum(0)
        return lake

    monkeypatch.setattr(tables, "_lake", replaced)
    for upto, attributes in ((3, "i BIGINT"), (6, "other BOOLEAN")):
        for tick in range(upto - 2, upto + 1):
            written.publish(events([tick]))
            written.vouch(tick)
            take_all(folder)
        assert ticks(table(folder, attributes=attributes, read_from="lake")) == list(range(1, upto + 1))


def test_a_log_that_was_restored_has_what_is_before_the_lake(folder: Path) -> None:
    streams, backup = folder / "streams", folder / "backup"
    with HandWritten(streams) as written:
        written.publish(events(range(1, 21)))
        written.vouch(20)
        shutil.copytree(streams, backup)
        written.release(10)
        take_all(folder)
        assert ticks(table(folder)) == list(range(11, 21))
    shutil.rmtree(streams)
    backup.rename(streams)
    assert ticks(table(folder)) == list(range(1, 21))


def test_the_network_file_is_the_one_of_this_folder_wherever_java_was_started(
    written: HandWritten, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark()
    written.publish(events([1, 2]))
    written.vouch(1)
    take_all(folder)
    written.vouch(2)
    monkeypatch.chdir(folder)
    assert ticks(table(folder, network="network.toml")) == [1, 2]


def test_what_comes_after_nothing_was_not_there(folder: Path) -> None:
    (folder / "streams").mkdir()
    frame = table(folder)
    with HandWritten(folder / "streams") as written:
        written.publish(events([1]))
        written.vouch(1)
        assert frame.collect() == []
        assert ticks(table(folder)) == [1]


def test_nothing_is_a_table_too(written: HandWritten, folder: Path) -> None:
    with pytest.raises(NoTable, match="'holdfast lake run' makes it"):
        table(folder, read_from="lake")
    assert table(folder).collect() == []
    table_in(folder)
    for source in ("auto", "lake"):
        found = table(folder, read_from=source)
        assert found.collect() == []
        assert found.select("a.price").dtypes == [("price", "double")]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"read_from": "log"}, "read_from: is 'log'; expected auto or lake"),
        ({"on_gap": "maybe"}, "onGap: is 'maybe'"),
        ({"stream": "nope"}, "there is no stream nope"),
        ({"attributes": "price MONEY"}, "price is MONEY"),
        ({"local_segments": False}, "has no reader for lisbon"),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Path, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadOption, match=problem):
        table(folder, **options)


def test_times_of_old_are_exact(written: HandWritten, folder: Path) -> None:
    """Spark takes those before 1900 for another calendar's, or for an error, if its settings say so."""
    old = time_from_text("time", "1801-10-09T08:07:06.543210Z")
    written.publish({10: Event("orders/1", {}, b"", "text/plain", time=old)})
    written.vouch(10)
    take_all(folder)
    with set_to({"spark.sql.parquet.datetimeRebaseModeInRead": "EXCEPTION"}):
        [found] = table(folder, read_from="lake").selectExpr("unix_micros(time) AS moment").collect()
    assert found.moment * 1_000 == old
