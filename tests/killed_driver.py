"""A driver of Spark that stops at a point, to be killed: ``python tests/killed_driver.py NETWORK CHECKPOINT POINT``.

It reads the stream ``in``, shuffles, gives every row an id that is another one whenever it is computed, and writes the
stream ``out``, as much as there is. When its batch number 1 comes to the point it makes a file of that name beside the
checkpoint and waits there for ever; if the file is there already, it goes on.

The points are places in the sink's own methods, which run in processes of Spark's: the writer below travels to them
as code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import holdfast.pipeline
from holdfast.pipeline.sink import Attempted, HoldfastStreamWriter
from holdfast.pipeline.source import HoldfastSource
from tested_spark import LITTLE

#: In the order in which a batch comes to them.
POINTS = ("computing", "staged", "committing", "committed", "checkpointed")
BATCH = 1


def stop_at(point: str, folder: str) -> None:
    """Wait here to be killed, unless that has happened."""
    mark = Path(folder) / point
    if not mark.exists():
        mark.touch()
        Event().wait()


class StoppingWriter(HoldfastStreamWriter):
    """Stops in tasks and commits of one batch."""

    def __init__(self, staging: Any, point: str, folder: str) -> None:
        super().__init__(staging)
        self._point = point
        self._folder = folder

    def write(self, iterator: Iterator[Any]) -> Attempted:
        from pyspark import TaskContext

        context = TaskContext.get()
        is_meant = (
            context.getLocalProperty("streaming.sql.batchId") == str(BATCH) and context.partitionId() == 1
        )
        if is_meant and self._point == "computing":
            stop_at(self._point, self._folder)
        attempted = super().write(iterator)
        if is_meant and self._point == "staged":
            stop_at(self._point, self._folder)
        return attempted

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        if batchId == BATCH and self._point == "committing":
            stop_at(self._point, self._folder)
        super().commit(messages, batchId)
        if batchId == BATCH and self._point == "committed":
            stop_at(self._point, self._folder)


def main(network: str, checkpoint: str, point: str) -> None:
    folder = str(Path(checkpoint).parent)

    class StoppingSource(HoldfastSource):
        def streamWriter(self, schema: Any, overwrite: bool) -> StoppingWriter:  # noqa: N802
            return StoppingWriter(super().streamWriter(schema, overwrite)._staging, point, folder)

    spark = holdfast.pipeline.session("killed", master="local[2]", **LITTLE)
    spark.dataSource.register(StoppingSource)
    source = (
        spark.readStream.format("holdfast")
        .options(network=network, stream="in", attributes="i BIGINT", startingOffsets="earliest")
        .option("maxEventsPerTrigger", "20")
        .load()
    )
    query = (
        source.selectExpr("a.i AS i", "uuid() AS id")
        .repartition(2)
        .selectExpr("named_struct('i', i, 'id', id) AS attributes")
        .writeStream.format("holdfast")
        .options(network=network, stream="out", topic="out/x", attributesColumn="attributes")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    if point == "checkpointed":
        while query.isActive and not (Path(checkpoint) / "commits" / str(BATCH)).exists():
            query.awaitTermination(0.05)
        stop_at(point, folder)
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:4])
