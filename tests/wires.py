"""Cores joined by wires: bytes in queues, time by hand, and whoever holds the wires decides what arrives next.

A wire is one direction of one connection. Everything sent on it becomes real frames, is numbered, and is read back
by a ``FrameReader`` when it arrives, so a core that says what nobody can read fails here. So does one that breaks
the law of ``overlay.transport``: nothing is sent on a connection that is not open or was closed.

It is smaller than the simulator on purpose: no delays, no seed, no faults but those a test makes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from holdfast.clock import MILLISECOND, Instant
from holdfast.messages.message import Message
from holdfast.overlay.transport import (
    Close,
    Connect,
    Connected,
    ConnectFailed,
    Core,
    Disconnected,
    Log,
    Pause,
    Received,
    Resume,
    Send,
    Trace,
    Wake,
)
from holdfast.wire.frame import FrameReader, encode_parted, header
from holdfast.wire.session import HEARTBEAT

__all__ = ["Wire", "Wires"]

#: More than any test needs; a network that is still talking then has gone mad.
ARRIVALS_MAX = 200_000


@dataclass(slots=True, eq=False)
class Wire:
    """What is on its way to one end of a connection; ``other`` goes the opposite way."""

    owner: str  #: who reads here
    peer: str  #: who writes
    connection: int  #: the owner's name for it
    queue: deque[Any] = field(default_factory=deque)
    reader: FrameReader = field(default_factory=FrameReader)
    sent: int = 0  #: frames numbered so far
    is_open: bool = True  #: whether the owner may still send and be told
    is_paused: bool = False

    @property
    def has_news(self) -> bool:
        return self.is_open and not self.is_paused and bool(self.queue)


class Wires:
    """A little world of cores."""

    def __init__(self, choose: Callable[[int], int] = lambda count: 0) -> None:
        self.now: Instant = 0
        self.cores: dict[str, Core] = {}
        self.told: dict[str, list[Any]] = {}  #: by core: effects that are none of the transport's, in order
        self.logs: list[tuple[str, Log]] = []
        self.lines: list[tuple[str, Any]] = []  #: by core: every input and effect, for transcripts
        self.on_told: Callable[[str, Any], None] = lambda name, effect: None
        self._choose = choose
        self._addresses: dict[str, str] = {}
        self._wires: list[Wire] = []
        self._by_connection: dict[int, tuple[Wire, Wire]] = {}
        self._next_connection = 1

    # Cores

    def add(self, core: Core, *, address: str | None = None) -> None:
        """Put a core in; it is dialled at its name, unless an address is given."""
        assert core.name not in self.cores
        self.cores[core.name] = core
        self.told.setdefault(core.name, [])
        self._addresses[address or core.name] = core.name

    def crash(self, name: str) -> None:
        """The core is gone, memory and all; its peers see their connections break."""
        del self.cores[name]
        self._wires = [wire for wire in self._wires if wire.owner != name or wire.connection]
        for here, _ in list(self._by_connection.values()):
            if here.owner == name:
                self._break(here, f"{name} crashed")

    def cut(self, a: str, b: str) -> None:
        """Break every connection between two nodes: what is on its way is lost, and both are told."""
        for here, _ in list(self._by_connection.values()):
            if (here.owner, here.peer) == (a, b):
                self._break(here, "cut")

    def _break(self, wire: Wire, reason: str) -> None:
        for end in self._by_connection[wire.connection]:
            first = end.queue[0] if end.queue else None
            end.queue.clear()
            end.is_paused = False
            if end.owner not in self.cores:
                self._forget(end)
                continue
            match first:
                case Disconnected() | ConnectFailed():  # broken before, and not told yet
                    end.queue.append(first)
                case Connected(peer=None):  # it never knew
                    self._forget(end)
                case Connected(peer=str(dialled)):  # what was dialled is answered, one way or the other
                    end.queue.append(ConnectFailed(dialled, reason))
                case _:
                    end.queue.append(Disconnected(end.connection, reason))

    # Steps

    def step(self, name: str, stimulus: Any) -> list[Any]:
        """Hand one input to a core and carry out what it wants."""
        self.lines.append((name, stimulus))
        effects = self.cores[name].step(stimulus, self.now)
        for effect in effects:
            self.lines.append((name, effect))
            self._carry_out(name, effect)
        return effects

    def _carry_out(self, name: str, effect: Any) -> None:
        match effect:
            case Connect(peer, address):
                self._dial(name, peer, address)
            case Send(connection, messages):
                assert messages, "an empty Send"
                self._send(name, connection, messages)
            case Close(connection):
                self._close(name, connection)
            case Pause(connection):
                self._own(name, connection).is_paused = True
            case Resume(connection):
                self._own(name, connection).is_paused = False
            case Log():
                self.logs.append((name, effect))
            case _:
                assert isinstance(effect, Trace) or not type(effect).__module__.endswith("transport")
                self.told[name].append(effect)
                self.on_told(name, effect)

    def _dial(self, name: str, peer: str, address: str) -> None:
        there = self._addresses.get(address)
        if there not in self.cores:
            # Nobody answers: a wire that says so, once.
            failed = Wire(name, address, 0, deque([ConnectFailed(peer, "nobody answers")]))
            self._wires.append(failed)
            return
        here, far = self.join(name, there)
        here.queue.append(Connected(here.connection, peer))
        far.queue.append(Connected(far.connection, None))

    def join(self, a: str, b: str) -> tuple[Wire, Wire]:
        """A connection between two nodes, of which neither has been told yet."""
        ends = Wire(a, b, self._next_connection), Wire(b, a, self._next_connection + 1)
        self._next_connection += 2
        for here, far in (ends, ends[::-1]):
            self._wires.append(here)
            self._by_connection[here.connection] = here, far
        return ends

    def _own(self, name: str, connection: int) -> Wire:
        assert connection in self._by_connection, f"{name} uses the connection {connection} after its end"
        wire = self._by_connection[connection][0]
        assert wire.owner == name
        return wire

    def _send(self, name: str, connection: int, messages: list[Message]) -> None:
        here, far = self._by_connection[self._own(name, connection).connection]
        for kind, body in chain.from_iterable(map(encode_parted, messages)):
            here.sent += kind != HEARTBEAT
            if far.is_open:
                far.queue.append(header(kind, here.sent, len(body)) + body)

    def _close(self, name: str, connection: int) -> None:
        here, far = self._by_connection[self._own(name, connection).connection]
        self._forget(here)
        if far.is_open:
            far.queue.append(Disconnected(far.connection, "closed by the peer"))

    def _forget(self, wire: Wire) -> None:
        wire.is_open = False
        wire.queue.clear()
        if wire in self._wires:
            self._wires.remove(wire)
        self._by_connection.pop(wire.connection, None)

    # What arrives

    def arrive(self) -> bool:
        """Let one thing arrive on a wire that has news; False if none has."""
        waiting = [wire for wire in self._wires if wire.has_news]
        if not waiting:
            return False
        wire = waiting[self._choose(len(waiting))]
        news = wire.queue.popleft()
        if isinstance(news, bytes):
            self.step(wire.owner, Received(wire.connection, wire.reader.feed(news)))
        elif isinstance(news, Disconnected | ConnectFailed):
            self._forget(wire)
            self.step(wire.owner, news)
        else:
            self.step(wire.owner, news)
        return True

    def settle(self) -> None:
        """Let everything arrive."""
        for _ in range(ARRIVALS_MAX):
            if not self.arrive():
                return
        raise AssertionError("the network does not come to rest")

    def pass_time(self, duration_ns: int) -> None:
        """Everything arrives, and deadlines are kept, until so much later."""
        end = self.now + duration_ns
        self.settle()
        while (due := self._next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.wake()
            self.settle()
        self.now = end

    def advance(self, duration_ns: int) -> None:
        """Time passes while nothing arrives; whoever is due is woken."""
        self.now += duration_ns
        self.wake()

    def wake(self) -> None:
        """Wake every core whose deadline has come."""
        for name, core in list(self.cores.items()):
            deadline = core.next_deadline()
            if deadline is not None and deadline <= self.now:
                self.step(name, Wake())
                after = core.next_deadline()
                assert after is None or after > self.now, f"{name} would be woken for ever"

    def _next_deadline(self) -> Instant | None:
        deadlines = [core.next_deadline() for core in self.cores.values()]
        return min((each for each in deadlines if each is not None), default=None)

    def until(self, condition: Callable[[], object], within_ns: int = 30_000 * MILLISECOND) -> None:
        """Time passes until the condition holds."""
        end = self.now + within_ns
        while not condition():
            assert self.now < end, "the condition never came to hold"
            self.pass_time(10 * MILLISECOND)
