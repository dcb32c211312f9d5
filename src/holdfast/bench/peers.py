"""`holdfast bench peers`: Holdfast and other brokers under the same three workloads, in one run.

All of them live at the same time and take turns, each repetition through all, so that whatever else the machine and its
disk do befalls everybody. Before a turn the disk is given time to write what the one before left behind. Servers and
load share the machine: on two cores a server has at most what the load leaves of them; both stand beside each figure.

The names and settings of the peers are in ``peers_nats`` and the like; whoever is not installed is left out by name.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.bench.network_outcome import Outcome, latency_outcomes
from holdfast.bench.peers_bare import BareLoop
from holdfast.bench.peers_evidence import Evidence, evidence
from holdfast.bench.peers_holdfast import Holdfast
from holdfast.bench.peers_holdfast_client import HoldfastClient
from holdfast.bench.peers_mosquitto import Mosquitto
from holdfast.bench.peers_nats import Nats
from holdfast.bench.peers_peer import EVENT_BYTES, WINDOW, OnDisk, Peer, Run
from holdfast.bench.peers_rabbitmq import RabbitMq
from holdfast.bench.peers_redis import Redis
from holdfast.clock import SECOND

__all__ = [
    "AWAITED",
    "DISK",
    "FAN_OUT",
    "JOBS",
    "LATENCY",
    "PUBLISHING",
    "WRITTEN",
    "Contest",
    "Fact",
    "Size",
    "all_peers",
]

PUBLISHING, AWAITED = "publishing", "publishing, a subscriber is away"
LATENCY, FAN_OUT, WRITTEN = "latency", "fan-out", "fan-out, written"
DISK: Final = "append and fdatasync"  #: what the disk alone takes
SETTLE_SECONDS: Final = 5.0  #: how long the peers may take to come to rest
SETTLE_STEP: Final = 0.1
AT_REST: Final = 0.3  #: of a processor, used by all peers together
LIMIT_SHARE: Final = 0.9  #: of a processor: a load that takes more is the limit


def all_peers() -> list[Peer]:
    """In the order of the report."""
    return [
        Holdfast(),
        HoldfastClient(),
        Nats(always=True),
        Nats(always=False),
        Redis(),
        RabbitMq("quorum"),
        RabbitMq("classic"),
        Mosquitto(),
    ]


@dataclass(frozen=True, slots=True)
class Size:
    """How long and how large; the defaults are what is promised, tests use less."""

    seconds: float = 2.0  #: of one run
    repetitions: int = 5
    subscribers: int = 100
    per_second: float = 800.0  #: events, where latency is measured
    evidence_seconds: float = 0.5


@dataclass(frozen=True, slots=True)
class Fact:
    """What one peer has on disk when it acknowledges."""

    peer: str
    version: str
    statement: OnDisk
    evidence: Evidence

    @property
    def really_syncs(self) -> bool:
        """It says so, and nothing else was seen."""
        return self.statement.synced and (self.evidence.is_synced or bool(self.evidence.problem))


class Contest:
    """Peers that run, and what is measured of them; used in a ``with``, which starts and ends them."""

    def __init__(self, peers: Sequence[Peer], folder: Path, size: Size) -> None:
        self._peers = {peer.name: peer for peer in peers}
        self._floors = [BareLoop("thread"), BareLoop("loop")]
        self._folder = folder
        self._size = size
        self._stack = ExitStack()

    def __enter__(self) -> Contest:
        with self._stack:
            for peer in (*self._peers.values(), *self._floors):
                self._stack.callback(peer.stop)
                peer.start(self._home(peer.name))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _home(self, name: str) -> Path:
        return self._folder / re.sub(r"\W+", "-", name.lower())

    def facts(self) -> Iterator[Fact]:
        """What each has on disk when it acknowledges."""
        for name, peer in self._peers.items():
            seen = evidence(peer, self._home(name), self._size.evidence_seconds)
            yield Fact(name, peer.version(), peer.on_disk_statement(), seen)

    def publishing(self) -> Iterator[Outcome]:
        """Acknowledged events a second, one publisher."""
        yield from self._published(PUBLISHING, is_awaited=False)
        yield from self._published(AWAITED, is_awaited=True)

    def _published(self, job: str, *, is_awaited: bool) -> Iterator[Outcome]:
        turns = self._turns(
            lambda peer: peer.publish_pipelined(self._size.seconds, WINDOW, is_awaited=is_awaited)
        )
        for name, own in turns.items():
            yield Outcome(
                job,
                name,
                "events/s",
                tuple(turn.run.events_per_second for turn in own),
                f"{_median([turn.written_per_event for turn in own]):,.0f} bytes written an event; {_shares(own)}",
            )

    def latency(self) -> Iterator[Outcome]:
        """From publishing to delivery at a steady rate, beside what the disk alone takes, and the least of a server."""
        peers: dict[str, Peer] = {**{floor.name: floor for floor in self._floors}, **self._peers}
        found: dict[str, list[list[int]]] = {DISK: [], **{name: [] for name in peers}}
        for _ in range(self._size.repetitions):
            self._settle()
            found[DISK].append(self._disk_latencies_ns())
            for name, peer in peers.items():
                self._settle()
                found[name].append(peer.latencies_ns(self._size.per_second, self._size.seconds))
        yield from latency_outcomes(LATENCY, found)

    def fan_out(self) -> Iterator[Outcome]:
        """Deliveries a second, and bytes written an event."""
        for peer in self._peers.values():
            peer.subscribe_many(self._size.subscribers)
        turns = self._turns(lambda peer: peer.fan_out(self._size.seconds))
        for name, own in turns.items():
            rates = tuple(turn.run.deliveries_per_second for turn in own)
            yield Outcome(FAN_OUT, name, "deliveries/s", rates, _shares(own))
        for name, own in turns.items():
            yield Outcome(WRITTEN, name, "bytes/event", tuple(turn.written_per_event for turn in own))

    def _turns(self, work: Callable[[Peer], Run]) -> dict[str, list[_Turn]]:
        turns: dict[str, list[_Turn]] = {name: [] for name in self._peers}
        for _ in range(self._size.repetitions):
            for name, peer in self._peers.items():
                self._settle()
                turns[name].append(_turn(peer, work))
        return turns

    def _settle(self) -> None:
        """Have the disk write what it owes, and wait until nobody works any more."""
        for peer in self._peers.values():
            peer.rest()
        os.sync()
        deadline = time.monotonic() + SETTLE_SECONDS
        before = self._cpu()
        while time.monotonic() < deadline:
            time.sleep(SETTLE_STEP)
            after = self._cpu()
            if after - before < AT_REST * SETTLE_STEP:
                return
            before = after

    def _cpu(self) -> float:
        return sum(peer.usage().cpu_seconds for peer in self._peers.values())

    def _disk_latencies_ns(self) -> list[int]:
        every = round(SECOND / self._size.per_second)
        latencies: list[int] = []
        with (self._folder / "disk").open("wb", buffering=0) as file:
            at = time.monotonic_ns()
            for _ in range(max(1, round(self._size.per_second * self._size.seconds))):
                at += every
                time.sleep(max(0, at - time.monotonic_ns()) / SECOND)
                began = time.monotonic_ns()
                file.write(bytes(EVENT_BYTES))
                os.fdatasync(file.fileno())
                latencies.append(time.monotonic_ns() - began)
        return latencies


JOBS: Final[Mapping[str, Callable[[Contest], Iterator[Outcome]]]] = {
    PUBLISHING: Contest.publishing,
    LATENCY: Contest.latency,
    FAN_OUT: Contest.fan_out,
}


@dataclass(frozen=True, slots=True)
class _Turn:
    """One run of one peer, and what it took."""

    run: Run
    written_per_event: float
    load_share: float  #: of a processor
    server_share: float


def _turn(peer: Peer, work: Callable[[Peer], Run]) -> _Turn:
    used, own, began = peer.usage(), time.process_time(), time.perf_counter()
    run = work(peer)
    took = time.perf_counter() - began
    after = peer.usage()
    return _Turn(
        run,
        (after.written_bytes - used.written_bytes) / run.events,
        (time.process_time() - own) / took,
        (after.cpu_seconds - used.cpu_seconds) / took,
    )


def _shares(turns: Sequence[_Turn]) -> str:
    load = _median([turn.load_share for turn in turns])
    server = _median([turn.server_share for turn in turns])
    said = f"server {server:.0%} of a core, load {load:.0%}"
    return f"{said}: the load is the limit" if load >= LIMIT_SHARE else said


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
