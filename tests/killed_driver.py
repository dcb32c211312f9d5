"""A driver of Spark that stops at points, to be killed there: ``killed_driver.py NETWORK CHECKPOINT MASTER [POINT…]``.

It reads the stream ``in``, shuffles, gives every row an id that is another one whenever it is computed, and writes the
stream ``out``, as much as there is. Where it comes to a point it makes a file of that name beside the checkpoint, with
the id of the process that is there, and waits until there is one with ``.over`` behind it: for ever, if it is to be
killed. At a point whose file is there already it goes on.

The points are places in the sink's own methods, which run in processes of Spark's: the writer below travels to them as
code. A query that fails is begun again from its checkpoint, as an operator would have it; one that fails too often is
given up.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import holdfast.pipeline
from holdfast.pipeline.sink import Attempted, HoldfastStreamWriter
from holdfast.pipeline.source import HoldfastSource
from tested_spark import LITTLE

#: In a batch, in the order in which it comes to them; the first two are in tasks, the others in the driver.
STEPS = ("computing", "staged", "committing", "committed", "checkpointed")
#: Where drivers are killed, and where executors are: the batch and the step.
POINTS = tuple(f"1-{step}" for step in STEPS)
TASK_POINTS = ("0-staged", "1-computing", "1-staged", "2-computing", "2-staged")
ATTEMPTS = 10
LOOK_SECONDS = 0.05


def stop_at(point: str, points: Sequence[str], folder: str) -> None:
    """Wait here to be killed, or told to go on, unless that has happened."""
    mark = Path(folder) / point
    if point not in points or mark.exists():
        return
    half = mark.with_suffix(".half")
    half.write_text(str(os.getpid()))
    half.rename(mark)
    while not mark.with_suffix(".over").exists():
        time.sleep(LOOK_SECONDS)


class StoppingWriter(HoldfastStreamWriter):
    """Stops in tasks and commits."""

    def __init__(self, staging: Any, points: Sequence[str], folder: str) -> None:
        super().__init__(staging)
        self._points = points
        self._folder = folder

    def write(self, iterator: Iterator[Any]) -> Attempted:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        batch, is_meant = context.getLocalProperty("streaming.sql.batchId"), context.partitionId() == 1
        if is_meant:
            stop_at(f"{batch}-computing", self._points, self._folder)
        attempted = super().write(iterator)
        if is_meant:
            stop_at(f"{batch}-staged", self._points, self._folder)
        return attempted

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        stop_at(f"{batchId}-committing", self._points, self._folder)
        super().commit(messages, batchId)
        stop_at(f"{batchId}-committed", self._points, self._folder)


def query_in(spark: Any, network: str, checkpoint: str) -> Any:
    """The query, begun or gone on with; it ends when it has written what is there now."""
    source = (
        spark.readStream.format("holdfast")
        .options(network=network, stream="in", attributes="i BIGINT", startingOffsets="earliest")
        .option("maxEventsPerTrigger", "20")
        .load()
    )
    return (
        source.selectExpr("a.i AS i", "uuid() AS id")
        .repartition(2)
        .selectExpr("named_struct('i', i, 'id', id) AS attributes")
        .writeStream.format("holdfast")
        .options(network=network, stream="out", topic="out/x", attributesColumn="attributes")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )


def session(master: str) -> Any:
    """A small one; executors of a cluster, whose workers know nothing of us, are told where we are."""
    settings: dict[str, Any] = dict(LITTLE)
    if not master.startswith("local"):
        settings |= {
            "spark__executor__memory": "512m",
            "spark__executor__extraJavaOptions": LITTLE["spark__driver__extraJavaOptions"],
            "spark__executorEnv__PYTHONPATH": os.environ["PYTHONPATH"],
        }
    return holdfast.pipeline.session("killed", master=master, **settings)


def main(network: str, checkpoint: str, master: str, *points: str) -> None:
    folder = str(Path(checkpoint).parent)

    class StoppingSource(HoldfastSource):
        def streamWriter(self, schema: Any, overwrite: bool) -> StoppingWriter:  # noqa: N802
            return StoppingWriter(super().streamWriter(schema, overwrite)._staging, points, folder)

    spark = session(master)
    spark.dataSource.register(StoppingSource)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            query = query_in(spark, network, checkpoint)
            if POINTS[-1] in points:
                while query.isActive and not (Path(checkpoint) / "commits" / "1").exists():
                    query.awaitTermination(LOOK_SECONDS)
                stop_at(POINTS[-1], points, folder)
            query.awaitTermination()
            return
        except Exception as failure:  # Spark raises whatever it likes
            sys.stderr.write(f"the query failed: {failure}\n")
            if attempt == ATTEMPTS:
                raise


if __name__ == "__main__":
    main(*sys.argv[1:])
