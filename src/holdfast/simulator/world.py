"""The simulated world: cores on hosts, driven as the runtime drives them, in virtual time and from one seed.

A node is given by a function that makes its core for an incarnation. The world keeps the incarnation on the
node's disk, counts it up before each life, and starts every core with ``Wake``. Effects on connections go to
the network, trace lines to ``on_trace``; all others belong to the application and go to ``on_effect``. Both are
called while a step's effects are carried out, in their order; what they want of a core they ``submit``.

A node with a ``store`` has what it asks of its disk carried out there, and finds at ``node.store.recovered`` what its
former lives left when its core is made. Such a core also hears what the wall clock shows, before anything else.

Beside each node stands ``runtime.driver``: the same loop over real sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from holdfast.broker.input import ClockSet
from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.overlay.slowness import CLIENT_BUFFER_BYTES
from holdfast.overlay.transport import Close, Connect, Core, Log, Pause, Resume, Send, Trace, Wake
from holdfast.simulator.clock import VirtualClock
from holdfast.simulator.connection import Host
from holdfast.simulator.disk import SimulatedDisk
from holdfast.simulator.lake import SimulatedLake
from holdfast.simulator.network import Network
from holdfast.simulator.store import SimulatedStore
from holdfast.simulator.transcript import Transcript
from holdfast.streams.store import LANES

__all__ = ["EPOCH_NS", "MakeCore", "Node", "World", "address_of"]

#: Makes the core of one life of a node, given its incarnation.
MakeCore = Callable[[int], Core]

#: What wall clocks show at the beginning of a run.
EPOCH_NS: Final = 1_700_000_000 * SECOND

#: A core that wants to be woken more often without time passing will want so for ever.
WAKES_AT_ONCE_MAX: Final = 1_000

_INCARNATION_FILE: Final = "incarnation"
_NEVER: Final = 1 << 63  # later than any instant of a run
_WAKE: Final = Wake()


def address_of(name: str) -> str:
    """Where a node of the simulated network is dialled."""
    return f"{name}:1"


class Node(Host):
    """A host with a program on it, or what is left of one."""

    def __init__(self, name: str, make: MakeCore, disk: SimulatedDisk, buffer_bytes_max: int) -> None:
        super().__init__(name, buffer_bytes_max)
        self.make = make
        self.disk = disk
        self.store: SimulatedStore | None = None
        self.wall_offset_ns = EPOCH_NS  #: what its wall clock shows, less the time of the world
        self.core: Core | None = None
        self.wakes_at: Instant = _NEVER  #: when the next Wake is due that has been arranged
        self.woken_at: Instant = -1
        self.wakes_at_once = 0  #: how many Wakes it had at the instant of the last one

    @property
    def is_running(self) -> bool:
        """Whether its program is up and not frozen."""
        return self.is_up and not self.is_frozen


class World:
    """Nodes, the network between them, and time."""

    def __init__(
        self,
        seed: int,
        *,
        on_trace: Callable[[str, str, Mapping[str, Any]], None] = lambda node, kind, fields: None,
        on_effect: Callable[[str, Any], None] = lambda node, effect: None,
        wire: bool = False,
        transcript: Transcript | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.nodes: dict[str, Node] = {}
        self._seed = seed
        self._on_trace = on_trace
        self._on_effect = on_effect
        self._transcript = transcript
        self.network = Network(self.clock, Random(f"{seed} network"), self._take, wire=wire)

    # Nodes

    def add(
        self,
        name: str,
        make: MakeCore,
        *,
        buffer_bytes_max: int = CLIENT_BUFFER_BYTES,
        store: bool = False,
        lake: bool = False,
    ) -> Node:
        """Put a node into the world and start it; with a ``store`` if its core asks for work on its disk.

        With a ``lake`` behind that, if its streams have one.
        """
        assert name not in self.nodes, f"two nodes called {name}"
        disk = SimulatedDisk(Random(f"{self._seed} disk of {name}"))
        node = self.nodes[name] = Node(name, make, disk, buffer_bytes_max)
        if store:
            random = Random(f"{self._seed} store of {name}")
            node.store = SimulatedStore(
                self.clock,
                disk,
                random,
                lambda stimulus: self.submit(name, stimulus),
                lake=SimulatedLake() if lake else None,
            )
        self.network.add_host(node, address_of(name))
        self._start(node)
        return node

    def remove(self, name: str) -> None:
        """Take a node out of the world for good: its program ends, its connections close, no link is left."""
        node = self.nodes.pop(name)
        for connection in list(node.ends):
            self.network.close(node, connection, "its program ended")
        if node.store is not None:
            node.store.crash()
        self.network.remove_host(node, address_of(name))

    def submit(self, name: str, stimulus: Any) -> None:
        """Give a core an input, in its turn; one that is not up does not hear it, a frozen one hears it later."""
        node = self.nodes[name]
        self.clock.at(self.clock.now, self._submitted, (node, node.life, stimulus))

    def crash(self, name: str) -> None:
        """Kill a program: its memory is lost, and whatever its disk had not synced."""
        node = self.nodes[name]
        assert node.is_up, f"{name} is down already"
        self.network.crash(node)
        node.core = None
        if node.store is not None:
            node.store.crash()
        node.disk.crash()
        self._note(node, "=", "crashed")

    def restart(self, name: str) -> None:
        """Start a crashed program again, with the next incarnation."""
        node = self.nodes[name]
        assert not node.is_up, f"{name} is up"
        self._start(node)

    def freeze(self, name: str) -> None:
        """Stop a program without its knowing."""
        node = self.nodes[name]
        node.is_frozen = node.is_up
        self._note(node, "=", "frozen")

    def unfreeze(self, name: str) -> None:
        """Let a frozen program go on: first with what came meanwhile, then with what it should have done meanwhile."""
        node = self.nodes[name]
        if not node.is_frozen:
            return
        self._note(node, "=", "unfrozen")
        self.network.arrivals.unfreeze(node)
        node.wakes_at = _NEVER
        self._arrange_wake(node)

    def shift_clock(self, name: str, ms: int) -> None:
        """Set a node's wall clock forward, or back; it stays so through restarts."""
        node = self.nodes[name]
        node.wall_offset_ns += ms * MILLISECOND
        if node.store is not None:
            self.submit(name, ClockSet(node.wall_offset_ns))

    def isolate(self, name: str) -> None:
        """Cut a node off from all others."""
        for other in self.nodes:
            if other != name:
                self.network.cut(name, other)

    def _start(self, node: Node) -> None:
        incarnation = int(node.disk.read(_INCARNATION_FILE) or b"0") + 1
        node.disk.replace(_INCARNATION_FILE, b"%d" % incarnation)
        if node.store is not None:
            node.store.start()
        node.core = node.make(incarnation)
        node.is_up = True
        node.wakes_at = _NEVER
        self._note(node, "=", f"started, incarnation {incarnation}")
        if node.store is not None:
            self.submit(node.name, ClockSet(node.wall_offset_ns))
        self.submit(node.name, _WAKE)

    # Time

    @property
    def now(self) -> Instant:
        """The instant the world has come to."""
        return self.clock.now

    def run_for(self, duration_ns: int) -> None:
        """Let time pass."""
        self.clock.run_until(self.clock.now + duration_ns)

    def run_while(self, condition: Callable[[], bool], limit_ns: int) -> bool:
        """Let time pass while a condition holds, this long at most; whether it has ceased to hold."""
        return self.clock.run_while(condition, self.clock.now + limit_ns)

    # Driving

    def _submitted(self, submitted: tuple[Node, int, Any]) -> None:
        node, life, stimulus = submitted
        if node.life != life or not node.is_up:
            return
        if node.is_frozen:
            node.backlog.append(stimulus)
        else:
            self._take(node, stimulus)

    def _take(self, node: Node, stimulus: Any) -> None:
        core = node.core
        assert core is not None
        effects = core.step(stimulus, self.clock.now)
        if self._transcript is not None:
            self._transcript.step(self.clock.now, node, stimulus, effects)
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                self.network.send(node, effect.connection, effect.messages)
            elif kind is Trace:
                self._on_trace(node.name, effect.kind, effect.fields)
            else:
                self._carry_out(node, effect)
        deadline = core.next_deadline()
        if deadline is not None and deadline < node.wakes_at:
            node.wakes_at = deadline
            self.clock.at(deadline, self._wake, (node, node.life, deadline))

    def _carry_out(self, node: Node, effect: Any) -> None:
        match effect:
            case Connect(peer, address):
                self.network.connect(node, peer, address)
            case Close(connection, reason):
                self.network.close(node, connection, reason)
            case Pause(connection):
                self.network.arrivals.pause(node, connection)
            case Resume(connection):
                self.network.arrivals.resume(node, connection)
            case Log():
                pass  # the transcript has it
            case _ if node.store is not None and type(effect) in LANES:
                node.store.submit(effect)
            case _:
                self._on_effect(node.name, effect)

    def _arrange_wake(self, node: Node) -> None:
        deadline = None if node.core is None else node.core.next_deadline()
        if deadline is not None and deadline < node.wakes_at:
            node.wakes_at = deadline
            self.clock.at(deadline, self._wake, (node, node.life, deadline))

    def _wake(self, due: tuple[Node, int, Instant]) -> None:
        """The deadline may have moved since this was arranged: forward, or back, so that another wake comes first."""
        node, life, arranged = due
        if node.life != life or node.wakes_at != arranged or node.is_frozen:
            return
        node.wakes_at = _NEVER
        assert node.core is not None
        deadline = node.core.next_deadline()
        if deadline is None or deadline > self.clock.now:
            self._arrange_wake(node)
            return
        node.wakes_at_once = node.wakes_at_once + 1 if node.woken_at == self.clock.now else 1
        node.woken_at = self.clock.now
        assert node.wakes_at_once <= WAKES_AT_ONCE_MAX, f"{node.name} asks for the same instant over and over"
        self._take(node, _WAKE)

    def _note(self, node: Node, mark: str, text: str) -> None:
        if self._transcript is not None:
            self._transcript.note(self.clock.now, node.name, mark, text)
