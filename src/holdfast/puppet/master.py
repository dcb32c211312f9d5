"""The Puppet Master: a scenario with a real process for each of its processes [contracts.md §4, SESDAD §4].

It runs the script as ``simulator.run`` does, in real time. Commands that wait do so for five seconds at most; ``At``
lines run at their time and wait for nothing; the end of the script waits for the last of them, drains, and stops every
process. ``director`` carries out the single lines, ``cast`` holds the processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.puppet.cast import Cast
from holdfast.puppet.director import Director
from holdfast.puppet.drain import are_at_rest
from holdfast.puppet.folder import CONFIGURATION_FILE, MASTERS_TRACE, SCRIPT_FILE, trace_of
from holdfast.puppet.trace_file import TraceFile, read_trace_file
from holdfast.runtime import clock
from holdfast.scenarios.commands import (
    ClockShift,
    Command,
    Crash,
    Drain,
    Freeze,
    Publish,
    SetLink,
    Status,
    Unfreeze,
    Wait,
)
from holdfast.scenarios.script import COMPLETION_MAX_NS, FINAL_DRAIN_NS, Script
from holdfast.scenarios.topology import MASTER, Configuration
from holdfast.scenarios.trace import TraceLine, merge, run_fields

__all__ = ["Master"]

#: Publishers are told this long before its time what they are to publish; see ``_announce``.
LEAD_NS: Final = 30 * MILLISECOND
#: Between two rounds of reports while draining.
REPORT_PAUSE_SECONDS: Final = 0.02

#: Commands between whose line and the next no time passes in the script, nor in the simulator.
_TIMELESS: Final = (Publish, Status, Crash, Freeze, Unfreeze, SetLink, ClockShift)


class Master:
    """One performance of a script; ``folder`` is empty, and the run's own."""

    def __init__(
        self, configuration: Configuration, script: Script, folder: Path, say: Callable[[str], None]
    ) -> None:
        self.configuration = configuration
        self.script = script
        self.drained = False
        self._folder = folder
        self._say = say
        self._file = TraceFile(folder / MASTERS_TRACE, MASTER, clock.now)
        self._tasks: set[asyncio.Task[None]] = set()
        self._announced: set[int] = set()  #: lines of the script

    async def play(self) -> None:
        """Run the script to its end; no process lives when this returns or raises.

        :raises NotDriven: if a process fails, or cannot be started.
        """
        (self._folder / CONFIGURATION_FILE).write_text(str(self.configuration), "utf-8")
        (self._folder / SCRIPT_FILE).write_text(str(self.script), "utf-8")
        self.cast = Cast(self.configuration, self._folder)
        self._director = Director(self.cast, self._write, self._keep)
        playing = asyncio.ensure_future(self._play())
        try:
            await asyncio.wait((playing, self.cast.failure), return_when=asyncio.FIRST_COMPLETED)
            for ended in (self.cast.failure, playing):
                if ended.done():
                    ended.result()
        finally:
            await _cancelled(playing, *self._tasks)
            self.cast.kill_all()
            self._write("end", drained=self.drained)
            self._file.close()

    def trace(self) -> list[TraceLine]:
        """What everybody has written."""
        everybody = self.script.network(self.configuration).processes
        theirs = [trace_of(self._folder, process.name) for process in everybody]
        return merge(map(read_trace_file, [self._folder / MASTERS_TRACE, *theirs]))

    def _write(self, kind: str, **fields: Any) -> None:
        if self._file.began is not None:
            self._file.write(kind, fields)
            self._file.flush()

    # The course of the script

    async def _play(self) -> None:
        await self.cast.come_up()
        began = self._file.began = clock.now() + LEAD_NS
        await self.cast.begin(began)
        timed = asyncio.ensure_future(self._run_timed(began))
        self._keep(timed)
        await self._run_steps(began)
        await timed
        self.drained = await self._drain(FINAL_DRAIN_NS)
        await self.cast.stop()

    async def _run_timed(self, began: Instant) -> None:
        for at in self.script.timed:
            if isinstance(at.command, Publish):
                self._announce(at.command, began + at.at_ns)
        for at in self.script.timed:
            await _sleep_until(began + at.at_ns)
            self._say(str(at))
            self._director.perform(at.command)

    async def _run_steps(self, began: Instant) -> None:
        """One line after the other, each at its instant of the script's own time.

        That time is as in the simulator: Wait lasts as long as it says, and between lines that wait for nobody none
        passes. Only after a line that did is it set by the clock.
        """
        steps = self.script.steps
        instant: Instant | None = began
        self._announce_all(_coming(steps, 0), began)
        await _sleep_until(began)
        everybody = self.script.network(self.configuration)
        self._write("run", **run_fields(everybody, "processes"))
        for position, command in enumerate(steps):
            if instant is None:
                coming = _coming(steps, position)
                instant = clock.now() + (LEAD_NS if coming else 0)
                self._announce_all(coming, instant)
            await _sleep_until(instant)
            self._say(str(command))
            await self._run(command, instant)
            if isinstance(command, Wait):
                instant += command.duration_ns
            elif not isinstance(command, _TIMELESS):
                instant = None
        if instant is not None:
            await _sleep_until(instant)

    async def _run(self, command: Command, instant: Instant) -> None:
        match command:
            case Wait():
                return  # until the next line's instant
            case Publish():
                if command.line not in self._announced:
                    self._director.publish(command, instant)
            case Drain(limit_ns):
                await self._drain(limit_ns)
            case _:
                completions = self._director.perform(command)
                if completions:
                    await asyncio.wait(completions, timeout=COMPLETION_MAX_NS / SECOND)

    def _announce_all(self, coming: list[tuple[int, Publish]], instant: Instant) -> None:
        for offset_ns, command in coming:
            self._announced.add(command.line)
            self._announce(command, instant + offset_ns)

    def _announce(self, command: Publish, at: Instant) -> None:
        """Tell a publisher shortly before its time what it is to publish then.

        So the timetables of its Publish commands fit together as in virtual time, and give the events the same
        numbers, however late orders arrive and timers fire.
        """
        if at - LEAD_NS <= clock.now():
            self._director.publish(command, at)
        else:
            self._keep(asyncio.ensure_future(self._announce_later(command, at)))

    async def _announce_later(self, command: Publish, at: Instant) -> None:
        await _sleep_until(at - LEAD_NS)
        self._director.publish(command, at)

    async def _drain(self, limit_ns: int) -> bool:
        """Wait until everything has arrived; whether it has in time."""
        deadline = clock.now() + limit_ns
        earlier = None
        while True:
            later = None if self.cast.is_publishing else await self.cast.reports()
            if later is not None and not self.cast.is_drained(later):
                later = None
            if later is not None and are_at_rest(earlier, later):
                return True
            if clock.now() >= deadline:
                return False
            earlier = later
            await asyncio.sleep(REPORT_PAUSE_SECONDS)

    def _keep(self, task: asyncio.Task[None]) -> None:
        """Something that goes on in the background; if it fails, so does the run."""
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.cast.fail(error)


def _coming(steps: Sequence[Command], position: int) -> list[tuple[int, Publish]]:
    """What is published from here on until somebody has to be waited for, and how long after here.

    What is said to a publisher after it was struck is not for it to know before.
    """
    found: list[tuple[int, Publish]] = []
    struck: set[str] = set()
    offset_ns = 0
    for command in islice(steps, position, None):
        match command:
            case Crash(name) | Freeze(name):
                struck.add(name)
            case Publish() if command.publisher not in struck:
                found.append((offset_ns, command))
            case Wait(duration_ns):
                offset_ns += duration_ns
            case _ if not isinstance(command, _TIMELESS):
                break
    return found


async def _sleep_until(instant: Instant) -> None:
    await asyncio.sleep(max(0, instant - clock.now()) / SECOND)
    while clock.now() < instant:  # a timer may fire a moment early
        await asyncio.sleep(0)


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
