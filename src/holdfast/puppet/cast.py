"""The processes of a scenario as real ones: how they come up, are spoken to, crash, return, and go.

A process that ends without having been told to, or cannot be started, is the end of the run: ``failure`` is set. What a
subscriber subscribes to, who has joined or moved and who is cut off from whom outlives a process; it is told again when
it starts again. A process first takes its port; so everybody can be told where the others are before it plays its part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.clock import Instant
from holdfast.errors import HoldfastError
from holdfast.puppet.control import (
    Answer,
    Begin,
    Completed,
    Failed,
    Listen,
    Listening,
    Order,
    Perform,
    Report,
    Reported,
    Start,
    Stop,
    WhenSettled,
)
from holdfast.puppet.folder import trace_of
from holdfast.puppet.puppet import Puppet
from holdfast.puppet.trace_file import unsubscribed_in
from holdfast.runtime.addresses import Address
from holdfast.scenarios.commands import Join, Reconnect
from holdfast.scenarios.drain import is_drained
from holdfast.scenarios.topology import Configuration, Process
from holdfast.scenarios.vicinity import brokers_in_reach

__all__ = ["Cast", "NotDriven"]

#: How long processes may take to come to life, and then the network to come up.
START_MAX_SECONDS: Final = 60.0
#: How long a process may take to say goodbye.
STOP_MAX_SECONDS: Final = 10.0
#: How long a round of reports may take before it is given up: somebody may be frozen in the midst of it.
REPORT_MAX_SECONDS: Final = 1.0


class NotDriven(HoldfastError):
    """A process could not be driven: which, why, and the last it wrote to standard error."""

    def __init__(self, process: str, problem: str, last_words: str = "") -> None:
        said = f"\n{process} wrote last:\n{last_words}" if last_words else ""
        super().__init__(f"{process} {problem}{said}")
        self.process = process
        self.problem = problem
        self.last_words = last_words


class _Ticket(NamedTuple):
    holder: str
    returned: asyncio.Future[Reported | None]
    is_publish: bool  #: until it is given back, the run is not drained


class Cast:
    """All processes, and the tickets they have not given back; to be made in a running loop."""

    def __init__(self, configuration: Configuration, folder: Path) -> None:
        self.configuration = configuration
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.puppets: dict[str, Puppet] = {}
        self.wishes: dict[str, dict[str, int]] = {}  #: lines of the script
        self._folder = folder
        self._began: Instant | None = None
        self._joined: list[int] = []  #: lines of the script
        self._moved: list[int] = []  #: likewise
        self._expelled: set[str] = set()
        self._cuts: dict[tuple[str, str], None] = {}  #: each in both directions
        self._last_ticket = 0
        self._open: dict[int, _Ticket] = {}
        self._not_listening: dict[str, asyncio.Future[None]] = {}
        for process in configuration.processes:
            self._enter(process)

    def _enter(self, process: Process) -> None:
        self.puppets[process.name] = Puppet(process, self._folder, self._on_answer, self._on_death)
        self.wishes[process.name] = {}

    # Coming up

    async def come_up(self) -> None:
        """Start all, and wait until everyone is connected.

        :raises NotDriven: if that takes too long.
        """
        listening = [self._spawn(name) for name in self.puppets]
        await self._in_time("come to life", asyncio.gather(*listening))
        for name in self.puppets:
            self._start(name)
        settled = [self.ask(name, lambda ticket: WhenSettled(True, ticket)) for name in self.puppets]
        await self._in_time("connect", asyncio.gather(*settled))

    async def begin(self, at: Instant) -> None:
        """The script begins; nobody has anything to tell before he knows."""
        self._began = at
        await asyncio.gather(*(self.ask(name, lambda ticket: Begin(at, ticket)) for name in self.puppets))

    def restart(self, name: str) -> asyncio.Future[Reported | None]:
        """Begin another life of a process that is down; what is awaited is that it is connected, or crashes again."""
        self._expelled.discard(name)
        self._spawn(name)
        self._start(name)
        return self.ask(name, lambda ticket: WhenSettled(False, ticket))

    def join(self, command: Join) -> asyncio.Future[Reported | None]:
        """Begin the first life of one more process; what is awaited is that it is connected, or crashes."""
        self.configuration = self.configuration.joined_by(command.process)
        self._joined.append(command.line)
        self._enter(command.process)
        return self.restart(command.process.name)

    def move(self, command: Reconnect, site: str) -> None:
        """A client is on another site from now on."""
        self.configuration = self.configuration.with_client_on(command.subscriber, site)
        self._moved.append(command.line)

    def _spawn(self, name: str) -> asyncio.Future[None]:
        """Begin a life; what is awaited is that the process listens, or crashes."""
        puppet = self.puppets[name]
        try:
            puppet.start()
        except OSError as error:
            raise NotDriven(name, f"could not be started: {error.strerror}") from error
        listening = self._not_listening[name] = asyncio.get_running_loop().create_future()
        puppet.say(Listen(puppet.port or puppet.process.address.port, is_again=puppet.lives > 1))
        return listening

    def _start(self, name: str) -> None:
        order = Start(
            addresses={each: self._address(puppet) for each, puppet in self.puppets.items() if puppet.port},
            joined=self._joined,
            moved=self._moved,
            cut_off=[other for one, other in self._cuts if one == name],
            wishes=self._wishes_left(name),
            began=self._began,
        )
        self.puppets[name].say(order)

    def _wishes_left(self, name: str) -> list[int]:
        """What a process begins with. One that was frozen may have crashed without having heard the end of a wish.

        So it is over when it was heard, as in the simulator, and that is in the trace, whose names are used once.
        """
        wishes = self.wishes[name]
        for subscription in unsubscribed_in(trace_of(self._folder, name)) if wishes else ():
            wishes.pop(subscription, None)
        return list(wishes.values())

    def _address(self, puppet: Puppet) -> str:
        return str(Address(puppet.process.address.host, puppet.port))

    async def _in_time(self, what: str, done: Awaitable[object]) -> None:
        try:
            async with asyncio.timeout(START_MAX_SECONDS):
                await done
        except TimeoutError:
            late = [*self._not_listening, *(ticket.holder for ticket in self._open.values())]
            problem = f"did not {what} within {START_MAX_SECONDS:g} s"
            raise NotDriven(late[0], problem, self.puppets[late[0]].last_words()) from None

    # Going

    def crash(self, name: str) -> None:
        """Kill a process; nobody waits for its answers any more."""
        self.puppets[name].kill()
        self._drop_tickets(name)

    def _drop_tickets(self, name: str) -> None:
        if (listening := self._not_listening.pop(name, None)) is not None:
            listening.set_result(None)
        for number in [number for number, ticket in self._open.items() if ticket.holder == name]:
            self._give_back(number, None)

    async def leave(self, name: str, line: int) -> None:
        """Let a client leave as its line of the script says: when what it has published is accepted, it goes."""
        puppet = self.puppets[name]
        life = puppet.lives
        await self.ask(name, lambda ticket: Perform(line, None, ticket))
        if puppet.is_up and puppet.lives == life:
            puppet.say(Stop())
            puppet.let_go()
            await puppet.wait_gone()
            self._drop_tickets(name)

    def expel(self, name: str) -> str | None:
        """A client is not expected back. The broker to be told, the nearest that runs and knows it, if there is one."""
        near = [self.puppets[broker] for broker in brokers_in_reach(self.configuration, name)]
        broker = next((each.name for each in near if each.is_up and not each.is_frozen), None)
        if broker is not None:
            self._expelled.add(name)
        return broker

    async def stop(self) -> None:
        """Clients leave, then brokers stop; the frozen are killed.

        :raises NotDriven: if one takes too long.
        """
        for kinds in (("publisher", "subscriber"), ("broker",)):
            going = [each for each in self.puppets.values() if each.is_up and each.process.kind in kinds]
            for puppet in going:
                if puppet.is_frozen:
                    self.crash(puppet.name)
                else:
                    puppet.say(Stop())
                    puppet.let_go()
            for puppet in going:
                try:
                    await asyncio.wait_for(puppet.wait_gone(), STOP_MAX_SECONDS)
                except TimeoutError:
                    problem = f"did not stop within {STOP_MAX_SECONDS:g} s"
                    raise NotDriven(puppet.name, problem, puppet.last_words()) from None

    def kill_all(self) -> None:
        """Leave no process behind."""
        for puppet in self.puppets.values():
            puppet.kill()
        self.failure.cancel()

    # Cutting

    def cut(self, one: str, others: Iterable[str]) -> None:
        """Remember that nothing is to pass between one and these others."""
        for other in others:
            self._cuts[one, other] = self._cuts[other, one] = None

    def heal(self, one: str, others: Iterable[str]) -> None:
        """Undo ``cut``."""
        for other in others:
            self._cuts.pop((one, other), None)
            self._cuts.pop((other, one), None)

    # Speaking

    @property
    def is_publishing(self) -> bool:
        """Whether a Publish command is not finished."""
        return any(ticket.is_publish for ticket in self._open.values())

    def ask(
        self, name: str, order: Callable[[int], Order], *, is_publish: bool = False
    ) -> asyncio.Future[Reported | None]:
        """Give an order with a ticket; what is awaited is the ticket's return, or the process's crash."""
        self._last_ticket += 1
        returned: asyncio.Future[Reported | None] = asyncio.get_running_loop().create_future()
        self._open[self._last_ticket] = _Ticket(name, returned, is_publish)
        self.puppets[name].say(order(self._last_ticket))
        return returned

    async def reports(self) -> Mapping[str, Reported] | None:
        """What everybody who can speak holds; None if somebody did not answer in time."""
        asked = {
            name: self.ask(name, Report)
            for name, puppet in self.puppets.items()
            if puppet.is_up and not puppet.is_frozen
        }
        if asked:
            await asyncio.wait(asked.values(), timeout=REPORT_MAX_SECONDS)
        for number in [number for number, ticket in self._open.items() if ticket.returned in asked.values()]:
            self._give_back(number, None)
        answers = {name: returned.result() for name, returned in asked.items()}
        given = {name: answer for name, answer in answers.items() if answer is not None}
        return given if len(given) == len(asked) else None

    def is_drained(self, reports: Mapping[str, Reported]) -> bool:
        """Whether nobody who is connected holds anything, as far as these reports say."""
        running = {name: report.standing for name, report in reports.items() if name not in self._expelled}
        frozen = [name for name, puppet in self.puppets.items() if puppet.is_frozen]
        return is_drained(self.configuration, running, frozen, lambda a, b: (a, b) in self._cuts)

    def _give_back(self, number: int, answer: Reported | None) -> None:
        ticket = self._open.pop(number, None)
        if ticket is not None and not ticket.returned.done():
            ticket.returned.set_result(answer)

    def _on_answer(self, puppet: Puppet, answer: Answer) -> None:
        match answer:
            case Listening(port):
                puppet.port = port
                self._not_listening.pop(puppet.name).set_result(None)
            case Failed(problem):
                puppet.let_go()
                self.fail(NotDriven(puppet.name, problem))
            case Completed(ticket):
                self._give_back(ticket, None)
            case Reported(ticket):
                self._give_back(ticket, answer)

    def _on_death(self, puppet: Puppet, how: str) -> None:
        self.fail(NotDriven(puppet.name, how, puppet.last_words()))

    def fail(self, error: BaseException) -> None:
        """The run cannot go on."""
        if not self.failure.done():
            self.failure.set_exception(error)
