"""Addresses as people write them: ``host:port``, IPv6 in brackets; loopback unless told otherwise.

There is no TLS yet, so whatever leaves the machine can be read and forged on its way. That is refused, to listen and to
dial alike, until somebody says ``insecure = true`` in so many words.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from ipaddress import ip_address
from typing import Final, NamedTuple

from holdfast.errors import CallersFault

__all__ = ["Address", "BadAddress", "parse_address", "resolve", "words_of"]

_FORM: Final = re.compile(r"(?:\[(?P<v6>[^\[\]]*)\]|(?P<host>[\w.-]{1,253})):(?P<port>[0-9]{1,5})", re.ASCII)
PORT_MAX: Final = 65_535
#: As asyncio quotes the system, once for each address of a name.
_ERROR_NUMBER: Final = re.compile(r"\[Errno ([0-9]+)\]")


class BadAddress(CallersFault):
    """An address that cannot be used, as it was given, and what is wrong with it."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"the address {text!r}: {problem}")
        self.text = text
        self.problem = problem


class Address(NamedTuple):
    """Where to listen or dial."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether it certainly stays on this machine; of names, only ``localhost`` does."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


def parse_address(text: str, *, insecure: bool = False) -> Address:
    """Read ``host:port``.

    :raises BadAddress: if it is malformed, or leaves this machine without ``insecure``.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise BadAddress(
            text, "expected host:port, with an IPv6 address in brackets: 127.0.0.1:7000, [::1]:7000"
        )
    if (port := int(form["port"])) > PORT_MAX:
        raise BadAddress(text, f"the port is above {PORT_MAX}")
    if form["v6"] is not None and not _is_ipv6(form["v6"]):
        raise BadAddress(text, "what stands in brackets is no IPv6 address")
    address = Address(form["v6"] or form["host"], port)
    if not insecure and not address.is_loopback:
        raise BadAddress(
            text, "only loopback is allowed, since there is no TLS yet; insecure = true allows any address"
        )
    return address


def _is_ipv6(text: str) -> bool:
    try:
        return ip_address(text).version == 6
    except ValueError:
        return False


def words_of(error: OSError) -> str:
    """Why an address cannot be had, in the system's own words; asyncio wraps them with the address again."""
    if isinstance(error, socket.gaierror):
        return (error.strerror or str(error)).lower()
    numbers = [error.errno] if error.errno else [int(each) for each in _ERROR_NUMBER.findall(str(error))]
    return " and ".join(dict.fromkeys(os.strerror(each).lower() for each in numbers)) or str(error)


async def resolve(address: Address) -> Address:
    """The address as a number: one only, IPv4 if there is one, so that port 0 gives one port.

    :raises OSError: if the name is not known.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    _, _, _, _, where = min(found, key=lambda info: info[0] != socket.AF_INET)
    return Address(str(where[0]), address.port)
