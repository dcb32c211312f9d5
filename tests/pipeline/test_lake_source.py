"""The lake as Spark sees it: ``readFrom`` lake and auto, batches and streams, while it is written and compacted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

import pyarrow.compute as pc
from deltalake import DeltaTable
from hand_written import NETWORK, PUBEND, STREAM, HandWritten, event, events
from lakes import table_in, take_all
from pyspark.errors import PySparkException

import holdfast.pipeline
from durable_brokers import patiently
from holdfast.pipeline.lake.compact import compact
from holdfast.streams.checkpoint_token import Place, Token
from large_backfill import backfilled
from tested_spark import load, spark

PATIENCE_S = 120


@pytest.fixture
def written(tmp_path: Path) -> Iterator[HandWritten]:
    (tmp_path / "network.toml").write_text(NETWORK)
    with HandWritten(tmp_path / "streams") as folder:
        yield folder


def rows(folder: Path, source: str, **options: object) -> list[dict[str, Any]]:
    table = load(folder / "network.toml", STREAM, readFrom=source, localSegments=True, **options)
    found = [row.asDict(recursive=True) for row in table.orderBy("tick").collect()]
    for row in found:
        if row.get("attributes") is not None:
            row["attributes"] = row["attributes"].toPython()
    return found


def test_the_lake_is_the_table_that_the_log_is(written: HandWritten, tmp_path: Path) -> None:
    written.publish({tick: event(tick, price=tick / 2, sym="é") for tick in range(10, 500, 10)})
    written.publish({500: event(500, price=1)})
    written.vouch(500)
    written.flip(b"payload 250;")
    take_all(tmp_path)
    options = {"attributes": "price DOUBLE, x BIGINT", "onGap": "row", "minPartitions": 3}
    expected = rows(tmp_path, "log", **options)
    assert len(expected) == 51 - 1
    assert rows(tmp_path, "lake", **options) == expected
    written.release(300)
    assert rows(tmp_path, "auto", **options) == expected
    assert rows(tmp_path, "log", **options)[0]["tick"] == 310
    token = Token({PUBEND: Place(1, 200)})
    found = rows(
        tmp_path, "auto", columns="tick", filter="# WHERE price > 200", startingOffsets=token, onGap="ignore"
    )
    assert [row["tick"] for row in found] == list(range(410, 500, 10))
    with pytest.raises(PySparkException, match=r"has lost \(249, 250\]: damaged"):
        rows(tmp_path, "lake")


def test_without_a_table_there_is_one_error_or_none_needed(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events([10]))
    written.vouch(10)
    with pytest.raises(PySparkException, match="there is no table here; 'holdfast lake run' makes it"):
        rows(tmp_path, "lake")
    assert [row["tick"] for row in rows(tmp_path, "auto", columns="tick")] == [10]


def test_others_read_the_same_while_it_is_written_and_compacted(written: HandWritten, tmp_path: Path) -> None:
    """pyarrow on a snapshot of Delta, Spark through the source, and by itself: count and sum of what was there."""
    written.publish(events([1]))
    written.vouch(1)
    take_all(tmp_path)
    is_over = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        try:
            for tick in range(2, 10_000):
                if is_over.is_set():
                    return
                written.publish(events([tick]))
                written.vouch(tick)
                take_all(tmp_path)
                if tick % 5 == 0:
                    compact(table_in(tmp_path))
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = 0
        while seen < 4:
            delta = DeltaTable(tmp_path / "lake" / STREAM)
            found = delta.to_pyarrow_dataset().to_table(columns=["tick"])["tick"]
            last = pc.max(found).as_py()
            assert sorted(found.to_pylist()) == list(range(1, last + 1))
            token = Token({PUBEND: Place(1, last)})
            table = load(
                tmp_path / "network.toml", STREAM, readFrom="lake", columns="tick", endingOffsets=token
            )
            [row] = table.selectExpr("count(*) AS n", "sum(tick) AS s").collect()
            assert (row.n, row.s) == (last, last * (last + 1) // 2)
            own = holdfast.pipeline.table(
                spark(), network=tmp_path / "network.toml", stream=STREAM, read_from="lake"
            )
            [row] = own.selectExpr("count(*) AS n", "sum(tick) AS s", "max(tick) AS last").collect()
            assert (row.n, row.s) == (row.last, row.last * (row.last + 1) // 2)
            assert row.last >= last
            seen += 1
    finally:
        is_over.set()
        writer.join()
    assert failures == []


@pytest.mark.long
@patiently
async def test_backfill_then_live_in_one_query_while_the_log_forgets(tmp_path: Path) -> None:
    """The logs keep what the lake does not have, and no more: what is read is exact. A million are in the soak."""
    spark()
    before = [range(800), range(800, 1_200)]
    await backfilled(tmp_path, [before, [range(1_200, 1_600)]], range(1_600, 2_000), at_once=500)
