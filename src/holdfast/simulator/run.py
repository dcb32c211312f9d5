"""A scenario in virtual time [contracts.md §4]: the script, line by line, and the trace it leaves.

The script begins when every process is connected. Commands that wait do so for five seconds at most; ``At``
lines run at their time and wait for nothing; the end of the script waits for the last of them, drains, and
stops every process. What is said to a process that is down, or has not joined yet, is not heard, and what would
change nothing (crashing what is down) is left out of the trace. What no script can say, such as that a disk runs
full, ``beside`` arranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from holdfast.broker.broker import Broker
from holdfast.broker.input import Expel as ExpelNode
from holdfast.broker.input import Stop
from holdfast.clock import MILLISECOND, SECOND
from holdfast.errors import HoldfastError
from holdfast.scenarios.actor import BUFFER_ITEMS
from holdfast.scenarios.actor_commands import (
    DoDisconnect,
    DoLeave,
    DoPublish,
    DoReconnect,
    DoSlow,
    DoSubscribe,
    DoUnsubscribe,
    Wish,
)
from holdfast.scenarios.commands import (
    ClockShift,
    Command,
    Crash,
    Cut,
    Disconnect,
    Drain,
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
    Wait,
    names_in,
)
from holdfast.scenarios.script import COMPLETION_MAX_NS, FINAL_DRAIN_NS, Script
from holdfast.scenarios.topology import Configuration
from holdfast.scenarios.trace import TraceLine, run_fields
from holdfast.simulator.cast import MASTER, Cast, MakeBroker, Ticket
from holdfast.simulator.transcript import Transcript
from holdfast.simulator.world import World

__all__ = ["NotConnected", "Result", "simulate"]

#: How long a network may take to come up.
CONNECT_MAX_NS: Final = 60 * SECOND
#: How long goodbyes may take.
STOP_NS: Final = 100 * MILLISECOND


class NotConnected(HoldfastError):
    """A network did not come up; ``names`` are those that are not connected."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(
            f"not connected after {CONNECT_MAX_NS // SECOND} s of virtual time: {', '.join(names)}"
        )
        self.names = names


@dataclass(frozen=True, slots=True)
class Result:
    """What a run leaves behind."""

    trace: list[TraceLine]
    drained: bool
    transcript: Transcript | None


def simulate(
    configuration: Configuration,
    script: Script,
    *,
    wire: bool = False,
    transcript: Transcript | None = None,
    make_broker: MakeBroker = Broker,
    beside: Callable[[World], None] = lambda world: None,
    others: Mapping[str, Sequence[str]] = MappingProxyType({}),
    lake: bool = False,
    relayed_bytes: int | None = None,
    buffer: int = BUFFER_ITEMS,
) -> Result:
    """Run a scenario from beginning to end.

    ``wire``: every message travels as the bytes of its frame. ``beside`` is called when the script begins, and may have
    things happen in the world at their time. ``others`` are brokers that publishers go to, one after the other, when
    they lose their own. With a ``lake`` what logs give up is read there: what no script can say. ``relayed_bytes``, if
    given, is what may be on its way between two brokers of a reliable stream. ``buffer``: so many events wait for a
    subscriber's application, and no more are sent to it.

    :raises NotConnected: if the network does not come up.
    """
    cast = Cast(
        configuration,
        make_broker=make_broker,
        wire=wire,
        transcript=transcript,
        others=others,
        lake=lake,
        relayed_bytes=relayed_bytes,
        buffer=buffer,
    )
    return _Run(cast, script, beside).play(transcript)


