"""The least that a broker written in Python does for an event that is to be on disk: the floor of its latency.

One loop reads events, hands them on and acknowledges them. A thread appends and syncs them, all that have come
together, as Holdfast does it; or the loop does that itself, as Redis does, and then a disk that stands still would
stand for every session and heartbeat. There are no sessions, no matching, no positions of subscribers; all events are
of one size. Run as a program it is that server: ``python -m holdfast.bench.peers_bare thread|loop PORT FILE``.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Literal, NamedTuple, cast

from holdfast.bench.peers_load import Marked, body, dialled
from holdfast.bench.peers_peer import EVENT_BYTES, OnDisk
from holdfast.bench.peers_process import Server, free_port
from holdfast.bench.peers_raw import RawPeer, Space
from holdfast.runtime.loop import run
from holdfast.storage.real_files import RealFiles

__all__ = ["BARE", "BARE_SYNCING", "BareLoop", "Syncs"]

BARE: Final = "a bare loop in Python"
BARE_SYNCING: Final = "a bare loop in Python that syncs itself"

#: Who syncs.
Syncs = Literal["thread", "loop"]

PUBLISHES: Final = b"P"  #: the first byte of a connection: what it is for
SUBSCRIBES: Final = b"S"
ACKNOWLEDGED: Final = b"."


class BareLoop(RawPeer):
    """The server, and how it is spoken to. It knows one topic, so it is for one workload at a time."""

    def __init__(self, syncs: Syncs = "thread") -> None:
        super().__init__()
        self.name = BARE if syncs == "thread" else BARE_SYNCING
        self._syncs = syncs

    def missing(self) -> str | None:
        """It is always there."""
        return None

    def version(self) -> str:
        """That of Python."""
        return "{}.{}.{}".format(*sys.version_info)

    def serve(self, folder: Path) -> Server:
        """On our own Python."""
        port = free_port()
        command = [sys.executable, "-m", __name__, self._syncs, str(port), str(folder / "events")]
        return Server(self.name, command, port, folder / "log", {})

    def create(self, port: int, space: Space) -> None:
        """Nothing."""

    def publisher(self, port: int, space: Space) -> _Publisher:
        """A connection that says so."""
        return _Publisher(_dialled(port, PUBLISHES))

    def receiver(self, port: int, space: Space, number: int) -> _Receiver:
        """The same."""
        return _Receiver(_dialled(port, SUBSCRIBES))

    def on_disk_statement(self) -> OnDisk:
        """As below."""
        return OnDisk(True, 1, f"appended and synced as by Holdfast, in the {self._syncs}")


def _dialled(port: int, what: bytes) -> socket.socket:
    connection = dialled(port)
    connection.sendall(what)
    return connection


class _Publisher:
    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected

    def messages(self, numbers: range) -> bytes:
        return b"".join(map(body, numbers))

    def acknowledged(self, data: bytes) -> int:
        return data.count(ACKNOWLEDGED)


class _Receiver:
    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._marked = Marked(b"()")

    def taken(self, data: bytes) -> tuple[list[int], bytes]:
        _, numbers = self._marked.cut(data)
        return numbers, b""


class _Waiting(NamedTuple):
    """Events of one publisher that are not on disk."""

    publisher: asyncio.Transport
    events: bytes


class _Connection(asyncio.Protocol):
    """One of the server's, and what all of them share."""

    def __init__(self, take: Callable[[_Waiting], None], subscribers: list[asyncio.Transport]) -> None:
        self._take = take
        self._subscribers = subscribers
        self._publishes: bool | None = None
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody connects."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """What it is for, then events, which are to be synced."""
        if self._publishes is None:
            self._publishes, data = data.startswith(PUBLISHES), data[1:]
            if not self._publishes:
                self._subscribers.append(self._transport)
        data = self._rest + data
        whole = len(data) - len(data) % EVENT_BYTES
        self._rest = data[whole:]
        if whole:
            self._take(_Waiting(self._transport, data[:whole]))

    def connection_lost(self, error: Exception | None) -> None:
        """Nothing is for it any more."""
        with suppress(ValueError):
            self._subscribers.remove(self._transport)


async def _serve(syncs: str, port: int, path: Path) -> None:
    loop = asyncio.get_running_loop()
    waiting: SimpleQueue[_Waiting] = SimpleQueue()
    subscribers: list[asyncio.Transport] = []
    files = RealFiles(path.parent)

    def hand_on(synced: Sequence[_Waiting]) -> None:
        for publisher, events in synced:
            for subscriber in subscribers:
                subscriber.write(events)
            publisher.write(ACKNOWLEDGED * (len(events) // EVENT_BYTES))

    def sync_all() -> None:
        while True:
            taken = [waiting.get()]
            while not waiting.empty():
                taken.append(waiting.get())
            files.append_stable(path.name, *(each.events for each in taken))
            loop.call_soon_threadsafe(hand_on, taken)

    def sync_one(taken: _Waiting) -> None:
        files.append_stable(path.name, taken.events)
        hand_on([taken])

    if syncs == "thread":
        threading.Thread(target=sync_all, daemon=True).start()
    take = waiting.put if syncs == "thread" else sync_one
    server = await loop.create_server(lambda: _Connection(take, subscribers), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    run(_serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
