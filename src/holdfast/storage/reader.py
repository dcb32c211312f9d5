"""Reading a log from another process than the writer's: catch-up, Spark, backup, the offline tool.

A reader looks at the files and at nothing else. It serves what is known to be stable: sealed segments, and of the
last one what a later block or the manifest vouches for, so that nobody acts on a record that a power cut takes back.
The writer's last commit is therefore seen once the next one, or a checkpoint, has followed it, or somebody else who
knows vouches for it: a broker's tables do (``streams.ends``).
"""

from __future__ import annotations

from array import array
from dataclasses import replace

from holdfast.storage.damage import Cut, Damage
from holdfast.storage.files import Files
from holdfast.storage.manifest import MANIFEST
from holdfast.storage.opening import Findings, examine
from holdfast.storage.segment import Segment
from holdfast.storage.segment_format import base_of
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
        self._vouched = 0
        self._seen: tuple[object, ...] = ()  #: the files as they were at the last refresh
        self._known = self._findings = self._consistent([], deep=deep, unsynced=unsynced)

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

    @property
    def stable(self) -> int:
        """The last index that is known to have been stable; a view that was vouched for may go beyond."""
        return max(self._known.view.last_index, self._vouched)

    def refresh(self, vouched: int = 0) -> None:
        """Look again; sealed segments are not read twice, nor is what was seen of the last one.

        ``vouched``: up to here everything is known to have been stable.
        """
        self._vouched = max(self._vouched, vouched)
        seen = self._state()
        if None not in seen and seen == self._seen:
            return
        self._known = self._findings = self._consistent(
            self._known.view.segments, deep=False, unsynced=self._unsynced
        )
        if self._known.view.last_index < self._vouched:
            # What is not synced may yet be cut off, and other blocks be written there: it is looked at anew each time.
            segments = [each if each.is_sealed else _copy(each) for each in self._known.view.segments]
            self._findings = self._consistent(segments, deep=False, unsynced=True)
        self._seen = seen

    def _state(self) -> tuple[object, ...]:
        """What is different whenever the writer has done something: it only appends, to the last of its files."""
        names = sorted(self._files.names())
        last = max((name for name in names if base_of(name) is not None), default=MANIFEST)
        return self._files.read(MANIFEST) or b"", *names, self._files.state(last), self._vouched

    def _consistent(self, segments: list[Segment], *, deep: bool, unsynced: bool) -> Findings:
        """What the files hold, and held throughout: files only go after the manifest has been changed."""
        known = {segment.name: segment for segment in segments}
        while True:
            manifest = self._files.read(MANIFEST)
            findings = examine(self._files, deep=deep, unsynced=unsynced, known=known)
            if self._files.read(MANIFEST) == manifest:
                return findings


def _copy(segment: Segment) -> Segment:
    return replace(segment, firsts=array("Q", segment.firsts), offsets=array("Q", segment.offsets))
