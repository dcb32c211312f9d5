"""What the log asks of a file system: the few operations whose behaviour in a crash it can rely on.

Two implementations stand behind ``Files``: ``storage/real_files`` on a folder, and the simulated disk, which forgets
what was not synced. Names are flat; a log has all the files it is given.

What a caller may build on:

- what ``append``, ``truncate`` and ``rewrite`` did is seen by every reader at once and survives a crash only after
  ``sync`` of that file; of what was not synced any part may survive;
- ``replace`` is atomic and stable when it returns, as is ``remove``;
- after a failed ``sync``, or ``append_stable`` but for lack of room, nobody knows what is stable, and calling it again
  tells nothing: the system may have dropped the pages it could not write and believe them clean.
"""

from __future__ import annotations

from typing import Protocol

from holdfast.errors import EnvironmentsFault

__all__ = ["DiskFailed", "DiskFull", "Files", "Subfolder"]


class DiskFull(EnvironmentsFault):
    """There was no room; some bytes of what was being written may lie at the end of the file."""

    def __init__(self, name: str, problem: str = "no space left on the disk") -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem


class DiskFailed(EnvironmentsFault):
    """Reading, writing or syncing failed for any other reason."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem


class Files(Protocol):
    """The files of one log. Every method but ``read``, ``size`` and ``names`` is for the one writer.

    :raises DiskFailed: from every method, if the system refuses.
    :raises DiskFull: from ``append``, ``append_stable`` and ``replace``, if there is no room.
    """

    def append(self, name: str, *pieces: bytes) -> None:
        """Write at the end of a file, which comes into being; nothing is promised until ``sync``."""

    def append_stable(self, name: str, *pieces: bytes) -> None:
        """``append``, and ``sync`` of that; what was done to the file before is for a ``sync`` of its own."""

    def sync(self, name: str) -> None:
        """Make everything done to a file stable, and that it exists."""

    def truncate(self, name: str, size: int) -> None:
        """Cut a file off; nothing is promised until ``sync``."""

    def rewrite(self, name: str, offset: int) -> None:
        """Write what stands from here to the end of a file once more in its place, for the next ``sync`` to carry."""

    def replace(self, name: str, data: bytes) -> None:
        """Give a file this content, new or not, atomically and for good."""

    def remove(self, name: str) -> None:
        """Remove a file for good; one that is not there is no mistake."""

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """Bytes of a file, fewer where it ends; None if there is no such file."""

    def size(self, name: str) -> int | None:
        """How long a file is; None if there is none."""

    def names(self) -> list[str]:
        """All files, sorted."""

    def room(self) -> int:
        """How many bytes more there is room for, as far as is known."""


class Subfolder:
    """The files whose names begin so, as a log of its own: several logs on one disk."""

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._prefix = f"{folder}/"

    def append(self, name: str, *pieces: bytes) -> None:
        """As the files beneath."""
        self._files.append(self._prefix + name, *pieces)

    def append_stable(self, name: str, *pieces: bytes) -> None:
        """As the files beneath."""
        self._files.append_stable(self._prefix + name, *pieces)

    def sync(self, name: str) -> None:
        """As the files beneath."""
        self._files.sync(self._prefix + name)

    def truncate(self, name: str, size: int) -> None:
        """As the files beneath."""
        self._files.truncate(self._prefix + name, size)

    def rewrite(self, name: str, offset: int) -> None:
        """As the files beneath."""
        self._files.rewrite(self._prefix + name, offset)

    def replace(self, name: str, data: bytes) -> None:
        """As the files beneath."""
        self._files.replace(self._prefix + name, data)

    def remove(self, name: str) -> None:
        """As the files beneath."""
        self._files.remove(self._prefix + name)

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """As the files beneath."""
        return self._files.read(self._prefix + name, offset, length)

    def size(self, name: str) -> int | None:
        """As the files beneath."""
        return self._files.size(self._prefix + name)

    def names(self) -> list[str]:
        """Those of this folder, without its name."""
        start = len(self._prefix)
        return [name[start:] for name in self._files.names() if name.startswith(self._prefix)]

    def room(self) -> int:
        """As the files beneath."""
        return self._files.room()
