"""Mosquitto, by hand in MQTT 3.1.1: QoS 1 both ways, sessions that are kept.

Persistence is on; it writes what it holds every half hour, and when it ends, so nothing is on disk when it
acknowledges.
"""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import Final

from holdfast.bench.network_wire import RECEIVE_BYTES, BenchFailed
from holdfast.bench.peers_load import Marked, body, dialled
from holdfast.bench.peers_peer import EVENT_BYTES, OnDisk
from holdfast.bench.peers_process import Server, found_program, free_port
from holdfast.bench.peers_raw import RawPeer, Space

__all__ = ["Mosquitto", "MqttPublisher", "MqttReceiver"]

CONNECT, PUBLISH_QOS1, SUBSCRIBE = 0x10, 0x32, 0x82
IDENTIFIERS: Final = 65_535  #: of packets under way


class Mosquitto(RawPeer):
    """One server, with its persistence as it comes."""

    name = "Mosquitto, QoS 1"
    program = "mosquitto"
    keeps_for_nobody = False
    version_option = "-h"

    def serve(self, folder: Path) -> Server:
        """With its configuration in a file; limits on what is under way or waiting are lifted."""
        port = free_port()
        data = folder / "data"
        data.mkdir()
        config = folder / "mosquitto.conf"
        config.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nuser root\npersistence true\n"
            f"persistence_location {data}/\nmax_inflight_messages 0\nmax_queued_messages 0\n"
        )
        program = found_program(self.program)
        assert program is not None
        return Server(self.name, [program, "-c", str(config)], port, folder / "log", {})

    def on_disk_statement(self) -> OnDisk:
        """By its documentation of `autosave_interval`."""
        return OnDisk(
            False, 1, "persistence true, default autosave_interval of 30 minutes: in memory until then"
        )

    def create(self, port: int, space: Space) -> None:
        """Nothing: a topic is there when somebody wants it."""

    def publisher(self, port: int, space: Space) -> MqttPublisher:
        """A client without a session of its own."""
        return MqttPublisher(_connected(port, f"{space.name}-publisher"), space)

    def receiver(self, port: int, space: Space, number: int) -> MqttReceiver:
        """A client whose session is kept."""
        topic = space.topic(number % space.groups)
        connection = _connected(port, f"{space.name}-{number}")
        _exchange(connection, _packet(SUBSCRIBE, b"\0\x01" + _text(topic) + b"\x01"), b"\x90\x03\x00\x01\x01")
        return MqttReceiver(connection, topic)


def _connected(port: int, client: str) -> socket.socket:
    """In session, which is kept when the connection ends; no keep-alive."""
    connection = dialled(port)
    hello = _text("MQTT") + b"\x04\x00\x00\x00" + _text(client)
    _exchange(connection, _packet(CONNECT, hello), b"\x20\x02\x00\x00")
    return connection


def _exchange(connection: socket.socket, sent: bytes, due: bytes) -> None:
    connection.sendall(sent)
    answer = connection.recv(RECEIVE_BYTES)
    if answer != due:
        raise BenchFailed(f"Mosquitto answers {answer.hex(' ')} where {due.hex(' ')} was due")


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _packet(kind: int, content: bytes) -> bytes:
    length, size = len(content), b""
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([kind]) + size + bytes([length]) + content


class MqttPublisher:
    """PUBLISH with QoS 1; every PUBACK acknowledges one."""

    def __init__(self, connected: socket.socket, space: Space) -> None:
        self.socket = connected
        filler = bytes(2 + EVENT_BYTES)
        self._heads = [
            _packet(PUBLISH_QOS1, _text(space.topic(group)) + filler).removesuffix(filler)
            for group in range(space.groups)
        ]
        self._rest = b""

    def messages(self, numbers: range) -> bytes:
        """What publishes events."""
        heads, groups = self._heads, len(self._heads)
        return b"".join(
            [
                b"%b%b%b" % (heads[n % groups], (n % IDENTIFIERS + 1).to_bytes(2, "big"), body(n))
                for n in numbers
            ]
        )

    def acknowledged(self, data: bytes) -> int:
        """How many more are."""
        data = self._rest + data
        end = len(data) & ~3
        self._rest = data[end:]
        count = end // 4
        if data[0:end:4] != b"\x40" * count:
            raise BenchFailed(f"not an acknowledgement: {data[:64].hex(' ')}")
        return count


class MqttReceiver:
    """Every PUBLISH is answered with its PUBACK."""

    def __init__(self, connected: socket.socket, topic: str) -> None:
        self.socket = connected
        self._marked = Marked(topic.encode() + rb"(..)")

    def taken(self, data: bytes) -> tuple[list[int], bytes]:
        """What came, and what acknowledges it."""
        identifiers, numbers = self._marked.cut(data)
        return numbers, b"".join([b"\x40\x02" + identifier for identifier in identifiers])
