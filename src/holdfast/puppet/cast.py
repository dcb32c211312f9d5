"""The processes of a scenario as real ones: how they come up, are spoken to, crash, return, and go.

A process that ends without having been told to, or cannot be started, is the end of the run: ``failure`` is set. What a
subscriber subscribes to and who is cut off from whom outlives a process; it is told again when it starts again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.clock import Instant
from holdfast.errors import HoldfastError
from holdfast.puppet.control import (
    Answer,
    Begin,
    Completed,
    Failed,
    Order,
    Report,
    Reported,
    Start,
    Started,
    Stop,
    WhenSettled,
)
from holdfast.puppet.puppet import Puppet
from holdfast.runtime.addresses import Address
from holdfast.scenarios.drain import is_drained
from holdfast.scenarios.topology import Configuration

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
        self.puppets = {
            process.name: Puppet(process, folder, self._on_answer, self._on_death)
            for process in configuration.processes
        }
        self.wishes: dict[str, dict[str, int]] = {name: {} for name in self.puppets}  #: lines of the script
        self._began: Instant | None = None
        self._cuts: dict[tuple[str, str], None] = {}  #: each in both directions
        self._last_ticket = 0
        self._open: dict[int, _Ticket] = {}
        self._starting: dict[str, asyncio.Future[None]] = {}

    # Coming up

    async def come_up(self) -> None:
        """Start all, parents before children, and wait until everyone is connected.

        :raises NotDriven: if that takes too long.
        """
        for name in self.puppets:
            self._spawn(name)
        root = next(name for name in self.puppets if self.configuration.parent_of(name) is None)
        await self._in_time("come to life", self._start_tree(root))
        settled = [self.ask(name, lambda ticket: WhenSettled(True, ticket)) for name in self.puppets]
        await self._in_time("connect", asyncio.gather(*settled))

    async def begin(self, at: Instant) -> None:
        """The script begins; nobody has anything to tell before he knows."""
        self._began = at
        await asyncio.gather(*(self.ask(name, lambda ticket: Begin(at, ticket)) for name in self.puppets))

    def restart(self, name: str) -> Coroutine[Any, Any, None]:
        """Begin another life of a crashed process; what is awaited is that it is connected, or crashes again."""
        self._spawn(name)
        return self._settle(name, self._start(name))

    async def _settle(self, name: str, started: asyncio.Future[None]) -> None:
        await started
        if self.puppets[name].is_up:
            await self.ask(name, lambda ticket: WhenSettled(False, ticket))

    def _spawn(self, name: str) -> None:
        try:
            self.puppets[name].start()
        except OSError as error:
            raise NotDriven(name, f"could not be started: {error.strerror}") from error

    async def _start_tree(self, name: str) -> None:
        await self._start(name)
        below = [each for each in self.puppets if self.configuration.parent_of(each) == name]
        await asyncio.gather(*map(self._start_tree, below))

    def _start(self, name: str) -> asyncio.Future[None]:
        puppet = self.puppets[name]
        parent = self.configuration.parent_of(name)
        started = self._starting[name] = asyncio.get_running_loop().create_future()
        order = Start(
            port=puppet.port or puppet.process.address.port,
            is_again=puppet.lives > 1,
            parent=None if parent is None else self._address(parent),
            cut_off=[other for one, other in self._cuts if one == name],
            wishes=list(self.wishes[name].values()),
            began=self._began,
        )
        puppet.say(order)
        return started

    def _address(self, name: str) -> str:
        puppet = self.puppets[name]
        return str(Address(puppet.process.address.host, puppet.port))

    async def _in_time(self, what: str, done: Awaitable[object]) -> None:
        try:
            async with asyncio.timeout(START_MAX_SECONDS):
                await done
        except TimeoutError:
            late = [*self._starting, *(ticket.holder for ticket in self._open.values())]
            problem = f"did not {what} within {START_MAX_SECONDS:g} s"
            raise NotDriven(late[0], problem, self.puppets[late[0]].last_words()) from None

    # Going

    def crash(self, name: str) -> None:
        """Kill a process; nobody waits for its answers any more."""
        self.puppets[name].kill()
        if (starting := self._starting.pop(name, None)) is not None:
            starting.set_result(None)
        for number in [number for number, ticket in self._open.items() if ticket.holder == name]:
            self._give_back(number, None)

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

    def cut(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Remember that nothing is to pass between these."""
        for one, other in pairs:
            self._cuts[one, other] = self._cuts[other, one] = None

    def heal(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Undo ``cut``."""
        for one, other in pairs:
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
        running = {name: report.standing for name, report in reports.items()}
        frozen = [name for name, puppet in self.puppets.items() if puppet.is_frozen]
        return is_drained(self.configuration, running, frozen, lambda a, b: (a, b) in self._cuts)

    def _give_back(self, number: int, answer: Reported | None) -> None:
        ticket = self._open.pop(number, None)
        if ticket is not None and not ticket.returned.done():
            ticket.returned.set_result(answer)

    def _on_answer(self, puppet: Puppet, answer: Answer) -> None:
        match answer:
            case Started(port):
                puppet.port = port
                self._starting.pop(puppet.name).set_result(None)
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
