"""What a core is told of its connections, and what it asks of them.

A core (a broker, a client) is driven by ``step(input, now) -> effects`` and ``next_deadline()``. It opens nothing
and reads no clock: a driver does, the asyncio runtime or the simulator, and it treats every core alike. Two laws
hold for effects:

- *Durable before visible.* The effects of a step are carried out in order; a ``Send`` after an ``Append`` waits
  until the append is stable.
- *Completions are inputs.* What an effect set in motion comes back through ``step``.

A connection is an int the driver hands out and never uses again. Until ``Connected`` comes, nothing may be sent on
it; after ``Disconnected`` or ``Close``, nothing comes and nothing may be sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.clock import Instant
from holdfast.messages.message import Message

__all__ = [
    "Close",
    "Connect",
    "ConnectFailed",
    "Connected",
    "Core",
    "Disconnected",
    "Log",
    "Pause",
    "Received",
    "Resume",
    "Send",
    "Trace",
    "TransportEffect",
    "TransportInput",
    "Wake",
]


@dataclass(frozen=True, slots=True)
class Connected:
    """A connection is open; ``peer`` is the name given to ``Connect``, or None if somebody dialled us."""

    connection: int
    peer: str | None


@dataclass(frozen=True, slots=True)
class ConnectFailed:
    """What ``Connect`` asked for could not be had."""

    peer: str
    reason: str


@dataclass(frozen=True, slots=True)
class Received:
    """Messages that arrived on a connection since the last turn, in order."""

    connection: int
    messages: list[Message]


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A connection is gone, by the peer's doing, the network's, or the driver's; never by our own ``Close``."""

    connection: int
    reason: str


@dataclass(frozen=True, slots=True)
class Wake:
    """The time ``next_deadline`` named has come."""


@dataclass(frozen=True, slots=True)
class Connect:
    """Dial a node; ``Connected`` or ``ConnectFailed`` follows."""

    peer: str
    address: str  #: host:port


@dataclass(frozen=True, slots=True)
class Send:
    """Send messages on a connection, in order."""

    connection: int
    messages: list[Message]


@dataclass(frozen=True, slots=True)
class Close:
    """Close a connection once what was sent on it is on its way."""

    connection: int
    reason: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop reading from a connection: what arrived has not been consumed."""

    connection: int


@dataclass(frozen=True, slots=True)
class Resume:
    """Read again."""

    connection: int


@dataclass(frozen=True, slots=True)
class Trace:
    """One line of the trace [contracts.md §5]; the driver adds time, position and node."""

    kind: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Log:
    """Something an operator may want to know. ``level`` as in ``logging``: info, warning, error."""

    level: str
    text: str
    fields: Mapping[str, Any]


TransportInput = Connected | ConnectFailed | Received | Disconnected | Wake
TransportEffect = Connect | Send | Close | Pause | Resume | Trace | Log


class Core(Protocol):
    """What a driver drives."""

    name: str

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        """Take one input, and say what is to be done about it."""

    def next_deadline(self) -> Instant | None:
        """When to step with ``Wake`` at the latest."""
