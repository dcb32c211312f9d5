"""What it takes to put a stream into the lake, and what the lake then spares: a selective filter reads little of it.

The lake is written by one `holdfast lake run`, as an operator does it, from log readers. Beside it the same rows, made
already, are only written: by pyarrow, as files like the lake's, which is as fast as one process can. The same rows as
plain Parquet, with pyarrow's defaults, are what the source is measured against (``pipeline_source``).
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

import holdfast
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.pipeline_scale import Setting
from holdfast.bench.pipeline_stream import STREAM
from holdfast.bench.process_tree import processor_seconds
from holdfast.pipeline.columns import arrow_schema, shape_of
from holdfast.pipeline.lake.table import LakeTable
from holdfast.pipeline.lake.writing import ROW_GROUP_ROWS

__all__ = ["BARE_WRITE", "HISTORY_JOB", "LAKE_JOB", "LAKE_RUN", "READ", "lake", "plain_parquet"]

LAKE_JOB: Final = "writing the lake"
LAKE_RUN, BARE_WRITE = "holdfast lake run", "pyarrow, rows that are made already"
HISTORY_JOB: Final = "history, a filter for one event in a thousand"
READ, ANSWERED = "read of the lake", "answered in"
BARE_ROWS_MAX: Final = 1_000_000
PLAIN: Final = "plain"


def lake(setting: Setting) -> Iterator[Outcome]:
    """Write the lake, and the same rows bare; then ask it."""
    stored = setting.stored
    before, began = processor_seconds(), time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "holdfast.cli.main",
        "lake",
        "run",
        "--once",
        "--network",
        str(stored.network),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    used = processor_seconds() - before
    if done.returncode:
        raise BenchFailed(f"lake run ended with status {done.returncode}: {done.stderr[-500:]}")
    found = sum(each.rows for each in _table(setting).files())
    setting.check_rows(found, stored.rows, LAKE_RUN)
    remark = f"{1e6 * used / found:.1f} µs of processor time an event, with the log readers'"
    yield Outcome(LAKE_JOB, LAKE_RUN, "events/s", (found / seconds,), remark)
    yield Outcome(LAKE_JOB, BARE_WRITE, "events/s", (_bare(setting),))
    yield from _history(setting)


def _table(setting: Setting) -> LakeTable:
    return LakeTable(setting.folder / "lake" / STREAM, STREAM)


def _groups(setting: Setting) -> Iterator[Any]:
    """The lake's rows, by row groups."""
    table = _table(setting)
    for each in table.files():
        file = pq.ParquetFile(table.folder / each.path)
        for group in range(file.metadata.num_row_groups):
            yield file.read_row_group(group)


def _bare(setting: Setting) -> float:
    """Rows a second that are only written."""
    rows, seconds = 0, 0.0
    path = setting.folder / "bare.parquet"
    writer: Any = None
    for group in _groups(setting):
        writer = writer or pq.ParquetWriter(path, group.schema, compression="zstd")
        began = time.perf_counter()
        writer.write_table(group, row_group_size=ROW_GROUP_ROWS)
        seconds += time.perf_counter() - began
        rows += group.num_rows
        if rows >= BARE_ROWS_MAX:
            break
    began = time.perf_counter()
    writer.close()
    seconds += time.perf_counter() - began
    path.unlink()
    return rows / seconds


def plain_parquet(setting: Setting) -> Path:
    """A folder with the rows of the lake as plain Parquet, a file for each broker; made once."""
    folder = setting.folder / PLAIN
    if folder.exists():
        return folder
    folder.mkdir()
    table = _table(setting)
    shape = shape_of(None, table.attributes)  # what the source shows: a table has a column more
    for pubend in sorted({each.pubend for each in table.files()}):
        mine = [each for each in table.files() if each.pubend == pubend]
        schema = arrow_schema(shape)
        with pq.ParquetWriter(folder / f"{pubend.replace('/', '-')}.parquet", schema) as writer:
            for each in mine:
                writer.write_table(pq.read_table(table.folder / each.path, columns=list(shape.columns)))
    return folder


def _history(setting: Setting) -> Iterator[Outcome]:
    """Ask for what lies together, and for what lies anywhere."""
    rows = setting.stored.rows
    wanted = max(1, rows // 2_000)  # of each broker's half: its numbers grow with time
    first = rows // 4
    ask = partial(holdfast.history, network=setting.stored.network, read_from="lake")
    found = ask(f"orders/# WHERE number >= {first} AND number < {first + wanted}")
    began = time.perf_counter()
    count = sum(1 for _ in found)
    seconds = time.perf_counter() - began
    setting.check_rows(count, 2 * wanted, HISTORY_JOB)
    share = 100 * found.read.bytes / found.read.of
    remark = f"{found.read.bytes / 2**20:,.1f} of {found.read.of / 2**20:,.1f} MiB"
    yield Outcome(HISTORY_JOB, READ, "%", (share,), remark)
    yield Outcome(HISTORY_JOB, ANSWERED, "s", (seconds,), f"{count:,} events")
