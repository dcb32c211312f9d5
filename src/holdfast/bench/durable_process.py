"""Brokers of durable streams as processes, seen from the one that measures; they never outlive it."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.bench.closing import Closing
from holdfast.bench.network_wire import BenchFailed

__all__ = ["BrokerProcess", "Usage", "start_chain"]

STOP_SECONDS: Final = 20.0
READY_SECONDS: Final = 30.0
NODE: Final = "holdfast.bench.durable_node"


class Usage(NamedTuple):
    """What processes have used since they began."""

    cpu_seconds: float
    written_bytes: int

    def since(self, before: Usage) -> Usage:
        """The difference."""
        return Usage(self.cpu_seconds - before.cpu_seconds, self.written_bytes - before.written_bytes)


class BrokerProcess(Closing):
    """``python -m holdfast.bench.durable_node NAME DATA ARGUMENTS``, from its first line of output to its end."""

    def __init__(self, name: str, data: Path, *arguments: str, module: str = NODE) -> None:
        self.name = name
        self._command = [sys.executable, "-m", module, name, str(data), *arguments]
        self._process = self._started()
        try:
            self.port = int(self._answer()["port"])
        except BaseException:  # interrupted: nobody else knows of it yet, and its folder is about to go
            self.close()
            raise

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is ours; the process ends when its standard input does
        )

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._close_pipes()
            raise BenchFailed(f"the broker {self.name} ended with status {status}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self) -> dict[str, Any]:
        """How it is: ``cpu``, ``written``, and the broker's own status."""
        assert self._process.stdin is not None
        self._process.stdin.write("?\n")
        self._process.stdin.flush()
        return self._answer()

    def usage(self) -> Usage:
        """What it has used since it began."""
        answer = self.ask()
        return Usage(answer["cpu"], answer["written"])

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._close_pipes()

    def start_again(self) -> None:
        """Start it where it was before, with what is on its disk; then it is not there yet (``has_started``)."""
        if "--port" not in self._command:
            self._command += ["--port", str(self.port)]
        self._process = self._started()

    def has_started(self) -> bool:
        """Whether it listens; to be asked until it does."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], 0)[0]:
            return False
        self._answer()
        return True

    def close(self) -> None:
        """End it, and wait until it has."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def start_chain(stack: ExitStack, folder: Path, names: Sequence[str], *arguments: str) -> list[BrokerProcess]:
    """Brokers in a row, each the child of the one before, all in session with their neighbours."""
    chain: list[BrokerProcess] = []
    for i, name in enumerate(names):
        own = list(arguments)
        if chain:
            own += ["--parent", chain[-1].name, f"127.0.0.1:{chain[-1].port}"]
        if i < len(names) - 1:
            own += ["--child", names[i + 1]]
        chain.append(stack.enter_context(BrokerProcess(name, folder / name, *own)))
    deadline = time.monotonic() + READY_SECONDS
    while not all(_is_settled(broker) for broker in chain):
        if time.monotonic() > deadline:
            raise BenchFailed(f"a chain of {len(names)} brokers did not form within {READY_SECONDS:g} s")
    return chain


def _is_settled(broker: BrokerProcess) -> bool:
    status = broker.ask()
    return bool(status["ready"]) and all(each["state"] == "active" for each in status["neighbours"])
