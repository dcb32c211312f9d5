"""The audit on Spark gives the answers of the local engine, row for row, of Parquet and of JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from audited import NETWORKS, PLANTED, clean, encoded
from holdfast.pipeline.audit.engine import audit
from holdfast.pipeline.audit.traces import TraceError

pytest.importorskip("pyspark", reason="Spark is not installed: pip install -r requirements-spark.txt")

import pyarrow as pa
import pyarrow.parquet as pq

import large_trace
from holdfast.pipeline.audit.columns import write_lines
from holdfast.pipeline.audit.spark import audit_in
from holdfast.pipeline.audit.traces import read_traces
from swarm_traces import SWARMS, trace_of
from tested_spark import spark


def by_hand() -> Iterator[bytes]:
    """A run in which u is told nothing at all, and v of nothing first: of neither is there a line before to compare."""
    head = {"guarantee": "durable", "order": "FIFO", "delta": 0, "routing": "filter", "tree": {}}
    event = {"node": "p", "publisher": "p", "n": 1, "t": 2.0}
    lines: list[dict[str, Any]] = [{"kind": "run", "node": "master", "t": 0.0, "i": 1, **head}]
    for name in ("u", "v"):
        who = {"node": name, "subscriber": name, "subscription": "mine", "filter": "a", "durable": True}
        lines.append({"kind": "subscribe", "t": 1.0, "i": 1, **who})
        lines.append({"kind": "subscribed", "t": 1.0, "i": 2, **who, "partial": []})
    lines.append({"kind": "publish", "i": 1, **event, "topic": "a", "attributes": {}})
    lines.append({"kind": "accepted", "i": 2, **event, "pubend": "log", "tick": 7})
    told = {"node": "v", "subscriber": "v", "subscription": "mine", "pubend": "log"}
    lines.append({"kind": "silence", "t": 2.0, "i": 3, **told, "after": 6, "upto": 6})
    lines.append({"kind": "deliver", "i": 4, **event, **told, "tick": 7, "topic": "a", "tags": []})
    lines.append({"kind": "end", "node": "master", "t": 9.0, "i": 2, "drained": True})
    return (json.dumps({"run": "by hand", **line}).encode() + b"\n" for line in lines)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All networks, clean, and with all planted that can be, and the first of each swarm: a run each, in one file."""
    folder = tmp_path_factory.mktemp("traces")
    whole = folder / "all.jsonl"
    with whole.open("wb") as file:
        for network in NETWORKS:
            file.writelines(encoded([{**line, "run": network} for line in clean(network)]))
            for _, plant, networks in PLANTED:
                if network in networks:
                    trace = clean(network)
                    plant(trace)
                    run = f"{network} {plant.__name__}"
                    file.writelines(encoded([{**line, "run": run} for line in trace]))
        for swarm, draw in SWARMS.items():
            file.writelines(encoded([{**line, "run": f"swarm {swarm}"} for line in trace_of(draw(0))]))
        file.writelines(by_hand())
    table = folder / "all.parquet"
    write_lines(read_traces([whole]), table)
    return [whole, table]


def test_both_engines_give_the_same_answers_row_for_row(traces: list[Path]) -> None:
    whole, table = traces
    expected = audit([whole], "local")
    assert sum(expected.counts.values()) > 50
    words = {each.words for each in expected.violations if each.run == "by hand"}
    assert {
        "p#1 never reached u for mine",
        "v was told of log from 6 up to tick 6, which is nothing, for mine",
    } <= words
    assert audit([table], "local") == expected
    assert audit_in(spark(), [table]) == expected


@pytest.mark.long
def test_a_trace_in_order_needs_no_closer_look(tmp_path: Path) -> None:
    """The sieve suspects nobody, so that three rules for events are left, three for logs and one for their ends.

    What is planted in such a trace is found in the soak (``large_planted.py``), and above among other runs.
    """
    path = tmp_path / "trace.parquet"
    large_trace.make(10_000, path)
    told: list[tuple[str, int | None]] = []
    assert audit_in(spark(), [path], step=lambda what, part, parts: told.append((what, parts))).is_kept
    assert told[-7:] == [("rules", 7)] * 7
    assert ("rules", 7) not in told[:-7]


def test_json_lines_are_converted_first_and_a_bad_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"".join(encoded(clean("best-effort"))) + b"{")
    with pytest.raises(TraceError, match=r"trace.jsonl, line \d+: not JSON"):
        audit_in(spark(), [path])


def rows_of(network: str) -> list[dict[str, Any]]:
    """Lines as others may write them: nested fields are structs and lists."""
    rows = [json.loads(line) for line in encoded(clean(network))]
    return [row for row in rows if row["kind"] != "status"]


def test_tables_of_others_may_have_structs_and_lists(tmp_path: Path) -> None:
    """Whoever writes its traces to Parquet by way of pyarrow's own types is understood by both engines."""
    path = tmp_path / "trace.parquet"
    rows = rows_of("best-effort")
    names = sorted({name for row in rows for name in row})
    pq.write_table(pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows]), path)
    local = audit([path], "local")
    assert local.is_kept
    assert local.lines["deliver"] > 50
    assert audit_in(spark(), [path]) == local
    with pytest.raises(Exception, match="option network: is missing"):
        # who writes is not asked in the audit's session
        spark().range(1).write.format("holdfast").mode("append").save()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"n": "text"}, "the column n is string; expected bigint"),
        ({"kind": "unheard-of"}, "kind is 'unheard-of'"),
        ({"subscriber": None}, "deliver has no subscriber"),
    ],
)
def test_a_table_that_is_no_trace_is_refused_by_both(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    path = tmp_path / "trace.parquet"
    deliver = next(row for row in rows_of("best-effort") if row["kind"] == "deliver")
    pq.write_table(pa.Table.from_pylist([{**deliver, **change, "tags": "[]"}]), path)
    with pytest.raises(TraceError, match=problem):
        audit_in(spark(), [path])
    with pytest.raises(TraceError, match="line 1"):
        audit([path], "local")
