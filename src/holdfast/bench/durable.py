"""`holdfast bench durable`: brokers of durable streams as real processes, on a real disk, under a load that checks all.

Every event must be accepted and delivered to each of its subscribers once and in order, or a run fails. Publisher and
subscribers are raw connections in one process, so that what is measured are the brokers; what the real client makes of
it stands beside that once. Where a figure depends on the disk, a bare file on the same disk takes turns with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.bench.durable_catch_up import catch_up, outage
from holdfast.bench.durable_fan_out import fan_out
from holdfast.bench.durable_filtering import filtering_log
from holdfast.bench.durable_latency import chain_latency, latency, offered
from holdfast.bench.durable_publishing import publishing
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.network_outcome import Outcome

__all__ = ["DURABLE_JOBS"]

#: Each yields its outcomes, and raises ``BenchFailed`` if a run lost, repeated or reordered something.
DURABLE_JOBS: dict[str, Callable[[DurableScale], Iterator[Outcome]]] = {
    "publishing": publishing,
    "latency": latency,
    "fan-out": fan_out,
    "offered": offered,
    "chain": chain_latency,
    "filtering-log": filtering_log,
    "catch-up": catch_up,
    "outage": outage,
}
