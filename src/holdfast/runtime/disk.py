"""The few numbers that must survive a process: its incarnation, and the event numbers it has reserved.

Each lives in a small file of its own, one JSON object with a version and a checksum. A new value is written beside the
old one, synced, renamed over it, and the folder synced; only then is the number handed out. A crash anywhere in between
leaves the old value or the new one, never something else; what was handed out is never handed out again.

A file that is damaged is an error that names it. Starting again without it would be worse: the network remembers.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from holdfast.errors import EnvironmentsFault
from holdfast.identity import first_life

__all__ = ["CannotStore", "DamagedFile", "NumberStore", "next_incarnation"]

VERSION: Final = 1
FILE_BYTES_MAX: Final = 4096
NAME_CHARS_MAX: Final = 100  #: of a publisher's name in a file's name; longer ones are hashed


class DamagedFile(EnvironmentsFault):
    """A file of ours that does not hold what we wrote."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}; restore it, or choose a new name and folder")
        self.path = path
        self.problem = problem


class CannotStore(EnvironmentsFault, OSError):
    """A folder of ours that cannot be read or written now; nothing was handed out."""

    def __init__(self, folder: Path, error: OSError) -> None:
        self.problem = error.strerror or str(error)
        super().__init__(f"{folder}: {self.problem}")
        self.folder = folder


def next_incarnation(folder: Path) -> int:
    """Begin the next life of the node whose folder this is; on disk before it is returned.

    Lives are counted, from where the time says that the folder was made: others know the last one of a node whose
    folder was lost, and would take a number that is not above it for a life that is over.

    :raises DamagedFile: if the last one cannot be read back.
    :raises CannotStore: if the next cannot be written.
    """
    with _locked(folder):
        path = folder / "incarnation"
        last = _read(path, "incarnation")
        incarnation = last + 1 if last else first_life(int(time.time()))
        _write(path, "incarnation", incarnation)
    return incarnation


class NumberStore:
    """Event numbers of one publisher, reserved on disk in blocks; a new life leaves out the rest of the last block.

    Reserving waits for the disk, once per block: a few milliseconds in ten thousand events.
    """

    def __init__(self, folder: Path, publisher: str, block: int = 10_000) -> None:
        assert block > 0
        name = quote(publisher, safe="")
        if len(name) > NAME_CHARS_MAX:
            name = hashlib.sha256(publisher.encode()).hexdigest()
        self._folder = folder
        self._path = folder / f"numbers-{name}"
        self._kind = f"numbers of {publisher}"
        self._block = block
        self._last = 0
        self._reserved = 0  #: numbers in (_last, _reserved] are ours

    def next_number(self, above: int = 0) -> int:
        """A number above this one, and above all that were ever handed out.

        :raises DamagedFile: if what was reserved before cannot be read back.
        :raises CannotStore: if the reservation cannot be written.
        """
        number = max(self._last, above) + 1
        if number > self._reserved:
            number = self._reserve(number)
        self._last = number
        return number

    def _reserve(self, number: int) -> int:
        with _locked(self._folder):
            number = max(number, _read(self._path, self._kind) + 1)
            self._reserved = number + self._block - 1
            try:
                _write(self._path, self._kind, self._reserved)
            except BaseException:
                self._reserved = 0
                raise
        return number


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The folder, made if it does not exist, and nobody else in it.

    :raises CannotStore: for whatever the system refuses, in here too.
    """
    try:
        _make(folder)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
    except OSError as error:
        raise CannotStore(folder, error) from error


def _make(folder: Path) -> None:
    """Make a folder, and those above it; each is synced into the one above, or a power cut could take them all."""
    if not folder.is_dir():
        if not folder.parent.exists():
            _make(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync_folder(folder.parent)


def _read(path: Path, kind: str) -> int:
    """The value in a file; 0 if there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return 0
    try:
        record = json.loads(data)
        version, said, value, checksum = (record[key] for key in ("version", "kind", "value", "crc32"))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedFile(path, f"expected a JSON object of ours, found {data[:40]!r}") from error
    if version != VERSION:
        raise DamagedFile(path, f"expected version {VERSION}, found {version!r}")
    if said != kind:
        raise DamagedFile(path, f"expected the {kind}, found the {said}")
    if type(value) is not int or value < 1 or checksum != _checksum(kind, value):
        raise DamagedFile(path, f"the checksum does not fit the value {value!r}")
    return value


def _write(path: Path, kind: str, value: int) -> None:
    record = {"version": VERSION, "kind": kind, "value": value, "crc32": _checksum(kind, value)}
    beside = path.with_name(path.name + ":new")  # no publisher's file: in their names a colon is quoted
    with beside.open("wb") as file:
        file.write(json.dumps(record).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    _sync_folder(path.parent)


def _checksum(kind: str, value: int) -> int:
    return zlib.crc32(f"{VERSION} {kind} {value}".encode())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
