"""The client's way to its network: a driver for its core, chosen by the URL.

The drivers live in the layers above and import this one, so they are found by name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol, cast
from urllib.parse import urlsplit

from holdfast.client.errors import InvalidOption, InvalidUrl
from holdfast.client.numbers import NumberSource
from holdfast.errors import CallersFault
from holdfast.overlay.transport import Core

__all__ = ["Dial", "Listen", "Port", "Way", "stored_identity", "way_to"]


_RUNTIME_ADDRESSES: Final = "holdfast.runtime.addresses"
_RUNTIME_DRIVER: Final = "holdfast.runtime.driver"
_RUNTIME_DISK: Final = "holdfast.runtime.disk"
_EMBEDDED_NETWORK: Final = "holdfast.embedded.network"


class Port(Protocol):
    """Drives a core; what the core says to its application comes through the callback given at the start."""

    async def start(self) -> None:
        """Be ready for the first input."""

    def submit(self, stimulus: Any) -> None:
        """Have the core take an input, now or within the turn."""

    async def stop(self) -> None:
        """Send what was to be sent, and leave nothing behind."""

    async def wait_stopped(self) -> None:
        """Wait until it has stopped.

        :raises HoldfastError: if that was by a bug.
        """


class Dial(Protocol):
    """Makes a port for a core."""

    def __call__(
        self,
        core: Core,
        *,
        application: Callable[[Any], None],
        log: Callable[[str, str, Mapping[str, Any]], None],
    ) -> Port:
        """A port that has not started."""


#: Have a port accept connections; where others can dial it. Raises OSError if it cannot.
Listen = Callable[[Port], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Way:
    """How to get to a broker: the driver to use, and the address to give to the core."""

    dial: Dial
    broker: str
    listen: Callable[[str], Listen]  #: how to listen at an address; raises InvalidOption if it is none


def way_to(url: str, broker: str | None = None, *, insecure: bool = False) -> Way:
    """The way to the network at a URL; ``broker`` chooses one of a network inside this process.

    ``insecure`` allows addresses beyond this machine, though there is no TLS yet.

    :raises InvalidUrl: saying what is wrong with it.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidUrl(url, str(error)) from error
    if parts.scheme not in ("holdfast", "memory"):
        raise InvalidUrl(
            url, f"the scheme {parts.scheme!r} is not known" if parts.scheme else "has no scheme"
        )
    if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise InvalidUrl(url, "has more than an address")
    if parts.scheme == "memory":
        return _way_inside(url, parts.netloc, broker)
    if not host or not port:
        raise InvalidUrl(url, "has no port" if host else "has no host")
    if broker is not None:
        raise InvalidUrl(url, f"is one broker already; broker={broker!r} is for memory://")
    try:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        address = import_module(_RUNTIME_ADDRESSES).parse_address(place, insecure=insecure)
    except CallersFault as error:
        raise InvalidUrl(url, str(getattr(error, "problem", error))) from error
    driver = import_module(_RUNTIME_DRIVER).Driver
    return Way(partial(driver, insecure=insecure), str(address), partial(_listener, insecure=insecure))


def _listener(text: str, *, insecure: bool) -> Listen:
    addresses = import_module(_RUNTIME_ADDRESSES)
    try:
        address = addresses.parse_address(text, insecure=insecure)
    except CallersFault as error:
        raise InvalidOption("listen", str(error)) from error

    async def listen(driver: Any) -> str:
        return str(addresses.Address(address.host, await driver.listen(*address)))

    return listen


def _way_inside(url: str, network: str, broker: str | None) -> Way:
    if not network:
        raise InvalidUrl(url, "names no network")
    try:
        return cast(Way, import_module(_EMBEDDED_NETWORK).way_to(network, broker))
    except LookupError as error:
        raise InvalidUrl(url, str(error.args[0])) from error


def stored_identity(folder: Path, name: str, above: int) -> tuple[int, NumberSource]:
    """A client's next incarnation, above all before and a number, and its numbers, from a folder of its own.

    :raises InvalidOption: if the folder cannot be used.
    """
    disk = import_module(_RUNTIME_DISK)
    try:
        incarnation = disk.NumberStore(folder, f"{name}/incarnation", block=1).next_number(above)
    except disk.CannotStore as error:
        raise InvalidOption("state", str(error)) from error
    return cast(int, incarnation), cast(NumberSource, disk.NumberStore(folder, name))
