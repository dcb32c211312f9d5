"""One life of a process of a scenario: its core, the driver of its core, its trace, and the orders it obeys.

It reads the configuration and the script from the run's folder, finds out who it is there, and does what the orders
[``control``] say. Whatever must outlive it is in that folder too: its incarnation, the numbers it has reserved, its
trace with its records of durable subscriptions, and a broker's store if anything is logged. Nothing leaves the process,
neither to its peers nor to the master, before the trace lines that tell of it are written.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, assert_never

from holdfast.broker.broker import Broker
from holdfast.broker.input import ClockSet
from holdfast.broker.input import Expel as ExpelNode
from holdfast.broker.input import Stop as StopBroker
from holdfast.broker.settings import Settings
from holdfast.clock import SECOND, Instant
from holdfast.overlay.transport import Wake
from holdfast.puppet import control
from holdfast.puppet.control import Answer, Completed, Listen, Order, Reported, Start, Stop
from holdfast.puppet.folder import CONFIGURATION_FILE, SCRIPT_FILE, home_of, store_of, trace_of
from holdfast.puppet.trace_file import TraceFile
from holdfast.puppet.watched import Watched
from holdfast.runtime import clock
from holdfast.runtime.addresses import Address
from holdfast.runtime.connections import listening_socket
from holdfast.runtime.disk import NumberStore, next_incarnation
from holdfast.runtime.driver import Driver
from holdfast.runtime.faults import Faults
from holdfast.runtime.real_store import RealStore
from holdfast.scenarios.actor import Actor
from holdfast.scenarios.actor_commands import (
    ActorCommand,
    DoDisconnect,
    DoLeave,
    Done,
    DoPublish,
    DoReconnect,
    DoSlow,
    DoSubscribe,
    DoUnsubscribe,
    Remember,
    Reserve,
    Wish,
)
from holdfast.scenarios.actor_publishing import RESERVED_BLOCK
from holdfast.scenarios.commands import (
    At,
    Command,
    Disconnect,
    Expel,
    Join,
    Leave,
    Publish,
    Reconnect,
    Slow,
    Subscribe,
    Unsubscribe,
)
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.drain import standing_of
from holdfast.scenarios.roles import (
    broker_settings,
    broker_status,
    client_settings,
    is_dialled,
    is_settled,
    membership,
)
from holdfast.scenarios.script import parse_script
from holdfast.streams.checkpoint_token import Token

__all__ = ["Performer"]

#: A port that an earlier life used may be busy for a moment: somebody dialled it and got himself.
BIND_AGAIN_NS: Final = 3 * SECOND
_BIND_PAUSE_SECONDS: Final = 0.05


class Performer:
    """One life: the core, its driver, its trace, and the orders."""

    def __init__(self, folder: Path, name: str) -> None:
        self.home = home_of(folder, name)
        self._store_folder = store_of(folder, name)
        self.configuration = parse_configuration((folder / CONFIGURATION_FILE).read_text("utf-8"))
        script = parse_script((folder / SCRIPT_FILE).read_text("utf-8"), "script", self.configuration)
        self.process = script.network(self.configuration).process(name)
        parts = [command.command if isinstance(command, At) else command for command in script.commands]
        self.parts = {part.line: part for part in parts}
        self.trace = TraceFile(trace_of(folder, name), name, clock.now)
        self.numbers = NumberStore(self.home, name, block=RESERVED_BLOCK)
        self._store: RealStore | None = None
        self._listener: socket.socket | None = None
        self._waiting: list[control.WhenSettled] = []
        self._answers: list[Answer] = []

    # Coming to life

    async def listen(self, order: Listen) -> int:
        """Take our port, before anybody is told of it; 0 if nobody dials us: only nodes of an overlay are dialled.

        :raises OSError: if it cannot be had.
        :raises BadAddress: if it is not on this machine.
        """
        if not is_dialled(self.configuration, self.process):
            return 0
        host = self.process.address.host
        patience = clock.now() + (BIND_AGAIN_NS if order.is_again else 0)
        while self._listener is None:
            try:
                self._listener = await listening_socket(host, order.port)
            except OSError as error:
                if clock.now() >= patience:
                    problem = os.strerror(error.errno).lower() if error.errno else str(error)
                    raise OSError(f"cannot listen on {Address(host, order.port)}: {problem}") from error
                await asyncio.sleep(_BIND_PAUSE_SECONDS)
        return int(self._listener.getsockname()[1])

    async def start(self, order: Start) -> None:
        """Make the core and let it go."""
        self.trace.began = order.began
        faults = Faults()
        faults.cut(order.cut_off)
        for name, address in order.addresses.items():
            faults.note(address, name)
        self.core = self._make_core(order)
        self.watched = Watched(self.core)
        self.driver = Driver(
            self.watched,
            store=self._store,
            application=self._on_effect,
            trace=self.trace.write,
            before_flush=self._before_flush,
            faults=faults,
        )
        if self._listener is not None:
            await self.driver.serve(self._listener)
        if self._store is not None:
            self.driver.submit(ClockSet(time.time_ns() - clock.now()))
        await self.driver.start(Wake())

    def _make_core(self, order: Start) -> Broker | Actor:
        joined = [join.process for line in order.joined if isinstance(join := self.parts[line], Join)]
        for each in joined:
            self.configuration = self.configuration.joined_by(each)
        for line in order.moved:
            self._move(self.parts[line])
        self._places = self._addresses(order)
        process, address = self.process, self._places.__getitem__
        incarnation = next_incarnation(self.home)
        if process.kind == "broker":
            told = broker_settings(self.configuration, process, incarnation, address, joins=process in joined)
            return self._make_broker(told)
        settings = client_settings(self.configuration, process, incarnation, address)
        member = membership(self.configuration, process, incarnation, address)
        first = self.numbers.next_number() if process.kind == "publisher" else 1
        asked = [self.parts[line] for line in order.wishes]
        wishes = [Wish.of(command) for command in asked if isinstance(command, Subscribe)]
        records = {name: Token.parse(text) for name, text in self.trace.records.items()}
        return Actor(settings, member, first_number=first, wishes=wishes, records=records)

    def _make_broker(self, settings: Settings) -> Broker:
        if not settings.is_durable:
            return Broker(settings)
        self._store = RealStore(self._store_folder, limit_of=settings.retain_bytes_of)
        return Broker(settings, recovered=self._store.start())

    def _move(self, command: Command) -> None:
        """A client is on another site now."""
        if isinstance(command, Reconnect) and command.site is not None:
            self.configuration = self.configuration.with_client_on(command.subscriber, command.site)

    def _addresses(self, order: Start) -> dict[str, str]:
        """Where everybody listens, ourselves included: the master may not know that yet."""
        if self._listener is None:
            return order.addresses
        own = Address(self.process.address.host, int(self._listener.getsockname()[1]))
        return {**order.addresses, self.process.name: str(own)}

    # What the core says

    def _on_effect(self, effect: Any) -> None:
        match effect:
            case Done(ticket):
                self._answers.append(Completed(ticket))
            case Reserve(upto):
                # Both count in blocks of the same size from the same number, so this reserves all up to it.
                self.numbers.next_number(upto - RESERVED_BLOCK)
            case Remember(subscription, token):
                self.trace.remember(subscription, str(token))
            case _:
                raise AssertionError(f"nobody knows what to do with {effect!r}")

    def _before_flush(self) -> None:
        settled = [order for order in self._waiting if is_settled(self.core, to_all=order.to_all)]
        for order in settled:
            self._waiting.remove(order)
            self._answers.append(Completed(order.ticket))
        self.trace.flush()
        answers, self._answers = self._answers, []
        for answer in answers:
            self.answer(answer)

    def answer(self, answer: Answer) -> None:
        """Tell the master at once."""
        sys.stdout.buffer.write(control.encode(answer))
        sys.stdout.buffer.flush()

    # What the master says

    def obey(self, order: Order) -> None:
        """Carry out an order that needs no waiting for."""
        match order:
            case control.Begin(at, ticket):
                self.trace.began = at
                self._answers.append(Completed(ticket))
            case control.WhenSettled():
                self._waiting.append(order)
            case control.Perform(line, at, ticket):
                command = self._command(line, at, ticket)
                self.driver.submit(command)
                if isinstance(command, DoSlow | DoDisconnect | ExpelNode):
                    self._answers.append(Completed(ticket))
                return  # the turn that takes the command tells what came of it
            case control.CutOff(names, ticket):
                self.driver.cut(names)
                self._answers.append(Completed(ticket))
            case control.Mend(names, ticket):
                self.driver.heal(names)
                self._answers.append(Completed(ticket))
            case control.WriteStatus(ticket):
                self.trace.write("status", self._status())
                self._answers.append(Completed(ticket))
            case control.Report(ticket):
                self._answers.append(self._report(ticket))
            case Listen() | Start() | Stop():
                raise AssertionError(f"{type(order).__name__} comes first, or last")
            case _:
                assert_never(order)
        self._before_flush()

    def _command(self, line: int, at: Instant | None, ticket: int) -> ActorCommand | ExpelNode:
        command = self.parts[line]
        match command:
            case Subscribe():
                return DoSubscribe(Wish.of(command), ticket)
            case Unsubscribe(_, _, subscription):
                return DoUnsubscribe(subscription, ticket)
            case Publish():
                return DoPublish(command, self.configuration.seed, ticket, start=at)
            case Slow(_, per_event_ns):
                return DoSlow(per_event_ns)
            case Disconnect():
                return DoDisconnect()
            case Reconnect(_, site):
                self._move(command)
                there = None if site is None else self.configuration.broker_of(site).name
                return DoReconnect(ticket, None if there is None else self._places[there])
            case Leave():
                return DoLeave(ticket)
            case Expel(name):
                return ExpelNode(name)
            case _:
                raise AssertionError(f"line {line} is not for {self.process.name}: {command}")

    def _report(self, ticket: int) -> Reported:
        sessions = self.watched.sessions()
        peers = [session.peer for session in sessions if session.peer]
        return Reported(ticket, standing_of(self.core, peers), sessions)

    def _status(self) -> Mapping[str, Any]:
        return self.core.status() if isinstance(self.core, Actor) else broker_status(self.core)

    async def stop(self) -> None:
        """Say goodbye, send what is queued, close everything."""
        self.driver.submit(StopBroker() if isinstance(self.core, Broker) else DoLeave(0, at_once=True))
        await self.driver.stop()
        if self._store is not None:
            await asyncio.to_thread(self._store.close)
        self.trace.close()
