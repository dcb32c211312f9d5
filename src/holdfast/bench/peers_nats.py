"""NATS JetStream, by hand: one stream in files, durable push consumers that acknowledge all up to a message.

By default JetStream acknowledges what it has handed to the operating system, and flushes every two minutes; with
``sync_interval: always`` it writes synchronously. Both are measured, since the first is what people run.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, Final

from holdfast.bench.network_wire import RECEIVE_BYTES, BenchFailed
from holdfast.bench.peers_load import Marked, body, dialled
from holdfast.bench.peers_peer import EVENT_BYTES, OnDisk
from holdfast.bench.peers_process import Server, found_program, free_port
from holdfast.bench.peers_raw import RawPeer, Space

__all__ = ["Nats", "NatsPublisher", "NatsReceiver"]

REPLIES: Final = "replies"
ACK_WAIT_NS: Final = 600_000_000_000  #: nothing is to be delivered again
PENDING_MAX: Final = 10_000  #: more than a load has on its way to one subscriber


class Nats(RawPeer):
    """JetStream on one server, with and without writing synchronously."""

    program = "nats-server"

    def __init__(self, *, always: bool) -> None:
        super().__init__()
        self._always = always
        self.name = f"NATS JetStream, {'sync always' if always else 'as it comes'}"

    def serve(self, folder: Path) -> Server:
        """With its configuration in a file."""
        port = free_port()
        sync = "\n  sync_interval: always" if self._always else ""
        config = folder / "nats.conf"
        config.write_text(
            f'listen: "127.0.0.1:{port}"\njetstream {{\n  store_dir: "{folder / "data"}"{sync}\n}}\n'
        )
        program = found_program(self.program)
        assert program is not None
        return Server(self.name, [program, "-c", str(config)], port, folder / "log", {})

    def on_disk_statement(self) -> OnDisk:
        """By its documentation: `sync_interval`, 2 minutes unless told otherwise."""
        if self._always:
            return OnDisk(True, 1, "sync_interval: always, file storage, 1 replica")
        return OnDisk(False, 1, "default sync_interval of 2 minutes, file storage, 1 replica")

    def create(self, port: int, space: Space) -> None:
        """A stream of its topics."""
        subjects = [space.topic(group) for group in range(space.groups)]
        settings = {"name": space.name, "subjects": subjects, "storage": "file", "num_replicas": 1}
        with _connected(port) as connection:
            _ask(connection, f"$JS.API.STREAM.CREATE.{space.name}", settings)

    def publisher(self, port: int, space: Space) -> NatsPublisher:
        """A plain connection; acknowledgements come as messages."""
        connection = _connected(port)
        connection.sendall(f"SUB {REPLIES}.{space.name} 1\r\n".encode())
        return NatsPublisher(connection, space)

    def receiver(self, port: int, space: Space, number: int) -> NatsReceiver:
        """A durable consumer that is pushed to a subject of its own."""
        connection = _connected(port)
        name = f"consumer{number}"
        subject = f"{REPLIES}.{space.name}.{name}"
        settings = {
            "durable_name": name,
            "deliver_subject": subject,
            "filter_subject": space.topic(number % space.groups),
            "deliver_policy": "all",
            "ack_policy": "all",
            "ack_wait": ACK_WAIT_NS,
            "max_ack_pending": PENDING_MAX,
        }
        asked = {"stream_name": space.name, "config": settings}
        _ask(connection, f"$JS.API.CONSUMER.DURABLE.CREATE.{space.name}.{name}", asked)
        connection.sendall(f"SUB {subject} 1\r\n".encode())
        return NatsReceiver(connection)


class NatsPublisher:
    """PUB with a reply subject; an acknowledgement is a message with a sequence number."""

    def __init__(self, connected: socket.socket, space: Space) -> None:
        self.socket = connected
        self._heads = [
            f"PUB {space.topic(group)} {REPLIES}.{space.name} {EVENT_BYTES}\r\n".encode()
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
        end = data.rfind(b"\r\n") + 2
        self._rest = data[end:]
        whole = data[:end]
        if b'"error"' in whole or b"-ERR" in whole:
            raise BenchFailed(whole.decode(errors="replace"))
        return whole.count(b'"seq":')


class NatsReceiver:
    """The last message of what was read acknowledges all before it."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._marked = Marked(rb"MSG \S+ 1 (\S+) %d\r\n" % EVENT_BYTES)

    def taken(self, data: bytes) -> tuple[list[int], bytes]:
        """What came, and what acknowledges it."""
        replies, numbers = self._marked.cut(data)
        return numbers, b"PUB %b 0\r\n\r\n" % replies[-1] if replies else b""


def _connected(port: int) -> socket.socket:
    connection = dialled(port)
    connection.recv(RECEIVE_BYTES)  # INFO
    options = {"verbose": False, "pedantic": False, "lang": "python", "version": "0"}
    connection.sendall(f"CONNECT {json.dumps(options)}\r\nPING\r\n".encode())
    _until(connection, b"PONG\r\n")
    return connection


def _ask(connection: socket.socket, subject: str, settings: dict[str, Any]) -> None:
    """A request to JetStream, on a connection nobody uses for anything else yet."""
    asked = json.dumps(settings).encode()
    head = f"SUB {REPLIES}.asked 9\r\nPUB {subject} {REPLIES}.asked {len(asked)}\r\n".encode()
    connection.sendall(head + asked + b"\r\n")
    answer = _until(connection, b"}\r\n")
    if b'"error"' in answer:
        raise BenchFailed(f"NATS refuses {subject}: {answer.decode(errors='replace')}")
    connection.sendall(b"UNSUB 9\r\n")


def _until(connection: socket.socket, end: bytes) -> bytes:
    """What comes, up to an end."""
    data = b""
    while not data.endswith(end):
        more = connection.recv(RECEIVE_BYTES)
        if not more:
            raise BenchFailed(f"NATS has closed the connection: {data.decode(errors='replace')}")
        data += more
    return data
