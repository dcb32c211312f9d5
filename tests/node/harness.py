"""Bare nodes in a simulated world: the overlay without brokers and clients around it.

A tree is written as paths, ``"P-B1-B2-S B2-T"``: names that begin with P or Q publish, those with S or T subscribe, all
others are brokers. The first node of the first path is not special; who is named first is the parent.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import pairwise
from typing import Any

from bare_node import Bare, Delivery, Do, Memory, role_of

from holdfast.clock import MILLISECOND, Instant
from holdfast.messages.overlay import Join, Role
from holdfast.messages.subscriptions import Partition
from holdfast.node.node import Node
from holdfast.node.settings import Acknowledge, NodeSettings
from holdfast.ordering.fifo import Fifo
from holdfast.scenarios.topology import LinkQuality
from holdfast.simulator.transcript import Transcript
from holdfast.simulator.world import World, address_of

__all__ = ["Acknowledge", "Bare", "Delivery", "Do", "Memory", "Net", "Transcript", "role_of"]


class Net:
    """A tree of bare nodes; times are milliseconds since its start."""

    def __init__(
        self,
        tree: str,
        delta: int,
        *,
        acknowledge: Acknowledge = Acknowledge.DACK,
        refill: bool = True,
        seed: int = 0,
        transcript: Transcript | None = None,
        dack_every_ms: int = 1000,
        wire: bool = False,
        replay_bytes_max: int = 16 * 1024 * 1024,
        member_grace_ms: int = 300_000,
        relayed_bytes: int = 32 * 1024 * 1024,
    ) -> None:
        self.delta = delta
        self.edges: dict[str, list[str]] = {}
        self.parent: dict[str, str] = {}
        for path in tree.split():
            names = path.split("-")
            for a, b in pairwise(names):
                self.edges.setdefault(a, [])
                if b not in self.edges.setdefault(a, []):
                    self.edges[a].append(b)
                    self.edges.setdefault(b, []).append(a)
                    self.parent.setdefault(b, a)
        for name in self.edges:  # a client named first is not the parent of its broker
            if role_of(name) is not Role.BROKER:
                home = self.edges[name][0]
                if self.parent.get(home) == name:
                    del self.parent[home]
                self.parent[name] = home
        self.settings = NodeSettings(
            "",
            0,
            Role.BROKER,
            delta,
            acknowledge=acknowledge,
            refill=refill,
            dack_every_ns=dack_every_ms * MILLISECOND,
            replay_bytes_max=replay_bytes_max,
            relayed_bytes=relayed_bytes,
            member_grace_ns=member_grace_ms * MILLISECOND,
        )
        self.memories = {name: Memory() for name in self.edges}
        self.world = World(seed, transcript=transcript, wire=wire)
        for name in self.edges:
            self.world.add(name, self._maker(name))
        self.run(300)
        self.began = self.world.now

    def _maker(self, name: str) -> Any:
        def make(incarnation: int) -> Bare:
            role = role_of(name)
            return Bare(
                replace(
                    self.settings,
                    name=name,
                    incarnation=incarnation,
                    role=role,
                    places=tuple(self._places(name)),
                    home=None if role is Role.BROKER else self.edges[name][0],
                    address=address_of(name),
                ),
                self.memories[name],
            )

        return make

    def _places(self, me: str) -> list[Join]:
        """The brokers within reach, nearest first; clients make themselves known."""
        found: list[Join] = []
        todo = deque([(me, 0)])
        seen = {me}
        while todo:
            name, distance = todo.popleft()
            for other in self.edges[name]:
                if other in seen or role_of(other) is not Role.BROKER or distance > self.delta:
                    continue
                seen.add(other)
                dials_us = name == me and self.parent.get(other) == me
                found.append(Join(other, Role.BROKER, name, None if dials_us else address_of(other), 0))
                todo.append((other, distance + 1))
        return found

    # Time

    @property
    def now(self) -> float:
        return (self.world.now - self.began) / MILLISECOND

    def run(self, ms: float) -> None:
        self.world.run_for(round(ms * MILLISECOND))

    def until(self, ms: float) -> None:
        self.world.run_for(round((ms - self.now) * MILLISECOND))

    def play(self, *schedule: tuple[float, Any], end: float) -> None:
        """Do things at their times, and run to the end."""
        for at, action in sorted(schedule, key=lambda each: each[0]):
            self.until(at)
            action()
        self.until(end)

    # Doing

    def bare(self, name: str) -> Bare:
        core = self.world.nodes[name].core
        assert isinstance(core, Bare)
        return core

    def node(self, name: str) -> Node:
        return self.bare(name).node

    def do(self, name: str, what: Any) -> None:
        self.world.submit(name, Do(what))

    def subscribe(self, name: str, number: int = 1, text: str = "#") -> None:
        self.do(name, lambda bare: bare.subscribe(number, text))

    def unsubscribe(self, name: str, number: int = 1) -> None:
        self.do(name, lambda bare: bare.unsubscribe(number))

    def publish(self, name: str, count: int = 1, **attributes: Any) -> None:
        self.do(name, lambda bare: bare.publish(count, **attributes))

    def crash(self, *names: str) -> None:
        for name in names:
            self.world.crash(name)

    def restart(self, *names: str) -> None:
        for name in names:
            self.memories[name].edge = Fifo()
            self.world.restart(name)

    def freeze(self, name: str) -> None:
        self.world.freeze(name)

    def unfreeze(self, name: str) -> None:
        self.world.unfreeze(name)

    def slow(self, a: str, b: str, ms: float) -> None:
        """From now on what ``a`` sends to ``b`` takes so long, heartbeats excepted."""
        self.world.network.set_quality(a, b, LinkQuality(delay_ns=round(ms * MILLISECOND)))

    def join(self, name: str, home: str) -> None:
        """A new client comes to a broker."""
        self.edges[name] = [home]
        self.edges[home].append(name)
        self.parent[name] = home
        self.memories[name] = Memory()
        self.world.add(name, self._maker(name))

    def expel(self, by: str, name: str) -> None:
        """An operator has a client removed, at its broker."""
        self.do(by, lambda bare: bare.node.visitors.expel(name, "expelled", bare.now))

    def cut(self, a: str, b: str) -> None:
        self.world.network.cut(a, b)

    def heal(self, a: str, b: str) -> None:
        self.world.network.heal(a, b)

    # Seeing

    def got(self, name: str, subscription: int | None = None) -> list[str]:
        return [
            str(delivery.event)
            for delivery in self.memories[name].deliveries
            if subscription is None or delivery.subscription == subscription
        ]

    def times(self, name: str) -> list[int]:
        """When a subscriber's deliveries came."""
        return [self.ms(delivery.at) for delivery in self.memories[name].deliveries]

    def ms(self, instant: Instant) -> int:
        return round((instant - self.began) / MILLISECOND)

    def partial(self, name: str, subscription: int = 1) -> tuple[Partition, ...]:
        """What a subscription was first confirmed without."""
        return self.memories[name].confirmed[subscription][1]

    def full_at(self, name: str, subscription: int = 1) -> Instant | None:
        """Since when everything is owed; None: not yet."""
        confirmed = self.memories[name].confirmed.get(subscription)
        if confirmed is None or not confirmed[1]:
            return None if confirmed is None else confirmed[0]
        whole = (
            at for at, number, _, left in self.memories[name].upgraded if number == subscription and not left
        )
        return next(whole, None)

    def path(self, a: str, b: str) -> tuple[str, ...]:
        """The way of the tree, both ends included."""
        ways: dict[str, tuple[str, ...]] = {a: (a,)}
        todo = deque([a])
        while todo:
            name = todo.popleft()
            for other in self.edges[name]:
                if other not in ways:
                    ways[other] = (*ways[name], other)
                    todo.append(other)
        return ways[b]

    def knowing(self) -> dict[str, list[str]]:
        """By broker and publisher that is up: the subscriptions it has installed."""
        return {
            name: sorted(
                str(each.subscription)
                for each in self.node(name).spread.interests.values()
                if each.is_installed
            )
            for name in self.edges
            if role_of(name) is not Role.SUBSCRIBER and self.world.nodes[name].is_up
        }

    def held(self) -> dict[str, int]:
        """Queues that are not empty."""
        return {
            name: self.queue(name) for name in self.edges if self.world.nodes[name].is_up and self.queue(name)
        }

    def queue(self, name: str) -> int:
        return self.node(name).plane.held
