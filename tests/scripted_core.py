"""A core that does what a test tells it to: the smallest thing a driver can drive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from holdfast.clock import Instant
from holdfast.messages.message import Message
from holdfast.overlay.transport import Connected, Core, Disconnected, Received
from holdfast.runtime.driver import Driver


class ScriptedCore:
    """Remembers its inputs, and answers each with what ``react`` says."""

    def __init__(self, react: Callable[[Any], list[Any]] = lambda stimulus: [], name: str = "core") -> None:
        self.name = name
        self.react = react
        self.inputs: list[Any] = []
        self.deadline: Instant | None = None

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        self.inputs.append(stimulus)
        return self.react(stimulus)

    def next_deadline(self) -> Instant | None:
        return self.deadline

    @property
    def connections(self) -> list[int]:
        return [stimulus.connection for stimulus in self.inputs if isinstance(stimulus, Connected)]

    @property
    def lost(self) -> dict[int, str]:
        return {
            stimulus.connection: stimulus.reason
            for stimulus in self.inputs
            if isinstance(stimulus, Disconnected)
        }

    def heard(self, connection: int) -> list[Message]:
        return [
            message
            for stimulus in self.inputs
            if isinstance(stimulus, Received) and stimulus.connection == connection
            for message in stimulus.messages
        ]


class LogBook:
    """A log sink that keeps what it is told."""

    def __init__(self) -> None:
        self.records: list[tuple[str, str, Mapping[str, Any]]] = []

    def __call__(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        self.records.append((level, text, fields))

    def reasons(self, level: str) -> list[str]:
        return [fields.get("reason", text) for at, text, fields in self.records if at == level]


@asynccontextmanager
async def driven(core: Core, **options: Any) -> AsyncIterator[tuple[Driver, int]]:
    """A driver of the core, and the port it listens on; stopped at the end."""
    options.setdefault("log", LogBook())
    driver = Driver(core, **options)
    port = await driver.listen("127.0.0.1", 0)
    try:
        yield driver, port
    finally:
        await driver.stop()
