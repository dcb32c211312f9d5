"""A trace as one flat table: a column for each field, null where a kind does not have it. Needs pyarrow.

Nested fields (attributes, the tree, partitions, tags) are JSON text in the tables written here, so that traces of all
networks have one schema; tables of others may have them as structs, lists or maps.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.pipeline.audit.line import BadLine, Line, checked, in_words
from holdfast.pipeline.audit.traces import TraceError

__all__ = ["NESTED", "SCHEMA", "count_rows", "line_of", "read_rows", "write_lines"]

NESTED: Final = ("attributes", "partial", "cleared", "tags", "tree")
_TEXT: Final = (
    "node",
    "kind",
    "publisher",
    "topic",
    "attributes",
    "pubend",
    "subscriber",
    "subscription",
    "filter",
    "partial",
    "cleared",
    "tags",
    "reason",
    "from",
    "to",
    "guarantee",
    "order",
    "routing",
    "tree",
)
_NUMBERS: Final = ("i", "n", "tick", "after", "upto", "delta")

SCHEMA: Final = pa.schema(
    [("run", pa.string()), ("t", pa.float64())]
    + [(name, pa.int64()) for name in _NUMBERS]
    + [(name, pa.string()) for name in _TEXT]
    + [("durable", pa.bool_()), ("drained", pa.bool_()), ("nodes", pa.list_(pa.string()))]
)
_ROWS: Final = 50_000
_encode: Final = msgspec.json.Encoder().encode


def write_lines(lines: Iterable[tuple[str, Line]], path: Path) -> int:
    """Write lines, each under the name of its run, as a file of Parquet; how many there were."""
    count = 0
    with pq.ParquetWriter(path, SCHEMA) as writer:
        batch: list[dict[str, Any]] = []
        for run, line in lines:
            batch.append(_row(run, line))
            count += 1
            if len(batch) == _ROWS:
                writer.write_table(pa.Table.from_pylist(batch, SCHEMA))
                batch = []
        writer.write_table(pa.Table.from_pylist(batch, SCHEMA))
    return count


def _row(run: str, line: Line) -> dict[str, Any]:
    row: dict[str, Any] = {"run": run, "from": line.source}
    for name in SCHEMA.names:
        if name not in row:
            value = getattr(line, name)
            row[name] = value if value is None or name not in NESTED else _encode(_plain(value)).decode()
    return row


def _plain(nested: Any) -> Any:
    """Bytes among attributes as traces have them."""
    if not isinstance(nested, dict):
        return nested
    return {
        name: {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
        for name, value in nested.items()
    }


def count_rows(path: Path) -> int:
    """How many rows a file, or the files of a folder, have."""
    return sum(pq.ParquetFile(file).metadata.num_rows for file in _files(path))


def read_rows(path: Path) -> Iterator[tuple[int, Line]]:
    """The lines of a file, or of all files of a folder, with their numbers from 1.

    :raises TraceError: at the first row that is no line.
    """
    number = 0
    for file in _files(path):
        try:
            for batch in pq.ParquetFile(file).iter_batches(_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield number, line_of(row)
        except BadLine as problem:
            raise TraceError(str(path), number, str(problem)) from None
        except (pa.ArrowException, OSError) as error:
            raise TraceError(str(path), None, f"not Parquet: {error}") from None


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.parquet")) if path.is_dir() else [path]


def line_of(row: dict[str, Any]) -> Line:
    """The line that a row is.

    :raises BadLine: if it is none.
    """
    given = {name: value for name, value in row.items() if value is not None}
    try:
        for name in NESTED:
            if isinstance(given.get(name), str):
                given[name] = msgspec.json.decode(given[name])
        return checked(msgspec.convert(given, Line))
    except msgspec.ValidationError as error:
        raise BadLine(in_words(str(error))) from None
    except msgspec.DecodeError as error:
        raise BadLine(f"not JSON: {error}") from None
