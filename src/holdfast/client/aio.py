"""The client for asyncio: ``connect``, ``publish``, ``subscribe``.

    async with holdfast.connect("holdfast://localhost:7000", name="trader-7") as network:
        receipt = await network.publish("orders/eu", {"price": 101.5}, b"...")
        async with network.subscribe("orders/# WHERE price > 100") as items:
            async for item in items:
                ...

Everything that must be right is in the core (``client.protocol``); here its effects wake those who wait. A network is
used from the loop it was made in. Every call has a timeout, in seconds; None waits for ever. A cancelled call leaves
the network as it was, except that an event already on its way stays there.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

from holdfast.client.aio_network import Network, State
from holdfast.client.aio_publishing import Publisher, Receipt, Sent
from holdfast.client.aio_subscription import Subscription
from holdfast.client.aio_waiting import DEFAULT_TIMEOUT
from holdfast.client.errors import Closed, InvalidOption, InvalidUrl
from holdfast.client.numbers import Numbers
from holdfast.client.options import check_name, check_timeout
from holdfast.client.port import stored_identity, way_to
from holdfast.client.settings import Settings
from holdfast.events.value import kind_of

__all__ = ["Connecting", "Network", "Publisher", "Receipt", "Sent", "State", "Subscription", "connect"]


class Connecting:
    """A connection in the making: enter it, or await it and close the network yourself."""

    def __init__(self, make: Callable[[], Network], timeout: float | None) -> None:
        self._make = make
        self._timeout = timeout
        self._network: Network | None = None

    async def _open(self) -> Network:
        if self._network is not None:
            raise Closed("a connection is made once; connect again")
        self._network = self._make()
        await self._network.open(self._timeout)
        return self._network

    def __await__(self) -> Generator[Any, None, Network]:
        return self._open().__await__()

    async def __aenter__(self) -> Network:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._network is not None
        await self._network.close()


def connect(
    url: str | Sequence[str],
    *,
    name: str | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
    state: str | Path | None = None,
    broker: str | Sequence[str] | None = None,
    insecure: bool = False,
    member: bool | None = None,
    listen: str | None = None,
) -> Connecting:
    """A connection to a network: enter it with ``async with``, or await it.

    With several URLs, of brokers of one network, each is tried in turn, at first and whenever a session is lost.
    ``name`` is who publishes; a client under a name that is connected already takes over from the other. Without, the
    client has a name nobody had before. ``state`` is a folder of this client's own, where it keeps its numbers;
    ``broker`` chooses one of a network inside this process, or several; ``insecure`` allows an address beyond this
    machine, though there is no TLS yet. Where a stream is reliable and none durable the client becomes a node of the
    network, which reaches past its broker when that fails, unless ``member`` is false; ``listen``, host:port, lets
    others dial it. With ``member`` true, or ``listen``, a network with a durable stream is refused.

    :raises InvalidUrl: at once; so is InvalidOption, but for what only the network can tell.
    :raises Unreachable: on entering or awaiting, if there is no session in time.
    """
    if not isinstance(url, str | Sequence):
        raise InvalidUrl(url, f"is {kind_of(url)}")
    if not isinstance(broker, str | Sequence | None):
        raise InvalidOption("broker", f"is {broker!r}; expected the name of a broker, or a list of names")
    if not isinstance(state, str | PathLike | None):
        raise InvalidOption("state", f"is {state!r}; expected a folder")
    if not isinstance(listen, str | None):
        raise InvalidOption("listen", f"is {listen!r}; expected host:port")
    check_timeout(timeout)
    urls = [url] if isinstance(url, str) else list(url)
    chosen = [broker] if broker is None or isinstance(broker, str) else list(broker)
    if not urls or not chosen:
        raise InvalidOption("url" if not urls else "broker", "names no broker")
    way, *others = [way_to(each, name, insecure=insecure) for each in urls for name in chosen]
    listening = None if listen is None else way.listen(listen)
    if name is not None:
        check_name("name", name)
    elif state is not None:
        raise InvalidOption("state", "needs a name to keep numbers for")
    if listen is not None and member is False:
        raise InvalidOption("listen", "is for members; nobody dials another client")
    is_member = True if listen is not None else member

    def make() -> Network:
        incarnation, numbers = _identity(name, None if state is None else Path(state))
        mine = name or f"client-{uuid.uuid4().hex}"
        further = tuple(each.broker for each in others)
        settings = Settings(mine, incarnation, way.broker, is_member=is_member, others=further)
        return Network(settings, numbers, way.dial, ", ".join(urls), listening)

    return Connecting(make, timeout)


def _identity(name: str | None, state: Path | None) -> tuple[int, Numbers]:
    """The incarnation of a client that is about to connect, and its numbers; see ``client.numbers``."""
    if name is None:
        return 1, Numbers()
    microseconds = time.time_ns() // 1000
    if state is None:
        return microseconds, Numbers(microseconds)
    incarnation, source = stored_identity(state, name, microseconds)
    return incarnation, Numbers(microseconds, source)
