"""The processes of a configuration in a simulated world, and the trace they write.

A process keeps two things on its disk: its incarnation, which the world counts, and for a publisher the last
number it has reserved, above which its next life goes on. What a subscriber subscribes to is the script's to
know: it is told again when it starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.broker.broker import Broker
from holdfast.broker.settings import Settings as BrokerSettings
from holdfast.clock import SECOND, Instant
from holdfast.overlay.transport import Core
from holdfast.scenarios.actor import Actor
from holdfast.scenarios.actor_commands import Done, Reserve, Wish
from holdfast.scenarios.roles import broker_settings, broker_status, client_settings
from holdfast.scenarios.topology import MASTER, Configuration, Process
from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.connection import BROKER_BUFFER_BYTES, CLIENT_BUFFER_BYTES
from holdfast.simulator.transcript import Transcript
from holdfast.simulator.world import MakeCore, World, address_of

__all__ = ["MASTER", "Cast", "MakeBroker"]

#: Makes a broker's core; tests put broken ones here.
MakeBroker = Callable[[BrokerSettings], Broker]

_NUMBERS_FILE: Final = "numbers"


class Cast:
    """All processes, what they wrote, and the tickets they have not given back."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        make_broker: MakeBroker,
        wire: bool,
        transcript: Transcript | None,
    ) -> None:
        self.configuration = configuration
        self.trace: list[TraceLine] = []
        self.script_began: Instant = 0
        self.wishes: dict[str, dict[str, Wish]] = {process.name: {} for process in configuration.processes}
        self.open_tickets: dict[int, str] = {}  #: with whose they are
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

    def _enter(self, process: Process) -> None:
        is_broker = process.kind == "broker"
        self.world.add(
            process.name,
            self._broker_maker(process) if is_broker else self._actor_maker(process),
            buffer_bytes_max=BROKER_BUFFER_BYTES if is_broker else CLIENT_BUFFER_BYTES,
        )

    def _broker_maker(self, process: Process) -> MakeCore:
        def make(incarnation: int) -> Core:
            return self._make_broker(broker_settings(self.configuration, process, incarnation, address_of))

        return make

    def _actor_maker(self, process: Process) -> MakeCore:
        def make(incarnation: int) -> Core:
            settings = client_settings(self.configuration, process, incarnation, address_of)
            reserved = int(self.world.nodes[process.name].disk.read(_NUMBERS_FILE) or b"0")
            return Actor(settings, first_number=reserved + 1, wishes=list(self.wishes[process.name].values()))

        return make

    # What they say

    def write(self, node: str, kind: str, fields: Mapping[str, Any]) -> None:
        """Add a line to the trace."""
        position = self._positions[node] = self._positions.get(node, 0) + 1
        t = (self.world.clock.now - self.script_began) / SECOND
        self.trace.append({"t": t, "i": position, "node": node, "kind": kind, **fields})

    def _on_effect(self, node: str, effect: Any) -> None:
        match effect:
            case Done(ticket):
                self.open_tickets.pop(ticket, None)
            case Reserve(upto):
                self.world.nodes[node].disk.replace(_NUMBERS_FILE, b"%d" % upto)
            case _:
                raise AssertionError(f"{node}: nobody knows what to do with {effect!r}")

    # How they are

    def is_up(self, name: str) -> bool:
        """Whether a process has not crashed."""
        return self.world.nodes[name].is_up

    def is_settled(self, name: str) -> bool:
        """Whether a process is connected, and a subscriber's subscriptions are confirmed."""
        core = self.world.nodes[name].core
        if isinstance(core, Actor):
            return core.is_settled
        return isinstance(core, Broker) and core.is_ready

    def unsettled(self) -> list[str]:
        """Who is up and not settled."""
        return [name for name, node in self.world.nodes.items() if node.is_up and not self.is_settled(name)]

    def is_drained(self) -> bool:
        """Whether no Publish runs and no live, connected process holds undelivered or unacknowledged items."""
        if self.open_tickets or self.world.network.in_flight or self.world.network.holds_unread():
            return False
        for name, node in self.world.nodes.items():
            core = node.core
            if isinstance(core, Actor):
                if not core.quiet and self._may_connect(name, core):
                    return False
            elif isinstance(core, Broker) and core.holds_undelivered:
                return False
        return True

    def _may_connect(self, name: str, actor: Actor) -> bool:
        """Whether a client is connected, or will be as soon as it has dialled again."""
        broker = self.configuration.parent_of(name)
        assert broker is not None
        is_reachable = self.is_up(broker) and not self.world.network.link(name, broker).is_cut
        return actor.is_connected or (is_reachable and not actor.is_unplugged)

    def write_status(self) -> None:
        """One line per process that is up."""
        for name, node in self.world.nodes.items():
            if isinstance(node.core, Actor):
                self.write(name, "status", node.core.status())
            elif isinstance(node.core, Broker):
                self.write(name, "status", broker_status(node.core))
