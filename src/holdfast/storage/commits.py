"""Group commit: what waits, what is stable, what was refused.

Every ``append`` gets a position, counted from 1. A commit takes all that waits; when it is done everything up to a
position is stable, or was refused. The one who appends commits, too: for real on a thread of its own
(``runtime.real_store``), in the simulator in an instant.

A full disk is a state, not an accident: all that waits is refused, and nothing is taken until the owner has heard of
it and calls ``reopen``. Otherwise a batch could be accepted that was built on one that was refused. A log that failed
stays failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from holdfast.storage.block import Batch
from holdfast.storage.files import DiskFailed, DiskFull
from holdfast.storage.log import SegmentLog

__all__ = ["REOPEN_BYTES", "CommitState", "Commits", "Progress"]

REOPEN_BYTES: Final = 1 << 20  #: room there must be before a full log is opened again


class CommitState(Enum):
    """Whether records can be appended."""

    OPEN = "open"
    FULL = "full"
    FAILED = "failed"


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
    """The commits of one log."""

    def __init__(self, log: SegmentLog) -> None:
        self.log = log
        self.state = CommitState.OPEN
        self.reason = ""
        self.position = 0  #: of the last append
        self.waiting_bytes = 0  #: of records that are not committed
        self._waiting: list[Batch] = []
        self._last = log.last_index  #: the last index appended

    def append(self, indexes: Sequence[int], records: Sequence[bytes], time: int = 0) -> int:
        """Have records written; the position that will be said to be stable, or not. Only while the log is open.

        :raises InvalidBatch: if the indexes do not increase.
        """
        assert self.state is CommitState.OPEN, self.reason
        batch = Batch(indexes, records, time).checked(self._last)
        self._waiting.append(batch)
        self.waiting_bytes += batch.size
        self._last = batch.indexes[-1]
        self.position += 1
        return self.position

    def commit(self) -> Progress | None:
        """Write and sync all that waits, and say what has become of it; None if nothing did."""
        waiting = self._take_waiting()
        if not waiting:
            return None
        error: DiskFull | DiskFailed | None = None
        try:
            for batch in waiting:
                self.log.take(batch)
            self.log.commit()
        except (DiskFull, DiskFailed) as raised:
            error = raised
        last = self.log.last_index
        stable = self.position - sum(batch.indexes[-1] > last for batch in waiting)
        return Progress(stable, stable, self.state) if error is None else self._stop(error, stable)

    def fail(self, failure: DiskFailed) -> Progress:
        """The log has failed between two commits: what waits is not written any more."""
        return self._stop(failure, self.position - len(self._take_waiting()))

    def _take_waiting(self) -> list[Batch]:
        waiting, self._waiting, self.waiting_bytes = self._waiting, [], 0
        return waiting

    def _stop(self, error: DiskFull | DiskFailed, stable: int) -> Progress:
        self.state = CommitState.FULL if isinstance(error, DiskFull) else CommitState.FAILED
        self.reason = str(error)
        self._last = self.log.last_index
        return Progress(stable, self.position, self.state, self.reason)

    def reopen(self) -> bool:
        """Take records again after a full disk, if there is room by now; whether the log is open.

        To be called by whoever appends, after it has heard what was refused.
        """
        if self.state is CommitState.FULL and self.log.has_room(REOPEN_BYTES):
            self.state, self.reason = CommitState.OPEN, ""
        return self.state is CommitState.OPEN
