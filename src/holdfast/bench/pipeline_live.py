"""Live delivery while somebody reads everything there was: what a full backfill costs those who are current.

One broker as an operator runs it, with its log reader; a durable subscriber who is current, and one who is away and for
whom all of it is kept. A load publishes at a steady rate and takes the time from its socket to the subscriber's, while
Spark reads the stream from its beginning again and again, and while it does not; the two take turns.

All of it is on one machine, where Spark would take all cores. It has to give way as a log reader does, with one core
fewer than there are, as whoever runs it beside brokers should have it do.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from holdfast.bench.durable_load import EVERYTHING, DurableLoad
from holdfast.bench.durable_reception import FIRST
from holdfast.bench.durable_wire import Publisher, Subscriber
from holdfast.bench.network_outcome import Outcome, latency_outcomes
from holdfast.bench.network_wire import PUBLISHER, BenchFailed
from holdfast.bench.peers_process import Server, free_port
from holdfast.bench.pipeline_scale import Setting
from holdfast.bench.process_tree import subdue

__all__ = ["ALONE", "BESIDE", "LIVE_JOB", "live"]

PER_SECOND: Final = 800
LIVE_JOB: Final = f"live delivery at {PER_SECOND} events/s"
ALONE, BESIDE = "nobody reads the log", "Spark reads all of it, again and again"
NETWORK: Final = """name = "live"

[[broker]]
name = "phb"
listen = "127.0.0.1:{port}"
reader = "127.0.0.1:{reader}"
data = "phb"

[[stream]]
name = "orders"
topics = ["orders/#"]
guarantee = "durable"
"""


def live(setting: Setting) -> Iterator[Outcome]:
    """Latencies with and without, and how much was read meanwhile."""
    folder = setting.folder / "live"
    folder.mkdir()
    port = free_port()
    network = folder / "network.toml"
    network.write_text(NETWORK.format(port=port, reader=free_port()))
    command = [sys.executable, "-m", "holdfast.cli.main", "broker", "phb", "--network", str(network)]
    found: dict[str, list[list[int]]] = {ALONE: [], BESIDE: []}
    rows = 0
    with ExitStack() as stack:
        server = Server("the broker", command, port, folder / "phb.log", {})
        stack.callback(server.stop)
        server.wait_listening()
        load = _loaded(port)
        stack.callback(load.close)
        load.publish(min(setting.scale.rows, setting.scale.live_rows))
        spark = setting.spark
        subdue("java")
        load.run_paced(PER_SECOND, 1.0)  # what was sent at full speed is behind us
        for _ in range(setting.scale.live_turns):
            found[ALONE].append(load.run_paced(PER_SECOND, setting.scale.live_seconds))
            with _Backfill(spark, network) as backfill:
                found[BESIDE].append(load.run_paced(PER_SECOND, setting.scale.live_seconds))
            rows += backfill.rows
    yield from latency_outcomes(LIVE_JOB, found)
    seconds = setting.scale.live_turns * setting.scale.live_seconds
    yield Outcome(f"{LIVE_JOB}, read beside", BESIDE, "rows/s", (rows / seconds,))


def _loaded(port: int) -> DurableLoad:
    """A publisher, a subscriber who is current, and one who has left."""
    keeper = Subscriber(port, "keeper", FIRST, 1)
    keeper.subscribe(EVERYTHING)
    keeper.wait_confirmed()
    keeper.close()
    current = Subscriber(port, "sink", FIRST, 1)
    current.subscribe(EVERYTHING)
    current.wait_confirmed()
    return DurableLoad(Publisher(port, PUBLISHER), [current], 1)


class _Backfill:
    """While the block lasts Spark reads everything there is, from the beginning, over and over."""

    def __init__(self, spark: Any, network: Path) -> None:
        self._spark = spark
        self._network = network
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._problem: Exception | None = None
        self.rows = 0  #: that were read

    def _read(self) -> None:
        reader = self._spark.read.format("holdfast").options(
            network=str(self._network), stream="orders", minPartitions="2"
        )
        try:
            while not self._stopping.is_set():
                [found] = reader.load().selectExpr("count(payload) AS rows").collect()
                self.rows += found.rows
        except Exception as error:  # Spark raises whatever it likes
            self._problem = error

    def __enter__(self) -> _Backfill:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._stopping.set()
        self._thread.join()
        if self._problem is not None and kind is None:
            raise BenchFailed(f"the backfill failed: {self._problem}") from self._problem
