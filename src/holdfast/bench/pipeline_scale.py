"""How large the benchmarks of the pipeline are made, and what they share: a stream on disk, its readers, and Spark."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import holdfast.pipeline
from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.peers_process import Server
from holdfast.bench.pipeline_stream import STREAM, StoredStream, stored_stream
from holdfast.runtime.broker_process import STORE_FOLDER
from holdfast.runtime.network_file import read_network

__all__ = ["MASTER", "PipelineScale", "Setting", "setting"]

MASTER: Final = "local[2]"
MEMORY: Final = "4g"


@dataclass(frozen=True, slots=True)
class PipelineScale:
    """The defaults are what is promised; tests, and those in a hurry, use less."""

    folder: Path = field(default_factory=Path)  #: on the disk that is to be measured
    rows: int = 10_000_000
    repetitions: int = 3  #: of readings
    batches: tuple[int, ...] = (1, 10)  #: in which a stream is read
    floor_batches: int = 20  #: micro-batches of next to nothing
    live_rows: int = 1_000_000  #: of the backfill beside live delivery, at most as many as there are rows
    live_turns: int = 5  #: with a backfill, and as many without
    live_seconds: float = 5.0  #: of each


class Setting:
    """What the jobs of one run share; each part is made when it is first asked for."""

    def __init__(self, scale: PipelineScale, folder: Path, stack: ExitStack) -> None:
        self.scale = scale
        self.folder = folder
        self._stack = stack

    @cached_property
    def stored(self) -> StoredStream:
        """The stream, on disk, with a log reader for each broker."""
        stored = stored_stream(self.folder, self.scale.rows)
        for broker in read_network(stored.network).brokers:
            assert broker.reader is not None
            command = [sys.executable, "-m", "holdfast.pipeline.reader", "--listen", str(broker.reader)]
            command += ["--folder", str(broker.data / STORE_FOLDER), "--node", broker.name]
            log = self.folder / f"{broker.name}.log"
            server = Server(f"the log reader of {broker.name}", command, broker.reader.port, log, {})
            self._stack.callback(server.stop)
            server.wait_listening()
        return stored

    @cached_property
    def spark(self) -> Any:
        """A session, warm: its first query has to load and compile."""
        settings: dict[str, Any] = {
            "spark__driver__memory": MEMORY,
            "spark__local__dir": str(self.folder / "spills"),
        }
        session: Any = holdfast.pipeline.session("bench", master=MASTER, **settings)
        self._stack.callback(session.stop)
        warm = self.source(session, readFrom="log", endingTimestamp="2026-01-01T00:01:40Z")
        warm.write.format("noop").mode("overwrite").save()
        return session

    def source(self, session: Any | None = None, **options: str) -> Any:
        """The stream as a DataFrame."""
        reader = (session or self.spark).read.format("holdfast")
        return reader.options(network=str(self.stored.network), stream=STREAM, **options).load()

    def check_rows(self, found: int, expected: int, what: str) -> None:
        """A run that has other rows than there are means nothing.

        :raises BenchFailed: then.
        """
        if found != expected:
            raise BenchFailed(f"{what}: {found:,} rows, and {expected:,} were written")


@contextmanager
def setting(scale: PipelineScale) -> Iterator[Setting]:
    """For one run; everything is gone afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=scale.folder) as folder,
        ExitStack() as stack,
    ):
        yield Setting(scale, Path(folder).resolve(), stack)
