"""A client's end of a network inside the process.

The core lives in the network's world; here stands its application, in a loop of its own. Inputs go in under the
network's lock, effects come out by a callback in that loop, so clients in several threads can share one network.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from holdfast.clock import SECOND, Instant
from holdfast.errors import HoldfastError
from holdfast.overlay.transport import Core, Log

__all__ = ["House", "MemoryPort", "NetworkFailed"]


class NetworkFailed(HoldfastError):
    """Something in the network raised, which is a bug; the cause is the exception's ``__cause__``."""


class House(Protocol):
    """What a port needs of its network."""

    def move_in(self, port: MemoryPort, core: Core, broker: str) -> str:
        """Give a core a host, and get the host's name."""

    def move_out(self, port: MemoryPort, name: str, host: str) -> None:
        """Take the host away; the core of this name has gone."""

    def submit(self, host: str, stimulus: Any) -> None:
        """Have a core take an input at the present instant."""

    def run(self) -> None:
        """Let happen what is due."""

    def until_next(self) -> Instant | None:
        """How long until something happens by itself."""


class HeardCore:
    """A core whose log is heard; in a world without a transcript nobody else listens to it."""

    def __init__(self, core: Core, on_log: Callable[[Log], None]) -> None:
        self.name = core.name
        self.next_deadline = core.next_deadline
        self._core = core
        self._on_log = on_log

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        """Take one input."""
        effects = self._core.step(stimulus, now)
        for effect in effects:
            if isinstance(effect, Log):
                self._on_log(effect)
        return effects


class MemoryPort:
    """Drives one client's core, as ``runtime.driver`` does over TCP."""

    def __init__(
        self,
        house: House,
        broker: str,
        core: Core,
        *,
        application: Callable[[Any], None],
        log: Callable[[str, str, Mapping[str, Any]], None],
    ) -> None:
        self._house = house
        self._application = application
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._effects: deque[Any] = deque()
        self._is_due = False  # whether a turn has been asked for and has not come
        self._timer: asyncio.TimerHandle | None = None
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._name = core.name
        self.host = house.move_in(self, HeardCore(core, self.on_effect), broker)  #: its name in the network

    async def start(self) -> None:
        """Begin to follow the network's time."""
        self.ask_for_turn()

    def submit(self, stimulus: Any) -> None:
        """Have the core take an input, in the next turn."""
        if not self._stopped.done():
            try:
                self._house.submit(self.host, stimulus)
            except NetworkFailed as failure:
                self._stopped.set_exception(failure)
            self.ask_for_turn()

    async def stop(self) -> None:
        """Do what is due, and leave the network."""
        if not self._stopped.done():
            self._turn()
        if self._timer is not None:
            self._timer.cancel()
        self._house.move_out(self, self._name, self.host)
        if not self._stopped.done():
            self._stopped.set_result(None)

    async def wait_stopped(self) -> None:
        """Wait until the port has stopped.

        :raises NetworkFailed: if that was by a bug.
        """
        await asyncio.shield(self._stopped)

    # What the network calls, from any thread

    def on_effect(self, effect: Any) -> None:
        """The core has something for its application."""
        self._effects.append(effect)
        self.ask_for_turn()

    def ask_for_turn(self) -> None:
        """Take effects, and let due things happen, soon."""
        if not self._is_due and not self._loop.is_closed():
            self._is_due = True
            self._loop.call_soon_threadsafe(self._turn)

    # In the port's own loop

    def _turn(self) -> None:
        self._is_due = False
        if self._stopped.done():
            return
        try:
            self._house.run()
        except NetworkFailed as failure:
            self._stopped.set_exception(failure)
            return
        while self._effects:
            match self._effects.popleft():
                case Log(level, text, fields):
                    self._log(level, text, fields)
                case effect:
                    self._application(effect)
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pause = self._house.until_next()
        if pause is not None:
            self._timer = self._loop.call_later(pause / SECOND, self.ask_for_turn)
