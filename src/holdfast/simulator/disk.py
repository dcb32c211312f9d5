"""A disk that forgets what was not synced, may tear what it was writing, runs full, and fails.

What is written lies in the page cache until ``sync``; a reader sees it at once, a crash does not keep it. Of the
writes that were not synced, a prefix drawn by the seed survives, and of the first one lost a part may: a torn write.
With ``sectors`` any sectors of that write may survive, not only the first ones, and zeros stand for the others.
``replace`` is what a program does with a temporary file, two syncs and a rename: after a crash the file is the old
one or the new one, never a mixture, and once ``replace`` returns it is the new one.

A sync that fails drops what it should have written, as Linux does: readers go on seeing it, a later sync succeeds
and does not bring it back, a crash takes it. The order of writes to different files is not kept by a crash: each
file draws its own prefix.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

from holdfast.storage.files import DiskFailed, DiskFull

__all__ = ["SimulatedDisk"]

ABUNDANCE: Final = 1 << 62  #: bytes, of a disk that is not full
SECTOR_BYTES: Final = 64  #: smaller than real ones, for the writes of tests are small too


@dataclass(slots=True)
class _File:
    seen: bytearray = field(default_factory=bytearray)  #: by whoever reads it
    end: int = 0  #: where what is appended goes; behind it are zeros that were prepared
    stable: bytearray = field(default_factory=bytearray)  #: by whoever reads it after a crash
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  #: writes, or None: cut off there

    writes: int = 0  #: so far

    def write(self, offset: int, data: bytes | None) -> None:
        """Into the page cache."""
        _carry_out(self.seen, offset, data)
        self.pending.append((offset, data))
        self.writes += 1


class SimulatedDisk:
    """The files of one node; they outlive its crashes. ``capacity`` is how many bytes it holds."""

    def __init__(self, random: Random, *, sectors: bool = False) -> None:
        self._random = random
        self._sectors = sectors
        self._files: dict[str, _File] = {}
        self.capacity = ABUNDANCE
        self.is_failing = False  #: whether syncs fail

    def append(self, name: str, *pieces: bytes) -> None:
        """Write at the end of a file, which comes into being; nothing is promised until ``sync``.

        :raises DiskFull: if there is no room for all of it; what there is room for is written.
        """
        file = self._files.setdefault(name, _File())
        data = b"".join(pieces)
        room = max(0, self.room()) + len(file.seen) - file.end
        file.write(file.end, data[:room])
        file.end += len(data[:room])
        if len(data) > room:
            raise DiskFull(name)

    def prepare(self, name: str, room: int) -> None:
        """Zeros behind the end of a file.

        :raises DiskFailed: as ``sync``.
        """
        self.write_zeros(name, room)
        self.sync(name)

    def write_zeros(self, name: str, room: int) -> None:
        """What ``prepare`` does before it syncs."""
        file = self._files[name]
        prepared = len(file.seen) - file.end
        if 2 * prepared < room and room - prepared <= self.room():
            file.write(len(file.seen), bytes(room - prepared))

    def append_stable(self, name: str, *pieces: bytes) -> None:
        """One after the other."""
        self.append(name, *pieces)
        self.sync(name)

    def sync(self, name: str) -> None:
        """Make everything done to a file stable.

        :raises DiskFailed: if the disk is failing; what was not stable will never be.
        """
        file = self._files[name]
        pending, file.pending = file.pending, []
        if self.is_failing:
            raise DiskFailed(name, "sync failed: Input/output error")
        for write in pending:
            _carry_out(file.stable, *write)

    def truncate(self, name: str, size: int) -> None:
        """Cut a file off; nothing is promised until ``sync``."""
        self._files[name].write(size, None)
        self._files[name].end = len(self._files[name].seen)

    def rewrite(self, name: str, offset: int) -> None:
        """Write what stands from here on once more in its place."""
        file = self._files[name]
        file.write(offset, bytes(file.seen[offset:]))

    def replace(self, name: str, data: bytes) -> None:
        """Give a file another content, atomically and for good.

        :raises DiskFull: if there is no room for both contents at a time.
        :raises DiskFailed: if the disk is failing; the file is the old one.
        """
        if len(data) > self.room():
            raise DiskFull(name)
        if self.is_failing:
            raise DiskFailed(name, "sync failed: Input/output error")
        before = self._files.get(name)
        writes = 1 if before is None else before.writes + 1
        self._files[name] = _File(bytearray(data), len(data), bytearray(data), writes=writes)

    def remove(self, name: str) -> None:
        """Remove a file for good, if it is there."""
        self._files.pop(name, None)

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """Bytes of a file as a program sees it now; None if there is none."""
        file = self._files.get(name)
        if file is None:
            return None
        return bytes(file.seen[offset : None if length is None else offset + length])

    def size(self, name: str) -> int | None:
        """How long a file is, as a program sees it; None if there is none."""
        file = self._files.get(name)
        return None if file is None else len(file.seen)

    def state(self, name: str) -> object:
        """How often it was written."""
        file = self._files.get(name)
        return None if file is None else (file.writes, len(file.seen))

    def names(self) -> list[str]:
        """All files, sorted."""
        return sorted(self._files)

    def room(self) -> int:
        """How many bytes more it holds."""
        return self.capacity - sum(len(file.seen) for file in self._files.values())

    def become_full(self) -> None:
        """Have no room, not even any that was prepared."""
        for file in self._files.values():
            file.write(file.end, None)
            _carry_out(file.stable, file.end, None)
        self.capacity -= self.room()

    def have_room(self) -> None:
        """Not be full any more."""
        self.capacity = ABUNDANCE

    def crash(self) -> None:
        """Lose what was not synced, but for a prefix of it."""
        for file in self._files.values():  # in the order the files came into being
            if file.pending:
                self._lose(file)
            file.seen = bytearray(file.stable)
            file.end = len(file.seen)
            file.writes += 1

    def _lose(self, file: _File) -> None:
        survivors = self._random.randint(0, len(file.pending))
        for write in file.pending[:survivors]:
            _carry_out(file.stable, *write)
        if survivors < len(file.pending):
            offset, data = file.pending[survivors]
            if data:
                self._tear(file.stable, offset, data)
        file.pending.clear()

    def _tear(self, stable: bytearray, offset: int, data: bytes) -> None:
        if not self._sectors:
            _carry_out(stable, offset, data[: self._random.randint(0, len(data) - 1)])
            return
        for start in range(0, len(data), SECTOR_BYTES):
            if self._random.random() < 0.5:
                _carry_out(stable, offset + start, data[start : start + SECTOR_BYTES])


def _carry_out(content: bytearray, offset: int, data: bytes | None) -> None:
    """Write at an offset, zeros before it where there was nothing; or cut off there."""
    if data is None:
        del content[offset:]
        return
    if data and offset > len(content):
        content += bytes(offset - len(content))
    content[offset : offset + len(data)] = data
