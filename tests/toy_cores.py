"""Small cores for driving a world without brokers: one that counts and talks on a timer, one that listens."""

from __future__ import annotations

from typing import Any

from holdfast.clock import MILLISECOND, Instant
from holdfast.messages.publications import Accepted
from holdfast.overlay.transport import Connect, Connected, Disconnected, Received, Send, Trace, Wake


class Talker:
    """Dials a listener and says 1, 2, 3 … to it, one number per ``every_ns``; tells its trace what it says."""

    def __init__(self, name: str, listener: str, every_ns: int = 5 * MILLISECOND) -> None:
        self.name = name
        self.listener = listener
        self.every_ns = every_ns
        self.connection: int | None = None
        self.said = 0
        self.due: Instant | None = None

    def next_deadline(self) -> Instant | None:
        return self.due

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        match stimulus:
            case Wake() if self.connection is None:
                return [Connect(self.listener, f"{self.listener}:1")]
            case Wake():
                self.due = now + self.every_ns
                self.said += 1
                assert self.connection is not None
                return [Trace("said", {"n": self.said}), Send(self.connection, [Accepted(self.said)])]
            case Connected(connection, _):
                self.connection, self.due = connection, now
            case Disconnected():
                self.connection, self.due = None, None
            case Talk():
                return [Trace("asked", {})]
        return []


class Talk:
    """An input of the application's."""


class Listener:
    """Remembers what it hears, and when."""

    def __init__(self, name: str, incarnation: int) -> None:
        self.name = name
        self.incarnation = incarnation
        self.heard: list[tuple[float, Any]] = []
        self.numbers: list[int] = []

    def next_deadline(self) -> Instant | None:
        return None

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        self.heard.append((now / MILLISECOND, stimulus))
        if isinstance(stimulus, Received):
            self.numbers += [message.upto for message in stimulus.messages if isinstance(message, Accepted)]
        return [Heard(len(self.numbers))]


class Heard:
    """An effect for the application."""

    def __init__(self, count: int) -> None:
        self.count = count
