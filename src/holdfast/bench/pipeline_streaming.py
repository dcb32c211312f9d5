"""The stream as a stream of Spark: rows a second in batches of several sizes, and what a batch of two events takes.

The latter is the floor under every micro-batch, whatever it does: planning, two logs that Spark writes, and its tasks.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from holdfast.bench.network_outcome import Outcome
from holdfast.bench.pipeline_scale import Setting
from holdfast.bench.pipeline_stream import FIRST_TICK, STREAM, TICKS_EACH

__all__ = ["FLOOR_JOB", "STREAMING_JOB", "streaming"]

STREAMING_JOB: Final = "streaming to noop"
FLOOR_JOB: Final = "a micro-batch of two events"
ROWS_MAX: Final = 1_000_000


def streaming(setting: Setting) -> Iterator[Outcome]:
    """The end of the stream, in as many batches as are wanted."""
    rows = min(setting.stored.rows, ROWS_MAX)
    for batches in setting.scale.batches:
        runs: list[float] = []
        for _ in range(setting.scale.repetitions):
            began = time.perf_counter()
            done = _taken(setting, rows, -(-rows // batches))
            runs.append(sum(each["numInputRows"] for each in done) / (time.perf_counter() - began))
        variant = f"in {batches} {'batches' if batches > 1 else 'batch'}"
        yield Outcome(STREAMING_JOB, variant, "rows/s", tuple(runs))
    done = _taken(setting, 2 * setting.scale.floor_batches, 2)
    took = [each["durationMs"]["triggerExecution"] for each in done[1:]]
    parts = {
        name: statistics.median([each["durationMs"].get(name, 0) for each in done[1:]])
        for name in ("latestOffset", "queryPlanning", "addBatch", "walCommit", "commitOffsets")
    }
    remark = "; ".join(f"{name} {ms:.0f}" for name, ms in parts.items())
    yield Outcome(FLOOR_JOB, "noop", "ms", (statistics.median(took),), f"{len(took)} batches; {remark}")


def _taken(setting: Setting, rows: int, at_once: int) -> list[dict[str, Any]]:
    """The last rows of both brokers, so many in a batch: the progress of each batch that had some.

    :raises BenchFailed: if they are others than there are.
    """
    skipped = setting.stored.rows // 2 - rows // 2  # of each broker
    start = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=FIRST_TICK + skipped * TICKS_EACH + 1)
    frame = (
        setting.spark.readStream.format("holdfast")
        .options(network=str(setting.stored.network), stream=STREAM, readFrom="log")
        .options(startingTimestamp=start.isoformat(), maxEventsPerTrigger=str(at_once))
        .load()
    )
    query = frame.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    done = [dict(each) for each in query.recentProgress if each["numInputRows"]]
    found = sum(each["numInputRows"] for each in done)
    setting.check_rows(found, setting.stored.rows - 2 * skipped, STREAMING_JOB)
    return done
