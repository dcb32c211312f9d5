"""The clients of a broker: who is here, who was here a moment ago, and who comes under whose name.

A client that loses its session keeps its port, subscriptions and all, for a grace time. Another incarnation under the
same name takes over: the older one is told, and its subscriptions end.
"""

from __future__ import annotations

from typing import Final

from holdfast.clock import Instant
from holdfast.routing.port import ClientPort

__all__ = ["Clients"]


class Clients:
    """The ports of clients, by name."""

    #: So many names of clients that are gone are remembered with the last number they published under.
    LAST_NUMBERS_MAX: Final = 100_000

    #: So many earlier clients under one name are remembered, in case they have not heard that they were taken over.
    SUPERSEDED_MAX: Final = 16

    def __init__(self, grace_ns: int) -> None:
        self._grace_ns = grace_ns
        self._ports: dict[str, ClientPort] = {}
        self._last_numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._ports)

    def get(self, name: str) -> ClientPort | None:
        """The port of a client that is here or was a moment ago."""
        return self._ports.get(name)

    def all(self) -> list[ClientPort]:
        """All ports, in the order of their coming."""
        return list(self._ports.values())

    def admit(self, name: str, incarnation: int) -> ClientPort:
        """A port for a new client; whoever had the name must have been removed."""
        assert name not in self._ports
        port = self._ports[name] = ClientPort(name, incarnation)
        port.last_number = self._last_numbers.pop(name, 0)
        return port

    def succeed(self, port: ClientPort, incarnation: int) -> ClientPort:
        """A port for another client under the name of one that was removed, which must not come back."""
        successor = self.admit(port.name, incarnation)
        successor.superseded = [*port.superseded, port.incarnation][-self.SUPERSEDED_MAX :]
        return successor

    def last_number(self, name: str) -> int:
        """The highest number seen of an event published under a name; 0 if none was."""
        port = self._ports.get(name)
        return self._last_numbers.get(name, 0) if port is None else port.last_number

    def remember(self, name: str, last_number: int) -> None:
        """A client is gone for good; the last number it used is remembered, for whoever has the name next."""
        if last_number:
            self._last_numbers.pop(name, None)
            self._last_numbers[name] = last_number
            if len(self._last_numbers) > self.LAST_NUMBERS_MAX:
                del self._last_numbers[next(iter(self._last_numbers))]

    def remove(self, port: ClientPort) -> None:
        """The client of a port is gone for good."""
        del self._ports[port.name]
        self.remember(port.name, port.last_number)

    def become_gone(self, port: ClientPort, now: Instant) -> None:
        """The client has lost its session; the grace time begins."""
        port.connection = None
        port.gone_at = now

    def expired(self, now: Instant) -> list[ClientPort]:
        """Those whose grace time is over."""
        return [
            port
            for port in self._ports.values()
            if port.gone_at is not None and now >= port.gone_at + self._grace_ns
        ]
