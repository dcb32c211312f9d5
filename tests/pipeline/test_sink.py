"""DataFrames and streaming queries written into a stream: every row once, whatever is run again [issue 6 §3]."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from kept_logs import keep_everything
from sink_reading import everything, of

import holdfast
import holdfast.pipeline
from durable_brokers import Brokers, brokers_in
from holdfast.streams.epochs import first_number
from tested_spark import spark

STREAMS = """
[[stream]]
name = "all"
topics = ["t/#"]
[[stream]]
name = "ordered"
topics = ["o/#"]
order = "total"
sequencer = "b2"
[[stream]]
name = "fast"
topics = ["f/#"]
guarantee = "best-effort"
"""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    spark()
    folder = tmp_path_factory.mktemp("sink")
    with brokers_in(folder, {"b1": None, "b2": "b1"}, streams=STREAMS, readers=True) as found:
        asyncio.run(found.start("b1", "b2"))
        asyncio.run(keep_everything(found))
        yield found


def rows(count: int, prefix: str = "t") -> Any:
    """So many rows in three tasks, with attributes of every type."""
    return spark().sql(
        f"""SELECT concat('{prefix}/', CAST(id % 2 AS STRING)) AS topic, CAST(id AS STRING) AS text,
            named_struct('i', id, 'half', id / 2, 'even', id % 2 = 0, 'name', concat('n', CAST(id AS STRING)),
                         'raw', CAST('xyz' AS BINARY), 'none', CAST(NULL AS INT)) AS a
            FROM range(0, {count}, 1, 3)"""
    )


def written(brokers: Brokers, df: Any, **options: object) -> None:
    given = {"network": str(brokers.file), "stream": "all", **options}
    df.write.format("holdfast").options(**given).mode("append").save()


def found(brokers: Brokers, topics: str = "t") -> list[holdfast.Event]:
    return asyncio.run(everything(brokers, "b1", "b2", topics=topics))


def test_a_batch_is_events_with_all_their_types_once_and_again_under_another_version(
    brokers: Brokers,
) -> None:
    options = {"topicColumn": "topic", "attributesColumn": "a", "payloadColumn": "text", "txnAppId": "batch"}
    written(brokers, rows(100), **options, txnVersion=3)
    written(brokers, rows(50), **options, txnVersion=3)  # a replay
    written(brokers, rows(50), **options, txnVersion=2)  # and an older one
    written(brokers, rows(10), **options, txnVersion=4)
    events = of("batch", found(brokers))
    assert [each.n for each in events[:100]] == [first_number(3) + i for i in range(100)]
    assert [each.attributes["i"] for each in events] == [*range(100), *range(10)]
    attributes = {"i": 3, "half": 1.5, "even": False, "name": "n3", "raw": b"xyz"}
    assert (events[3].topic, events[3].payload, events[3].attributes) == ("t/1", b"3", attributes)
    assert events[3].time is not None


def test_without_a_name_every_write_is_another_application_and_total_order_has_one_pubend(
    brokers: Brokers,
) -> None:
    for _ in range(2):
        written(brokers, rows(10, "o"), stream="ordered", topicColumn="topic")
    events = [each for each in found(brokers, "o") if each.publisher.startswith("spark-")]
    assert len(events) == 20
    assert len({each.publisher for each in events}) == 2
    assert [pubend["pubend"] for pubend in brokers.status("b2")["durable"]["pubends"]].count("ordered@b2/0")


def test_what_the_source_reads_the_sink_writes_with_the_same_attributes(
    brokers: Brokers, tmp_path: Path
) -> None:
    """Variants go round without loss; a streaming query is an application by its id, its batches are versions."""
    written(brokers, rows(40), topicColumn="topic", attributesColumn="a", txnAppId="first", txnVersion=0)
    options = {"network": str(brokers.file), "stream": "all", "startingOffsets": "earliest"}
    source = spark().readStream.format("holdfast").options(**options).load()
    sink = (
        source.where("publisher = 'first'")
        .writeStream.format("holdfast")
        .options(network=str(brokers.file), stream="ordered", topic="o/round", attributesColumn="attributes")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
    )
    query = sink.start()
    try:
        before = of("first", found(brokers))
        while len(after := of(query.id, found(brokers, "o"))) < len(before):
            assert query.isActive, query.exception()
    finally:
        query.stop()
    assert len(before) == 40
    assert [each.attributes for each in after] == [each.attributes for each in before]


def test_for_each_batch_a_frame_is_published_as_a_version_of_an_application(
    brokers: Brokers, tmp_path: Path
) -> None:
    (tmp_path / "lines").mkdir()
    for i in range(3):
        (tmp_path / "lines" / f"{i}.txt").write_text("".join(f"{i}.{j}\n" for j in range(10)))
    stream = spark().readStream.option("maxFilesPerTrigger", "1").text(str(tmp_path / "lines"))

    def publish(frame: Any, number: int) -> None:
        for _ in range(2):
            holdfast.pipeline.publish(
                frame.selectExpr("map('line', value) AS a"),
                "each",
                number,
                network=brokers.file,
                stream="all",
                topic="t/each",
                attributes_column="a",
            )

    checkpoint = str(tmp_path / "checkpoint")
    query = stream.writeStream.foreachBatch(publish).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()
    events = of("each", found(brokers))
    assert sorted(str(each.attributes["line"]) for each in events) == [
        f"{i}.{j}" for i in range(3) for j in range(10)
    ]
    assert len({each.n >> 22 for each in events}) == 3


@pytest.mark.parametrize(
    ("select", "options", "problem"),
    [
        ("CAST(NULL AS STRING) AS topic", {"topicColumn": "topic"}, "NULL has no topic"),
        ("'t/+' AS topic", {"topicColumn": "topic"}, "topic"),
        ("'f/x' AS topic", {"topicColumn": "topic"}, "it is of the stream fast"),
        ("'elsewhere' AS topic", {"topicColumn": "topic"}, "no stream has it"),
        ("repeat('x', 2000000) AS p", {"topic": "t/x", "payloadColumn": "p"}, "payload_bytes"),
        ("named_struct('x', double('NaN')) AS a", {"topic": "t/x", "attributesColumn": "a"}, "attributes.x"),
        ("1 AS one", {"topic": "t/x", "stream": "fast"}, "only durable streams"),
        ("1 AS one", {"topic": "t/x", "topicName": "y"}, "option topicname"),
    ],
)
def test_what_cannot_be_published_is_one_clear_error_and_nothing_is_left(
    brokers: Brokers, select: str, options: dict[str, str], problem: str
) -> None:
    good = spark().range(5).selectExpr(select)
    with pytest.raises(Exception, match=problem):
        written(brokers, good, **options)
    staged = [brokers.status(name)["durable"]["staged"]["attempts"] for name in ("b1", "b2")]
    assert staged == [0, 0]
