"""Ports for networks that live for a minute."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from typing import Final

__all__ = ["free_ports"]

#: Below the range from which systems draw the ports of outgoing connections, which could otherwise take one of
#: ours before its broker does.
FIRST, LAST = 15_000, 32_000
TRIES_MAX: Final = 10_000


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 that nobody listens on now.

    :raises OSError: if there are not so many.
    """
    ports: list[int] = []
    with ExitStack() as held:
        for _ in range(TRIES_MAX):
            port = random.SystemRandom().randint(FIRST, LAST)
            taken = held.enter_context(socket.socket())
            try:
                taken.bind(("127.0.0.1", port))
            except OSError:
                taken.close()
                continue
            ports.append(port)
            if len(ports) == count:
                return ports
    raise OSError(f"fewer than {count} free ports from {FIRST} to {LAST}")
