"""What a broker says on its admin port, asked over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Any, Final

from holdfast.runtime.addresses import Address

__all__ = ["NoAnswer", "is_ready", "status_page"]

TIMEOUT_S: Final = 2.0
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


def _get(address: Address, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address.host, address.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read(PAGE_BYTES_MAX)
    except TimeoutError as error:
        raise NoAnswer(f"no answer within {TIMEOUT_S:g} s") from error
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


async def is_ready(address: Address) -> bool:
    """Whether there is a broker that is ready for clients."""
    try:
        status, _ = await asyncio.to_thread(_get, address, "/readyz")
    except NoAnswer:
        return False
    return status == http.client.OK
