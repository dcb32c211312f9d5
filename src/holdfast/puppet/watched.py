"""Counts what passes in every session of a core, so that the master can tell whether anything is still under way.

Of a message with events each event is counted, since a large one is parted on its way, and any other message as one.
Heartbeats are not counted, nor is silence, nor what is reported of it: they never end and carry nothing. A session that
is over is forgotten with its counts; what was lost with it is nobody's any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.clock import Instant
from holdfast.messages.durable import Acknowledge, Portion, Report, Reported, Requests, Saved
from holdfast.messages.message import Message
from holdfast.messages.overlay import Relay
from holdfast.messages.publications import Deliveries, Publications, Publish
from holdfast.messages.session import Heartbeat, Hello, Welcome
from holdfast.messages.ticks import Items
from holdfast.overlay.transport import Close, Connected, Core, Disconnected, Received, Send
from holdfast.puppet.control import Traffic

__all__ = ["Watched"]


@dataclass(slots=True)
class _Session:
    peer: str | None = None  #: known from its first message
    sent: int = 0
    received: int = 0


class Watched:
    """A core that does what the core within does."""

    def __init__(self, core: Core) -> None:
        self.name = core.name
        self._core = core
        self._sessions: dict[int, _Session] = {}

    def next_deadline(self) -> Instant | None:
        """As the core says."""
        return self._core.next_deadline()

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        """As the core does."""
        self._note_input(stimulus)
        effects = self._core.step(stimulus, now)
        for effect in effects:
            self._note_effect(effect)
        return effects

    def sessions(self) -> list[Traffic]:
        """What has passed, by peer; a peer that has not introduced itself has no name yet."""
        found = [Traffic(each.peer or "", each.sent, each.received) for each in self._sessions.values()]
        return sorted(found, key=lambda traffic: (traffic.peer, traffic.sent, traffic.received))

    def _note_input(self, stimulus: Any) -> None:
        match stimulus:
            case Connected(connection):
                self._sessions[connection] = _Session()
            case Received(connection, messages) if connection in self._sessions:
                session = self._sessions[connection]
                session.received += _counted(messages)
                if session.peer is None:
                    session.peer = _introduced(messages)
            case Disconnected(connection):
                self._sessions.pop(connection, None)

    def _note_effect(self, effect: Any) -> None:
        match effect:
            case Send(connection, messages) if connection in self._sessions:
                self._sessions[connection].sent += _counted(messages)
            case Close(connection):
                self._sessions.pop(connection, None)


def _counted(messages: Sequence[Message]) -> int:
    return sum(map(_weight, messages))


def _weight(message: Message) -> int:
    match message:
        case Relay() | Publications() | Deliveries():
            return len(message.at)
        case Publish(batch):
            return len(batch)
        case Items():
            return len(message.lost) + sum(each is not None for each in message.publications)
        case Portion():
            return len(message.at) + bool(message.reason)
        case Requests():
            return len(message.batch)
        case Heartbeat() | Report() | Reported() | Acknowledge() | Saved():
            return 0
        case _:
            return 1


def _introduced(messages: Sequence[Message]) -> str | None:
    return next((message.node for message in messages if isinstance(message, Hello | Welcome)), None)
