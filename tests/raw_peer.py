"""The other end of a connection, spoken by hand: bytes or messages out, messages in, and nothing automatic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Self, TypeVar

from holdfast.clock import SECOND
from holdfast.messages.message import Message
from holdfast.messages.session import Heartbeat, Hello, Kind
from holdfast.wire.frame import FrameReader, encode, header
from holdfast.wire.session import HEARTBEAT

PATIENCE_SECONDS = 10.0

M = TypeVar("M")


async def wait_until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for a condition of this process to hold; fails after a while."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.001)


def hello(node: str, kind: Kind = Kind.CLIENT, incarnation: int = 1, session: int = 1) -> Hello:
    """An introduction that promises next to no heartbeats, since nobody here sends them by itself."""
    return Hello(node, kind, incarnation, session, "anonymous", 50 * SECOND)


def frames(*messages: Message, after: int = 0) -> bytes:
    """Messages as bytes; the first frame follows the one with the number ``after``."""
    parts = []
    for message in messages:
        kind, body = encode(message)
        after += kind != HEARTBEAT
        parts += [header(kind, after, len(body)), body]
    return b"".join(parts)


def frame_count(*messages: Message) -> int:
    """How many numbers their frames use up."""
    return sum(not isinstance(message, Heartbeat) for message in messages)


class RawPeer:
    """One TCP connection to a port of this machine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._streams = reader, writer
        self._sent = 0
        self._frames = FrameReader()
        self._messages: list[Message] = []

    @classmethod
    async def dial(cls, port: int) -> Self:
        # A small limit: what the peer does not ask for stays in the kernel, and then at the sender.
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1024))

    async def send_bytes(self, data: bytes) -> None:
        writer = self._streams[1]
        writer.write(data)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await writer.drain()

    async def send(self, *messages: Message) -> None:
        await self.send_bytes(frames(*messages, after=self._sent))
        self._sent += frame_count(*messages)

    async def next(self) -> Message | None:
        """The next message; None at the end of the connection."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not self._messages:
                try:
                    data = await self._streams[0].read(65_536)
                except ConnectionError:
                    return None
                if not data:
                    return None
                self._messages += self._frames.feed(data)
        return self._messages.pop(0)

    async def rest(self) -> list[Message]:
        """Everything up to the end of the connection."""
        found = []
        while (message := await self.next()) is not None:
            found.append(message)
        return found

    async def next_of(self, kind: type[M]) -> M:
        """The next message of a kind; others before it are thrown away."""
        while True:
            message = await self.next()
            assert message is not None, f"the connection ended before a {kind.__name__}"
            if isinstance(message, kind):
                return message

    def end(self) -> None:
        """Say that nothing more is sent."""
        self._streams[1].write_eof()

    async def close(self) -> None:
        writer = self._streams[1]
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
