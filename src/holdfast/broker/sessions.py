"""The sessions of a broker: every open connection, and whose it is once that is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from holdfast.clock import Instant
from holdfast.messages.session import Farewell, Goodbye, Hello
from holdfast.overlay.session import Session, heartbeat_problem
from holdfast.overlay.transport import Close, Log, Send, TransportEffect
from holdfast.routing.port import ClientPort, NeighbourPort

__all__ = ["Breach", "Effects", "End", "Sessions", "brief", "problem_with"]

Effects = list[TransportEffect]

#: So much of what a peer writes goes into the log.
SAID_MAX: Final = 200

#: How the parts of a broker end a session: connection, farewell, reason, now.
End = Callable[[int, Farewell, str, Instant], Effects]


class Breach(Exception):
    """A peer has broken a rule of the protocol; its session ends, and nobody else notices."""


class Sessions:
    """Sessions by connection, and the ports of those who have introduced themselves."""

    def __init__(self) -> None:
        self._sessions: dict[int, Session] = {}
        self._ports: dict[int, NeighbourPort | ClientPort] = {}

    def open(self, connection: int, now: Instant, patience_ns: int) -> None:
        """A connection stands; the peer has so long to introduce itself."""
        self._sessions[connection] = Session(connection, now, patience_ns)

    def __contains__(self, connection: int) -> bool:
        return connection in self._sessions

    def __getitem__(self, connection: int) -> Session:
        return self._sessions[connection]

    def hear(self, connection: int, now: Instant) -> bool:
        """The peer has said something; False if its session is over."""
        session = self._sessions.get(connection)
        if session is None:
            return False
        session.hear(now)
        return True

    def all(self) -> list[Session]:
        """Every session, in the order of its opening."""
        return list(self._sessions.values())

    def assign(self, connection: int, port: NeighbourPort | ClientPort) -> None:
        """It is known whose connection this is."""
        self._ports[connection] = port

    def port(self, connection: int) -> NeighbourPort | ClientPort | None:
        """Whose connection it is."""
        return self._ports.get(connection)

    def name(self, connection: int) -> str:
        """The peer as a log should call it."""
        port = self._ports.get(connection)
        return port.name if port is not None else "a stranger"

    def forget(self, connection: int) -> NeighbourPort | ClientPort | None:
        """The connection is gone; whose it was."""
        del self._sessions[connection]
        return self._ports.pop(connection, None)

    def part(self, connection: int, farewell: Farewell, reason: str) -> Effects:
        """What to say and do to end a session from this side. The reason may quote the peer, so it is kept short."""
        name, reason = self.name(connection), brief(reason)
        level = "info" if farewell in (Farewell.SILENT, Farewell.REPLACED) else "warning"
        return [
            Log(level, "session ended", {"peer": name, "farewell": str(farewell), "reason": reason}),
            Send(connection, [Goodbye(farewell, reason)]),
            Close(connection, reason),
        ]


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
