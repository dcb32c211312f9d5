"""Reading a log from another process than the writer's: catch-up, Spark, backup, the offline tool.

A reader looks at the files and at nothing else. It serves what is known to be stable: sealed segments, and of the
last one what a later block or the manifest vouches for, so that nobody acts on a record that a power cut takes back.
The writer's last commit is therefore seen once the next one, or a checkpoint, has followed it.
"""

from __future__ import annotations

from holdfast.storage.damage import Cut, Damage
from holdfast.storage.files import Files
from holdfast.storage.manifest import MANIFEST
from holdfast.storage.opening import Findings, examine
from holdfast.storage.view import LogView

__all__ = ["LogReader"]


class LogReader:
    """A log that somebody else may be writing.

    ``unsynced`` serves what is whole, whether it is known to be stable or not; ``deep`` looks at every byte.

    :raises NoLog: if there is no log.
    :raises UnknownFormat: if a newer Holdfast wrote it.
    """

    def __init__(self, files: Files, *, unsynced: bool = False, deep: bool = False) -> None:
        self._files = files
        self._unsynced = unsynced
        self._findings = self._consistent(None, deep=deep)

    @property
    def identity(self) -> bytes:
        """Which log it is."""
        return self._findings.manifest.identity

    @property
    def view(self) -> LogView:
        """The log as of the last refresh."""
        return self._findings.view

    @property
    def damages(self) -> list[Damage]:
        """What the last refresh found, in what it looked into."""
        return self._findings.damages

    @property
    def torn(self) -> Cut | None:
        """What the writer would cut off if it started now; if it is running, perhaps what it is writing."""
        return self._findings.cut

    def refresh(self) -> None:
        """Look again; sealed segments are not read twice, nor is what was seen of the last one."""
        self._findings = self._consistent(self._findings, deep=False)

    def _consistent(self, before: Findings | None, *, deep: bool) -> Findings:
        """What the files hold, and held throughout: files only go after the manifest has been changed."""
        while True:
            manifest = self._files.read(MANIFEST)
            known = {segment.name: segment for segment in before.view.segments} if before else {}
            findings = examine(self._files, deep=deep, unsynced=self._unsynced, known=known)
            if self._files.read(MANIFEST) == manifest:
                return findings
