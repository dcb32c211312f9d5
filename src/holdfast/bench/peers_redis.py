"""Redis streams, by hand: one stream per topic, a consumer group per durable subscriber, XADD, XREADGROUP and XACK.

``appendfsync always``: what was executed in one turn of its loop is written and synced before any of it is answered.
Snapshots and the rewriting of the log are off; both would only write more.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Final

from holdfast.bench.network_wire import RECEIVE_BYTES, BenchFailed
from holdfast.bench.peers_load import Marked, body, dialled
from holdfast.bench.peers_peer import EVENT_BYTES, OnDisk
from holdfast.bench.peers_process import Server, found_program, free_port
from holdfast.bench.peers_raw import RawPeer, Space

__all__ = ["Redis", "RedisPublisher", "RedisReceiver"]

READ_COUNT: Final = 1_000  #: entries asked for at once


class Redis(RawPeer):
    """One server that syncs before it answers."""

    name = "Redis streams, appendfsync always"
    program = "redis-server"

    def serve(self, folder: Path) -> Server:
        """With everything on its command line."""
        port = free_port()
        program = found_program(self.program)
        assert program is not None
        options = {
            "port": str(port),
            "bind": "127.0.0.1",
            "dir": str(folder),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
            "auto-aof-rewrite-percentage": "0",
        }
        command = [program, *(word for key, value in options.items() for word in (f"--{key}", value))]
        return Server(self.name, command, port, folder / "log", {})

    def on_disk_statement(self) -> OnDisk:
        """By its documentation of `appendfsync`."""
        return OnDisk(True, 1, "appendonly yes, appendfsync always, no replica; everything is in memory too")

    def create(self, port: int, space: Space) -> None:
        """Nothing: a stream is there when something is added."""

    def publisher(self, port: int, space: Space) -> RedisPublisher:
        """A plain connection."""
        return RedisPublisher(dialled(port), space)

    def receiver(self, port: int, space: Space, number: int) -> RedisReceiver:
        """A group of its own with one consumer."""
        topic, group = space.topic(number % space.groups), f"group{number}"
        connection = dialled(port)
        connection.sendall(_command("XGROUP", "CREATE", topic, group, "0", "MKSTREAM"))
        answer = connection.recv(RECEIVE_BYTES)
        if answer != b"+OK\r\n":
            raise BenchFailed(f"Redis refuses a group: {answer.decode(errors='replace')}")
        return RedisReceiver(connection, topic, group)


def _command(*words: str | bytes) -> bytes:
    encoded = [word.encode() if isinstance(word, str) else word for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded])


class RedisPublisher:
    """XADD; the identity of an entry acknowledges it."""

    _answer = re.compile(rb"\$\d+\r\n\d+-\d+\r\n")

    def __init__(self, connected: socket.socket, space: Space) -> None:
        self.socket = connected
        marker = b"\0" * EVENT_BYTES
        self._heads = [
            _command("XADD", space.topic(group), "*", "b", marker).removesuffix(marker + b"\r\n")
            for group in range(space.groups)
        ]
        self._rest = b""

    def messages(self, numbers: range) -> bytes:
        """What publishes events."""
        heads, groups = self._heads, len(self._heads)
        return b"".join([b"%b%b\r\n" % (heads[n % groups], body(n)) for n in numbers])

    def acknowledged(self, data: bytes) -> int:
        """How many more are."""
        data = self._rest + data
        found = self._answer.findall(data)
        self._rest = data[sum(map(len, found)) :]
        if self._rest and not self._rest.startswith(b"$"):
            raise BenchFailed(self._rest.decode(errors="replace"))
        return len(found)


class RedisReceiver:
    """One XREADGROUP at a time; when its answer is whole, XACK of its entries and the next."""

    _head = re.compile(rb"\*1\r\n\*2\r\n\$\d+\r\n\w+\r\n\*(\d+)\r\n")

    def __init__(self, connected: socket.socket, topic: str, group: str) -> None:
        self.socket = connected
        self._acknowledge = ("XACK", topic, group)
        self._again = _command(
            "XREADGROUP", "GROUP", group, "me", "COUNT", str(READ_COUNT), "BLOCK", "0", "STREAMS", topic, ">"
        )
        self._marked = Marked(rb"(\d+-\d+)\r\n\*2\r\n\$1\r\nb\r\n\$%d\r\n" % EVENT_BYTES)
        self._left = 0  #: entries still to come of the answer that has begun
        self._ids: list[bytes] = []
        self.socket.sendall(self._again)

    def taken(self, data: bytes) -> tuple[list[int], bytes]:
        """What came, and what acknowledges it."""
        if not self._left and (head := self._head.search(self._marked.rest + data)):
            self._left = int(head[1])
        ids, numbers = self._marked.cut(data)
        self._ids += ids
        self._left -= len(ids)
        if self._left or not ids:
            return numbers, b""
        answer = _command(*self._acknowledge, *self._ids) + self._again
        self._ids = []
        return numbers, answer
