"""Servers that somebody else wrote: found, started on a leash, waited for, and their use of the machine read off.

What a server writes is taken from ``write_bytes`` in /proc/PID/io, summed over its session: bytes it caused to be sent
to storage, in whole pages, so a page written twice counts twice. That is what wears a disk out; files are smaller.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.peers_peer import Usage

__all__ = ["Server", "found_program", "found_version", "free_port", "is_in_memory", "output_of"]

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 20.0
POLL_SECONDS: Final = 0.05
LOG_TAIL: Final = 500  #: characters of a server's log that are shown when it fails
TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


def found_program(name: str) -> str | None:
    """Where a program is: beside this Python, where its packages put theirs, or on the PATH."""
    beside = shutil.which(name, path=str(Path(sys.executable).parent))
    return beside or shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


def output_of(*command: str) -> str:
    """What a short command says."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=STOP_SECONDS)
    return done.stdout + done.stderr


def found_version(text: str) -> str:
    """The first number with dots in a text."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return "unknown" if found is None else found[0]


def free_port() -> int:
    """One nobody listens at now."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def is_in_memory(folder: Path) -> bool:
    """Whether the folder is on a file system that forgets: nothing is to be learnt about disks there."""
    place, kind = "", ""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mounted, its_kind, *_ = line.split()
        if folder.resolve().is_relative_to(mounted) and len(mounted) >= len(place):
            place, kind = mounted, its_kind
    return kind in ("tmpfs", "ramfs")


class Server:
    """A command on a leash that listens at a port of this machine."""

    def __init__(
        self, name: str, command: Sequence[str], port: int, log: Path, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self.port = port
        self._log = log
        with log.open("ab") as output:
            self._leash = subprocess.Popen(
                [sys.executable, "-m", "holdfast.bench.peers_leash", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env={**os.environ, **environment},
                text=True,
                start_new_session=True,  # Ctrl-C is ours
            )
        assert self._leash.stdout is not None
        said = self._leash.stdout.readline()
        if not said:
            self.stop()
            raise self._failed("could not be started")
        self._session = int(said)

    def _failed(self, problem: str) -> BenchFailed:
        tail = self._log.read_text(errors="replace").strip()[-LOG_TAIL:]
        return BenchFailed(f"{self.name} {problem}; its log ends: {tail or 'it is empty'}")

    def wait_listening(self) -> None:
        """Wait until somebody can connect.

        :raises BenchFailed: if it ends, or takes too long.
        """
        deadline = time.monotonic() + START_SECONDS
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            if self._leash.poll() is not None:
                raise self._failed(f"ended with status {self._leash.returncode}")
            if time.monotonic() > deadline:
                raise self._failed(f"does not listen after {START_SECONDS:g} s")
            time.sleep(POLL_SECONDS)

    def process_ids(self) -> list[int]:
        """All processes of its session."""
        return [int(fields[0]) for fields in _processes() if int(fields[5]) == self._session]

    def usage(self) -> Usage:
        """Of all processes of its session."""
        ticks = written = 0
        for fields in _processes():
            if int(fields[5]) == self._session:
                ticks += int(fields[13]) + int(fields[14])
                with suppress(OSError):
                    written += _written(int(fields[0]))
        return Usage(ticks / TICKS_PER_SECOND, written)

    def stop(self) -> None:
        """End it, and wait until it has."""
        assert self._leash.stdin is not None
        assert self._leash.stdout is not None
        self._leash.stdin.close()
        try:
            self._leash.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._leash.kill()
            self._leash.wait()
        self._leash.stdout.close()


def _processes() -> list[list[str]]:
    """The fields of /proc/PID/stat, of all processes; the name, which may hold anything, is left empty."""
    found: list[list[str]] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                text = (entry / "stat").read_text()
                found.append([entry.name, "", *text[text.rindex(")") + 2 :].split()])
    return found


def _written(process: int) -> int:
    for line in Path(f"/proc/{process}/io").read_text().splitlines():
        key, _, value = line.partition(": ")
        if key == "write_bytes":
            return int(value)
    return 0
