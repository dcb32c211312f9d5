"""Carries out the single lines of a script on the processes of a cast, and writes to the trace what it does to them.

What is said to a process that is down, or has not joined yet, is not heard, a frozen one hears it when it goes on, and
what would change nothing (crashing what is down) is left out of the trace. Each line is written before what it tells of
is done. Cut, Heal, Slow, Disconnect, Leave and Expel give something to wait for, so that they are in force when the
next line runs. ``Link`` and ``Clock`` speak of a simulated world; a real one is what it is, so they do nothing here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol, TypeAlias

from holdfast.clock import Instant
from holdfast.puppet.cast import Cast
from holdfast.puppet.control import CutOff, Mend, Order, Perform, WriteStatus
from holdfast.puppet.puppet import Puppet
from holdfast.scenarios.commands import (
    ClockShift,
    Command,
    Crash,
    Cut,
    Disconnect,
    Expel,
    Freeze,
    Heal,
    Isolate,
    Join,
    Leave,
    Publish,
    Reconnect,
    Restart,
    SetLink,
    Slow,
    Status,
    Subscribe,
    Unfreeze,
    Unsubscribe,
    names_in,
)

__all__ = ["Director"]

_Told: TypeAlias = Subscribe | Unsubscribe | Disconnect | Reconnect | Slow


class _Write(Protocol):
    def __call__(self, kind: str, **fields: Any) -> None: ...


class Director:
    """Knows how each line is done; ``keep`` gets the tasks that go on in the background."""

    def __init__(self, cast: Cast, write: _Write, keep: Callable[[asyncio.Task[None]], None]) -> None:
        self.cast = cast
        self._write = write
        self._keep = keep

    def perform(self, command: Command) -> list[asyncio.Future[Any]]:
        """Carry out a line; what the script waits for, if anything."""
        network = self.cast.configuration
        if not all(map(network.has, names_in(command))):
            return []
        match command:
            case Subscribe(name) | Unsubscribe(name) | Disconnect(name) | Reconnect(name) | Slow(name):
                return self._tell(name, command)
            case Status():
                return self._write_status()
            case Crash(name) | Restart(name) | Freeze(name) | Unfreeze(name):
                return self._change_process(self.cast.puppets[name], command)
            case Join() | Leave() | Expel():
                return self._change_network(command)
            case Cut(a, b):
                return self._cut(network.node(a), network.node(b))
            case Isolate(a):
                return self._cut(network.node(a))
            case Heal(a, None):
                return self._heal(network.node(a))
            case Heal(a, str(b)):
                return self._heal(network.node(a), network.node(b))
            case Publish() | SetLink() | ClockShift():
                return []  # the master announces it; the others speak of a simulated world
            case _:
                raise AssertionError(f"the parser refuses {command}")

    def publish(self, command: Publish, at: Instant) -> None:
        """Tell a publisher what to publish from an instant on; one that is frozen begins when it can."""
        puppet = self.cast.puppets.get(command.publisher)
        if puppet is not None and puppet.is_up:
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
            case Reconnect(_, site):
                if site is not None:  # who moves is away for a moment
                    self._write("disconnect", nodes=[name])
                    self.cast.move(command, site)
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
                return [self.cast.restart(puppet.name)]
            case Freeze() if puppet.is_up and not puppet.is_frozen:
                self._write("freeze", nodes=[puppet.name])
                puppet.freeze()
            case Unfreeze() if puppet.is_frozen:
                self._write("unfreeze", nodes=[puppet.name])
                puppet.unfreeze()
        return []

    def _change_network(self, command: Join | Leave | Expel) -> list[asyncio.Future[Any]]:
        match command:
            case Join(process):
                self._write("join", nodes=[process.name])
                return [self.cast.join(command)]
            case Leave(name) if self.cast.puppets[name].is_up:
                self._write("leave", nodes=[name])
                is_frozen = self.cast.puppets[name].is_frozen
                left = asyncio.ensure_future(self.cast.leave(name, command.line))
                self._keep(left)
                return [] if is_frozen else [left]
            case Expel(name) if (broker := self.cast.expel(name)) is not None:
                self._write("leave", nodes=[name])
                return [self.cast.ask(broker, partial(Perform, command.line, None))]
        return []

    # Cables: between any two, since any two may have to speak with each other

    def _cut(self, *nodes: str) -> list[asyncio.Future[Any]]:
        self._write("cut", nodes=list(nodes))
        one, others = self._sides(*nodes)
        self.cast.cut(one, others)
        return self._tell_ends(one, others, CutOff)

    def _heal(self, *nodes: str) -> list[asyncio.Future[Any]]:
        self._write("heal", nodes=list(nodes))
        one, others = self._sides(*nodes)
        self.cast.heal(one, others)
        return self._tell_ends(one, others, Mend)

    def _sides(self, one: str, other: str | None = None) -> tuple[str, list[str]]:
        """One, and the other or everybody else."""
        return one, [other] if other is not None else [each for each in self.cast.puppets if each != one]

    def _tell_ends(
        self, one: str, others: list[str], order: Callable[[list[str], int], Order]
    ) -> list[asyncio.Future[Any]]:
        """Tell both sides about each other; who is down is told when it starts."""
        told: Iterable[tuple[str, list[str]]] = [(one, others), *((other, [one]) for other in others)]
        asked: list[asyncio.Future[Any]] = []
        for name, about in told:
            puppet = self.cast.puppets[name]
            if puppet.is_up:
                done = self.cast.ask(name, partial(order, about))
                asked += [] if puppet.is_frozen else [done]
        return asked