class _Run:
    """One performance of a script."""

    def __init__(self, cast: Cast, script: Script, beside: Callable[[World], None]) -> None:
        self.cast = cast
        self.world = cast.world
        self.script = script
        self._beside = beside
        self._tickets = 0

    @property
    def configuration(self) -> Configuration:
        """The network as it is now."""
        return self.cast.configuration

    def play(self, transcript: Transcript | None) -> Result:
        if not self.world.run_while(lambda: bool(self.cast.unsettled()), CONNECT_MAX_NS):
            raise NotConnected(self.cast.unsettled())
        began = self.cast.script_began = self.world.now
        everybody = self.script.network(self.configuration)
        self.cast.write(MASTER, "run", run_fields(everybody, "simulator"))
        self._beside(self.world)
        timed = self.script.timed
        for at in timed:
            self.world.clock.at(began + at.at_ns, self._run_timed, at.command)
        for command in self.script.steps:
            self._wait(self._perform(command))
        if timed:
            self.world.clock.run_until(began + timed[-1].at_ns)
        drained = self._drain(FINAL_DRAIN_NS)
        self._stop()
        self.cast.write(MASTER, "end", {"drained": drained})
        return Result(self.cast.trace, drained, transcript)

    def _run_timed(self, command: Command) -> None:
        self._perform(command)

    def _wait(self, is_waiting: Callable[[], bool] | None) -> None:
        if is_waiting is not None:
            self.world.run_while(is_waiting, COMPLETION_MAX_NS)

    def _drain(self, limit_ns: int) -> bool:
        return self.world.run_while(lambda: not self.cast.is_drained(), limit_ns)

    def _stop(self) -> None:
        """Clients leave, then brokers stop."""
        for stopped in (("publisher", "subscriber"), ("broker",)):
            for process in self.configuration.processes:
                if process.kind in stopped:
                    leaving = (
                        Stop()
                        if process.kind == "broker"
                        else DoLeave(self._ticket(process.name), at_once=True)
                    )
                    self.world.submit(process.name, leaving)
            self.world.run_for(STOP_NS)

    def _ticket(self, process: str, *, is_publish: bool = False, is_leave: bool = False) -> int:
        self._tickets += 1
        self.cast.open_tickets[self._tickets] = Ticket(process, is_publish, is_leave)
        return self._tickets

    # Commands; each gives what the script waits for while it is true, if anything

    def _perform(self, command: Command) -> Callable[[], bool] | None:
        if not all(map(self.configuration.has, names_in(command))):
            return None
        match command:
            case Subscribe(subscriber=name) | Unsubscribe(subscriber=name) | Reconnect(subscriber=name):
                return self._ask_subscriber(name, command)
            case Publish(publisher=name):
                if self.cast.is_up(name):
                    seed = self.configuration.seed
                    ticket = self._ticket(name, is_publish=True)
                    self.world.submit(name, DoPublish(command, seed, ticket))
            case Slow(name, per_event_ns):
                self.world.submit(name, DoSlow(per_event_ns))
            case Disconnect(name):
                if self.cast.is_up(name):
                    self.world.submit(name, DoDisconnect())
                    self._write("disconnect", name)
            case Wait(duration_ns):
                self.world.run_for(duration_ns)
            case Drain(limit_ns):
                self._drain(limit_ns)
            case Status():
                self.cast.write_status()
            case Crash(name) | Restart(name) | Freeze(name) | Unfreeze(name):
                return self._change_process(name, command)
            case Join() | Leave() | Expel():
                return self._change_network(command)
            case ClockShift(name, shift_ns):
                self.world.shift_clock(name, shift_ns // MILLISECOND)
            case _:
                self._change_link(command)
        return None

    def _ask_subscriber(
        self, name: str, command: Subscribe | Unsubscribe | Reconnect
    ) -> Callable[[], bool] | None:
        if not self.cast.is_up(name):
            return None
        ticket = self._ticket(name)
        match command:
            case Subscribe():
                wish = self.cast.wishes[name][command.subscription] = Wish.of(command)
                self.world.submit(name, DoSubscribe(wish, ticket))
            case Unsubscribe(_, _, subscription):
                self.world.submit(name, DoUnsubscribe(subscription, ticket))
            case Reconnect(_, site):
                if site is not None:  # who moves is away for a moment
                    self._write("disconnect", name)
                self._write("reconnect", name)
                broker = None if site is None else self.cast.move(name, site)
                self.world.submit(name, DoReconnect(ticket, broker))
        return lambda: ticket in self.cast.open_tickets

    def _change_process(
        self, name: str, command: Crash | Restart | Freeze | Unfreeze
    ) -> Callable[[], bool] | None:
        node = self.world.nodes[name]
        is_up = self.cast.is_up(name)
        match command:
            case Crash() if is_up:
                self.cast.crash(name)
                self._write("crash", name)
            case Restart() if not is_up:
                self.cast.restart(name)
                self._write("restart", name)
                return lambda: self._is_coming(name)
            case Freeze() if is_up and not node.is_frozen:
                self.world.freeze(name)
                self._write("freeze", name)
            case Unfreeze() if node.is_frozen:
                self._write("unfreeze", name)
                self.cast.unfreeze(name)
        return None

    def _is_coming(self, name: str) -> bool:
        """Whether a process lives that is not connected yet."""
        return self.cast.is_up(name) and not self.cast.is_settled(name)

    def _change_network(self, command: Join | Leave | Expel) -> Callable[[], bool] | None:
        match command:
            case Join(process):
                self._write("join", process.name)
                self.cast.join(process)
                return lambda: self._is_coming(process.name)
            case Leave(name) if self.cast.is_up(name):
                self._write("leave", name)
                ticket = self._ticket(name, is_leave=True)
                self.world.submit(name, DoLeave(ticket))
                return lambda: ticket in self.cast.open_tickets and not self.world.nodes[name].is_frozen
            case Expel(name) if (broker := self.cast.expel(name)) is not None:
                self._write("leave", name)
                self.world.submit(broker, ExpelNode(name))
        return None

    def _change_link(self, command: Any) -> None:
        node = self.configuration.node
        match command:
            case Cut(a, b):
                self.world.network.cut(node(a), node(b))
                self._write("cut", node(a), node(b))
            case Isolate(a):
                self.world.isolate(node(a))
                self._write("cut", node(a))
            case Heal(a, b):
                healed = [node(a)] if b is None else [node(a), node(b)]
                self.world.network.heal(*healed)
                self._write("heal", *healed)
            case SetLink(link):
                for sender, receiver in self.configuration.directions(link):
                    self.world.network.set_quality(sender, receiver, link.quality)
            case _:
                raise AssertionError(f"the parser refuses {command}")

    def _write(self, kind: str, *nodes: str) -> None:
        self.cast.write(MASTER, kind, {"nodes": list(nodes)})
