"""The plug between an actor's client and the network, which a script may take out, and put in again elsewhere.

Disconnect takes it out: the client knows that its session is lost and dials again, and that is kept back until
Reconnect. In another socket it is another client's: whatever the one before had under way is not for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from holdfast.overlay.transport import Close, Connect, Connected, ConnectFailed, Disconnected

__all__ = ["Plug"]

_REASON: Final = "disconnected by the script"


class Plug:
    """Passes on what the network and the client say to each other, or does not."""

    def __init__(self) -> None:
        self.is_out = False
        self._connections: dict[int, None] = {}
        self._dials: list[Connect] = []  #: kept back while the plug is out
        self._sockets = 0  #: how often it has been put in elsewhere

    @property
    def _mark(self) -> str:
        """What the network calls those the client dials: who answers an earlier client's dial is told apart."""
        return f"socket {self._sockets} " if self._sockets else ""

    # From the network

    def on_connected(self, stimulus: Connected, effects: list[Any]) -> Connected | ConnectFailed | None:
        """A connection is there; what the client hears of it."""
        connection, peer = stimulus.connection, stimulus.peer
        if peer is not None and not self._is_mine(peer):
            effects.append(Close(connection, _REASON))
            return None
        name = None if peer is None else peer.removeprefix(self._mark)
        if self.is_out:
            effects.append(Close(connection, _REASON))
            return None if name is None else ConnectFailed(name, _REASON)
        self._connections[connection] = None
        return Connected(connection, name)

    def on_connect_failed(self, stimulus: ConnectFailed) -> ConnectFailed | None:
        """A dial came to nothing; what the client hears of it."""
        if not self._is_mine(stimulus.peer):
            return None
        return ConnectFailed(stimulus.peer.removeprefix(self._mark), stimulus.reason)

    def on_disconnected(self, connection: int) -> None:
        """A connection is gone."""
        self._connections.pop(connection, None)

    def _is_mine(self, peer: str) -> bool:
        return peer.startswith(self._mark) if self._mark else not peer.startswith("socket ")

    # From the client

    def connect(self, effect: Connect, effects: list[Any]) -> None:
        """The client dials."""
        if self.is_out:
            self._dials.append(effect)
        else:
            effects.append(Connect(self._mark + effect.peer, effect.address))

    # From the script

    def take_out(self, effects: list[Any]) -> Iterator[Disconnected]:
        """Close one connection after the other; what the client hears of each, before the next is closed."""
        self.is_out = True
        connections, self._connections = self._connections, {}
        for connection in connections:
            effects.append(Close(connection, _REASON))
            yield Disconnected(connection, _REASON)

    def put_in(self, effects: list[Any]) -> None:
        """Let the client dial again."""
        self.is_out = False
        dials, self._dials = self._dials, []
        for dial in dials:
            self.connect(dial, effects)

    def put_in_elsewhere(self) -> None:
        """Another client will dial."""
        self.is_out = False
        self._dials.clear()
        self._sockets += 1
