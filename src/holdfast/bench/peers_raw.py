"""A peer whose protocol is spoken by hand: a server, a dialect, and the load between them.

The workloads use a space of topics each, so none finds what another left behind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.peers_load import Load, Publishing, Receiving
from holdfast.bench.peers_peer import GROUPS, WINDOW, OnDisk, Run, Usage
from holdfast.bench.peers_process import Server, found_program, found_version, output_of

__all__ = ["FAN", "RawPeer", "Space"]


@dataclass(frozen=True, slots=True)
class Space:
    """The topics of one workload: one per group."""

    name: str
    groups: int

    def topic(self, group: int) -> str:
        """Of a group."""
        return f"{self.name}{group}"


LOGGED: Final = Space("logged", 1)
KEPT: Final = Space("kept", 1)
STREAM: Final = Space("stream", 1)
FAN: Final = Space("fan", GROUPS)


class RawPeer(ABC):
    """Everything of a ``Peer`` but the server's command and its dialect, which each peer adds."""

    name: str
    program: str  #: that must be installed
    version_option = "--version"
    keeps_for_nobody = True  #: events are kept that no durable subscriber waits for

    def __init__(self) -> None:
        self._server: Server | None = None
        self._loads: dict[str, Load] = {}

    # What each peer adds

    @abstractmethod
    def serve(self, folder: Path) -> Server:
        """Start the server."""

    @abstractmethod
    def create(self, port: int, space: Space) -> None:
        """Make what the server needs for a space before anybody can use it."""

    @abstractmethod
    def publisher(self, port: int, space: Space) -> Publishing:
        """Connect a publisher."""

    @abstractmethod
    def receiver(self, port: int, space: Space, number: int) -> Receiving:
        """Connect a durable subscriber, to the group that is its number modulo the groups of the space."""

    @abstractmethod
    def on_disk_statement(self) -> OnDisk:
        """What the server says of itself."""

    # What is the same for all

    def missing(self) -> str | None:
        """That the program is not there."""
        return None if found_program(self.program) else f"{self.program} is not installed"

    def version(self) -> str:
        """The number in what the program says of itself."""
        program = found_program(self.program)
        assert program is not None
        return found_version(output_of(program, self.version_option))

    @property
    def server(self) -> Server:
        """While it runs."""
        assert self._server is not None
        return self._server

    def start(self, folder: Path) -> None:
        """Start the server, and connect to it for all but the fan-out."""
        folder.mkdir(parents=True)
        self._server = self.serve(folder)
        self.server.wait_listening()
        self.wait_ready()
        port = self.server.port
        for space in (LOGGED, KEPT, STREAM):
            self.create(port, space)
        for space in (LOGGED, KEPT):
            if space is KEPT or not self.keeps_for_nobody:
                self.receiver(port, space, 0).socket.close()  # subscribed, and away
            self._loads[space.name] = Load(self.publisher(port, space), [], 1)
        self._loads[STREAM.name] = Load(
            self.publisher(port, STREAM), [self.receiver(port, STREAM, 0)], STREAM.groups
        )

    def wait_ready(self) -> None:  # noqa: B027 -- most are when they listen
        """Wait until the server does its work; it listens already."""

    def stop(self) -> None:
        """Hang up, and end the server."""
        for load in self._loads.values():
            load.close()
        self._loads.clear()
        if self._server is not None:
            self._server.stop()
            self._server = None

    def process_ids(self) -> list[int]:
        """Those of the server."""
        return self.server.process_ids()

    def usage(self) -> Usage:
        """What they used."""
        return self.server.usage()

    def rest(self) -> None:  # noqa: B027 -- most do not ask for it
        """Say nothing."""

    def publish_pipelined(self, seconds: float, window: int, *, is_awaited: bool) -> Run:
        """Publish to the one who is away, or to nobody."""
        return self._run(KEPT if is_awaited else LOGGED, seconds, window)

    def latencies_ns(self, per_second: float, seconds: float) -> list[int]:
        """Publish to the one who is there."""
        try:
            return self._loads[STREAM.name].run_paced(per_second, seconds)
        except BenchFailed as failed:
            raise BenchFailed(f"{self.name}: {failed}") from failed

    def subscribe_many(self, subscribers: int) -> None:
        """Connect them all."""
        port = self.server.port
        self.create(port, FAN)
        receivers = [self.receiver(port, FAN, i) for i in range(subscribers)]
        self._loads[FAN.name] = Load(self.publisher(port, FAN), receivers, FAN.groups)

    def fan_out(self, seconds: float) -> Run:
        """Publish to all of them."""
        return self._run(FAN, seconds, WINDOW)

    def _run(self, space: Space, seconds: float, window: int) -> Run:
        try:
            return self._loads[space.name].run(seconds, window)
        except BenchFailed as failed:
            raise BenchFailed(f"{self.name}: {failed}") from failed
