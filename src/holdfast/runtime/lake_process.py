"""The lake of a broker, read by a process of its own: no broker decodes Parquet.

A library in C++ does that, and a damaged file may end the process it is in. Here that is a child, asked over a pipe by
the one thread that reads the lake: started when it is first needed, and again when it has died. It says what it is
about to read, so it is known of what it died. What it has died of twice is lost, as any damage is; who died once may
have been killed by somebody.

    > Ask(pubend, after, upto, limit)
    < At(path, upto)        about to be read, if anything has to be
    < Said(page)            or Failed(problem)

Frames are four bytes of length and MessagePack. The child ends with its input, so with us.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from struct import Struct
from typing import IO, Final

import msgspec

from holdfast.messages.ticks import Lost, Tick
from holdfast.streams.store_events import DAMAGED
from holdfast.streams.store_lake import LakePage, LakeUnreadable

__all__ = ["STOP_SECONDS", "Ask", "At", "Failed", "LakeProcess", "Said", "read_frame", "write_frame"]

_LENGTH: Final = Struct("<I")
_encode: Final = msgspec.msgpack.Encoder().encode

#: So long a child may take to be gone when it is killed.
STOP_SECONDS: Final = 5.0

#: What it has died of so often is damaged.
DEATHS_MAX: Final = 2


class Ask(msgspec.Struct, frozen=True, array_like=True):
    """What is in some of (after, upto], with so many events at most."""

    pubend: str
    after: Tick
    upto: Tick
    limit: int


class At(msgspec.Struct, frozen=True, array_like=True, tag="at"):
    """A file is read now, of which this part goes up to a tick."""

    path: str
    upto: Tick


class Said(msgspec.Struct, frozen=True, array_like=True, tag="said"):
    """The answer."""

    page: LakePage


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    """It cannot be said now."""

    problem: str


_answers: Final = msgspec.msgpack.Decoder(At | Said | Failed)


class LakeProcess:
    """A ``Lake``; ``command`` is the child's. ``close`` may be called by another thread, whatever ``page`` does."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._lock = threading.Lock()  #: over who the child is
        self._asking = threading.Lock()  #: over its pipes
        self._is_closed = False
        self._child: subprocess.Popen[bytes] | None = None
        self._deaths: dict[At, int] = {}

    @property
    def pid(self) -> int | None:
        """Of the child, if there is one."""
        return None if self._child is None else self._child.pid

    def page(self, pubend: str, after: Tick, upto: Tick, limit: int) -> LakePage:
        """What the child says.

        :raises LakeUnreadable: if it cannot say it, or has died.
        """
        with self._asking:
            return self._page(Ask(pubend, after, upto, limit))

    def _page(self, ask: Ask) -> LakePage:
        place: At | None = None
        child = self._started()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            write_frame(child.stdin, ask)
            while frame := read_frame(child.stdout):
                answer = _answers.decode(frame)
                if isinstance(answer, Said):
                    return answer.page
                if isinstance(answer, Failed):
                    raise LakeUnreadable(answer.problem)
                place = answer
        except OSError:
            pass  # it has died before it has read, or while it wrote
        return self._died(child, place, ask)

    def close(self) -> None:
        """Nothing is read any more. A child that hangs in its disk even when it is killed is left to that."""
        with self._lock:
            self._is_closed = True
            child = self._child
            if child is not None:
                child.kill()
        if child is not None and self._asking.acquire(timeout=STOP_SECONDS):
            try:
                self._bury(child)
            finally:
                self._asking.release()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise LakeUnreadable("the broker stops")
            if self._child is None:
                try:
                    self._child = subprocess.Popen(
                        self._command,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                        start_new_session=True,
                    )
                except OSError as error:
                    raise LakeUnreadable(f"the reader of the lake cannot be started: {error}") from error
            return self._child

    def _bury(self, child: subprocess.Popen[bytes]) -> int:
        """It has ended: with which status."""
        status = child.wait()
        with self._lock:
            self._child = None
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                _close(pipe)
        return status

    def _died(self, child: subprocess.Popen[bytes], place: At | None, ask: Ask) -> LakePage:
        status = self._bury(child)
        if place is None:
            raise LakeUnreadable(f"the reader of the lake has ended with status {status}")
        self._deaths[place] = self._deaths.get(place, 0) + 1
        words = f"{place.path}: the reader of the lake has died of it, with status {status}"
        if self._deaths[place] < DEATHS_MAX:
            raise LakeUnreadable(words)
        covered = min(ask.upto, place.upto)
        return LakePage(covered, lost=[Lost(ask.after, covered, DAMAGED)], damages=[words])


def _close(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except OSError:
        return  # what was written and not taken is gone


def write_frame(pipe: IO[bytes], message: Ask | At | Said | Failed) -> None:
    """Say something.

    :raises OSError: if nobody is there.
    """
    data = _encode(message)
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> bytes:
    """What is said next; nothing, if nothing more will be."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return b""
    (size,) = _LENGTH.unpack(head)
    data = pipe.read(size)
    return data if len(data) == size else b""
