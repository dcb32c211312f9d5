"""Files that crash when told to, and logs to try things on."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from holdfast.simulator.disk import SimulatedDisk
from holdfast.storage.block import Batch
from holdfast.storage.damage import Damage
from holdfast.storage.files import Files
from holdfast.storage.log import LogSettings, SegmentLog
from holdfast.storage.view import Chopped, LogView

IDENTITY = bytes(range(16))
SMALL = LogSettings(segment_bytes=600, retired_bytes=1)


class Crash(BaseException):
    """The power went; nothing in the program may notice."""


class CrashingFiles:
    """A simulated disk whose power goes at a chosen operation, before it has happened or after."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.operations = 0
        self.crash_at = -1  #: twice the operation's number, from now on, plus one if it still happens

    def crash_in(self, half_operations: int) -> None:
        self.operations = 0
        self.crash_at = half_operations

    def _do(self, operation: Callable[[], None]) -> None:
        if self.crash_at == 2 * self.operations:
            raise Crash
        operation()
        if self.crash_at == 2 * self.operations + 1:
            raise Crash
        self.operations += 1

    def append(self, name: str, *pieces: bytes) -> None:
        self._do(lambda: self.disk.append(name, *pieces))

    def append_stable(self, name: str, *pieces: bytes) -> None:
        self.append(name, *pieces)
        self.sync(name)

    def prepare(self, name: str, room: int) -> None:
        self._do(lambda: self.disk.write_zeros(name, room))
        self.sync(name)

    def sync(self, name: str) -> None:
        self._do(lambda: self.disk.sync(name))

    def truncate(self, name: str, size: int) -> None:
        self._do(lambda: self.disk.truncate(name, size))

    def rewrite(self, name: str, offset: int) -> None:
        self._do(lambda: self.disk.rewrite(name, offset))

    def replace(self, name: str, data: bytes) -> None:
        self._do(lambda: self.disk.replace(name, data))

    def remove(self, name: str) -> None:
        self._do(lambda: self.disk.remove(name))

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes | None:
        return self.disk.read(name, offset, length)

    def size(self, name: str) -> int | None:
        return self.disk.size(name)

    def state(self, name: str) -> object:
        return self.disk.state(name)

    def names(self) -> list[str]:
        return self.disk.names()

    def room(self) -> int:
        return self.disk.room()


def simulated(seed: int = 0) -> SimulatedDisk:
    return SimulatedDisk(Random(seed), sectors=True)


def small_log(files: Files, settings: LogSettings = SMALL, *, deep: bool = True) -> SegmentLog:
    return SegmentLog(files, IDENTITY, settings, deep=deep)


def record(index: int) -> bytes:
    """What the tests write under an index: of every length, and different from any other."""
    return (b"%d." % index) * (index % 7) or b"%d" % index


def filled(log: SegmentLog, batches: int, size: int = 3, step: int = 10) -> dict[int, bytes]:
    """Records at step, 2·step, …, each batch in a commit of its own."""
    written: dict[int, bytes] = {}
    for number in range(batches):
        start = log.last_index // step + 1
        indexes = [step * (start + i) for i in range(size)]
        log.append(indexes, [record(index) for index in indexes], time=1000 + number)
        log.commit()
        written |= {index: record(index) for index in indexes}
    return written


def contents(view: LogView, after: int = 0, window: int = 1 << 20) -> dict[int, bytes]:
    """Everything that can be read, in order; nothing may be damaged."""
    found: dict[int, bytes] = {}
    for item in view.scan(after, window=window):
        assert not isinstance(item, Damage), str(item)
        if isinstance(item, Batch):
            assert list(item.indexes) == sorted(item.indexes)
            assert not found or item.indexes[0] > max(found)
            found |= dict(zip(item.indexes, item.records, strict=True))
    return found


def holes(view: LogView) -> list[Damage | Chopped]:
    return [item for item in view.scan() if not isinstance(item, Batch)]


def served(view: LogView) -> dict[int, bytes]:
    """Everything that can be read of a damaged log."""
    batches = [item for item in view.scan() if isinstance(item, Batch)]
    return {i: r for batch in batches for i, r in zip(batch.indexes, batch.records, strict=True)}
