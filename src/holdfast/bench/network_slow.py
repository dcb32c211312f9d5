"""A thousand clients at one broker, and whether the others notice when one stops reading.

An event goes to a quarter of the others, forty times a second. As often, the one client is sent half a
megabyte: within two seconds its buffers have been full for one, and the broker gives it up. So a run sees both,
buffers that grow and the parting. Beside it, taking turns, the same with a client that reads.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from holdfast.bench.network_load import Load
from holdfast.bench.network_outcome import Outcome, Scale, latency_outcomes
from holdfast.bench.network_process import Measured
from holdfast.bench.network_wire import ANSWER_SECONDS, BenchFailed, RawConnection
from holdfast.bench.network_workload import GROUPS, SEED, Workload, order
from holdfast.events.event import Event
from holdfast.filters.parse import parse_filter
from holdfast.messages.publications import Deliveries
from holdfast.messages.session import Farewell, Goodbye

__all__ = ["NOT_READING", "READING", "slow_reader"]

READING, NOT_READING = "all read", "one does not read"
EVENTS_PER_SECOND: Final = 80.0  #: every other one for the client that may not read
FLOOD_BYTES: Final = 512 * 1024
SECONDS_MIN: Final = 3.0  #: enough for its buffer to overflow, and for the second it may stay so


def slow_reader(scale: Scale) -> Iterator[Outcome]:
    """The others' latency, with a client that does not read and with one that does."""
    found: dict[str, list[list[int]]] = {READING: [], NOT_READING: []}
    for _ in range(scale.repetitions):
        for variant, runs in found.items():
            runs.append(_run(scale, reads=variant == READING))
    yield from latency_outcomes(f"{scale.clients:,} clients", found)


def flooded(clients: int) -> Workload:
    """Orders for all clients but the last, and for that one something large between every two."""
    rng = random.Random(SEED)
    filters = [[parse_filter(f"orders/# WHERE group = 'g{i % GROUPS}'")] for i in range(clients - 1)]
    pool: list[Event] = []
    for i in range(GROUPS):
        pool += (order(rng, i), Event("flood", {}, bytes(FLOOD_BYTES)))
    return Workload([*filters, [parse_filter("flood")]], pool)


def _run(scale: Scale, *, reads: bool) -> list[int]:
    with Measured("broker") as broker, Load(flooded(scale.clients), broker.port) as load:
        *others, last = load.sinks
        if not reads:
            load.stop_reading(last)
        load.run_paced(EVENTS_PER_SECOND, max(SECONDS_MIN, scale.seconds))
        if reads:
            load.finish()
        else:
            _check_given_up(load.subscribers[-1])
        return [latency for sink in others for latency in sink.latencies_ns]


def _check_given_up(connection: RawConnection) -> None:
    """Read at last what the broker has left to say."""
    connection.socket.settimeout(ANSWER_SECONDS)
    while isinstance(message := connection.receive(), Deliveries):
        pass
    if not isinstance(message, Goodbye) or message.farewell is not Farewell.TOO_SLOW:
        raise BenchFailed(
            f"{connection.name} did not read, and was told {message}; expected that it is too slow"
        )
