"""Streams as batches of Spark: ``spark.read.format("holdfast")`` on hand-written logs and beside real brokers."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from hand_written import PUBEND, STREAM, HandWritten, event, events
from kept_logs import keep_everything, publish
from pyspark.errors import PySparkException

from drawn_events import an_event
from drawn_filters import Seeded, a_filter
from durable_brokers import brokers_in, patiently
from holdfast.cli.free_ports import free_ports
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.filters.text import filter_text
from holdfast.pipeline import preflight
from holdfast.pipeline.columns import COLUMNS, KINDS, arrow_schema, shape_of, spark_ddl
from holdfast.pipeline.preflight import Found, problem_in
from holdfast.streams.checkpoint_token import Place, Token
from tested_spark import load, spark

NETWORK = """
name = "small"
[[broker]]
name = "lisbon"
listen = "127.0.0.1:7000"
data = "data"
reader = "127.0.0.1:{port}"
[[stream]]
name = "orders"
topics = ["#"]
"""


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "network.toml"
    path.write_text(NETWORK.format(port=free_ports(1)[0]))
    return path


@pytest.fixture
def written(network: Path) -> Iterator[HandWritten]:
    with HandWritten(network.parent / "data" / "streams") as folder:
        yield folder


def test_the_arrow_schema_is_the_one_spark_expects() -> None:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    shape = shape_of(tuple(COLUMNS), {f"x{kind}": kind for kind in KINDS})
    spark()
    assert arrow_schema(shape).equals(to_arrow_schema(StructType.fromDDL(spark_ddl(shape)), timezone="UTC"))


def test_a_stream_is_a_table(network: Path, written: HandWritten) -> None:
    made = {tick: event(tick, price=tick / 2, sym="é") for tick in range(10, 1_000, 10)}
    written.publish(made)
    written.vouch(990)
    table = load(network, STREAM, localSegments=True, attributes="price DOUBLE, i BIGINT", minPartitions=4)
    assert table.rdd.getNumPartitions() == 4
    rows = table.orderBy("tick").collect()
    assert [row.tick for row in rows] == list(made)
    assert [row.a.price for row in rows] == [tick / 2 for tick in made]
    assert [row.attributes.toPython() for row in rows] == [dict(each.attributes) for each in made.values()]
    [row] = (
        table.where("variant_get(attributes, '$.i', 'int') = 500")
        .select("payload", "accepted", "n")
        .collect()
    )
    assert (bytes(row.payload), row.n) == (b"payload 500;", 50)
    # Two queries of one DataFrame have nothing to do with each other.
    assert table.where("a.i = 10").union(table.where("a.i = 20")).count() == 2
    assert table.count() == 99


def test_spark_finds_every_attribute_of_many_by_its_name(network: Path, written: HandWritten) -> None:
    """With more than a few Spark bisects, in the order in which Java compares strings."""
    names = [f"n{i}" for i in range(40)] + ["\uffee", "\U0001f600", "é"]
    written.publish({10: event(1, **{name: i for i, name in enumerate(names)})})
    written.vouch(10)
    table = load(network, STREAM, localSegments=True, columns="attributes")
    wanted = [f"variant_get(attributes, '$[\"{name}\"]', 'int')" for name in names]
    [row] = table.selectExpr(*wanted).collect()
    assert list(row) == list(range(len(names)))


def test_a_filter_leaves_what_it_leaves_to_a_subscriber(network: Path, written: HandWritten) -> None:
    """Random filters and events [contracts.md §2]; on the log reader's side, so ``localSegments`` is enough."""
    source = Seeded(random.Random(7))
    filters = [a_filter(source) for _ in range(12)]
    made = {tick: an_event(source, filters) for tick in range(1, 301)}
    written.publish(made)
    written.vouch(300)
    some = 0
    for text in map(filter_text, filters):
        matches = compile_filter(parse_filter(text))
        expected = [tick for tick, each in made.items() if matches(Subject(each))]
        table = load(network, STREAM, localSegments=True, columns="tick", filter=text, minPartitions=2)
        assert sorted(row.tick for row in table.collect()) == expected, text
        some += bool(expected)
    assert some > 5, "most filters match something"


def test_start_and_end_are_places(network: Path, written: HandWritten) -> None:
    written.publish(events(range(10, 100, 10)))
    written.vouch(90)

    def ticks(**options: object) -> list[int]:
        table = load(network, STREAM, localSegments=True, columns="tick", **options)
        return sorted(row.tick for row in table.collect())

    start, end = Token({PUBEND: Place(1, 30)}), Token({PUBEND: Place(1, 60)})
    assert ticks(startingOffsets=start, endingOffsets=end) == [40, 50, 60]
    assert ticks(startingOffsets=end, endingOffsets=start) == []
    assert ticks(startingOffsets="latest") == []
    assert ticks(startingTimestamp="1970-01-01T00:00:00.00004Z") == [40, 50, 60, 70, 80, 90]
    assert ticks(endingTimestamp="1970-01-01T00:00:00.00004Z") == [10, 20, 30]


