"""Where many read under few durable names (``names_swarm``): brokers, and all that can happen to them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Protocol, cast

import holdfast
from holdfast import memory
from holdfast.broker.broker import Broker
from holdfast.broker.input import End, Operate
from holdfast.client.aio import Connecting

STEP_S = 0.01


class World(Protocol):
    """Brokers, in one world or the other, and all that can happen to them."""

    brokers: Sequence[str]
    links: Sequence[tuple[str, str]]  #: that can be cut
    lasts: float  #: so many seconds things happen
    patience: float  #: so long, at most, until everything is in order when all faults are over

    @property
    def now(self) -> float:
        """In seconds."""

    def connect(self, brokers: Sequence[str], name: str) -> Connecting:
        """A client of one of these."""

    def kept(self, broker: str) -> int:
        """How many durable subscriptions a broker keeps, and how many ends others have not heard of."""

    async def turn(self) -> None:
        """Others have a turn."""

    async def step(self) -> None:
        """Everybody has, and time passes."""

    def crash(self, broker: str) -> None:
        """It loses its memory."""

    def restart(self, broker: str) -> None:
        """It begins anew, with its disk."""

    def freeze(self, broker: str) -> None:
        """It does nothing more."""

    def unfreeze(self, broker: str) -> None:
        """It goes on."""

    def cut(self, a: str, b: str) -> None:
        """They do not hear each other."""

    def heal(self, a: str, b: str) -> None:
        """They do again."""

    def has(self, broker: str, name: str) -> bool:
        """Whether a broker that is up has a durable subscription, or had it and has not heard where it is now."""

    def remove(self, broker: str, name: str) -> None:
        """An operator there ends one that it has."""


class InMemory:
    """A network in this process, in its own time."""

    patience = 20.0

    def __init__(self, net: memory.Network, tree: dict[str, str | None], lasts: float) -> None:
        self._net = net
        self.lasts = lasts
        self.brokers: Sequence[str] = net.brokers
        self.links: Sequence[tuple[str, str]] = [
            (child, parent) for child, parent in tree.items() if parent is not None
        ]
        self.crash, self.restart = net.crash, net.restart
        self.freeze, self.unfreeze = net.freeze, net.unfreeze
        self.cut, self.heal = net.cut, net.heal
        self._tickets = count(1)

    @property
    def now(self) -> float:
        return self._net.now

    def connect(self, brokers: Sequence[str], name: str) -> Connecting:
        return holdfast.connect(self._net.url, broker=brokers, name=name)

    def kept(self, broker: str) -> int:
        kept = self._net.status(broker)["durable"]["subscriptions"]
        return int(kept["here"] + kept["away"] + kept["ending"])

    def has(self, broker: str, name: str) -> bool:
        self._net.run()
        core = self._net._world.nodes[broker].core  # a status has no names
        if core is None:
            return False
        plane = cast(Broker, core).durable
        return plane is not None and name in plane.readers.durable

    def remove(self, broker: str, name: str) -> None:
        self._net.submit(broker, Operate(next(self._tickets), End(name)))

    async def turn(self) -> None:
        await asyncio.sleep(0)

    async def step(self) -> None:
        for _ in range(8):
            await asyncio.sleep(0)
        self._net.advance(STEP_S)


async def let_pass(world: World, seconds: float) -> None:
    """A while in the world's time; it is others who make that pass."""
    until = world.now + seconds
    while world.now < until:
        await world.turn()
