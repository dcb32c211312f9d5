"""A tap on the connection between two brokers: everything passes it unchanged, and is counted by kind of frame."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
from types import TracebackType
from typing import Final, Self

from holdfast.bench.network_wire import RECEIVE_BYTES
from holdfast.wire.frame import HEADER_BYTES

__all__ = ["Tap"]

_HEADER: Final = struct.Struct(">IBI")


class Tap:
    """Listens in the place of ``target``, and takes whoever dials there."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._counters: list[_Counter] = []
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def bytes_by_kind(self) -> dict[int, int]:
        """So far, both ways, heads of frames included."""
        found: dict[int, int] = {}
        for counter in self._counters:
            for kind, size in list(counter.bytes_by_kind.items()):
                found[kind] = found.get(kind, 0) + size
        return found

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._woken:
                        return
                    if key.fileobj is self._listener:
                        self._take(selector)
                    elif not self._pass_on(*key.data):
                        for end in key.data[:2]:
                            selector.unregister(end)
                            end.close()
                        break  # the other end's turn may be in the same list

    def _take(self, selector: selectors.BaseSelector) -> None:
        here, _ = self._listener.accept()
        there = socket.create_connection(("127.0.0.1", self._target))
        for source, sink in ((here, there), (there, here)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            counter = _Counter()
            self._counters.append(counter)
            selector.register(source, selectors.EVENT_READ, (source, sink, counter))

    def _pass_on(self, source: socket.socket, sink: socket.socket, counter: _Counter) -> bool:
        try:
            data = source.recv(RECEIVE_BYTES)
            sink.sendall(data)
        except OSError:
            return False
        counter.feed(data)
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wake.send(b"!")
        self._thread.join()
        for each in (self._listener, self._wake, self._woken):
            each.close()


class _Counter:
    """Reads the heads of the frames of one direction."""

    def __init__(self) -> None:
        self.bytes_by_kind: dict[int, int] = {}
        self._head = b""
        self._skip = 0  #: bytes of a frame that are still to come

    def feed(self, data: bytes) -> None:
        """The next bytes, however they were cut."""
        at = min(self._skip, len(data))
        self._skip -= at
        data = self._head + data[at:]
        at = 0
        while len(data) - at >= HEADER_BYTES:
            length, kind, _ = _HEADER.unpack_from(data, at)
            self.bytes_by_kind[kind] = self.bytes_by_kind.get(kind, 0) + 4 + length
            at += 4 + length
        self._skip += max(0, at - len(data))
        self._head = data[at:]
