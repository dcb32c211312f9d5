"""A source of Spark whose rows are made already: as fast as any that is written in Python can be.

Each of its tasks hands over one batch of the stream's own rows, again and again; nothing is read, and nothing decoded.
What is left is Spark's: rows on their way from Python to Java.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from holdfast.pipeline.columns import declared, shape_of, spark_ddl

__all__ = ["ReadySource", "keep"]

TASKS: Final = 2


def keep(batch: Any, path: Path) -> None:
    """A batch for all tasks, in a file."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, batch.schema) as writer:
        writer.write_batch(batch)


class ReadySource(DataSource):
    """``format("ready")``, with the options ``attributes``, ``rows`` and ``path``."""

    @classmethod
    def name(cls) -> str:
        """As Spark calls it."""
        return "ready"

    def schema(self) -> str:
        """All columns of a stream."""
        return spark_ddl(shape_of(None, declared(self.options["attributes"])))

    def reader(self, schema: object) -> DataSourceReader:
        """Of a batch."""
        return _ReadyReader(int(self.options["rows"]), self.options["path"])


class _ReadyReader(DataSourceReader):
    def __init__(self, rows: int, path: str) -> None:
        self._rows = rows
        self._path = path

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(self._rows // TASKS + (i < self._rows % TASKS)) for i in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        with pa.OSFile(self._path, "rb") as file, pa.ipc.open_stream(file) as stream:
            [batch] = list(stream)
        left = partition.value
        while left > 0:
            yield batch.slice(0, left)
            left -= batch.num_rows
