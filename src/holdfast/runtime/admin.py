"""Health and figures over HTTP, on a port of their own and the same loop: if it answers, the loop turns.

::

    /livez      the loop turns and the core is sound
    /startupz   the broker listens
    /readyz     every neighbour was met or given up: clients are served
    /metrics    for Prometheus
    /status     the broker in JSON

A check that fails answers 503 and says which and why. This is no web server: GET and HEAD, one request per
connection, a head of at most ``HEAD_BYTES_MAX``, ``REQUEST_SECONDS`` for all of it, ``CONNECTIONS_MAX`` at a time.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from holdfast.runtime.addresses import Address, parse_address, resolve

__all__ = ["Admin", "Answer", "Page"]

HEAD_BYTES_MAX: Final = 8 * 1024
REQUEST_SECONDS: Final = 5.0
CONNECTIONS_MAX: Final = 64

_REQUEST: Final = re.compile(rb"([A-Z]{1,20}) (/[!-~]{0,2000}) HTTP/1\.[01]\r\n((?:[^\r\n\0]+\r\n)*)\r\n")

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said about a request."""

    status: HTTPStatus
    body: bytes
    content_type: str = TEXT

    @classmethod
    def text(cls, status: HTTPStatus, *lines: str) -> Answer:
        """Lines for people."""
        return cls(status, "".join(f"{line}\n" for line in lines).encode())

    @classmethod
    def checks(cls, problems: Mapping[str, str | None]) -> Answer:
        """The outcome of named checks; None: it passed."""
        lines = [f"{name}: {problem or 'ok'}" for name, problem in problems.items()]
        failed = any(problem is not None for problem in problems.values())
        return cls.text(HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK, *lines)

    @classmethod
    def json(cls, value: object) -> Answer:
        """A value as JSON."""
        return cls(HTTPStatus.OK, json.dumps(value).encode() + b"\n", JSON)


Page = Callable[[], Answer]


class Admin:
    """The server; ``pages`` are called in the loop, and whatever one raises is a 500 that names it."""

    def __init__(self, pages: Mapping[str, Page], *, insecure: bool = False) -> None:
        self._pages = pages
        self._insecure = insecure
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def listen(self, host: str, port: int) -> int:
        """Answer requests; returns the port.

        :raises BadAddress: unless it is loopback, or insecurity is allowed.
        :raises OSError: if it cannot be had.
        """
        address = await resolve(parse_address(str(Address(host, port)), insecure=self._insecure))
        self._server = await asyncio.start_server(self._on_connection, *address, limit=HEAD_BYTES_MAX)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Answer nothing any more, and leave no connection behind."""
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._serving) >= CONNECTIONS_MAX:
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await _read_head(reader)
                if head is not None:
                    writer.write(self._response(head))
                    writer.write_eof()
                    await writer.drain()
                    while await reader.read(HEAD_BYTES_MAX):
                        pass  # closing with unread bytes would reset the connection under the answer
        except (OSError, TimeoutError):
            pass  # the peer left, or took too long
        finally:
            writer.transport.abort()

    def _response(self, head: bytes) -> bytes:
        method, answer = self._answer(head)
        fields = {
            "Content-Type": answer.content_type,
            "Content-Length": len(answer.body),
            "Connection": "close",
            "Cache-Control": "no-store",
        }
        if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
            fields["Allow"] = "GET, HEAD"
        lines = [
            f"HTTP/1.1 {answer.status} {answer.status.phrase}",
            *(f"{k}: {v}" for k, v in fields.items()),
        ]
        response = "\r\n".join([*lines, "", ""]).encode()
        return response if method == b"HEAD" else response + answer.body

    def _answer(self, head: bytes) -> tuple[bytes, Answer]:
        if len(head) > HEAD_BYTES_MAX:
            too_large = f"the head of the request is larger than {HEAD_BYTES_MAX} bytes"
            return b"", Answer.text(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, too_large)
        request = _REQUEST.fullmatch(head)
        if request is None:
            return b"", Answer.text(
                HTTPStatus.BAD_REQUEST, "this is no HTTP/1.1 request: expected GET /path HTTP/1.1"
            )
        method, target, _ = request.groups()
        if method not in (b"GET", b"HEAD"):
            return method, Answer.text(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered")
        page = self._pages.get(target.partition(b"?")[0].decode("ascii"))
        if page is None:
            return method, Answer.text(HTTPStatus.NOT_FOUND, "expected one of", *self._pages)
        try:
            return method, page()
        except Exception as error:
            return method, Answer.text(HTTPStatus.INTERNAL_SERVER_ERROR, f"{target.decode()}: {error!r}")


async def _read_head(reader: asyncio.StreamReader) -> bytes | None:
    """The request up to the empty line; None if the peer left before it; too much of it if it is too large."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return b"x" * (HEAD_BYTES_MAX + 1)
    except asyncio.IncompleteReadError as error:
        return error.partial or None
