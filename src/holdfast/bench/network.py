"""`holdfast bench network`: brokers as real processes under a load that checks every delivery, beside bare twins.

There are two cores: one for the broker (or the brokers of a chain), one for a single process that publishes and
receives. So a figure is what one broker does with one core, as long as the load is not the slower of the two; its
processor time is reported beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.bench.network_clients import real_clients
from holdfast.bench.network_latency import latency
from holdfast.bench.network_outcome import Outcome, Scale
from holdfast.bench.network_reliable import reliable
from holdfast.bench.network_simulation import simulator
from holdfast.bench.network_slow import slow_reader
from holdfast.bench.network_throughput import content, fan_out, loopback, one_subscriber

__all__ = ["JOBS"]

#: Each yields its outcomes, and raises ``BenchFailed`` if a run lost, repeated or reordered something.
JOBS: dict[str, Callable[[Scale], Iterator[Outcome]]] = {
    "loopback": loopback,
    "fan-out": fan_out,
    "one-subscriber": one_subscriber,
    "content": content,
    "latency": latency,
    "slow-reader": slow_reader,
    "client": real_clients,
    "reliable": reliable,
    "simulator": simulator,
}
