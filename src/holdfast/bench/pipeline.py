"""`holdfast bench pipeline`: streams as tables of Spark and of the lake, beside plain Parquet and bare writing.

What is read is a stream on disk, two brokers' logs of 418-byte events (``pipeline_stream``). Every run counts what it
has read, and fails if that is not what was written. Spark is embedded, on two cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.bench.network_outcome import Outcome
from holdfast.bench.pipeline_lake import lake
from holdfast.bench.pipeline_live import live
from holdfast.bench.pipeline_scale import Setting
from holdfast.bench.pipeline_source import source
from holdfast.bench.pipeline_streaming import streaming

__all__ = ["PIPELINE_JOBS"]

#: In the order in which they have to run: the source is measured against rows that the lake has, and after ``live``
#: Spark has a lower priority.
PIPELINE_JOBS: dict[str, Callable[[Setting], Iterator[Outcome]]] = {
    "lake": lake,
    "source": source,
    "streaming": streaming,
    "live": live,
}
