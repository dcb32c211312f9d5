"""Commands as a user runs them: real processes, waited for by what they say; and networks of them on free ports."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from holdfast.cli.free_ports import free_ports

PATIENCE_S = 30.0


class Running:
    """`holdfast ARGUMENTS`; leaving the block ends it."""

    def __init__(
        self, *arguments: str, environment: dict[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        inherited = {name: text for name, text in os.environ.items() if not name.startswith("HOLDFAST_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast.cli.main", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**inherited, **(environment or {})},
            cwd=cwd,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdin = self.process.stdin
        self._outputs = {"out": self.process.stdout, "err": self.process.stderr}
        self.said = {"out": b"", "err": b""}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.stdin, *self._outputs.values()):
            stream.close()

    def wait_for(self, text: str, where: str = "out", times: int = 1) -> str:
        """Read until the text was said so many times; everything said there by then."""
        self._read_until(lambda: self.said[where].count(text.encode()) >= times, f"{text!r} on {where}")
        return self.said[where].decode()

    def write(self, text: str) -> None:
        self.stdin.write(text.encode())

    def tell(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop_reading(self) -> None:
        """Close our end of its standard output."""
        self._outputs.pop("out").close()

    def ended(self) -> tuple[int, str, str]:
        """Wait for the end: the status, and everything said."""
        if not self.stdin.closed:
            self.stdin.close()
        self._read_until(lambda: not self._outputs, "the end")
        return self.process.wait(PATIENCE_S), self.said["out"].decode(), self.said["err"].decode()

    def _read_until(self, holds: object, what: str) -> None:
        assert callable(holds)
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            left = deadline - time.monotonic()
            ready = select.select(list(self._outputs.values()), [], [], max(0.0, left))[0]
            assert ready, f"no {what}; said so far: {self.said}"
            for name, stream in list(self._outputs.items()):
                if stream in ready:
                    data = os.read(stream.fileno(), 1 << 16)
                    self.said[name] += data
                    if not data:
                        self._outputs.pop(name).close()
            assert self._outputs or holds(), f"it ended before {what}; said: {self.said}"


def write_network(
    folder: Path, *parents: str, extra: str = "", guarantee: str = "best-effort"
) -> tuple[Path, list[str]]:
    """A network file of brokers b1, b2 …, the n-th of ``parents`` above b(n+1), on free ports; and their URLs.

    It has one stream with a ``guarantee``, unless ``extra`` has others.
    """
    ports = free_ports(2 * (len(parents) + 1))
    lines = ['name = "tested"', extra, "neighbours.detect_after_ms = 5000"]  # a busy machine is no failure
    urls = []
    for i, parent in enumerate(["", *parents]):
        listen, admin = ports[2 * i], ports[2 * i + 1]
        urls.append(f"holdfast://127.0.0.1:{listen}")
        lines += [
            "[[broker]]",
            f'name = "b{i + 1}"',
            f'listen = "127.0.0.1:{listen}"',
            f'admin = "127.0.0.1:{admin}"',
        ]
        lines += [f'parent = "{parent}"'] if parent else []
    if "stream" not in extra:
        lines += ["[[stream]]", 'name = "default"', 'topics = ["#"]', f'guarantee = "{guarantee}"']
    path = folder / "network.toml"
    path.write_text("\n".join(lines) + "\n")
    return path, urls


@contextmanager
def running_network(
    folder: Path, *parents: str, extra: str = "", guarantee: str = "best-effort"
) -> Iterator[list[str]]:
    """Such a network, up; the URLs of its brokers."""
    path, urls = write_network(folder, *parents, extra=extra, guarantee=guarantee)
    with Running("up", "--network", str(path)) as up:
        up.wait_for("ready; connect to")
        yield urls
        up.tell(signal.SIGTERM)
        status, out, err = up.ended()
        assert (status, err) == (0, ""), out


def processes_of(folder: Path) -> list[int]:
    """The processes that have something of this folder on their command line: those a test has left behind."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found
