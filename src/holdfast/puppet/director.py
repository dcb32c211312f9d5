"""Carries out the single lines of a script on the processes of a cast, and writes to the trace what it does to them.

What is said to a process that is down is not heard, a frozen one hears it when it goes on, and what would change
nothing (crashing what is down) is left out of the trace. Each line is written before what it tells of is done. Cut,
Heal, Slow and Disconnect give something to wait for, so that they are in force when the next line runs. ``Link`` speaks
of simulated links; a real network is what it is, so that line does nothing here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

from holdfast.clock import Instant
from holdfast.puppet.cast import Cast
from holdfast.puppet.control import CutOff, Mend, Order, Perform, WriteStatus
from holdfast.puppet.puppet import Puppet
from holdfast.scenarios.commands import (
    Command,
    Crash,
    Cut,
    Disconnect,
    Freeze,
    Heal,
    Isolate,
    Publish,
    Reconnect,
    Restart,
    SetLink,
    Slow,
    Status,
    Subscribe,
    Unfreeze,
    Unsubscribe,
)

__all__ = ["Director"]

_Told: TypeAlias = Subscribe | Unsubscribe | Disconnect | Reconnect | Slow


class _Write(Protocol):
    def __call__(self, kind: str, **fields: Any) -> None: ...


class Director:
    """Knows how each line is done; ``keep`` gets the tasks that go on in the background."""

    def __init__(self, cast: Cast, write: _Write, keep: Callable[[asyncio.Task[None]], None]) -> None:
        self.cast = cast
        self.configuration = cast.configuration
        self._write = write
        self._keep = keep

    def perform(self, command: Command) -> list[asyncio.Future[Any]]:
        """Carry out a line; what the script waits for, if anything."""
        match command:
            case Subscribe(name) | Unsubscribe(name) | Disconnect(name) | Reconnect(name) | Slow(name):
                return self._tell(name, command)
            case Status():
                return self._write_status()
            case Crash(name) | Restart(name) | Freeze(name) | Unfreeze(name):
                return self._change_process(self.cast.puppets[name], command)
            case Cut(a, b):
                a, b = self.configuration.node(a), self.configuration.node(b)
                return self._cut([(a, b)], a, b)
            case Isolate(a):
                a = self.configuration.node(a)
                return self._cut(self._links_of(a), a)
            case Heal(a, None):
                a = self.configuration.node(a)
                return self._heal(self._links_of(a), a)
            case Heal(a, str(b)):
                a, b = self.configuration.node(a), self.configuration.node(b)
                return self._heal([(a, b)], a, b)
            case Publish() | SetLink():
                return []  # the master announces it; it speaks of simulated links
            case _:
                raise AssertionError(f"the parser refuses {command}")

    def publish(self, command: Publish, at: Instant) -> None:
        """Tell a publisher what to publish from an instant on; one that is frozen begins when it can."""
        puppet = self.cast.puppets[command.publisher]
        if puppet.is_up:
            start = None if puppet.is_frozen else at
            self.cast.ask(puppet.name, partial(Perform, command.line, start), is_publish=True)

    def _tell(self, name: str, command: _Told) -> list[asyncio.Future[Any]]:
        """Tell a client to play its part, if it lives."""
        puppet = self.cast.puppets[name]
        if not puppet.is_up:
            return []
        match command:
            case Subscribe(subscription=subscription):
                self.cast.wishes[name][subscription] = command.line
            case Unsubscribe(subscription=subscription):
                self.cast.wishes[name].pop(subscription, None)
            case Reconnect():
                self._write("reconnect", nodes=[name])
            case Disconnect():
                self._write("disconnect", nodes=[name])
        done = self.cast.ask(name, partial(Perform, command.line, None))
        is_waited_for = not isinstance(command, Disconnect | Slow)
        return [done] if is_waited_for or not puppet.is_frozen else []

    def _write_status(self) -> list[asyncio.Future[Any]]:
        """One line from everybody who lives; a frozen process writes it when it goes on."""
        up = [(name, puppet.is_frozen) for name, puppet in self.cast.puppets.items() if puppet.is_up]
        asked = [(self.cast.ask(name, WriteStatus), is_frozen) for name, is_frozen in up]
        return [written for written, is_frozen in asked if not is_frozen]

    def _change_process(
        self, puppet: Puppet, command: Crash | Restart | Freeze | Unfreeze
    ) -> list[asyncio.Future[Any]]:
        match command:
            case Crash() if puppet.is_up:
                self._write("crash", nodes=[puppet.name])
                self.cast.crash(puppet.name)
            case Restart() if not puppet.is_up:
                self._write("restart", nodes=[puppet.name])
                restarted = asyncio.ensure_future(self.cast.restart(puppet.name))
                self._keep(restarted)
                return [restarted]
            case Freeze() if puppet.is_up and not puppet.is_frozen:
                self._write("freeze", nodes=[puppet.name])
                puppet.freeze()
            case Unfreeze() if puppet.is_frozen:
                self._write("unfreeze", nodes=[puppet.name])
                puppet.unfreeze()
        return []

    def _links_of(self, name: str) -> list[tuple[str, str]]:
        return [(name, other) for other in self.configuration.neighbours(name)]

    def _cut(self, pairs: list[tuple[str, str]], *nodes: str) -> list[asyncio.Future[Any]]:
        self._write("cut", nodes=list(nodes))
        self.cast.cut(pairs)
        return self._tell_ends(pairs, CutOff)

    def _heal(self, pairs: list[tuple[str, str]], *nodes: str) -> list[asyncio.Future[Any]]:
        self._write("heal", nodes=list(nodes))
        self.cast.heal(pairs)
        return self._tell_ends(pairs, Mend)

    def _tell_ends(
        self, pairs: Sequence[tuple[str, str]], order: Callable[[list[str], int], Order]
    ) -> list[asyncio.Future[Any]]:
        """Tell both ends of each pair about the other; one that is down is told when it starts."""
        asked: list[asyncio.Future[Any]] = []
        for one, other in [*pairs, *((b, a) for a, b in pairs)]:
            puppet = self.cast.puppets[one]
            if puppet.is_up:
                told = self.cast.ask(one, partial(order, [other]))
                asked += [] if puppet.is_frozen else [told]
        return asked
