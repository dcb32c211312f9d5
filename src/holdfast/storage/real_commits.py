"""Group commit on a thread of its own: the event loop never waits for a disk.

The thread takes whatever has accumulated, writes and syncs it while more accumulates, and reports. Nothing waits for
a batch to fill: under light load a commit carries one batch, under heavy load as many as came during the last sync.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from holdfast.storage.commits import Commits, CommitState, Progress
from holdfast.storage.files import DiskFailed, DiskFull
from holdfast.storage.log import SegmentLog

__all__ = ["CommitThread"]


class CommitThread:
    """The writer of one log; once it has the log, others use only its view, from one thread.

    ``on_progress`` and ``on_chopped`` are called on the thread, in order; ``call_soon_threadsafe`` brings them to a
    loop.
    """

    def __init__(
        self,
        log: SegmentLog,
        on_progress: Callable[[Progress], None],
        on_chopped: Callable[[int], None] = lambda chopped: None,
    ) -> None:
        self._commits = Commits(log)
        self._log = log
        self._on_progress = on_progress
        self._on_chopped = on_chopped
        self._chop_through = 0
        self._is_closing = False
        self._has_work = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="log commits", daemon=True)
        self._thread.start()

    @property
    def state(self) -> CommitState:
        """Whether records can be appended."""
        return self._commits.state

    @property
    def reason(self) -> str:
        """Why they cannot, if so."""
        return self._commits.reason

    def append(self, indexes: Sequence[int], records: Sequence[bytes], time: int = 0) -> int:
        """Have records written soon; the position that ``on_progress`` will tell of.

        :raises NotTaken, InvalidBatch: as ``Commits.append``.
        """
        with self._has_work:
            position = self._commits.append(indexes, records, time)
            self._has_work.notify()
            return position

    def chop(self, through: int) -> None:
        """Have the log chopped soon; ``on_chopped`` tells when it was, and how far."""
        with self._has_work:
            self._chop_through = max(self._chop_through, through)
            self._has_work.notify()

    def reopen(self) -> bool:
        """Take records again after a full disk, if there is room; whether the log is open."""
        with self._has_work:
            return self._commits.reopen()

    def close(self) -> None:
        """Write what waits, close the log, and wait for that."""
        with self._has_work:
            self._commits.become_closed()
            self._is_closing = True
            self._has_work.notify()
        self._thread.join()

    def _run(self) -> None:
        commits = self._commits
        while True:
            with self._has_work:
                while commits.is_idle and not self._chop_through and not self._is_closing:
                    self._has_work.wait()
                chop_through, self._chop_through = self._chop_through, 0
                is_last = self._is_closing
                has_begun = commits.begin()
            if has_begun:
                self._commit()
            if chop_through and commits.state is not CommitState.FAILED:
                self._chop(chop_through)
            if is_last:
                self._close()
                return

    def _commit(self) -> None:
        self._commits.carry_out()
        with self._has_work:
            progress = self._commits.finish()
        self._on_progress(progress)

    def _chop(self, through: int) -> None:
        try:
            self._log.chop(through)
        except DiskFull:
            pass  # no room even to say so; whoever releases will ask again
        except DiskFailed as failure:
            with self._has_work:
                progress = self._commits.fail(failure)
            self._on_progress(progress)
        self._on_chopped(self._log.view.chopped)

    def _close(self) -> None:
        with suppress(DiskFull, DiskFailed):  # what was said to be stable is; only the manifest knows less
            self._log.close()
