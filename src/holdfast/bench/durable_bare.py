"""The bare twin of a durable broker: a file to which batches are appended and synced, and nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from holdfast.bench.network_workload import EVENT_BYTES
from holdfast.clock import SECOND

__all__ = ["appended_per_second", "sync_latencies_ns"]

FILE: Final = "bare"


def appended_per_second(folder: Path, batch_events: int, seconds: float) -> float:
    """Events a second, if each batch is written and synced before the next one."""
    data = os.urandom(EVENT_BYTES * batch_events)
    began = time.perf_counter()
    batches = 0
    file = os.open(folder / FILE, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        while (took := time.perf_counter() - began) < seconds or not batches:
            _append(file, data)
            batches += 1
    finally:
        os.close(file)
    return batches * batch_events / took


def sync_latencies_ns(folder: Path, per_second: float, seconds: float) -> list[int]:
    """How long one event takes to be appended and synced, at a steady rate."""
    data = os.urandom(EVENT_BYTES)
    latencies: list[int] = []
    file = os.open(folder / FILE, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        at = time.monotonic_ns()
        for _ in range(max(2, round(per_second * seconds))):
            at += round(SECOND / per_second)
            time.sleep(max(0, at - time.monotonic_ns()) / SECOND)
            began = time.monotonic_ns()
            _append(file, data)
            latencies.append(time.monotonic_ns() - began)
    finally:
        os.close(file)
    return latencies


def _append(file: int, data: bytes) -> None:
    os.write(file, data)
    os.fdatasync(file)
