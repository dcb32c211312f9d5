"""Brokers of durable streams as real processes on real folders: started, killed, stopped, and what they logged.

Each is `holdfast broker NAME` on a port that stays its own, so that clients and neighbours find it again. What it keeps
is in a folder of its own, where the tests look, copy and damage while it is down.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import wraps
from io import StringIO
from pathlib import Path
from typing import Any, ParamSpec

from holdfast.cli.free_ports import free_ports
from holdfast.cli.main import main as holdfast_command

PATIENCE_S = 30.0

Arguments = ParamSpec("Arguments")

#: One stream of everything, logged; a crash is noticed soon, and who is only slow is not taken for crashed.
STREAM = """
[[stream]]
name = "all"
topics = ["#"]
guarantee = "durable"
"""
TIMES = """
neighbours.heartbeat_ms = 200
neighbours.detect_after_ms = 3000
neighbours.probe_every_ms = 100
"""


class Brokers:
    """Brokers by name, each with the name of its parent; ``folders`` says who keeps its data elsewhere.

    ``first`` is code that each of them runs before anything else, for tests that want a broken one; ``readers``: each
    has a log reader.
    """

    def __init__(
        self,
        folder: Path,
        parents: Mapping[str, str | None],
        *,
        streams: str = STREAM,
        delta: int = 0,
        folders: Mapping[str, Path] | None = None,
        first: str = "",
        readers: bool = False,
    ) -> None:
        self.folder = folder
        self._code = f"{first}\nimport sys\nfrom holdfast.cli.main import main\nsys.exit(main())"
        self._folders = {name: (folders or {}).get(name, folder / "data" / name) for name in parents}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._leash, self._our_end = os.pipe()  # none of them outlives us, whatever ends us
        ports = free_ports(3 * len(parents))
        self._listen = {name: f"127.0.0.1:{ports.pop()}" for name in parents}
        self._admin = {name: f"127.0.0.1:{ports.pop()}" for name in parents}
        self._readers = {name: f"127.0.0.1:{ports.pop()}" for name in parents} if readers else {}
        self.file = folder / "network.toml"
        self.file.write_text(self._written(parents, streams, delta))

    def _written(self, parents: Mapping[str, str | None], streams: str, delta: int) -> str:
        lines = ['name = "tested"', f"delta = {delta}", TIMES]
        for name, parent in parents.items():
            lines += ["[[broker]]", f'name = "{name}"', f"data = {json.dumps(str(self._folders[name]))}"]
            lines += [f'listen = "{self._listen[name]}"', f'admin = "{self._admin[name]}"']
            lines += [f'parent = "{parent}"'] if parent else []
            lines += [f'reader = "{self._readers[name]}"'] if self._readers else []
        return "\n".join([*lines, streams])

    def url(self, name: str) -> str:
        """Where clients find a broker."""
        return f"holdfast://{self._listen[name]}"

    def port(self, name: str) -> int:
        """Where it listens."""
        return int(self._listen[name].rpartition(":")[2])

    def admin_port(self, name: str) -> int:
        """Where it tells of itself."""
        return int(self._admin[name].rpartition(":")[2])

    def reader_port(self, name: str) -> int:
        """Where its log reader serves."""
        return int(self._readers[name].rpartition(":")[2])

    def pid(self, name: str) -> int:
        """Its process, while it runs."""
        return self._running[name].pid

    def data(self, name: str) -> Path:
        """What it keeps."""
        return self._folders[name]

    def logs(self, name: str) -> list[Path]:
        """The folders of its logs: of the pubends it has, and of what matched here."""
        return sorted(path.parent for path in self.data(name).glob("streams/*/manifest*"))

    # Their lives

    async def start(self, *names: str) -> None:
        """Begin the lives of some, and wait until they listen."""
        for name in names:
            self.spawn(name)
        for name in names:
            await self.wait_for("listening", name)

    def spawn(self, name: str) -> None:
        """Begin the life of one; ``wait_for`` waits for it."""
        assert name not in self._running
        command = [sys.executable, "-c", self._code, "broker", name]
        with self._log(name).open("wb") as log:
            self._running[name] = subprocess.Popen(
                [*command, "--network", str(self.file), "--log-format", "json", "--leash", str(self._leash)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={key: text for key, text in os.environ.items() if not key.startswith("HOLDFAST_")},
                pass_fds=(self._leash,),
            )

    async def wait_for(self, text: str, name: str) -> dict[str, Any]:
        """Wait until a broker has logged something, in this life; the line it is in."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                is_over = self._running[name].poll() is not None
                found = [line for line in self.said(name) if line.get("text") == text]
                if found:
                    return found[0]
                assert not is_over, f"{name} ended:\n{self._log(name).read_text()}"
                await asyncio.sleep(0.01)

    async def wait_delivered(self, name: str) -> None:
        """Wait until everything in the logs of a broker was delivered, as far as it goes, and that is written down."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                status = await asyncio.to_thread(self.status, name)
                if all(pubend["delivered"] >= pubend["last"] for pubend in status["durable"]["pubends"]):
                    return
                await asyncio.sleep(0.01)

    def status(self, name: str) -> dict[str, Any]:
        """What it says of itself; not to be called in a loop."""
        with urllib.request.urlopen(f"http://{self._admin[name]}/status", timeout=PATIENCE_S) as response:
            found: dict[str, Any] = json.loads(response.read())
            return found

    def said(self, name: str) -> list[dict[str, Any]]:
        """What a broker has logged in its last life, but for what is half written."""
        lines = self._log(name).read_bytes().split(b"\n")[:-1]
        return [json.loads(line) if line.startswith(b"{") else {"words": line.decode()} for line in lines]

    def words(self, name: str) -> str:
        """The same, as it is."""
        return self._log(name).read_text()

    def freeze(self, name: str) -> None:
        """It does nothing more, not even die; then kill it, or let it go on."""
        self._running[name].send_signal(signal.SIGSTOP)

    def unfreeze(self, name: str) -> None:
        """It goes on."""
        self._running[name].send_signal(signal.SIGCONT)

    def kill(self, name: str) -> None:
        """As kill -9 does."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def stop(self, name: str) -> None:
        """As an operator does: everything is written."""
        self._running[name].send_signal(signal.SIGTERM)
        assert self.ended(name) == 0, self.words(name)

    def ended(self, name: str) -> int:
        """The status of one that ends by itself."""
        status = self._running[name].wait(PATIENCE_S)
        del self._running[name]
        return status

    def is_running(self, name: str) -> bool:
        """Whether it was started, and has not ended."""
        return name in self._running and self._running[name].poll() is None

    def close(self) -> None:
        """Leave no process behind."""
        for name in list(self._running):
            self.kill(name)
        os.close(self._leash)
        os.close(self._our_end)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@contextmanager
def brokers_in(folder: Path, parents: Mapping[str, str | None], **options: Any) -> Iterator[Brokers]:
    """Brokers that end with the block."""
    brokers = Brokers(folder, parents, **options)
    try:
        yield brokers
    finally:
        brokers.close()


def verified(log: Path) -> tuple[int, str]:
    """`holdfast log verify LOG`: its status, and what it says."""
    with redirect_stdout(StringIO()) as said:
        status = holdfast_command(["log", "verify", str(log)])
    return status, said.getvalue()


def patiently(test: Callable[Arguments, Awaitable[None]]) -> Callable[Arguments, None]:
    """A test that is a coroutine, and whose processes may take their time on a busy machine."""

    @wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 4 * PATIENCE_S))

    return run