def test_gaps_fail_or_are_rows_or_are_ignored(network: Path, written: HandWritten) -> None:
    written.publish(events([10, 20, 30]))
    written.publish(events([40]))
    written.vouch(40)
    written.flip(b"payload 30;")
    written.release(10, "no room")
    options: dict[str, object] = {"localSegments": True, "columns": "kind,after,tick,reason"}

    def rows(**more: object) -> list[tuple[object, ...]]:
        return [tuple(row) for row in load(network, STREAM, **options, **more).orderBy("tick").collect()]

    token = Token({PUBEND: Place(1, 5)})
    damaged = ("gap", 29, 30, "damaged")
    kept = [("event", 10, 20, None), ("event", 30, 40, None)]
    assert rows(onGap="row") == [kept[0], damaged, kept[1]]  # earliest: what was released before is none
    assert rows(onGap="row", startingOffsets=token) == [("gap", 5, 10, "no room"), kept[0], damaged, kept[1]]
    assert rows(onGap="ignore", startingOffsets=token) == kept
    assert ("silence", 20, 29, None) in rows(onGap="row", emitSilence=True)
    with pytest.raises(PySparkException, match=r"orders@lisbon/0 has lost \(29, 30\]: damaged"):
        rows()


def test_what_cannot_be_read_says_why_once(network: Path, written: HandWritten) -> None:
    with pytest.raises(PySparkException, match="option strem: is not known; did you mean stream"):
        load(network, STREAM, strem="x").collect()
    with pytest.raises(PySparkException, match="expected no schema: columns and attributes make it"):
        spark().read.format("holdfast").schema("x INT").options(
            network=str(network), stream=STREAM
        ).load().collect()


def test_a_reader_that_is_not_there_is_named(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.pipeline.errors import ReaderUnreachable
    from holdfast.pipeline.options import BATCH, read_options
    from holdfast.pipeline.source import HoldfastReader

    monkeypatch.setattr("holdfast.pipeline.remote.PATIENCE_SECONDS", 0)
    reader = HoldfastReader(read_options({"network": str(network), "stream": STREAM}, BATCH))
    with pytest.raises(ReaderUnreachable, match=r"the log reader of broker lisbon at .* connection refused"):
        reader.partitions()


def test_executors_that_will_not_do_are_named() -> None:
    ours = Found("here", tuple(sys.version_info[:2]), [])
    assert problem_in([ours]) is None
    assert problem_in([ours, ours._replace(host="w1", missing=["holdfast"])]) == (
        f"the executor on w1 has no holdfast; {preflight.ADVICE}"
    )
    assert "3.9 on w2, and the driver's" in (problem_in([ours._replace(host="w2", python=(3, 9))]) or "")


def test_a_probe_travels_without_holdfast(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked of an embedded session only if that runs another Python."""
    monkeypatch.setattr("sys.executable", "/another/python")
    preflight.check_executors(spark())


def numbers(rows: list[Any]) -> list[int]:
    return sorted(row.i for row in rows)


@patiently
async def test_real_brokers_are_read_while_they_write_and_a_killed_reader_is_waited_for(
    tmp_path: Path,
) -> None:
    spark()
    with brokers_in(tmp_path, {"b1": None, "b2": "b1"}, readers=True) as brokers:
        await brokers.start("b1", "b2")
        await keep_everything(brokers)
        first, second = (
            await publish(brokers, "b1", range(500)),
            await publish(brokers, "b2", range(500, 1_000)),
        )
        end = Token({**first, **second})
        writing = asyncio.create_task(publish(brokers, "b1", range(1_000, 4_000)))

        def read(**options: object) -> list[Any]:
            table = load(
                brokers.file, "all", attributes="i BIGINT", columns="a", endingOffsets=end, **options
            )
            return list(table.select("a.i").collect())

        assert numbers(await asyncio.to_thread(read, minPartitions=4)) == list(range(1_000))
        said = await brokers.wait_for("the log reader listens", "b2")
        os.kill(said["pid"], signal.SIGKILL)
        assert numbers(await asyncio.to_thread(read, filter="t/1 WHERE i >= 10")) == list(range(11, 1_000, 2))
        end = Token({**second, **await writing})
        assert numbers(await asyncio.to_thread(read, localSegments=True)) == list(range(4_000))
