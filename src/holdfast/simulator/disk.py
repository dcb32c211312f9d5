"""A disk that forgets what was not synced, and may tear what it was writing.

What is appended lies in the page cache until ``sync``; a reader sees it at once, a crash does not keep it. Of
the writes that were not synced, a prefix drawn by the seed survives, and of the first one lost a part may: a
torn write. ``replace`` is what a program does with a temporary file, two syncs and a rename: after a crash the
file is the old one or the new one, never a mixture, and once ``replace`` returns it is the new one.

The order of writes to different files is not kept by a crash: each file draws its own prefix.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

__all__ = ["SimulatedDisk"]


@dataclass(slots=True)
class _File:
    stable: bytearray = field(default_factory=bytearray)
    pending: list[bytes] = field(default_factory=list)


class SimulatedDisk:
    """The files of one node; they outlive its crashes."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._files: dict[str, _File] = {}

    def append(self, name: str, data: bytes) -> None:
        """Write at the end of a file, which comes into being; nothing is promised until ``sync``."""
        self._files.setdefault(name, _File()).pending.append(bytes(data))

    def sync(self, name: str) -> None:
        """Make everything written to a file stable."""
        file = self._files[name]
        file.stable += b"".join(file.pending)
        file.pending.clear()

    def replace(self, name: str, data: bytes) -> None:
        """Give a file another content, atomically and for good."""
        self._files[name] = _File(bytearray(data))

    def read(self, name: str) -> bytes | None:
        """All of a file as a program sees it now; None if there is none."""
        file = self._files.get(name)
        return None if file is None else bytes(file.stable) + b"".join(file.pending)

    def crash(self) -> None:
        """Lose what was not synced, but for a prefix of it."""
        for file in self._files.values():  # in the order the files came into being
            if file.pending:
                self._lose(file)

    def _lose(self, file: _File) -> None:
        survivors = self._random.randint(0, len(file.pending))
        file.stable += b"".join(file.pending[:survivors])
        if survivors < len(file.pending):
            first_lost = file.pending[survivors]
            file.stable += first_lost[: self._random.randint(0, max(0, len(first_lost) - 1))]
        file.pending.clear()
