"""The brokers of Holdfast as a peer: ``phb``, where publishers are and which logs, and ``shb`` for many subscribers.

That is how durable streams are meant to be used; the other peers are one server each.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.bench.peers_peer import EVENT_BYTES, GROUPS, OnDisk, Usage
from holdfast.bench.peers_process import Server, free_port
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.messages.publications import Publication

__all__ = ["ON_DISK", "PHB", "SHB", "Brokers", "attributes", "payload"]

PHB, SHB = "phb", "shb"
WORKLOADS: Final = ("logged", "kept", "stream", "fan")  #: each has a stream
#: By `contracts.md` §5: accepted is when the receipt arrives, and that is after the log is synced.
ON_DISK: Final = OnDisk(True, 1, "durable stream: the log is synced before the receipt; copies: 1")
NETWORK: Final = """name = "peers"

[[broker]]
name = "{PHB}"
listen = "127.0.0.1:{phb}"

[[broker]]
name = "{SHB}"
parent = "{PHB}"
listen = "127.0.0.1:{shb}"

"""
STREAM: Final = """
[[stream]]
name = "{name}"
topics = ["{name}"]
guarantee = "durable"
"""


def _network_file(folder: Path, phb: int, shb: int) -> Path:
    file = folder / "network.toml"
    streams = [STREAM.format(name=name) for name in WORKLOADS]
    file.write_text("".join([NETWORK.format(PHB=PHB, SHB=SHB, phb=phb, shb=shb), *streams]))
    return file


class Brokers:
    """Both, from start to stop."""

    def __init__(self, folder: Path) -> None:
        ports = {PHB: free_port(), SHB: free_port()}
        file = _network_file(folder, *ports.values())
        self.servers: dict[str, Server] = {}
        try:
            for name, port in ports.items():
                command = [sys.executable, "-m", "holdfast.cli.main", "broker", name, "--network", str(file)]
                self.servers[name] = Server(f"Holdfast {name}", command, port, folder / f"{name}.log", {})
            for server in self.servers.values():
                server.wait_listening()
        except BaseException:
            self.stop()
            raise

    def process_ids(self) -> list[int]:
        """Of both."""
        return [process for server in self.servers.values() for process in server.process_ids()]

    def usage(self) -> Usage:
        """Of both."""
        used = [server.usage() for server in self.servers.values()]
        return Usage(sum(each.cpu_seconds for each in used), sum(each.written_bytes for each in used))

    def stop(self) -> None:
        """The one for subscribers first."""
        for server in reversed(self.servers.values()):
            server.stop()


def attributes(n: int) -> dict[str, Any]:
    """Of an event: filters choose by its group."""
    return {"group": f"g{n % GROUPS}"}


def payload(n: int) -> bytes:
    """Of an event: it ends with its number."""
    return b"%b%012d" % (_FILLER, n)


def _filler() -> bytes:
    """What brings an event to its size in a frame."""
    event = make_event("stream", attributes(0), bytes(256), time=time.time_ns())
    framed = len(msgspec.msgpack.encode(Publication("publisher", 1_000_000, pack(event))))
    return b"x" * (256 + EVENT_BYTES - framed - 12)


_FILLER: Final = _filler()
