"""The sessions of a broker with strangers and plain clients; those with other nodes are ``node``'s."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.clock import Instant
from holdfast.messages.session import Farewell, Goodbye
from holdfast.node.breach import brief
from holdfast.overlay.session import Session
from holdfast.overlay.transport import Close, Log, Send, TransportEffect
from holdfast.routing.port import ClientPort

__all__ = ["Effects", "End", "Sessions"]

Effects = list[TransportEffect]

#: How the parts of a broker end a session: connection, farewell, reason, now.
End = Callable[[int, Farewell, str, Instant], Effects]


class Sessions:
    """Sessions by connection, and the ports of those who have introduced themselves."""

    def __init__(self) -> None:
        self._sessions: dict[int, Session] = {}
        self._ports: dict[int, ClientPort] = {}

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

    def assign(self, connection: int, port: ClientPort) -> None:
        """It is known whose connection this is."""
        self._ports[connection] = port

    def port(self, connection: int) -> ClientPort | None:
        """Whose connection it is."""
        return self._ports.get(connection)

    def name(self, connection: int) -> str:
        """The peer as a log should call it."""
        port = self._ports.get(connection)
        return port.name if port is not None else "a stranger"

    def forget(self, connection: int) -> ClientPort | None:
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
