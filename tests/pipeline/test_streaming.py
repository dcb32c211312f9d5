"""Streams as streams of Spark: offsets are tokens, batches are limited, silence makes none, a restart goes on."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from hand_written import PUBEND, STREAM, HandWritten, events
from kept_logs import keep_everything, publish
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from durable_brokers import brokers_in, patiently
from holdfast.pipeline.options import STREAMING, read_options
from holdfast.pipeline.origins import origins_of
from holdfast.pipeline.streaming import HoldfastStreamReader
from holdfast.runtime.kept_subscriptions import kept_subscriptions
from holdfast.runtime.network_file import read_network
from holdfast.streams.checkpoint_token import Place, Token
from tested_spark import spark

NETWORK = """
name = "small"
[[broker]]
name = "lisbon"
listen = "127.0.0.1:7000"
data = "data"
[[stream]]
name = "orders"
topics = ["#"]
"""
PATIENCE_S = 120


@pytest.fixture
def written(tmp_path: Path) -> Iterator[HandWritten]:
    (tmp_path / "network.toml").write_text(NETWORK)
    with HandWritten(tmp_path / "data" / "streams") as folder:
        folder.publish(events(range(10, 100, 10)))
        folder.vouch(90)
        yield folder


def reader_of(written: HandWritten, **options: str) -> HoldfastStreamReader:
    network = str(written.folder.parent.parent / "network.toml")
    given = {"network": network, "stream": STREAM, "localSegments": "true", "columns": "tick", **options}
    return HoldfastStreamReader(read_options(given, STREAMING))


def offset(tick: int) -> dict[str, str]:
    return {"token": str(Token({PUBEND: Place(1, tick)}))}


def test_offsets_are_tokens_and_follow_events_and_gaps(written: HandWritten) -> None:
    reader = reader_of(written)
    assert reader.initialOffset() == offset(90)
    assert reader_of(written, startingOffsets="earliest").initialOffset() == offset(0)
    assert reader.latestOffset(offset(90), ReadAllAvailable()) == offset(90)
    assert reader.latestOffset(offset(95), ReadAllAvailable()) == offset(95)  # a subscriber's, behind silence
    assert reader.partitions(offset(90), offset(90)) == []
    written.kept.incarnation = 2  # restored from a backup; ticks go on, and an offset does not go back
    written.save()
    assert reader.latestOffset(offset(95), ReadAllAvailable()) == offset(95)
    written.kept.incarnation = 1
    written.save()
    written.publish(events([100]))
    written.vouch(100)
    assert reader.latestOffset(offset(90), ReadAllAvailable()) == offset(100)
    [partition] = reader.partitions(offset(40), offset(100))
    [batch] = reader.read(partition)
    assert batch.to_pydict() == {"tick": [50, 60, 70, 80, 90, 100]}


def test_a_batch_holds_what_it_may(written: HandWritten) -> None:
    reader = reader_of(written, maxEventsPerTrigger="4")
    assert reader.getDefaultReadLimit() == ReadMaxRows(4)
    assert reader.latestOffset(offset(0), ReadMaxRows(4)) == offset(40)
    assert reader.latestOffset(offset(80), ReadMaxRows(4)) == offset(90)
    assert reader.latestOffset(offset(0), ReadAllAvailable()) == offset(90)
    reader = reader_of(written, maxBytesPerTrigger="120")
    assert reader.getDefaultReadLimit() == ReadMaxBytes(120)
    assert reader.latestOffset(offset(0), ReadMaxBytes(120)) == offset(20)
    assert reader.latestOffset(offset(0), ReadMaxBytes(1)) == offset(10)  # one at least
    both = reader_of(written, maxEventsPerTrigger="4", maxBytesPerTrigger="120")
    assert both.latestOffset(offset(0), both.getDefaultReadLimit()) == offset(20)


def test_available_now_is_what_was_there_then(written: HandWritten) -> None:
    reader = reader_of(written)
    reader.prepareForTriggerAvailableNow()
    written.publish(events([100]))
    written.vouch(100)
    assert reader.latestOffset(offset(0), ReadMaxRows(5)) == offset(50)
    assert reader.latestOffset(offset(50), ReadAllAvailable()) == offset(90)
    assert reader.latestOffset(offset(90), ReadAllAvailable()) == offset(90)


def query(network: Path, folder: Path, stream: str, **options: str) -> Any:
    """A query that is about to begin: numbers of events, into Parquet."""
    table = (
        spark()
        .readStream.format("holdfast")
        .options(network=str(network), stream=stream, columns="a", attributes="i BIGINT", **options)
        .load()
        .select("a.i")
    )
    writer = table.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.option("path", str(folder / "rows"))


def numbers_in(folder: Path) -> list[int]:
    return sorted(row.i for row in spark().read.schema("i BIGINT").parquet(str(folder / "rows")).collect())


def test_a_query_that_starts_again_goes_on_where_it_was(written: HandWritten, tmp_path: Path) -> None:
    network = tmp_path / "network.toml"
    options = {"localSegments": "true", "startingOffsets": "earliest", "maxEventsPerTrigger": "4"}
    for upto in (90, 150):
        running = query(network, tmp_path, STREAM, **options).trigger(availableNow=True).start()
        assert running.awaitTermination(PATIENCE_S)
        assert [each.numInputRows for each in running.recentProgress] == ([4, 4, 1] if upto == 90 else [4, 2])
        assert numbers_in(tmp_path) == list(range(10, upto + 10, 10))
        written.publish(events(range(upto + 10, upto + 70, 10)))
        written.vouch(upto + 60)


@patiently
async def test_a_live_network_is_followed_exactly_through_killed_readers_and_without_empty_batches(
    tmp_path: Path,
) -> None:
    spark()
    with brokers_in(tmp_path, {"b1": None, "b2": "b1"}, readers=True) as brokers:
        await brokers.start("b1", "b2")
        await keep_everything(brokers)
        await publish(brokers, "b1", range(100))
        options = {"startingOffsets": "earliest", "maxEventsPerTrigger": "400"}
        running = (
            query(brokers.file, tmp_path, "all", **options).trigger(processingTime="100 milliseconds").start()
        )
        try:
            await publish(brokers, "b2", range(100, 700))  # a pubend that did not exist when the query began
            said = await brokers.wait_for("the log reader listens", "b1")
            os.kill(said["pid"], signal.SIGKILL)
            await publish(brokers, "b1", range(700, 1_000))
            while sum(each.numInputRows for each in running.recentProgress) < 1_000:
                assert running.isActive, running.exception()
                await asyncio.sleep(0.1)
        finally:
            running.stop()
        batches = {each.batchId: each.numInputRows for each in running.recentProgress if each.numInputRows}
        assert sorted(batches) == list(range(len(batches))), "a batch without rows"
        assert max(batches.values()) <= 400
        assert await asyncio.to_thread(numbers_in, tmp_path) == list(range(1_000))


@patiently
async def test_a_named_query_pins_what_it_has_not_had_and_acknowledges_what_it_has(tmp_path: Path) -> None:
    """Of the last batch of a run Spark commits nothing; that it asks once more says the same."""
    with brokers_in(tmp_path, {"b1": None}, readers=True) as brokers:
        await brokers.start("b1")

        async def run(*, checkpoint: Path) -> None:
            started = query(brokers.file, checkpoint, "all", subscription="mine")
            running = started.trigger(availableNow=True).start()
            assert await asyncio.to_thread(running.awaitTermination, PATIENCE_S)

        async def publish_vouched(numbers: range) -> Token:
            """What was accepted is read when the broker's tables vouch for it, about a second later (docs/spark.md)."""
            token = await publish(brokers, "b1", numbers)
            origins = origins_of(brokers.file, "all", local=False)
            [(pubend, place)] = token.items()
            while (end := origins.ends().get(pubend)) is None or end.last < place.tick:
                await asyncio.sleep(0.05)
            return token

        async def acknowledged() -> dict[str, int]:
            found = await kept_subscriptions(read_network(brokers.file))
            mine = found.named("mine")
            assert mine is not None
            return {each["pubend"]: each["acknowledged"] for each in mine["places"]}

        await run(checkpoint=tmp_path)  # it begins now, and there is nothing
        first = await publish_vouched(range(100))
        [pubend] = first
        assert (await acknowledged())[pubend] < first[pubend].tick, "it is pinned while nobody reads"
        await run(checkpoint=tmp_path)
        assert (await acknowledged())[pubend] == first[pubend].tick
        assert await asyncio.to_thread(numbers_in, tmp_path) == list(range(100))
        await publish_vouched(range(100, 150))
        anew = tmp_path / "anew"
        await run(checkpoint=anew)
        assert await asyncio.to_thread(numbers_in, anew) == list(range(100, 150)), "where it was acknowledged"
