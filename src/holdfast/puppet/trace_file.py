"""The trace of one process, in a file of its own that outlives it.

Lines are handed to the operating system before the effects they tell of leave the process, all of a turn in one write;
a process that is killed then loses none that anybody could have seen. A kill in the midst of a write can leave half a
line: what it told of has not happened, and the next life, or the reader, cuts it off.

A subscriber's records of its durable subscriptions stand in the same file, between the lines, each behind those it
stands for: what was read and what is remembered of it is written at once. Lines whose record is missing at the end
were cut off from it, and go with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.clock import SECOND, Instant
from holdfast.scenarios.trace import TraceLine, encode_line, read_trace

__all__ = ["TraceFile", "read_trace_file", "unsubscribed_in"]

_RECORD: Final = b'{"record":'
_READ: Final = ("deliver", "silence", "gap")  #: what a record stands for


class TraceFile:
    """Where a node writes.

    ``began`` is the zero of its times, once that is known. What is told before, of sessions that are lost while the
    network comes up, is not of the script and is left out. One that is back only later still leaves its ``reconnect``,
    so that a run in which something was broken is known as one.
    """

    def __init__(self, path: Path, node: str, now: Callable[[], Instant]) -> None:
        self.began: Instant | None = None
        self._node = node
        self._now = now
        self._lines: list[bytes] = []
        written, self.records = _whole(path)
        self._position = sum(not line.startswith(_RECORD) for line in written.splitlines())
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._file, len(written))
        os.lseek(self._file, 0, os.SEEK_END)

    def write(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Add a line, if the script has begun; it is safe after ``flush``."""
        if self.began is None or (since_ns := self._now() - self.began) < 0:
            return
        self._position += 1
        t = since_ns / SECOND
        self._lines.append(encode_line(t, self._position, self._node, kind, fields))

    def remember(self, subscription: str, token: str) -> None:
        """Put a record behind the lines it stands for, those since the last ``flush``."""
        self.records[subscription] = token
        self._lines.append(msgspec.json.encode({"record": subscription, "token": token}) + b"\n")

    def flush(self) -> None:
        """Hand everything to the operating system."""
        if self._lines:
            data, self._lines = memoryview(b"".join(self._lines)), []
            while data:
                data = data[os.write(self._file, data) :]

    def close(self) -> None:
        """Flush, and let the file go."""
        self.flush()
        os.close(self._file)


def read_trace_file(path: Path) -> list[TraceLine]:
    """The lines of a file; none if it is not there."""
    written, _ = _whole(path)
    return read_trace([line for line in written.splitlines() if not line.startswith(_RECORD)], path.name)


def unsubscribed_in(path: Path) -> list[str]:
    """The subscriptions a process has heard the end of, by its file; none if that is not there."""
    written, _ = _whole(path)
    told = [msgspec.json.decode(line) for line in written.splitlines() if b'"unsubscribe"' in line]
    return [line["subscription"] for line in told if line.get("kind") == "unsubscribe"]


def _whole(path: Path) -> tuple[bytes, dict[str, str]]:
    """What was written as a whole, and the last records in it, by subscription."""
    data = path.read_bytes() if path.exists() else b""
    lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
    records: dict[str, str] = {}
    behind = 0  #: the last record
    for i, line in enumerate(lines, start=1):
        if line.startswith(_RECORD):
            record = msgspec.json.decode(line)
            records[record["record"]] = record["token"]
            behind = i
    for i, line in enumerate(map(msgspec.json.decode, lines[behind:]), start=behind):
        if line["kind"] in _READ and line["subscription"] in records:
            return b"".join(lines[:i]), records
    return b"".join(lines), records
