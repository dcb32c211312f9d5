"""A durable stream of any size on disk, as its brokers would have left it: what the pipeline's benchmarks read.

Two brokers with a pubend each. Nobody publishes: ten million events through clients would take longer than everything
that is measured. The logs are written by the same module that brokers write them with, the tables say that all of it is
stable, and the network file has log readers, which are started here as brokers start them.

Events are orders of 418 bytes with six attributes, one of them a number that grows, and a payload that does not
compress, so that Parquet has no easier time than a log.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import msgspec

from holdfast.bench.network_workload import EVENT_BYTES, SEED
from holdfast.bench.peers_process import free_port
from holdfast.events.event import Event
from holdfast.events.packed import pack
from holdfast.events.value import Value
from holdfast.messages.publications import Publication
from holdfast.runtime.broker_process import STORE_FOLDER
from holdfast.runtime.real_store import TABLES_FILE
from holdfast.storage.log import SegmentLog
from holdfast.storage.real_files import RealFiles
from holdfast.storage.real_tables import RealTables
from holdfast.storage.tables import Change
from holdfast.streams.ends import EVENTS, LEASES, PUBENDS, Leased, folder_of
from holdfast.streams.pubend import Kept
from holdfast.streams.records import record_of

__all__ = ["ATTRIBUTES", "STREAM", "StoredStream", "stored_stream"]

STREAM: Final = "orders"
BROKERS: Final = ("b1", "b2")
#: As the network file declares them.
ATTRIBUTES: Final = "number BIGINT, symbol STRING, price DOUBLE, quantity BIGINT, side STRING, urgent BOOLEAN"
FIRST_TICK: Final = 1_767_225_600_000_000  #: the beginning of 2026
TICKS_EACH: Final = 1_000  #: an event in a millisecond
BATCH_EVENTS: Final = 1_000
COMMIT_BATCHES: Final = 64
POOL: Final = 10_007
BLOB_BYTES: Final = 1 << 20

NETWORK: Final = """name = "bench"

[[stream]]
name = "{stream}"
topics = ["orders/#"]
attributes = "{attributes}"
"""
BROKER: Final = """
[[broker]]
name = "{name}"
listen = "127.0.0.1:{port}"
reader = "127.0.0.1:{reader}"
data = "{name}"
"""


class StoredStream(msgspec.Struct, frozen=True):
    """Where it is, and how large."""

    folder: Path
    rows: int

    @property
    def network(self) -> Path:
        """The network file."""
        return self.folder / "network.toml"


def stored_stream(folder: Path, rows: int) -> StoredStream:
    """Write so many events, half of them to each broker's folder, by a process each."""
    brokers = []
    for i, name in enumerate(BROKERS):
        parent = f'parent = "{BROKERS[0]}"\n' if i else ""
        brokers.append(BROKER.format(name=name, port=free_port(), reader=free_port()) + parent)
    text = NETWORK.format(stream=STREAM, attributes=ATTRIBUTES) + "".join(brokers)
    stored = StoredStream(folder, rows)
    stored.network.write_text(text)
    shares = [rows // len(BROKERS) + (i < rows % len(BROKERS)) for i in range(len(BROKERS))]
    with ProcessPoolExecutor(len(BROKERS), get_context("spawn")) as processes:
        for _ in processes.map(_fill, [folder] * len(BROKERS), BROKERS, shares):
            pass
    return stored


def _fill(folder: Path, broker: str, rows: int) -> None:
    """Write the log of one pubend, and what its broker's tables say of it."""
    pubend = f"{STREAM}@{broker}/0"
    store = folder / broker / STORE_FOLDER
    store.mkdir(parents=True)
    files = RealFiles(store / folder_of(EVENTS, pubend))
    log = SegmentLog(files, bytes(16))
    records = _records(f"p-{broker}", rows)
    for first in range(0, rows, BATCH_EVENTS):
        last = min(first + BATCH_EVENTS, rows)
        ticks = [FIRST_TICK + (i + 1) * TICKS_EACH for i in range(first, last)]
        log.append(ticks, [next(records) for _ in ticks])
        if first // BATCH_EVENTS % COMMIT_BATCHES == COMMIT_BATCHES - 1 or last == rows:
            log.commit()
    files.close()
    end = FIRST_TICK + rows * TICKS_EACH
    tables = RealTables(store / TABLES_FILE)
    tables.apply(
        [
            Change(PUBENDS, pubend, msgspec.msgpack.encode(Kept(created=FIRST_TICK))),
            Change(LEASES, pubend, msgspec.msgpack.encode(Leased(end, end))),
        ]
    )
    tables.close()


def _records(publisher: str, rows: int) -> Iterator[bytes]:
    """What a pubend writes of each order; the same ones whenever they are asked for."""
    rng = random.Random(f"{SEED} {publisher}")
    orders = [_order(rng) for _ in range(POOL)]
    blob = rng.randbytes(BLOB_BYTES)
    room = EVENT_BYTES - len(_record(publisher, rows, orders[0], b""))
    for i in range(rows):
        attributes = orders[i % POOL]
        attributes["number"] = i
        start = i * 7_919 % (BLOB_BYTES - room)
        yield _record(publisher, i + 1, attributes, blob[start : start + room])


def _record(publisher: str, n: int, attributes: dict[str, Value], payload: bytes) -> bytes:
    topic = "orders/eu" if n % 4 else "orders/us"
    time = (FIRST_TICK + n * TICKS_EACH) * 1_000
    event = Event(topic, attributes, payload, "application/octet-stream", time=time)
    return record_of(Publication(publisher, n, pack(event)))


def _order(rng: random.Random) -> dict[str, Value]:
    return {
        "number": 0,
        "symbol": f"S{rng.randrange(1_000):03}",
        "price": round(rng.uniform(50, 400), 2),
        "quantity": rng.randrange(1, 1_000),
        "side": rng.choice(("buy", "sell")),
        "urgent": rng.random() < 0.1,
    }
