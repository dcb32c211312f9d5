"""A broker in a process of its own, for tests that kill it, watch its memory, or must not share its loop."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from raw_peer import PATIENCE_SECONDS

CODE = """
import json, sys
{sabotage}
from holdfast.broker.settings import Neighbour, Settings
from holdfast.runtime import logs
from holdfast.runtime.addresses import Address
from holdfast.runtime.broker_process import run_broker
name, *neighbours = sys.argv[1:]
logs.write_to(sys.stderr)
any_port = Address("127.0.0.1", 0)
def on_start(service):
    print(json.dumps([service.listen.port, service.admin.port]), flush=True)
settings = Settings(name, 1, tuple(Neighbour(neighbour, None) for neighbour in neighbours))
sys.exit(run_broker(settings, any_port, any_port, on_start=on_start))
"""


@dataclass
class ChildBroker:
    """A running broker process, its two ports, and after its end what it logged."""

    process: subprocess.Popen[str]
    port: int
    admin_port: int
    errors: IO[str]
    log: list[dict[str, Any]] = field(default_factory=list)

    def page(self, path: str) -> str:
        url = f"http://127.0.0.1:{self.admin_port}{path}"
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as response:
            return str(response.read().decode())

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.page("/status"))
        return found

    @property
    def memory_bytes(self) -> int:
        [line] = [
            line for line in self.page("/metrics").splitlines() if line.startswith("process_resident_memory")
        ]
        return int(float(line.split()[1]))

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal; the exit status."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Wait for the end; the exit status."""
        status = self.process.wait(PATIENCE_SECONDS)
        self.errors.seek(0)
        self.log = [json.loads(line) for line in self.errors]
        return status


@contextmanager
def child_broker(
    errors: IO[str], *neighbours: str, name: str = "b1", sabotage: str = ""
) -> Iterator[ChildBroker]:
    """Started, and killed at the end if it still runs; ``errors`` is a file that takes its log.

    ``sabotage`` is code that runs in it first, for tests that want a broken broker.
    """
    command = [sys.executable, "-c", CODE.format(sabotage=sabotage), name, *neighbours]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        port, admin_port = json.loads(process.stdout.readline())
        yield ChildBroker(process, port, admin_port, errors)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
