"""The files of a log on a real disk: one folder, and the system calls that make things stable.

A file is written through one descriptor kept open, and synced with ``fdatasync``, which carries its length too, or by
the write itself (``RWF_DSYNC``), which does the same for what it has written. That a file exists is a fact of its
folder: the folder is synced after a file is made, renamed or removed. Readers open the file each time; so they never
hold up the writer, and a descriptor the writer closes is never theirs.

A write that makes a file longer is synced together with what the file system notes of that, in its journal, and waits
for whatever else is being noted. So zeros are written ahead where commits are small (``prepare``), and what replaces
them has nobody to wait for.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from holdfast.storage.files import DiskFailed, DiskFull

__all__ = ["RealFiles"]

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_UNKNOWN: Final = (errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
_BESIDE: Final = ":new"  #: what is being written to replace a file
_REWRITE_BYTES: Final = 1 << 20
_WRITING_MAX: Final = 4  #: files kept open; a log writes to one, and to another while it replaces it
_PIECES_MAX: Final = 1024  #: that Linux takes in one call
_SPARE: Final = 64  #: times what is prepared must be free, or nothing is
#: A file that was changed less long ago may change again without getting another time: the kernel's has steps.
_SETTLED_NS: Final = 50_000_000


@dataclass(slots=True)
class _Writing:
    """A file that is appended to."""

    descriptor: int
    end: int  #: where the next bytes go
    size: int  #: of the file: more than that, where room was prepared


class RealFiles:
    """A folder. A writer makes it if need be and is alone in it; any number may read beside it.

    :raises DiskFailed: if the folder cannot be had, or another process writes in it.
    """

    def __init__(self, folder: Path, *, write: bool = True) -> None:
        self.folder = folder
        self._writing: dict[str, _Writing] = {}  #: files that were appended to
        self._made: set[str] = set()  #: files whose folder entry is not synced yet
        self._has_stable_writes = hasattr(os, "RWF_DSYNC")
        self._lock: int | None = None
        if write:
            with _told(folder.name):
                _make(folder)
                self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._take_lock(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of everything; nothing is synced."""
        for name in list(self._writing):
            self._let_go(name)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def append(self, name: str, *pieces: bytes) -> None:
        """Write at the end of a file, all of it or as much as there is room for; in one call, and without joining."""
        with _told(name):
            file = self._file(name)
            for start in range(0, len(pieces), _PIECES_MAX):
                some = pieces[start : start + _PIECES_MAX]
                written = os.pwritev(file.descriptor, some, file.end)
                _advance(file, written)
                if written < sum(map(len, some)):
                    _write_all(file, b"".join(some)[written:])

    def append_stable(self, name: str, *pieces: bytes) -> None:
        """In one system call, where there is one for that: between two a busy thread would keep us waiting."""
        with _told(name):
            file = self._file(name)
            is_one = self._has_stable_writes and name not in self._made and len(pieces) <= _PIECES_MAX
            written = self._write_stable(name, file, pieces) if is_one else 0
            _advance(file, written)
        if written < sum(map(len, pieces)):
            self.append(name, *(pieces if not written else [b"".join(pieces)[written:]]))
            self.sync(name)

    def _write_stable(self, name: str, file: _Writing, pieces: Sequence[bytes]) -> int:
        """How many bytes were written and synced; 0 where the system, or its file system, has no such call."""
        try:
            return os.pwritev(file.descriptor, pieces, file.end, os.RWF_DSYNC)
        except OSError as error:
            # Then it was the sync that failed. In room that was prepared nothing else can lack room.
            has_grown = os.fstat(file.descriptor).st_size > file.size
            is_written = has_grown or (file.end < file.size and error.errno in _FULL)
            if error.errno in _UNKNOWN and not is_written:
                self._has_stable_writes = False
                return 0
            if error.errno in _FULL and not is_written:
                raise
            raise DiskFailed(name, f"write or sync failed: {error.strerror}") from error

    def prepare(self, name: str, room: int) -> None:
        """Zeros behind the end, on the disk."""
        file = self._file(name)
        missing = room - (file.size - file.end)
        if 2 * missing <= room or self.room() < _SPARE * room:
            return
        try:
            written = os.pwrite(file.descriptor, bytes(missing), file.size)
        except OSError:  # there is no room, or no more may be had: nothing is prepared, and nothing is lost
            written = 0
        file.size += written
        if written:
            self.sync(name)

    def sync(self, name: str) -> None:
        """``fdatasync``, and the folder if the file is new."""
        # Not _told's business: after a sync that failed for lack of room nobody knows what is stable either.
        try:
            os.fdatasync(self._file(name).descriptor)
            if name in self._made:
                self._sync_folder()
                self._made.discard(name)
        except OSError as error:
            raise DiskFailed(name, f"sync failed: {error.strerror}") from error

    def truncate(self, name: str, size: int) -> None:
        """Cut a file off."""
        with _told(name):
            file = self._file(name)
            os.ftruncate(file.descriptor, size)
            file.end = file.size = size

    def rewrite(self, name: str, offset: int) -> None:
        """Dirty the pages from here on; the bytes stay what they are."""
        with _told(name):
            descriptor = os.open(self.folder / name, os.O_RDWR | os.O_CLOEXEC)
            try:
                while data := os.pread(descriptor, _REWRITE_BYTES, offset):
                    offset += os.pwrite(descriptor, data, offset)
            finally:
                os.close(descriptor)

    def replace(self, name: str, data: bytes) -> None:
        """Write beside, sync, rename, sync the folder."""
        beside = name + _BESIDE
        try:
            self.remove(beside)
            self.append(beside, data)
            self.sync(beside)
        except DiskFull:
            self.remove(beside)
            raise
        self._let_go(beside)
        with _told(name):
            self._let_go(name)
            os.replace(self.folder / beside, self.folder / name)
            self._sync_folder()

    def remove(self, name: str) -> None:
        """Remove a file and sync the folder."""
        self._let_go(name)
        self._made.discard(name)
        with _told(name), suppress(FileNotFoundError):
            os.unlink(self.folder / name)
            self._sync_folder()

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """Bytes of a file."""
        with _told(name):
            try:
                descriptor = os.open(self.folder / name, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            try:
                rest = max(0, os.fstat(descriptor).st_size - offset)
                return _pread_all(descriptor, rest if length is None else min(length, rest), offset)
            finally:
                os.close(descriptor)

    def size(self, name: str) -> int | None:
        """How long a file is."""
        with _told(name):
            try:
                return os.stat(self.folder / name).st_size
            except FileNotFoundError:
                return None

    def state(self, name: str) -> object:
        """Its size, and when it was changed."""
        with _told(name):
            try:
                found = os.stat(self.folder / name)
            except FileNotFoundError:
                return "none"
        is_settled = time.time_ns() - found.st_mtime_ns > _SETTLED_NS
        return (found.st_size, found.st_mtime_ns) if is_settled else None

    def names(self) -> list[str]:
        """All files but those that are being written to replace one."""
        with _told(self.folder.name):
            return sorted(
                entry.name
                for entry in os.scandir(self.folder)
                if entry.is_file() and not entry.name.endswith(_BESIDE)
            )

    def room(self) -> int:
        """What the file system says is free for us."""
        with _told(self.folder.name):
            found = os.statvfs(self.folder)
            return found.f_bavail * found.f_frsize

    def _file(self, name: str) -> _Writing:
        file = self._writing.get(name)
        if file is None:
            while len(self._writing) >= _WRITING_MAX:
                self._let_go(next(iter(self._writing)))
            path = self.folder / name
            if not path.exists():
                self._made.add(name)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            size = os.fstat(descriptor).st_size
            file = self._writing[name] = _Writing(descriptor, size, size)
        return file

    def _let_go(self, name: str) -> None:
        file = self._writing.pop(name, None)
        if file is not None:
            if file.size > file.end:  # who opens it again would not know where it ends
                os.ftruncate(file.descriptor, file.end)
            os.close(file.descriptor)

    def _sync_folder(self) -> None:
        assert self._lock is not None, "opened for reading"
        os.fsync(self._lock)

    def _take_lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise DiskFailed(str(self.folder), "another process writes here") from error


def _advance(file: _Writing, written: int) -> None:
    file.end += written
    file.size = max(file.size, file.end)


def _write_all(file: _Writing, data: bytes) -> None:
    while data:
        written = os.pwrite(file.descriptor, data, file.end)
        _advance(file, written)
        data = data[written:]


def _pread_all(descriptor: int, length: int, offset: int) -> bytes:
    data = os.pread(descriptor, length, offset)
    while len(data) < length and (more := os.pread(descriptor, length - len(data), offset + len(data))):
        data += more
    return data


def _make(folder: Path) -> None:
    """Make a folder and those above it, each synced into the one above."""
    if not folder.is_dir():
        if not folder.parent.exists():
            _make(folder.parent)
        folder.mkdir(exist_ok=True)
        parent = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """What the system refuses, in our words."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(name) from error
        raise DiskFailed(name, error.strerror or str(error)) from error
