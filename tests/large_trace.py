"""Clean traces of any size as Parquet, made up by columns, and what the audit on Spark makes of them.

    python tests/large_trace.py ROWS FILE                makes one, of a durable network
    python tests/large_trace.py ROWS FILE --audit        and judges it: seconds, memory
    python tests/large_trace.py ROWS FILE --planted      with every kind of violation planted in it

Four publishers, a hundred subscriptions, 25 of which match each event, as on the paper's workload [E1.1]; LoggingLevel
light, so that *no-interest* is not judged.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.pipeline.audit.columns import SCHEMA
from holdfast.pipeline.audit.spark import audit_with_spark

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


def plant(path: Path) -> dict[str, int]:
    """Break every promise that such a trace can break, once each; how often each kind must be found."""
    lines = pq.read_table(path)
    rows = lines.slice(0, 0).to_pylist()
    kinds = np.asarray(lines.column("kind").combine_chunks())
    delivered = np.flatnonzero(kinds == "deliver")
    accepted = np.flatnonzero(kinds == "accepted")
    published = np.flatnonzero(kinds == "publish")
    silent = np.flatnonzero(kinds == "silence")
    gone: list[int] = [
        int(delivered[1000]),
        int(accepted[77]),
        int(silent[3]),
        *map(int, delivered[2000:2002]),
    ]

    def line(at: int) -> dict[str, Any]:
        row: dict[str, Any] = lines.slice(int(at), 1).to_pylist()[0]
        return row

    rows.append({**line(delivered[500]), "i": 2 * 10**9})  # a duplicate
    rows.append(
        {**line(delivered[500]), "n": 10**8, "tick": FIRST_TICK * 2, "i": 2 * 10**9 + 1}
    )  # unpublished: wrong
    rows.append({**line(published[5]), "t": 9.0})  # an id used twice: duplicate
    first, second = line(delivered[2000]), line(delivered[2001])
    moved = ("n", "tick")
    rows.append({**first, **{name: second[name] for name in moved}})
    rows.append({**second, **{name: first[name] for name in moved}})  # misorder
    silence = line(silent[3])
    rows.append({**silence, "after": silence["after"] + 1})  # unexplained
    kept = np.ones(len(lines), bool)
    kept[gone] = False
    broken = pa.concat_tables([lines.filter(pa.array(kept)), pa.Table.from_pylist(rows, SCHEMA)])
    pq.write_table(broken, path)
    return {"lost": 1, "duplicate": 2, "misorder": 1, "wrong": 1, "unexplained": 1, "unaccepted": 1}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--audit", action="store_true")
    parser.add_argument("--planted", action="store_true")
    options = parser.parse_args()
    make(options.rows, options.file)
    expected = plant(options.file) if options.planted else {}
    if options.audit or options.planted:
        begun = time.monotonic()
        verdict = audit_with_spark([options.file])
        seconds = time.monotonic() - begun
        mine = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        lines = f"{verdict.lines['deliver']:,} deliveries, {seconds:.1f} s with Spark's start"
        sys.stdout.write(f"{lines}; {mine:.1f} GB here, {largest:.1f} GB in Java\n{dict(verdict.counts)}\n")
        for each in verdict.violations:
            sys.stdout.write(f"{each.kind}: {each.words}\n")
        return 0 if dict(verdict.counts) == expected else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
