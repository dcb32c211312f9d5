"""Group commit without a thread: what waits, what is being written, what is stable, what was refused.

Every ``append`` gets a position, counted from 1. A commit takes all that waits; when it is done everything up to a
position is stable, or was refused. ``runtime`` puts a thread around this (``real_commits``), the simulator an
instant of time: the three steps ``begin``, ``carry_out`` and ``finish`` are the same, and only ``carry_out`` touches
the disk and may run beside further appends.

A full disk is a state, not an accident: all that waits is refused, and whatever is appended after it too, until the
owner has heard of it and calls ``reopen``. Otherwise a batch could be accepted that was built on one that was
refused. A log that failed stays failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from holdfast.errors import EnvironmentsFault
from holdfast.storage.block import Batch
from holdfast.storage.files import DiskFailed, DiskFull
from holdfast.storage.log import SegmentLog

__all__ = ["CommitState", "Commits", "NotTaken", "Progress"]

WAITING_BYTES_MAX: Final = 256 << 20  #: of records that wait for the disk; more are not taken
REOPEN_BYTES: Final = 1 << 20  #: room there must be before a full log is opened again


class CommitState(Enum):
    """Whether records can be appended."""

    OPEN = "open"
    FULL = "full"
    FAILED = "failed"
    CLOSED = "closed"


class NotTaken(EnvironmentsFault):
    """Records that were certainly not appended, and why."""

    def __init__(self, state: CommitState, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Progress:
    """What has become of the positions that were undecided.

    Up to ``stable`` they are on the disk; those after it, up to ``decided``, were not acknowledged and never will be.
    In state FULL they are certainly not there; in state FAILED nobody knows, and the next start will find out.
    """

    stable: int
    decided: int
    state: CommitState
    reason: str = ""


class Commits:
    """The commits of one log. ``begin`` and ``finish`` must not run beside ``append``; ``carry_out`` may."""

    def __init__(self, log: SegmentLog) -> None:
        self.log = log
        self.state = CommitState.OPEN
        self.reason = ""
        self.position = 0  #: of the last append
        self._waiting: list[Batch] = []
        self._waiting_bytes = 0
        self._in_flight: list[Batch] = []
        self._flight_begins = 0  #: the position before the first batch in flight
        self._last = log.last_index  #: the last index appended
        self._error: DiskFull | DiskFailed | None = None

    @property
    def waiting_bytes(self) -> int:
        """Of records that no commit has taken yet."""
        return self._waiting_bytes

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def append(self, indexes: Sequence[int], records: Sequence[bytes], time: int = 0) -> int:
        """Have records written; the position that will be said to be stable, or not.

        :raises NotTaken: if the log is full, has failed or is closed, or too much waits already.
        :raises InvalidBatch: if the indexes do not increase.
        """
        if self.state is not CommitState.OPEN:
            raise NotTaken(self.state, self.reason)
        if self._waiting_bytes > WAITING_BYTES_MAX:
            raise NotTaken(self.state, f"more than {WAITING_BYTES_MAX} bytes wait for the disk")
        batch = Batch(indexes, records, time).checked(self._last)
        self._waiting.append(batch)
        self._waiting_bytes += batch.size
        self._last = batch.indexes[-1]
        self.position += 1
        return self.position

    def begin(self) -> bool:
        """Take all that waits for one commit; whether there is anything."""
        assert not self._in_flight, "one commit at a time"
        self._in_flight, self._waiting = self._waiting, []
        self._waiting_bytes = 0
        self._flight_begins = self.position - len(self._in_flight)
        return bool(self._in_flight)

    def carry_out(self) -> None:
        """Write and sync what was taken."""
        try:
            for batch in self._in_flight:
                self.log.take(batch)
            self.log.commit()
        except (DiskFull, DiskFailed) as error:
            self._error = error

    def finish(self) -> Progress:
        """What has become of it. If the disk was full or failed, what waits by now is refused as well."""
        last = self.log.last_index
        stable = self._flight_begins + sum(batch.indexes[-1] <= last for batch in self._in_flight)
        self._in_flight = []
        error, self._error = self._error, None
        if error is None:
            return Progress(stable, stable, self.state)
        return self._stop(error, stable)

    def fail(self, failure: DiskFailed) -> Progress:
        """The log has failed between two commits: what waits is not written any more."""
        return self._stop(failure, self.position - len(self._waiting))

    def _stop(self, error: DiskFull | DiskFailed, stable: int) -> Progress:
        self.state = CommitState.FULL if isinstance(error, DiskFull) else CommitState.FAILED
        self.reason = str(error)
        self._waiting = []
        self._waiting_bytes = 0
        self._last = self.log.last_index
        return Progress(stable, self.position, self.state, self.reason)

    def commit(self) -> Progress | None:
        """One commit from begin to end, for those who need no thread; None if nothing waited."""
        if not self.begin():
            return None
        self.carry_out()
        return self.finish()

    def reopen(self) -> bool:
        """Take records again after a full disk, if there is room by now; whether the log is open.

        To be called by whoever appends, after it has heard what was refused.
        """
        if self.state is CommitState.FULL and self.log.has_room(REOPEN_BYTES):
            self.state, self.reason = CommitState.OPEN, ""
        return self.state is CommitState.OPEN

    def become_closed(self) -> None:
        """Take nothing more; what waits can still be committed."""
        if self.state is not CommitState.FAILED:
            self.state, self.reason = CommitState.CLOSED, "the log is closed"
