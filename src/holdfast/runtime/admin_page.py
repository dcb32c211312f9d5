"""What a broker says on its admin port, and does when it is told to, over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Mapping
from typing import Any, Final

from holdfast.runtime.addresses import Address

__all__ = ["NoAnswer", "Unwilling", "is_ready", "status_page", "subscriptions_page", "tell_broker"]

TIMEOUT_S: Final = 2.0
ACTION_TIMEOUT_S: Final = 6.0
PAGE_BYTES_MAX: Final = 16 * 1024 * 1024
#: What a broker says of itself at least.
SAID: Final = frozenset(
    (
        "name",
        "incarnation",
        "ready",
        "neighbours",
        "clients",
        "subscriptions",
        "overlay",
        "counters",
        "process",
    )
)


class NoAnswer(Exception):
    """Nobody there, or nobody who speaks as a broker does; the text says which."""


class Unwilling(Exception):
    """A broker would not do what it was told; the text says why."""


def _get(address: Address, path: str) -> tuple[int, bytes]:
    return _ask(address, "GET", path)


def _ask(
    address: Address, method: str, path: str, body: bytes | None = None, timeout: float = TIMEOUT_S
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        response = connection.getresponse()
        return response.status, response.read(PAGE_BYTES_MAX)
    except TimeoutError as error:
        raise NoAnswer(f"no answer within {timeout:g} s") from error
    except OSError as error:
        raise NoAnswer((error.strerror or str(error)).lower()) from error
    except http.client.HTTPException as error:
        raise NoAnswer(f"what answers there does not speak HTTP ({error!r})") from error
    finally:
        connection.close()


async def status_page(address: Address) -> dict[str, Any]:
    """A broker's status.

    :raises NoAnswer: if it does not say.
    """
    status, body = await asyncio.to_thread(_get, address, "/status")
    try:
        page = json.loads(body) if status == http.client.OK else None
    except ValueError:
        page = None
    if not isinstance(page, dict) or not page.keys() >= SAID:
        raise NoAnswer(f"what answers there is no broker (HTTP status {status})")
    return page


async def subscriptions_page(address: Address) -> dict[str, Any]:
    """The durable subscriptions a broker keeps, and knows of.

    :raises NoAnswer: if it does not say.
    """
    status, body = await asyncio.to_thread(_get, address, "/subscriptions")
    if status != http.client.OK:
        raise NoAnswer(f"it says nothing of durable subscriptions (HTTP status {status})")
    page: dict[str, Any] = json.loads(body)
    return page


async def tell_broker(address: Address, path: str, wish: Mapping[str, Any]) -> None:
    """Have a broker do something; it is done when this returns.

    :raises NoAnswer: if it does not say.
    :raises Unwilling: if it would not, or does not know yet.
    """
    body = json.dumps(wish).encode()
    status, said = await asyncio.to_thread(_ask, address, "POST", path, body, ACTION_TIMEOUT_S)
    if status != http.client.OK:
        raise Unwilling(said.decode(errors="replace").strip() or f"HTTP status {status}")


async def is_ready(address: Address) -> bool:
    """Whether there is a broker that is ready for clients."""
    try:
        status, _ = await asyncio.to_thread(_get, address, "/readyz")
    except NoAnswer:
        return False
    return status == http.client.OK
