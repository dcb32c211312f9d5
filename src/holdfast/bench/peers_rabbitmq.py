"""RabbitMQ with durable queues, persistent messages and publisher confirms: quorum queues, and classic ones.

Every durable subscriber has a queue of its own, bound to its topic, and acknowledges many messages at a time. A quorum
queue on one node is a log of one copy, which is written and synced before it confirms.
"""

from __future__ import annotations

import shutil
import socket
import struct
from pathlib import Path
from typing import Final

from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.peers_amqp import Amqp, content_head, method_frame
from holdfast.bench.peers_load import Marked, body
from holdfast.bench.peers_peer import EVENT_BYTES, OnDisk
from holdfast.bench.peers_process import Server, found_program, found_version, free_port
from holdfast.bench.peers_raw import RawPeer, Space

__all__ = ["AmqpPublisher", "AmqpReceiver", "RabbitMq"]

EXCHANGE: Final = "amq.direct"
AHEAD: Final = 2_000  #: messages a consumer may have unacknowledged
ACKNOWLEDGE: Final = (60, 80)


class RabbitMq(RawPeer):
    """One node; ``kind`` is what its queues are, quorum or classic."""

    program = "rabbitmq-server"
    keeps_for_nobody = False

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind
        self.name = f"RabbitMQ, {kind} queues"
        self._names: Server | None = None

    def version(self) -> str:
        """From the folder of its libraries: the program has no option for it."""
        return found_version(str(Path(_script()).resolve()))

    def serve(self, folder: Path) -> Server:
        """With everything in the environment, and a name server of its own, which would outlive it otherwise."""
        names, port, distribution = free_port(), free_port(), free_port()
        epmd = found_program("epmd")
        if epmd is None:
            raise BenchFailed("RabbitMQ is there, but Erlang's epmd is not")
        self._names = Server(
            "epmd", [epmd, "-port", str(names), "-address", "127.0.0.1"], names, folder / "names.log", {}
        )
        self._names.wait_listening()
        environment = {
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(names),
            "RABBITMQ_NODENAME": f"peer{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "logs"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        }
        (folder / "plugins").write_text("[].\n")
        return Server(self.name, [_script()], port, folder / "log", environment)

    def stop(self) -> None:
        """The node, then its name server."""
        super().stop()
        if self._names is not None:
            self._names.stop()
            self._names = None

    def on_disk_statement(self) -> OnDisk:
        """By its documentation of confirms."""
        if self._kind == "quorum":
            return OnDisk(True, 1, "quorum queue of one member: confirmed when its log is synced")
        said = "durable classic queue: confirmed when persisted to disk, delivered before that"
        return OnDisk(True, 1, said, delivers_sooner=True)

    def create(self, port: int, space: Space) -> None:
        """Nothing: subscribers make their queues."""

    def publisher(self, port: int, space: Space) -> AmqpPublisher:
        """On a channel with confirms."""
        connection = Amqp(port)
        connection.confirm()
        return AmqpPublisher(connection.socket, space)

    def receiver(self, port: int, space: Space, number: int) -> AmqpReceiver:
        """With a queue of its own."""
        connection = Amqp(port)
        queue = f"{space.name}-{number}"
        connection.declare(queue, self._kind)
        connection.bind(queue, EXCHANGE, space.topic(number % space.groups))
        connection.consume(queue, AHEAD)
        return AmqpReceiver(connection.socket)


def _script() -> str:
    """The script that runs a node; Debian hides it behind one that changes the user and the folders."""
    found = found_program(RabbitMq.program)
    assert found is not None
    bare = Path(found).parent.parent / "lib" / "rabbitmq" / "bin" / RabbitMq.program
    return shutil.which(str(bare)) or found


class AmqpPublisher:
    """Persistent messages; confirms may come in any order, or for all up to a tag."""

    _confirm = struct.Struct(">BHIHHQBB")

    def __init__(self, connected: socket.socket, space: Space) -> None:
        self.socket = connected
        self._heads = [
            content_head(EXCHANGE, space.topic(group), EVENT_BYTES) for group in range(space.groups)
        ]
        self._rest = b""
        self._upto = 0  #: everything up to this tag is confirmed
        self._beyond: set[int] = set()  #: tags above it that are

    def messages(self, numbers: range) -> bytes:
        """What publishes events."""
        heads, groups = self._heads, len(self._heads)
        return b"".join([b"%b%b\xce" % (heads[n % groups], body(n)) for n in numbers])

    def acknowledged(self, data: bytes) -> int:
        """How many more are."""
        data = self._rest + data
        end = len(data) - len(data) % self._confirm.size
        self._rest = data[end:]
        before = self._upto + len(self._beyond)
        for _, _, _, class_number, method, tag, multiple, _ in self._confirm.iter_unpack(data[:end]):
            if (class_number, method) != ACKNOWLEDGE:
                raise BenchFailed(f"not a confirm: {data[:100]!r}")
            if multiple:
                self._upto = max(self._upto, tag)
                self._beyond = {each for each in self._beyond if each > tag}
            elif tag > self._upto:
                self._beyond.add(tag)
        return self._upto + len(self._beyond) - before


class AmqpReceiver:
    """The last message of what was read acknowledges all before it."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._marked = Marked(rb"()")
        self._count = 0  #: messages on a channel are numbered from 1

    def taken(self, data: bytes) -> tuple[list[int], bytes]:
        """What came, and what acknowledges it."""
        _, numbers = self._marked.cut(data)
        if not numbers:
            return [], b""
        self._count += len(numbers)
        return numbers, method_frame(ACKNOWLEDGE, struct.pack(">QB", self._count, 1))
