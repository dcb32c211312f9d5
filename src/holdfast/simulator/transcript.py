"""A readable record of a run: what every node heard, said and became.

Columns: the time in seconds since the world began; the node; a mark; what happened. The marks are ``<`` for what
came in, ``>`` for what went out, ``=`` for a state: a trace line, a log line, a start, a crash. Behind ``<`` and
``>`` stands the peer where the connection tells it::

           time  node           what
       0.000000  broker1      = started, incarnation 1
       0.000000  broker1      > dial broker0
       0.020000  broker1      < connected to broker0
       0.020000  broker1      > broker0: Hello(broker1, broker, incarnation 1, session 1)
       5.260000  broker5      < publisher00: Publish(publisher00#1)
       5.260000  broker5      > broker3: Publications(publisher00#1)
       5.260000  broker5      > subscriber5: Deliveries(publisher00#1 to 1)

Heartbeats and wakes are left out: they would be most of it. Only the last ``lines_max`` lines are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from holdfast.clock import SECOND, Instant
from holdfast.messages.message import Message
from holdfast.messages.publications import Accepted, Deliveries, Publication, Publications, Publish
from holdfast.messages.session import Goodbye, Heartbeat, Hello, Welcome
from holdfast.messages.subscriptions import Confirmed, Subscribe, Table, Unsubscribe, Withdrawn
from holdfast.overlay.transport import (
    Close,
    Connect,
    Connected,
    ConnectFailed,
    Disconnected,
    Log,
    Pause,
    Received,
    Resume,
    Send,
    Trace,
    Wake,
)
from holdfast.simulator.connection import Host

__all__ = ["HEADING", "LINES_MAX", "Transcript"]

LINES_MAX: Final = 100_000
HEADING: Final = "       time  node           what"
_IDS_SHOWN_MAX: Final = 3


class Transcript:
    """Collects lines; ``str()`` gives them with their heading."""

    def __init__(self, lines_max: int = LINES_MAX) -> None:
        self.lines: deque[str] = deque(maxlen=lines_max)
        self.left_out = 0

    def __str__(self) -> str:
        omitted = [f"… {self.left_out} earlier lines"] if self.left_out else []
        return "".join(f"{line}\n" for line in [HEADING, *omitted, *self.lines])

    def note(self, now: Instant, node: str, mark: str, text: str) -> None:
        """Write one line."""
        self.left_out += len(self.lines) == self.lines.maxlen
        self.lines.append(f"{now / SECOND:11.6f}  {node:<12} {mark} {text}")

    def step(self, now: Instant, host: Host, stimulus: Any, effects: Sequence[Any]) -> None:
        """Write down an input and what came of it."""
        for text in _heard(host, stimulus):
            self.note(now, host.name, "<", text)
        for effect in effects:
            for mark, text in _done(host, effect):
                self.note(now, host.name, mark, text)


def _peer(host: Host, connection: int) -> str:
    end = host.ends.get(connection)
    return f"connection {connection}" if end is None else end.other.host.name


def _heard(host: Host, stimulus: Any) -> list[str]:
    match stimulus:
        case Received(connection, messages):
            return _said(_peer(host, connection), messages)
        case Connected(connection, peer):
            name = _peer(host, connection)
            return [f"connected to {name}" if peer is not None else f"connected from {name}"]
        case ConnectFailed(peer, reason):
            return [f"cannot reach {peer}: {reason}"]
        case Disconnected(connection, reason):
            return [f"connection {connection} lost: {reason}"]
        case Wake():
            return []
        case _:
            return [_shown(stimulus)]


def _done(host: Host, effect: Any) -> list[tuple[str, str]]:
    match effect:
        case Send(connection, messages):
            return [(">", text) for text in _said(_peer(host, connection), messages)]
        case Connect(peer, address):
            return [(">", f"dial {peer or address}")]
        case Close(connection, reason):
            return [(">", f"close {_peer(host, connection)}: {reason}")]
        case Pause(connection):
            return [(">", f"pause {_peer(host, connection)}")]
        case Resume(connection):
            return [(">", f"resume {_peer(host, connection)}")]
        case Trace(kind, fields):
            return [("=", f"{kind} " + " ".join(f"{name}={value}" for name, value in fields.items()))]
        case Log(level, text, fields):
            return [
                ("=", " ".join([f"{level}: {text}", *(f"{name}={value}" for name, value in fields.items())]))
            ]
        case _:
            return [("=", _shown(effect))]


def _said(peer: str, messages: Sequence[Message]) -> list[str]:
    return [f"{peer}: {_message(message)}" for message in messages if not isinstance(message, Heartbeat)]


def _message(message: Message) -> str:
    match message:
        case Hello(node, kind, incarnation, session):
            return f"Hello({node}, {kind}, incarnation {incarnation}, session {session})"
        case Welcome(node, _, incarnation, session):
            return f"Welcome({node}, incarnation {incarnation}, session {session})"
        case Goodbye(farewell, reason):
            return f"Goodbye({farewell}: {reason})"
        case Subscribe(subscription, filter):
            return f"Subscribe({subscription}, {filter})"
        case Confirmed(subscription) | Unsubscribe(subscription) | Withdrawn(subscription):
            return f"{type(message).__name__}({subscription})"
        case Table(rows, last):
            return f"Table({', '.join(str(row.subscription) for row in rows)}{'' if last else ' …'})"
        case Publish(batch):
            return f"Publish({_ids(batch.publications)})"
        case Publications(_, batch, at):
            return f"Publications({_ids([batch.publications[i] for i in at])})"
        case Deliveries(_, batch, at, subscriptions):
            numbers = dict.fromkeys(number for each in subscriptions for number in each)
            picked = [batch.publications[i] for i in at]
            return f"Deliveries({_ids(picked)} to {', '.join(map(str, numbers))})"
        case Accepted(upto):
            return f"Accepted({upto})"
        case _:
            return _shown(message)


def _ids(publications: Sequence[Publication]) -> str:
    shown = [str(publication.id) for publication in publications[:_IDS_SHOWN_MAX]]
    more = len(publications) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
