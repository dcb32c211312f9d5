"""Processes that end with us, whatever ends us.

Each is started in a session of its own, so that Ctrl-C reaches only us and we stop them in order. If we are killed
outright, they notice by the *leash*: a pipe whose other end is ours alone, so it reads as ended when we are gone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, NamedTuple, Self

__all__ = ["STOP_WITHIN_S", "Children", "Death", "hold_leash"]

#: How long a child may take to stop when it is asked to; then it is killed.
STOP_WITHIN_S: Final = 10.0
#: A longer line of a child's output is cut there.
LINE_BYTES_MAX: Final = 64 * 1024


def hold_leash(descriptor: int) -> None:
    """In a child: stop as if asked to when the other end of this pipe is gone, and if that takes too long, at once."""

    def watch() -> None:
        with suppress(OSError):
            os.read(descriptor, 1)  # nothing is ever written
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(STOP_WITHIN_S)
        os._exit(1)

    threading.Thread(target=watch, name="leash", daemon=True).start()


class Death(NamedTuple):
    """A child that ended by itself."""

    name: str
    status: int  #: as ``waitpid`` has it: below 0, the signal

    def __str__(self) -> str:
        how = (
            f"was killed by {_signal_name(-self.status)}"
            if self.status < 0
            else f"ended with status {self.status}"
        )
        return f"{self.name} {how}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Children:
    """Processes of ours; leaving the block leaves none of them behind.

    ``on_line`` is given every line they write, with the name of who wrote it, and must not raise; ``{leash}`` in the
    arguments of a child stands for the descriptor it is to call ``hold_leash`` with.
    """

    def __init__(self, on_line: Callable[[str, str], None]) -> None:
        self._on_line = on_line
        self._processes: dict[str, Process] = {}
        self._readers: list[asyncio.Task[None]] = []
        self._watches: dict[str, asyncio.Task[int]] = {}
        self._leash, self._our_end = os.pipe()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.stop(*self._processes)
        finally:
            for process in self._processes.values():
                if process.returncode is None:  # we were interrupted while they stopped
                    process.kill()
            os.close(self._our_end)
            os.close(self._leash)
            if self._watches:
                await asyncio.wait(self._watches.values())
                await asyncio.wait(self._readers, timeout=STOP_WITHIN_S)  # their last words

    async def start(
        self,
        name: str,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start ``python -m module arguments``, in our environment unless another is given; again, if it has ended."""
        assert name not in self._watches or self._watches[name].done()
        command = [sys.executable, "-m", module, *(a.replace("{leash}", str(self._leash)) for a in arguments)]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            env=environment,
            pass_fds=(self._leash,),
            start_new_session=True,
        )
        self._processes[name] = process
        assert process.stdout is not None
        self._readers.append(asyncio.create_task(self._read(name, process.stdout)))
        self._watches[name] = asyncio.create_task(process.wait())

    def pid(self, name: str) -> int:
        """Of the process that was started last under a name."""
        return self._processes[name].pid

    async def _read(self, name: str, output: asyncio.StreamReader) -> None:
        rest = b""
        while data := await output.read(LINE_BYTES_MAX):
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > LINE_BYTES_MAX:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self._on_line(name, line.decode(errors="replace"))
        if rest:
            self._on_line(name, rest.decode(errors="replace"))

    async def first_death(self, *names: str) -> Death:
        """Wait until one of these ends."""
        watches = {self._watches[name]: name for name in names}
        done, _ = await asyncio.wait(watches, return_when=asyncio.FIRST_COMPLETED)
        task = next(task for task in watches if task in done)
        return Death(watches[task], task.result())

    async def kill(self, name: str) -> None:
        """End one outright, as a crash would, and wait for it."""
        with suppress(ProcessLookupError):
            self._processes[name].kill()
        await asyncio.wait([self._watches[name]])

    async def stop(self, *names: str) -> list[str]:
        """Ask those of these that run to stop, and wait for it; returns those that had to be killed."""
        watches = {self._watches[name]: name for name in names if name in self._watches}
        for name in watches.values():
            with suppress(ProcessLookupError):
                self._processes[name].terminate()
        killed: list[str] = []
        if watches:
            _, late = await asyncio.wait(watches, timeout=STOP_WITHIN_S)
            for task in late:
                killed.append(watches[task])
                with suppress(ProcessLookupError):
                    self._processes[watches[task]].kill()
            await asyncio.gather(*watches)
        return killed
