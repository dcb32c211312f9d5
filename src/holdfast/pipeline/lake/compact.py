"""Small files into large ones: what every round of ``run`` leaves is put together, in the order of the ticks.

Files that follow each other in a pubend become one, until it is large enough. Columns that were declared later are
filled on the way, from all attributes. The rows are the same, and the table says so; a reader of an older version of
the table finds its files until they are vacuumed, hours later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import pyarrow as pa

from holdfast.pipeline.columns import Shape, arrow_schema
from holdfast.pipeline.lake.errors import LakeFailed
from holdfast.pipeline.lake.files import DataFile
from holdfast.pipeline.lake.parquet import ParquetRows
from holdfast.pipeline.lake.table import LakeTable
from holdfast.pipeline.lake.writing import FileWriter

__all__ = ["Compaction", "compact"]

TARGET_BYTES: Final = 128 << 20


class Compaction(NamedTuple):
    """What one has done."""

    before: int  #: files that were replaced
    after: int  #: by so many
    size: int  #: bytes of those


def compact(table: LakeTable, target_bytes: int = TARGET_BYTES) -> Compaction:
    """Put small files together; each commit replaces those of one large file.

    :raises LakeBusy: if somebody else compacts at the same time.
    :raises LakeFailed: if a file cannot be read or written; what was committed before stays so.
    """
    before = after = size = 0
    for group in list(_groups(table.files(), target_bytes)):
        new = _together(table, group)
        table.replace(group, [new], {"compacted": len(group)})
        before, after, size = before + len(group), after + 1, size + new.size
    return Compaction(before, after, size)


def _groups(files: Sequence[DataFile], target_bytes: int) -> Iterator[list[DataFile]]:
    """Files to be put together: neighbours, at least two, none of them large."""
    for _, of_pubend in groupby(files, key=lambda file: file.pubend):
        group: list[DataFile] = []
        for file in of_pubend:
            if file.size >= target_bytes // 2 or sum(each.size for each in group) + file.size > target_bytes:
                if len(group) > 1:
                    yield group
                group = []
            if file.size < target_bytes // 2:
                group.append(file)
        if len(group) > 1:
            yield group


def _together(table: LakeTable, files: Sequence[DataFile]) -> DataFile:
    """One file with the rows of several."""
    shape = table.shape
    writer = FileWriter(table.folder, shape)
    try:
        for file in files:
            for batch in _batches(table, file, shape):
                writer.add(batch)
        made = writer.close()
    except BaseException:
        writer.abandon()
        raise
    assert (made.after, made.tick) == (files[0].after, files[-1].tick), "the same rows"
    assert made.rows == sum(file.rows for file in files), "the same rows"
    return made


def _batches(table: LakeTable, file: DataFile, shape: Shape) -> Iterator[pa.RecordBatch]:
    try:
        rows = ParquetRows(table.folder / file.path)
        for group in range(len(rows)):
            columns = rows.read(group, shape)
            arrays = [columns[name] for name in shape.columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(shape))
    except (OSError, pa.ArrowInvalid) as error:
        raise LakeFailed(f"{table.folder / file.path}: cannot be read: {error}") from error
