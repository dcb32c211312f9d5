"""Clean traces of any size as Parquet, made up by columns, and what the audit on Spark makes of them.

    python tests/large_trace.py ROWS FILE                makes one, of a durable network
    python tests/large_trace.py ROWS FILE --audit        and judges it: seconds, memory
    python tests/large_trace.py ROWS FILE --planted      with every kind of violation planted in it
    python tests/large_trace.py ROWS FILE --audit --cluster        on one core, and on a cluster of two workers

Four publishers, a hundred subscriptions, 25 of which match each event, as on the paper's workload [E1.1]; LoggingLevel
light, so that *no-interest* is not judged.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.pipeline.audit.columns import SCHEMA
from holdfast.pipeline.audit.spark import audit_with_spark
from holdfast.pipeline.audit.violation import KINDS
from holdfast.pipeline.packing import pack
from spark_cluster import cluster

PUBLISHERS = 4
SUBSCRIPTIONS = 100
MATCHES = 25
GROUPS = SUBSCRIPTIONS // MATCHES
EVERY = 0.001  #: seconds between two events of a publisher
FIRST_TICK = 1_700_000_000_000_000


def table(columns: dict[str, Any], rows: int) -> pa.Table:
    """Rows of the schema; what is one value stands in every row, and what is not there in none."""
    arrays = []
    for field in SCHEMA:
        value = columns.get(field.name)
        if isinstance(value, np.ndarray | list):
            arrays.append(pa.array(value, field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(value, field.type), rows))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def make(rows: int, path: Path) -> None:
    """A trace with so many ``deliver`` lines, about."""
    each = rows // MATCHES // PUBLISHERS
    end = 10.0 + each * EVERY
    publishers = {f"p{k}": f"scenario@b{k}/0" for k in range(PUBLISHERS)}
    tree = {"b0": None, **{f"b{k}": "b0" for k in range(1, PUBLISHERS)}}
    tree |= {name: f"b{k}" for k, name in enumerate(publishers)}
    tree |= {f"u{k}": f"b{k % PUBLISHERS}" for k in range(SUBSCRIPTIONS)}
    numbers = np.arange(1, each + 1)
    times = 5.0 + numbers * EVERY
    with pq.ParquetWriter(path, SCHEMA) as writer:
        head = {
            "guarantee": "durable",
            "order": "FIFO",
            "delta": 0,
            "routing": "filter",
            "tree": json.dumps(tree),
        }
        writer.write_table(
            table({"run": "large", "t": 0.0, "i": 1, "node": "master", "kind": "run", **head}, 1)
        )
        attributes = [json.dumps({"g": int(g), "x": 1.5, "sym": "IBM"}) for g in range(GROUPS)]
        for name, pubend in publishers.items():
            event = {"run": "large", "node": name, "publisher": name, "n": numbers}
            drawn = [attributes[n % GROUPS] for n in numbers.tolist()]
            publish = {"kind": "publish", "t": times, "i": 2 * numbers - 1, "topic": "a", "attributes": drawn}
            writer.write_table(table({**event, **publish}, each))
            place = {"pubend": pubend, "tick": FIRST_TICK + 1000 * numbers}
            writer.write_table(
                table({**event, **place, "kind": "accepted", "t": times, "i": 2 * numbers}, each)
            )
        for k in range(SUBSCRIPTIONS):
            _subscription(writer, k, publishers, numbers, end)
        writer.write_table(
            table({"run": "large", "t": end, "i": 2, "node": "master", "kind": "end", "drained": True}, 1)
        )


def _subscription(
    writer: pq.ParquetWriter, k: int, publishers: dict[str, str], numbers: np.ndarray, end: float
) -> None:
    name, group = f"u{k}", k % GROUPS
    who = {"run": "large", "node": name, "subscriber": name, "subscription": "mine"}
    asked = {**who, "filter": f"a WHERE g = {group}", "durable": True}
    writer.write_table(table({**asked, "t": 1.0, "i": 1, "kind": "subscribe"}, 1))
    writer.write_table(table({**asked, "t": 2.0, "i": 2, "kind": "subscribed", "partial": "[]"}, 1))
    mine = numbers[numbers % GROUPS == group]
    for place, (publisher, pubend) in enumerate(publishers.items()):
        event = {"publisher": publisher, "n": mine, "topic": "a", "pubend": pubend, "tags": "[]"}
        at = {"t": 5.01 + mine * EVERY, "i": 3 + PUBLISHERS * np.arange(len(mine)) + place}
        deliver = {**who, **event, **at, "tick": FIRST_TICK + 1000 * mine, "kind": "deliver"}
        writer.write_table(table(deliver, len(mine)))
        last = {
            "after": FIRST_TICK + 1000 * int(mine[-1]),
            "upto": FIRST_TICK + 1000 * (int(numbers[-1]) + 1),
        }
        silence = {"kind": "silence", "pubend": pubend, "t": end, "i": 10**9 + place}
        writer.write_table(table({**who, **silence, **last}, 1))


def plant(path: Path, seed: int = 0) -> dict[str, int]:
    """Break every promise of the contract, once or twice; how often each kind must be found. ``seed`` says where."""
    lines = pq.read_table(path)
    kinds = np.asarray(lines.column("kind").combine_chunks())
    places = {kind: np.flatnonzero(kinds == kind) for kind in ("deliver", "accepted", "publish", "silence")}
    at = {kind: seed * 37 % (len(found) // 2) for kind, found in places.items()}

    def place(kind: str, number: int) -> int:
        """A line of a kind: which one depends on the seed."""
        return int(places[kind][(at[kind] + number) % len(places[kind])])

    def line(kind: str, number: int) -> dict[str, Any]:
        row: dict[str, Any] = lines.slice(place(kind, number), 1).to_pylist()[0]
        return row

    end = lines.slice(len(lines) - 1, 1).to_pylist()[0]
    # Three in a row, so that what is missing or changed places is not the last before a silence.
    missing, first = (
        next(number for number in range(start, 2 * start) if _are_neighbours(line, number))
        for start in (1000, 2000)
    )
    gone = [place("deliver", missing), place("accepted", 77), place("silence", 3)]
    gone += [place("deliver", first), place("deliver", first + 1)]
    again, silence = line("deliver", 500), line("silence", 3)
    one, other = line("deliver", first), line("deliver", first + 1)
    moved = ("n", "tick")
    asked = {**again, "filter": "a", "durable": True, "t": end["t"]}
    rows = [
        {**again, "i": 2 * 10**9},  # duplicate
        {**again, "n": 10**8, "tick": FIRST_TICK * 2, "i": 2 * 10**9 + 1},  # wrong: never published
        {**line("publish", 5), "t": 9.0},  # duplicate: an id used twice
        {**one, **{name: other[name] for name in moved}},  # misorder
        {**other, **{name: one[name] for name in moved}},
        {**silence, "after": silence["after"] + 1},  # unexplained
        {**asked, "kind": "unsubscribe", "i": 3 * 10**9},
        {**asked, "kind": "unsubscribed", "i": 3 * 10**9 + 1},
        {**again, "i": 3 * 10**9 + 2, "t": end["t"]},  # late, and a duplicate
        _forward(end),  # no-interest
        *_two_logs(),  # total-order
    ]
    kept = np.ones(len(lines), bool)
    kept[gone] = False  # lost, unaccepted
    whole = [{name: row.get(name) for name in SCHEMA.names} for row in rows]
    broken = pa.concat_tables([lines.filter(pa.array(kept)), pa.Table.from_pylist(whole, SCHEMA)])
    pq.write_table(broken, path)
    counts = dict.fromkeys(KINDS, 1)
    return {**counts, "duplicate": 3}


def _are_neighbours(line: Callable[[str, int], dict[str, Any]], number: int) -> bool:
    rows = [line("deliver", number + each) for each in range(3)]
    return len({(row["subscriber"], row["publisher"]) for row in rows}) == 1


def _forward(end: dict[str, Any]) -> dict[str, Any]:
    """A copy that goes to b1, where nobody wants it: whoever hangs there has asked for group 1."""
    event = {"publisher": "p0", "n": GROUPS}
    return {**event, "run": "large", "t": end["t"] - 0.05, "i": 1, "node": "b0", "kind": "forward"} | {
        "from": "b0",
        "to": "b1",
    }


def _two_logs() -> list[dict[str, Any]]:
    """A run of its own, whose total order has two logs."""
    run = {"run": "total", "node": "master"}
    head = {"guarantee": "durable", "order": "TOTAL", "delta": 0, "routing": "filter", "tree": "{}"}
    rows = [{**run, "kind": "run", "t": 0.0, "i": 1, **head}]
    for n in (1, 2):
        event = {"run": "total", "node": "p", "publisher": "p", "n": n, "t": float(n)}
        rows.append({**event, "kind": "publish", "i": 2 * n, "topic": "a", "attributes": "{}"})
        rows.append({**event, "kind": "accepted", "i": 2 * n + 1, "pubend": f"log{n}", "tick": n})
    return [*rows, {**run, "kind": "end", "t": 9.0, "i": 2, "drained": True}]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--audit", action="store_true")
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--cluster", action="store_true")
    options = parser.parse_args()
    make(options.rows, options.file)
    expected = plant(options.file) if options.planted else {}
    if not (options.audit or options.planted):
        return 0
    if not options.cluster:
        return 0 if judged(options.file, None)[0] == expected else 1
    os.environ["SPARK_EXECUTOR_MEMORY"] = "2g"  # which the first session hands to Java
    alone, seconds = judged(options.file, "local[1]")
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), memory="3g") as url:
        archive = Path(folder) / "archive.tar.gz"
        pack(archive)
        together, faster = judged(options.file, url, archive)
    sys.stdout.write(f"two workers are {seconds / faster:.2f} times as fast as one core\n")
    return 0 if alone == together == expected else 1


def judged(path: Path, master: str | None, archive: Path | None = None) -> tuple[dict[str, int], float]:
    """What is wrong with a trace, and the seconds that took; said, too."""
    begun = time.monotonic()
    verdict = audit_with_spark([path], master=master, archive=archive)
    seconds = time.monotonic() - begun
    lines = f"{verdict.lines['deliver']:,} deliveries, {seconds:.1f} s with Spark's start"
    sys.stdout.write(f"{lines}; {peak_gigabytes():.1f} GB at most, with Java\n{dict(verdict.counts)}\n")
    for each in verdict.violations:
        sys.stdout.write(f"{each.kind}: {each.words}\n")
    return dict(verdict.counts), seconds


def peak_gigabytes() -> float:
    """The most memory that this process has had, and its children: Java; executors of a cluster are others'."""
    most = 0
    for path in Path("/proc").glob("[0-9]*/status"):
        fields = dict(line.split(":", 1) for line in path.read_text().splitlines())
        is_ours = os.getpid() in (int(fields["Pid"]), int(fields["PPid"]))
        most += int(fields["VmHWM"].split()[0]) if is_ours and "VmHWM" in fields else 0
    return most / 2**20


if __name__ == "__main__":
    sys.exit(main())
