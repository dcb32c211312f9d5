"""What is asked of a broker in `holdfast bench peers`, whoever made it.

Three workloads, each with events of 418 bytes. *Publishing*: one publisher, so many events unacknowledged, kept for one
durable subscriber who is away. *Latency*: a steady rate, one durable subscriber. *Fan-out*: durable subscribers in
groups, each event for one group, acknowledged by every subscriber. And since a broker that does not write is fast at
all three: what it has on disk when it acknowledges, and how many copies of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from holdfast.bench.network_load import Run

__all__ = ["EVENT_BYTES", "GROUPS", "WINDOW", "OnDisk", "Peer", "Run", "Usage"]

EVENT_BYTES: Final = 418
WINDOW: Final = 512  #: events a publisher may have unacknowledged
GROUPS: Final = 4  #: of the subscribers of a fan-out


@dataclass(frozen=True, slots=True)
class OnDisk:
    """What a broker is said to have on disk when it acknowledges, by its documentation as it is configured here."""

    synced: bool  #: whether an acknowledged event survives a loss of power
    copies: int
    said: str  #: the setting, and what it means
    delivers_sooner: bool = False  #: subscribers get events before they are synced


@dataclass(frozen=True, slots=True)
class Usage:
    """What the processes of a broker have used since they were started."""

    cpu_seconds: float
    written_bytes: int  #: ``write_bytes`` of /proc/PID/io: sent to storage, in whole pages


class Peer(Protocol):
    """One broker in one configuration, on one machine; used by one caller at a time."""

    name: str

    def missing(self) -> str | None:
        """Why it cannot be measured here; None if it can."""

    def start(self, folder: Path) -> None:
        """Start it with its files in an empty folder of its own, and connect what the workloads need.

        :raises BenchFailed: if it does not come up.
        """

    def stop(self) -> None:
        """End it; harmless if it was never started."""

    def version(self) -> str:
        """What it calls itself."""

    def on_disk_statement(self) -> OnDisk:
        """What it says of itself; ``peers_evidence`` looks whether that is so."""

    def process_ids(self) -> list[int]:
        """Its processes, without those of the load."""

    def usage(self) -> Usage:
        """What they have used."""

    def rest(self) -> None:
        """Between turns, whoever's they are: say that its clients are still there, if it wants to hear that."""

    def publish_pipelined(self, seconds: float, window: int, *, is_awaited: bool) -> Run:
        """Publish for so long with a window full of unacknowledged events; ends when all are acknowledged.

        ``is_awaited``: for a durable subscriber who is away; else for nobody, where events are kept all the same.

        :raises BenchFailed: if something is refused, or not acknowledged.
        """

    def latencies_ns(self, per_second: float, seconds: float) -> list[int]:
        """Publish at a steady rate; how long each event took to its subscriber.

        :raises BenchFailed: if something is lost, repeated or out of order.
        """

    def subscribe_many(self, subscribers: int) -> None:
        """Have so many durable subscribers in ``GROUPS`` groups of the same size."""

    def fan_out(self, seconds: float) -> Run:
        """Publish for so long to the subscribers; ends when everybody has everything.

        :raises BenchFailed: if something is lost, repeated or out of order.
        """
