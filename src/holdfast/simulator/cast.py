"""The processes of a configuration in a simulated world, and the trace they write.

What a process keeps on its disk: its incarnation, which the world counts; a publisher the last number it has
reserved, above which its next life goes on, and its home, if it goes to several brokers; a subscriber its record of how
far it has come with each durable subscription; a broker of a durable network its store. What a subscriber subscribes to
is the script's to know: it is told again when it starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from holdfast.broker.broker import Broker
from holdfast.clock import SECOND, Instant
from holdfast.overlay.slowness import BROKER_BUFFER_BYTES, CLIENT_BUFFER_BYTES
from holdfast.overlay.transport import Core
from holdfast.scenarios.actor import Actor
from holdfast.scenarios.actor_commands import Done, Dwell, Remember, Reserve, Wish
from holdfast.scenarios.drain import Standing, is_drained, standing_of
from holdfast.scenarios.roles import broker_settings, broker_status, client_settings, is_settled, membership
from holdfast.scenarios.topology import MASTER, Configuration, Process
from holdfast.scenarios.trace import TraceLine
from holdfast.scenarios.vicinity import brokers_in_reach
from holdfast.simulator.disk import SimulatedDisk
from holdfast.simulator.transcript import Transcript
from holdfast.simulator.world import MakeCore, Node, World, address_of
from holdfast.streams.checkpoint_token import Token

__all__ = ["MASTER", "Cast", "MakeBroker", "Ticket"]

#: Makes a broker's core, of its settings and what it has ``recovered``; tests put broken ones here.
MakeBroker = Callable[..., Broker]

_NUMBERS_FILE: Final = "numbers"
_HOME_FILE: Final = "home"
_RECORD_FILE: Final = "record of "  #: and the name of a subscription


#: So little is kept in memory where there is a lake: what a log has given up is not to be had there either.
LAKE_CACHE_BYTES: Final = 4_500

#: So little of what is logged is on its way at a time: to a neighbour, from a publisher, to the disk.
TOLD_BYTES: Final = 1_500
SENT_BYTES: Final = 400
LOGGING_BYTES: Final = 40


class Ticket(NamedTuple):
    """Somebody has not completed what the script asked of him."""

    holder: str
    is_publish: bool = False  #: until it is given back, the run is not drained
    is_leave: bool = False  #: when it is given back, the holder is gone


class Cast:
    """All processes, what they wrote, and the tickets they have not given back."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        make_broker: MakeBroker,
        wire: bool,
        transcript: Transcript | None,
        others: Mapping[str, Sequence[str]],
        lake: bool,
        relayed_bytes: int | None,
        buffer: int,
    ) -> None:
        self.configuration = configuration
        self._has_lake = lake
        self._relayed_bytes = relayed_bytes
        self._buffer = buffer
        self._others = others
        self.trace: list[TraceLine] = []
        self.script_began: Instant | None = None
        self.wishes: dict[str, dict[str, Wish]] = {}
        self.open_tickets: dict[int, Ticket] = {}
        self._left: dict[str, None] = {}  #: who has said goodbye; its program is as good as down
        self._expelled: dict[str, None] = {}
        self._status_owed: dict[str, int] = {}  #: how many lines, by frozen process
        self._make_broker = make_broker
        self._positions: dict[str, int] = {}
        self.world = World(
            configuration.seed,
            on_trace=self.write,
            on_effect=self._on_effect,
            wire=wire,
            transcript=transcript,
        )
        for link in configuration.links:
            for sender, receiver in configuration.directions(link):
                self.world.network.set_quality(sender, receiver, link.quality)
        for process in configuration.processes:
            self._enter(process)

    def _enter(self, process: Process, *, joins: bool = False) -> None:
        is_broker = process.kind == "broker"
        self.wishes[process.name] = {}
        self.world.add(
            process.name,
            self._broker_maker(process, joins) if is_broker else self._actor_maker(process),
            buffer_bytes_max=BROKER_BUFFER_BYTES if is_broker else CLIENT_BUFFER_BYTES,
            store=is_broker and self.configuration.guarantee == "durable",
            lake=self._has_lake,
        )

    def _broker_maker(self, process: Process, joins: bool) -> MakeCore:
        def make(incarnation: int) -> Core:
            settings = broker_settings(self.configuration, process, incarnation, address_of, joins=joins)
            settings = replace(settings, told_bytes=TOLD_BYTES, logging_bytes=LOGGING_BYTES)
            if self._relayed_bytes is not None:
                settings = replace(settings, relayed_bytes=self._relayed_bytes)
            if self._has_lake:
                streams = tuple(replace(each, lake=True) for each in settings.streams)
                settings = replace(settings, streams=streams, cache_bytes=LAKE_CACHE_BYTES)
            store = self.world.nodes[process.name].store
            if store is None:
                return self._make_broker(settings)
            return self._make_broker(settings, recovered=store.recovered)

        return make

    def _actor_maker(self, process: Process) -> MakeCore:
        def make(incarnation: int) -> Core:
            others = tuple(map(address_of, self._others.get(process.name, ())))
            settings = replace(
                client_settings(self.configuration, process, incarnation, address_of), others=others
            )
            if self.configuration.guarantee == "durable":
                settings = replace(settings, sent_bytes=SENT_BYTES)
            member = membership(self.configuration, process, incarnation, address_of)
            if member is not None and self._relayed_bytes is not None:
                member = replace(member, relayed_bytes=self._relayed_bytes)
            disk = self.world.nodes[process.name].disk
            reserved = int(disk.read(_NUMBERS_FILE) or b"0")
            wishes = list(self.wishes[process.name].values())
            return Actor(
                settings,
                member,
                first_number=reserved + 1,
                home=(disk.read(_HOME_FILE) or b"").decode(),
                wishes=wishes,
                records=_records(disk, wishes),
                buffer=self._buffer,
            )

        return make

    # What they say

    def write(self, node: str, kind: str, fields: Mapping[str, Any]) -> None:
        """Add a line to the trace; what is told before the script began is not of the script, and is left out."""
        if self.script_began is None:
            return
        if kind == "unsubscribe":  # not before: one that is frozen may crash without having heard of it
            self.wishes[node].pop(fields["subscription"], None)
        position = self._positions[node] = self._positions.get(node, 0) + 1
        t = (self.world.clock.now - self.script_began) / SECOND
        self.trace.append({"t": t, "i": position, "node": node, "kind": kind, **fields})

    def _on_effect(self, node: str, effect: Any) -> None:
        match effect:
            case Done(ticket):
                done = self.open_tickets.pop(ticket, None)
                if done is not None and done.is_leave:
                    self._left[node] = None
                    self._drop_tickets(node)
            case Reserve(upto):
                self.world.nodes[node].disk.replace(_NUMBERS_FILE, b"%d" % upto)
            case Dwell(home):
                self.world.nodes[node].disk.replace(_HOME_FILE, home.encode())
            case Remember(subscription, token):
                self.world.nodes[node].disk.replace(_RECORD_FILE + subscription, str(token).encode())
            case _:
                raise AssertionError(f"{node}: nobody knows what to do with {effect!r}")

    # What is done to them

    def join(self, process: Process) -> None:
        """Put one more process into the network."""
        self.configuration = self.configuration.joined_by(process)
        self._enter(process, joins=True)

    def move(self, name: str, site: str) -> str:
        """A client is on another site from now on; where the broker there is dialled."""
        self.configuration = self.configuration.with_client_on(name, site)
        return address_of(self.configuration.broker_of(site).name)

    def expel(self, name: str) -> str | None:
        """A client is not expected back. The broker to be told, the nearest that runs and knows it, if there is one."""
        near = brokers_in_reach(self.configuration, name)
        broker = next((broker for broker in near if self.world.nodes[broker].is_running), None)
        if broker is not None:
            self._expelled[name] = None
        return broker

    def restart(self, name: str) -> None:
        """Begin another life of a process that is down, or has left."""
        if name in self._left:
            self.world.crash(name)
        self._left.pop(name, None)
        self._expelled.pop(name, None)
        self.world.restart(name)

    def crash(self, name: str) -> None:
        """Kill a process; nobody waits for its answers any more."""
        self.world.crash(name)
        self._status_owed.pop(name, None)
        self._drop_tickets(name)

    def _drop_tickets(self, name: str) -> None:
        for number in [number for number, ticket in self.open_tickets.items() if ticket.holder == name]:
            del self.open_tickets[number]

    def unfreeze(self, name: str) -> None:
        """Let a frozen process go on, and do what it was told meanwhile."""
        self.world.unfreeze(name)
        for _ in range(self._status_owed.pop(name, 0)):
            self._write_status(name)

    # How they are

    def is_up(self, name: str) -> bool:
        """Whether a process has neither crashed nor left."""
        return self.world.nodes[name].is_up and name not in self._left

    def is_settled(self, name: str, *, to_all: bool = False) -> bool:
        """Whether a process that is up is connected, as ``roles`` has it."""
        return is_settled(self._core(name), to_all=to_all)

    def unsettled(self) -> list[str]:
        """Who is not connected, or a broker not to all its neighbours."""
        return [name for name in self.world.nodes if not self.is_settled(name, to_all=True)]

    def _core(self, name: str) -> Actor | Broker:
        core = self.world.nodes[name].core
        assert isinstance(core, Actor | Broker), f"{name} is down"
        return core

    def is_drained(self) -> bool:
        """Whether no Publish runs and no live, connected process holds undelivered or unacknowledged items."""
        network = self.world.network
        if network.in_flight or any(ticket.is_publish for ticket in self.open_tickets.values()):
            return False
        nodes = self.world.nodes
        gone = self._left | self._expelled
        running = {
            name: self._standing(node) for name, node in nodes.items() if node.is_running and name not in gone
        }
        frozen = [name for name, node in nodes.items() if node.is_frozen]
        return is_drained(
            self.configuration, running, frozen, lambda a, b: network.link(a, b).is_cut, self._others
        )

    def _standing(self, node: Node) -> Standing:
        network = self.world.network
        standing = standing_of(self._core(node.name), network.peers_of(node))
        return replace(standing, holds=True) if network.holds_unread(node) else standing

    def write_status(self) -> None:
        """One line from everybody who lives; a frozen process writes it when it goes on."""
        for name, node in self.world.nodes.items():
            if node.is_frozen:
                self._status_owed[name] = self._status_owed.get(name, 0) + 1
            elif self.is_up(name):
                self._write_status(name)

    def _write_status(self, name: str) -> None:
        core = self._core(name)
        self.write(name, "status", core.status() if isinstance(core, Actor) else broker_status(core))


def _records(disk: SimulatedDisk, wishes: Iterable[Wish]) -> dict[str, Token]:
    kept = {wish.subscription: disk.read(_RECORD_FILE + wish.subscription) for wish in wishes if wish.durable}
    return {name: Token.parse(text.decode()) for name, text in kept.items() if text is not None}
