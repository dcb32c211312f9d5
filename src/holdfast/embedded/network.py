"""``memory://``: a network inside the process, for tests of what is built on Holdfast.

    with holdfast.memory.Network("mine", brokers=3) as net:
        async with holdfast.connect("memory://mine", broker="b2") as network:
            net.crash("b1")

Brokers and clients are the real ones; between them stands the simulator's network, so faults can be made at will. Time
follows the clock; or, with ``stepped=True``, it stands still and passes only by ``advance``, and then the same calls
give the same run. What takes no time, and by default links take none, happens by itself in either case.

Everything may be called from any thread: there is one lock.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, Final, Self, TypeVar, cast

from holdfast.broker.broker import Broker
from holdfast.broker.input import Expel
from holdfast.client.errors import InvalidOption, TimedOut
from holdfast.client.port import Dial, Listen, Way
from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.embedded.brokers import common_settings, new_broker
from holdfast.embedded.port import MemoryPort, NetworkFailed
from holdfast.embedded.tree import binary_tree, checked_tree
from holdfast.messages.streams import Guarantee
from holdfast.overlay.slowness import BROKER_BUFFER_BYTES
from holdfast.overlay.transport import Core
from holdfast.scenarios.topology import LinkQuality
from holdfast.simulator.world import EPOCH_NS, World, address_of
from holdfast.streams.storing import Recovered

__all__ = ["Network", "way_to"]

T = TypeVar("T")

#: How time passes where only that is waited for; after each step whatever takes no time happens, in so many turns.
STEP_SECONDS: Final = 0.01
TURNS: Final = 20

_NETWORKS: Final[dict[str, Network]] = {}


def way_to(network: str, broker: str | None) -> Way:
    """The way to a broker of a network in this process, the root if none is named.

    :raises LookupError: if there is no such network or broker.
    """
    found = _NETWORKS.get(network)
    if found is None:
        raise LookupError(
            f"there is no network {network!r} in this process; holdfast.memory.Network({network!r}) makes one"
        )
    if broker is not None and broker not in found.brokers:
        raise LookupError(f"there is no broker {broker!r}; there are {', '.join(found.brokers)}")
    chosen = broker or found.brokers[0]
    return Way(cast(Dial, partial(MemoryPort, found, chosen)), address_of(chosen), _listener)


def _listener(address: str) -> Listen:
    """In a world of names every host has an address of its own, whatever was asked for."""

    async def listen(port: Any) -> str:
        assert isinstance(port, MemoryPort)
        return address_of(port.host)

    return listen


class Network:
    """Brokers in a tree: ``brokers=N`` of them (b1 is the root, b2 and b3 its children …), or ``tree={name: parent}``.

    ``delay`` is that of every link, in seconds; ``seed`` decides what the links draw. With ``delta`` there is one
    stream with all topics that is reliable while so many brokers or links are down; without, it is best-effort.
    ``streams`` names others, each with its topics, its guarantee, and its order if that is not ``"fifo"``:
    ``{"orders": ("orders/#", "durable"), "ledger": ("ledger/#", "durable", "total")}``. What is logged is on a disk of
    the network's own, which survives a crash, and is gone with the network; the sequencer is the root.
    """

    def __init__(
        self,
        name: str,
        *,
        brokers: int = 1,
        tree: Mapping[str, str | None] | None = None,
        delay: float = 0.0,
        delta: int | None = None,
        streams: Mapping[str, tuple[str, str] | tuple[str, str, str]] | None = None,
        stepped: bool = False,
        seed: int = 0,
    ) -> None:
        parents = binary_tree(brokers) if tree is None else checked_tree(tree)
        if not name or "/" in name:
            raise InvalidOption("name", f"is {name!r}; expected what can stand in memory://NAME")
        self.name = name
        self.url = f"memory://{name}"
        self.brokers = tuple(parents)  #: their names, the root first
        self._quality = LinkQuality(_nanoseconds("delay", delay))
        self._stepped = stepped
        self._start_ns = time.monotonic_ns()
        self._lock = threading.RLock()
        self._ports: dict[str, MemoryPort] = {}  #: by host
        self._hosts: dict[str, list[str]] = {}  #: of clients, by their names; a name may connect again
        self._failure: NetworkFailed | None = None
        self._world = World(seed, on_effect=self._on_effect)
        common = common_settings(delta, streams, self.brokers[0])
        logs = any(stream.guarantee is Guarantee.DURABLE for stream in common["streams"])
        for broker in self.brokers:
            self._connect_well(broker)
            make = partial(new_broker, broker, parents, common, partial(self._recovered, broker))
            self._world.add(broker, make, buffer_bytes_max=BROKER_BUFFER_BYTES, store=logs)
            if not stepped:
                self._world.shift_clock(broker, (time.time_ns() - EPOCH_NS) // MILLISECOND)
        if _NETWORKS.setdefault(name, self) is not self:
            raise InvalidOption(
                "name", f"there is a network {name!r} in this process already; close it first"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the name free; clients that are connected stay so."""
        if _NETWORKS.get(self.name) is self:
            del _NETWORKS[self.name]

    # Faults

    def crash(self, broker: str) -> None:
        """Kill a broker: its memory is lost, and whoever talks to it hears nothing more."""
        with self._lock:
            if not self._broker(broker).is_up:
                raise InvalidOption("broker", f"{broker} is down already")
            self._world.crash(broker)
        self._changed()

    def restart(self, broker: str) -> None:
        """Start a crashed broker again."""
        with self._lock:
            if self._broker(broker).is_up:
                raise InvalidOption("broker", f"{broker} is up; crash it first")
            self._world.restart(broker)
        self._changed()

    def freeze(self, broker: str) -> None:
        """Stop a broker without its knowing; its connections stay open."""
        with self._lock:
            self._broker(broker)
            self._world.freeze(broker)

    def unfreeze(self, broker: str) -> None:
        """Let a frozen broker go on where it stood."""
        with self._lock:
            self._broker(broker)
            self._world.unfreeze(broker)
        self._changed()

    def cut(self, a: str, b: str) -> None:
        """Let everything between two vanish silently; each is a broker, or the name of a client."""
        with self._lock:
            for one in self._named(a):
                for other in self._named(b):
                    self._world.network.cut(one, other)

    def heal(self, a: str, b: str | None = None) -> None:
        """Undo the cuts between two, or all those of one."""
        with self._lock:
            for one in self._named(a):
                for other in [None] if b is None else self._named(b):
                    self._world.network.heal(one, other)

    def slow(self, a: str, b: str, delay: float, *, jitter: float = 0.0) -> None:
        """Let everything between two take so many seconds from now on, and up to ``jitter`` more."""
        quality = LinkQuality(_nanoseconds("delay", delay), _nanoseconds("jitter", jitter))
        with self._lock:
            for one in self._named(a):
                for other in self._named(b):
                    self._world.network.set_quality(one, other, quality)
                    self._world.network.set_quality(other, one, quality)

    def shift_clock(self, broker: str, seconds: float) -> None:
        """Set a broker's wall clock forward, or back; it stays so through restarts."""
        with self._lock:
            self._broker(broker)
            self._world.shift_clock(broker, round(seconds * 1_000))
        self._changed()

    def fill_disk(self, broker: str) -> None:
        """Let a broker's disk run full: what is to be logged there is refused."""
        with self._lock:
            self._broker(broker).disk.become_full()
        self._changed()

    def free_disk(self, broker: str) -> None:
        """Make room on a broker's disk; what it refused it takes again soon."""
        with self._lock:
            self._broker(broker).disk.have_room()
        self._changed()

    def expel(self, client: str) -> None:
        """Have the network forget a client that is a node of it, as an operator does with one that is dead for good."""
        with self._lock:
            self.run()
            cores = {name: cast(Broker | None, self._world.nodes[name].core) for name in self.brokers}
            near = (name for name, core in cores.items() if core is not None and client in core.node.topology)
            nearest = next(near, None)
            if nearest is None:
                raise InvalidOption("client", f"no broker knows a node {client!r}")
            self._world.submit(nearest, Expel(client))
        self._changed()

    def status(self, broker: str) -> dict[str, Any]:
        """What a broker says of itself, as ``holdfast status`` shows it; empty while it is down."""
        with self._lock:
            core = self._broker(broker).core
            return {} if core is None else cast(Broker, core).status()

    # Time

    @property
    def now(self) -> float:
        """Seconds since the network was made, in its own time."""
        return self._world.now / SECOND

    def advance(self, seconds: float) -> None:
        """Let time pass in a network with ``stepped=True``."""
        if not self._stepped:
            raise InvalidOption("stepped", "is not set; time follows the clock")
        duration_ns = _nanoseconds("seconds", seconds)
        with self._lock:
            self._run_until(self._world.now + duration_ns)

    async def in_time(self, awaited: Awaitable[T], seconds: float = 60.0) -> T:
        """What an awaitable gives, in a network with ``stepped=True``: time passes until it is done.

        :raises TimedOut: if it is not after so many seconds of the network's time.
        """
        task = asyncio.ensure_future(awaited)
        until = self.now + seconds
        try:
            while not await _is_done(task):
                if self.now >= until:
                    raise TimedOut(f"nothing within {seconds:g} s of the network's time")
                self.advance(STEP_SECONDS)
            return task.result()
        finally:
            task.cancel()

    def run(self) -> None:
        """Let happen what is due; called by the ports.

        :raises NetworkFailed: if something in the network raised, now or before.
        """
        with self._lock:
            self._run_until(max(self._world.now, self._present()))

    def _run_until(self, instant: Instant) -> None:
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        try:
            self._world.clock.run_until(instant)
        except Exception as error:  # whatever it is, the network cannot be trusted any more
            self._failure = NetworkFailed(f"the network inside the process failed: {error!r}")
            self._changed()
            raise self._failure from error

    def until_next(self) -> Instant | None:
        """How long until something happens by itself, in nanoseconds."""
        if self._stepped:
            return None
        with self._lock:
            upcoming = self._world.clock.next_instant()
            return None if upcoming is None else max(0, upcoming - self._present())

    def _present(self) -> Instant:
        return self._world.now if self._stepped else time.monotonic_ns() - self._start_ns

    # Clients

    def move_in(self, port: MemoryPort, core: Core, broker: str) -> str:
        """Give a client's core a host in the world."""
        with self._lock:
            self.run()
            host, again = core.name, 1
            while host in self._world.nodes:
                again += 1
                host = f"{core.name}~{again}"
            self._hosts.setdefault(core.name, []).append(host)
            self._connect_well(host)
            self._ports[host] = port
            self._world.add(host, lambda incarnation: core)
            return host

    def move_out(self, port: MemoryPort, name: str, host: str) -> None:
        """The client is gone; another must keep the network's time. Once it is, its host may be another's."""
        with self._lock:
            if self._ports.get(host) is not port:
                return
            del self._ports[host]
            self._world.remove(host)
            self._hosts[name].remove(host)
            if not self._hosts[name]:
                del self._hosts[name]
        self._changed()

    def submit(self, host: str, stimulus: Any) -> None:
        """Have a client's core take an input at the present instant."""
        with self._lock:
            self.run()
            self._world.submit(host, stimulus)

    def _recovered(self, broker: str) -> Recovered:
        """What a broker's former lives left on its disk; nothing, where no stream is logged."""
        store = self._world.nodes[broker].store
        return Recovered() if store is None else store.recovered

    def _on_effect(self, host: str, effect: Any) -> None:
        port = self._ports.get(host)
        if port is not None:
            port.on_effect(effect)

    def _changed(self) -> None:
        """Something may be due earlier than those who keep the time expect."""
        with self._lock:
            for port in self._ports.values():
                port.ask_for_turn()

    # Names

    def _connect_well(self, host: str) -> None:
        for broker in self.brokers:
            self._world.network.set_quality(host, broker, self._quality)
            self._world.network.set_quality(broker, host, self._quality)

    def _broker(self, name: str) -> Any:
        if name not in self.brokers:
            raise InvalidOption("broker", f"there is no {name!r}; there are {', '.join(self.brokers)}")
        return self._world.nodes[name]

    def _named(self, name: str) -> list[str]:
        if name in self.brokers:
            return [name]
        if name not in self._hosts:
            known = ", ".join([*self.brokers, *self._hosts])
            raise InvalidOption(
                "name", f"neither a broker nor a client is called {name!r}; there are {known}"
            )
        return self._hosts[name]


async def _is_done(task: asyncio.Future[Any]) -> bool:
    """Whether it is once all clients have had their turns."""
    for _ in range(TURNS):
        if task.done():
            return True
        await asyncio.sleep(0)
    return task.done()


def _nanoseconds(option: str, seconds: float) -> int:
    if not isinstance(seconds, int | float) or not 0 <= seconds < 1e9:
        raise InvalidOption(option, f"is {seconds!r}; expected seconds from 0")
    return round(seconds * SECOND)
