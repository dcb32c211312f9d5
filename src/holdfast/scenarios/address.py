"""Where a process listens: ``tcp://host:port/anything``, as SESDAD writes it; what follows the port means nothing.

A host is a name or a loopback address. A scenario starts processes without TLS and with a control that can cut their
connections, so an address that others can reach has no place in it.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final, NamedTuple

__all__ = ["Address", "BadUrl", "address_of"]

_URL: Final = re.compile(r"tcp://(\[[^\s/\]]*\]|[^\s:/\[\]]*):([0-9]{1,5})(?:/[!-~]*)?\Z")
_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\Z")
_PORT_MAX: Final = 65_535
_HOST_CHARS_MAX: Final = 253


class BadUrl(ValueError):
    """A URL that is no address; ``expected`` says what would be one."""

    def __init__(self, problem: str, expected: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.expected = expected


class Address(NamedTuple):
    """A host, without the brackets of IPv6, and a port; port 0 stands for any free one."""

    host: str
    port: int


def address_of(url: str) -> Address:
    """The address in a URL.

    :raises BadUrl: if it is none, or one that other machines could reach.
    """
    found = _URL.match(url)
    if found is None:
        raise BadUrl(
            "the URL has another form", "tcp://host:port/anything, such as tcp://localhost:3330/broker"
        )
    host, port = found[1], int(found[2])
    if port > _PORT_MAX:
        raise BadUrl(f"there is no port {port}", f"a port from 1 to {_PORT_MAX}, or 0 for any free one")
    if not _is_allowed(host):
        raise BadUrl("the URL's host will not do", "localhost, a loopback address or a name")
    return Address(host.strip("[]"), port)


def _is_allowed(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        labels = host.split(".")
        # A last label of digits is a mistyped address, not a name.
        return len(host) <= _HOST_CHARS_MAX and all(map(_LABEL.match, labels)) and not labels[-1].isdigit()
