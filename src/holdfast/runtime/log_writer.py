"""Writes a process's log beside its loop: a reader that stops, a terminal after Ctrl-S say, must not stop a broker.

Lines wait in a queue for a thread that writes them. While the queue is full there is no room, and whoever logs leaves
out what it had to say, and counts it.
"""

from __future__ import annotations

import os
import threading
from queue import Full, Queue
from typing import Final, Self, TextIO

__all__ = ["LogWriter"]

#: Lines that may wait for the reader.
LINES_MAX: Final = 1_000
#: How long the last lines have, at the end.
LAST_LINES_SECONDS: Final = 1.0


class LogWriter:
    """Stands before a stream of the process; leaving the block writes what waits, unless nobody reads it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: Queue[str | None] = Queue(LINES_MAX)
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        try:
            self._lines.put(None, timeout=LAST_LINES_SECONDS)
        except Full:
            return
        self._thread.join(LAST_LINES_SECONDS)

    def has_room(self) -> bool:
        """Whether a line would be written one day."""
        return not self._lines.full()

    def write(self, text: str) -> None:
        """Have a line written soon; without room it is lost."""
        try:
            self._lines.put_nowait(text)
        except Full:
            return

    def flush(self) -> None:
        """Nothing is held back here."""

    def _write_all(self) -> None:
        """Past the stream's own buffer: its lock would be held by this thread when the interpreter ends."""
        while (text := self._lines.get()) is not None:
            left = memoryview(text.encode(self._stream.encoding, "backslashreplace"))
            try:
                while left:
                    left = left[os.write(self._stream.fileno(), left) :]
            except OSError:
                return  # the reader is gone; the queue fills, and then there is no room
