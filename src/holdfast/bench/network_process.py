"""A process that is measured, seen from the one that measures; it never outlives it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Final

from holdfast.bench.closing import Closing
from holdfast.bench.network_wire import BenchFailed

__all__ = ["Measured"]

STOP_SECONDS: Final = 20.0


class Measured(Closing):
    """``python -m holdfast.bench.network_node ARGUMENTS``, from its first line of output to its end."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "holdfast.bench.network_node", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is ours; the process ends when its standard input does
        )
        self.port = int(self._answer()["port"])

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BenchFailed(f"a measured process ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self) -> dict[str, Any]:
        """How it is: ``cpu``, the seconds of processor time it has used, and what else its role tells."""
        assert self._process.stdin is not None
        self._process.stdin.write("?\n")
        self._process.stdin.flush()
        return self._answer()

    @property
    def process_id(self) -> int:
        """Of the process."""
        return self._process.pid

    def signal(self, number: int) -> None:
        """Kill it, stop it, let it go on."""
        self._process.send_signal(number)

    def close(self) -> None:
        """End it, and wait until it has."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
