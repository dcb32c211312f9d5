"""What the log asks of a file system: the few operations whose behaviour in a crash it can rely on.

Two implementations stand behind ``Files``: ``storage/real_files`` on a folder, and the simulated disk, which forgets
what was not synced. Names are flat; a log has all the files it is given.

What a caller may build on:

- what ``append``, ``truncate`` and ``rewrite`` did is seen by every reader at once and survives a crash only after
  ``sync`` of that file; of what was not synced any part may survive;
- where room was prepared, zeros stand behind the end of a file, for every reader and after a crash; whoever opens the
  file again has to find out where they begin, and to ``truncate`` it there before he appends;
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

    def prepare(self, name: str, room: int) -> None:
        """Have about so many zeros stand behind the end of a file, unless half of them do; ``append`` replaces them.

        That is for speed alone: a write that changes no more of a file than its bytes is synced sooner, and waits for
        no other file's. It takes as long as a few syncs, and if there is no room nothing is prepared.
        """

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
        """How long a file is, with the room that was prepared; None if there is none."""

    def state(self, name: str) -> object:
        """What is not the same when something was done to a file since; None if that cannot be known yet."""

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

    def prepare(self, name: str, room: int) -> None:
        """As the files beneath."""
        self._files.prepare(self._prefix + name, room)

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

    def state(self, name: str) -> object:
        """As the files beneath."""
        return self._files.state(self._prefix + name)

    def names(self) -> list[str]:
        """Those of this folder, without its name."""
        start = len(self._prefix)
        return [name[start:] for name in self._files.names() if name.startswith(self._prefix)]

    def room(self) -> int:
        """As the files beneath."""
        return self._files.room()
