"""What a peer must not do, and what is said about it."""

from __future__ import annotations

from typing import Final

from holdfast.messages.session import Hello
from holdfast.overlay.session import heartbeat_problem

__all__ = ["Breach", "brief", "problem_with"]

#: So much of what a peer writes goes into the log.
SAID_MAX: Final = 200


class Breach(Exception):
    """A peer has broken a rule of the protocol; its session ends, and nobody else notices."""


def problem_with(hello: Hello, name_bytes_max: int) -> str | None:
    """Why somebody cannot be met under this Hello, if they cannot."""
    for what, name in (("name", hello.node), ("principal", hello.principal)):
        size = len(name.encode())
        if not 1 <= size <= name_bytes_max:
            return f"a {what} of {size} bytes; 1 to {name_bytes_max} are possible"
        if not name.isprintable():
            return f"a {what} with characters that cannot be printed"
    return heartbeat_problem(hello.heartbeat_ns)


def brief(text: str) -> str:
    """What a peer wrote, fit for a log: short, and nothing that is not printable."""
    return "".join(each if each.isprintable() else "·" for each in text[:SAID_MAX])
