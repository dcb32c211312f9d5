"""One process of the scenario as the master holds it: started, spoken to, stopped in its tracks, killed.

The process gets a pipe each for orders and answers. When the master is gone, killed without a chance to clean up, its
end of the pipes is closed and the process exits; a process that is stopped at that moment could not notice, so it also
asks Linux to be killed with its parent.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from holdfast.puppet.control import Answer, Order, decode_answer, encode
from holdfast.puppet.folder import home_of
from holdfast.scenarios.topology import Process

__all__ = ["Puppet"]

#: How much of what a process wrote to standard error is shown when it fails.
LAST_LINES: Final = 10
_LAST_BYTES: Final = 4096
_READ_BYTES: Final = 1 << 16


class Puppet:
    """Life after life of one process; methods belong to the loop's thread.

    ``on_answer`` gets what it says, ``on_death`` is called when it has gone without having been told to.
    """

    def __init__(
        self,
        process: Process,
        folder: Path,
        on_answer: Callable[[Puppet, Answer], None],
        on_death: Callable[[Puppet, str], None],
    ) -> None:
        self.process = process
        self.name = process.name
        self.port = 0  #: the one it got, once it has one
        self.is_frozen = False
        self.lives = 0
        self._folder = folder
        self._on_answer = on_answer
        self._on_death = on_death
        self._child: subprocess.Popen[bytes] | None = None
        self._is_told_to_go = False
        self._gone = asyncio.Event()
        self._said = b""  #: the beginning of a line
        self._unsent = b""  #: what the pipe would not take: a frozen process reads no orders

    @property
    def is_up(self) -> bool:
        """Whether it lives, frozen or not."""
        return self._child is not None

    @property
    def pid(self) -> int | None:
        """Its id, while it lives."""
        return None if self._child is None else self._child.pid

    @property
    def _errors(self) -> Path:
        return home_of(self._folder, self.name) / "stderr"

    def start(self) -> None:
        """Begin a life; the first thing to say to it is ``Start``."""
        assert not self.is_up, f"{self.name} is up"
        self._errors.parent.mkdir(parents=True, exist_ok=True)
        with self._errors.open("ab") as errors:
            child = subprocess.Popen(
                [sys.executable, "-m", "holdfast.puppet.process", str(self._folder), self.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is for the master, who then stops the others
            )
        assert child.stdin is not None
        assert child.stdout is not None
        self._child = child
        self.lives += 1
        self.is_frozen = self._is_told_to_go = False
        self._gone.clear()
        self._said = self._unsent = b""
        os.set_blocking(child.stdin.fileno(), False)
        os.set_blocking(child.stdout.fileno(), False)
        asyncio.get_running_loop().add_reader(child.stdout.fileno(), self._hear)

    def say(self, order: Order) -> None:
        """Give an order; it is carried out after those before it."""
        assert self._child is not None, f"{self.name} is down"
        is_waiting = bool(self._unsent)
        self._unsent += encode(order)
        if not is_waiting:
            self._send()

    def let_go(self) -> None:
        """It has been told to go: its end with status 0 is no surprise."""
        self._is_told_to_go = True

    async def wait_gone(self) -> None:
        """Wait until this life has ended."""
        await self._gone.wait()

    def freeze(self) -> None:
        """Stop it without its knowing."""
        assert self._child is not None
        self._child.send_signal(signal.SIGSTOP)
        self.is_frozen = True

    def unfreeze(self) -> None:
        """Let it go on."""
        assert self._child is not None
        self._child.send_signal(signal.SIGCONT)
        self.is_frozen = False

    def kill(self) -> None:
        """End its life at once; nothing more is heard of it."""
        if self._child is not None:
            self._child.kill()
            self._bury()

    def last_words(self) -> str:
        """The last lines it wrote to standard error, in all its lives."""
        try:
            with self._errors.open("rb") as errors:
                errors.seek(max(0, errors.seek(0, os.SEEK_END) - _LAST_BYTES))
                text = errors.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-LAST_LINES:])

    # The pipes

    def _send(self) -> None:
        assert self._child is not None
        assert self._child.stdin is not None
        pipe = self._child.stdin.fileno()
        loop = asyncio.get_running_loop()
        try:
            self._unsent = self._unsent[os.write(pipe, self._unsent) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._unsent = b""  # it is going, and whoever hears that will know why
        if self._unsent:
            loop.add_writer(pipe, self._send)
        else:
            loop.remove_writer(pipe)

    def _hear(self) -> None:
        assert self._child is not None
        assert self._child.stdout is not None
        try:
            data = os.read(self._child.stdout.fileno(), _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._on_end()
            return
        *lines, self._said = (self._said + data).split(b"\n")
        for line in lines:
            try:
                answer = decode_answer(line)
            except msgspec.DecodeError as error:
                self._on_death(self, f"said what no process says: {line[:200]!r} ({error})")
                return
            self._on_answer(self, answer)
            if self._child is None:
                return  # what it said was the end of it

    def _on_end(self) -> None:
        status = self._bury()
        if status or not self._is_told_to_go:
            how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
            self._on_death(self, how)

    def _bury(self) -> int:
        child, self._child = self._child, None
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        loop = asyncio.get_running_loop()
        loop.remove_reader(child.stdout.fileno())
        loop.remove_writer(child.stdin.fileno())
        child.stdin.close()
        child.stdout.close()
        self.is_frozen = False
        self._gone.set()
        return child.wait()
