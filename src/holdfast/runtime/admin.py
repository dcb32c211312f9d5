"""Health and figures over HTTP, on a port of their own and the same loop: if it answers, the loop turns.

::

    /livez      the loop turns and the core is sound
    /startupz   the broker listens
    /readyz     every neighbour was met or given up: clients are served
    /metrics    for Prometheus
    /status     the broker in JSON

and, of durable streams, ``/subscriptions`` and what ``runtime.operator`` does. A check that fails answers 503 and says
which and why. This is no web server: GET and HEAD, POST for actions, one request per connection, a head of at most
``HEAD_BYTES_MAX``, a body of ``BODY_BYTES_MAX``, ``REQUEST_SECONDS`` for all of it, ``CONNECTIONS_MAX`` at a time.

Who may ask for a page is who can reach the port. An action changes what is kept, so it is taken only from this machine,
wherever the port listens, and never from a page in a browser: such a request has an ``Origin``.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, Final

from holdfast.runtime.addresses import Address, parse_address, resolve

__all__ = ["Action", "Admin", "Answer", "Page", "is_this_machine"]

HEAD_BYTES_MAX: Final = 8 * 1024
BODY_BYTES_MAX: Final = 2 * 1024 * 1024
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
    allowed: str = ""  #: the methods that would have been right

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
Action = Callable[[bytes], Awaitable[Answer]]  #: takes the body of the request


class Admin:
    """The server; pages and actions are called in the loop, and whatever one raises is a 500 that names it."""

    def __init__(
        self,
        pages: Mapping[str, Page],
        actions: Mapping[str, Action] | None = None,
        *,
        insecure: bool = False,
    ) -> None:
        self._pages = pages
        self._actions = actions or {}
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
                    is_near = is_this_machine(writer.get_extra_info("peername"))
                    writer.write(_response(*await self._answer(head, reader, is_near=is_near)))
                    writer.write_eof()
                    await writer.drain()
                    while await reader.read(HEAD_BYTES_MAX):
                        pass  # closing with unread bytes would reset the connection under the answer
        except (OSError, TimeoutError):
            pass  # the peer left, or took too long
        finally:
            writer.transport.abort()

    async def _answer(
        self, head: bytes, reader: asyncio.StreamReader, *, is_near: bool
    ) -> tuple[bytes, Answer]:
        """The method, and what is said to it."""
        if len(head) > HEAD_BYTES_MAX:
            too_large = f"the head of the request is larger than {HEAD_BYTES_MAX} bytes"
            return b"", Answer.text(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, too_large)
        request = _REQUEST.fullmatch(head)
        if request is None:
            return b"", Answer.text(
                HTTPStatus.BAD_REQUEST, "this is no HTTP/1.1 request: expected GET /path HTTP/1.1"
            )
        method, target, lines = request.groups()
        path = target.partition(b"?")[0].decode("ascii")
        if path not in self._pages and path not in self._actions:
            return method, Answer.text(HTTPStatus.NOT_FOUND, "expected one of", *self._pages, *self._actions)
        allowed = "GET, HEAD" if path in self._pages else "POST"
        if method.decode("ascii") not in allowed.split(", "):
            problem = f"expected {allowed.replace(', ', ' or ')}\n".encode()
            return method, Answer(HTTPStatus.METHOD_NOT_ALLOWED, problem, allowed=allowed)
        try:
            if path in self._pages:
                return method, self._pages[path]()
            return method, await self._act(self._actions[path], _fields(lines), reader, is_near=is_near)
        except (OSError, TimeoutError):
            raise  # the peer's, or its time is over
        except Exception as error:
            return method, Answer.text(HTTPStatus.INTERNAL_SERVER_ERROR, f"{target.decode()}: {error!r}")

    async def _act(
        self, action: Action, fields: Mapping[str, str], reader: asyncio.StreamReader, *, is_near: bool
    ) -> Answer:
        if not is_near:
            return Answer.text(HTTPStatus.FORBIDDEN, "this is done only from the broker's own machine")
        if "origin" in fields:
            return Answer.text(HTTPStatus.FORBIDDEN, "this is not done for a page in a browser")
        length = fields.get("content-length", "")
        if not length.isascii() or not length.isdecimal():
            return Answer.text(HTTPStatus.LENGTH_REQUIRED, "expected Content-Length")
        if int(length) > BODY_BYTES_MAX:
            return Answer.text(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected at most {BODY_BYTES_MAX} bytes"
            )
        try:
            body = await reader.readexactly(int(length))
        except asyncio.IncompleteReadError:
            return Answer.text(HTTPStatus.BAD_REQUEST, f"the body has less than {length} bytes")
        return await action(body)


def _response(method: bytes, answer: Answer) -> bytes:
    fields = {
        "Content-Type": answer.content_type,
        "Content-Length": len(answer.body),
        "Connection": "close",
        "Cache-Control": "no-store",
    }
    if answer.allowed:
        fields["Allow"] = answer.allowed
    lines = [
        f"HTTP/1.1 {answer.status} {answer.status.phrase}",
        *(f"{k}: {v}" for k, v in fields.items()),
    ]
    response = "\r\n".join([*lines, "", ""]).encode()
    return response if method == b"HEAD" else response + answer.body


def _fields(lines: bytes) -> dict[str, str]:
    """The fields of a request's head, by their names in lower case."""
    pairs = (line.partition(":") for line in lines.decode("latin-1").split("\r\n"))
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}


def is_this_machine(peer: Any) -> bool:
    """Whether a connection comes from loopback."""
    try:
        return ip_address(peer[0].partition("%")[0]).is_loopback
    except (TypeError, ValueError):
        return False


async def _read_head(reader: asyncio.StreamReader) -> bytes | None:
    """The request up to the empty line; None if the peer left before it; too much of it if it is too large."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return b"x" * (HEAD_BYTES_MAX + 1)
    except asyncio.IncompleteReadError as error:
        return error.partial or None
