"""The log: records under indexes that only grow, appended in batches, stable when ``commit`` returns.

Appending only remembers; ``commit`` writes whatever was appended since the last one with a single write and a single
sync for each segment it touches, mostly one. So every batch that was waiting shares the sync. What is read is what
is stable: bytes that are not are in no file that a view looks into. A batch stands in one segment, and a crash leaves
all of it or nothing.

Segments roll by size, between batches: footer, sync, and a new file. Sealed ones are never written again. A last
segment in which damage was found at start is left as it is, for whoever wants to look into it, and a new one is
begun.

A write or a sync that fails is final: nobody knows what is on the disk, and this object will never again say that
anything is stable. Only a disk without room is different, as long as nothing was synced: what was half written is cut
off, ``DiskFull`` says that nothing of it was kept, and the log can go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from holdfast.storage.block import Batch, Head, encode
from holdfast.storage.damage import Cut, Damage
from holdfast.storage.files import DiskFailed, DiskFull, Files
from holdfast.storage.manifest import MANIFEST, Manifest
from holdfast.storage.opening import Findings, NoLog, examine
from holdfast.storage.packing import joined, parts
from holdfast.storage.segment import Segment
from holdfast.storage.segment_format import SegmentHeader, seed_of
from holdfast.storage.view import LogView

__all__ = ["LogSettings", "SegmentLog"]

RESERVE: Final = "reserve"
RESERVE_BYTES: Final = 1 << 16  #: given up when the disk is full, so that the log can still be chopped
#: Room is prepared for commits that are no larger: their sync is most of what they take.
SMALL_BYTES: Final = 1 << 14
SEGMENT_BYTES_MAX: Final = 1 << 30
PARTS: Final = 16  #: a log of limited size has so many segments at least


@dataclass(frozen=True, slots=True)
class LogSettings:
    """``segment_bytes``: when a segment is sealed and the next begun.

    The last one goes too when all of it is chopped, if it has at least ``retired_bytes``. On a full disk it is all
    there is to give up: it will not grow until it is sealed. ``prepared_bytes`` of room are ready for small commits.
    """

    segment_bytes: int = 64 << 20
    retired_bytes: int = 1 << 20
    prepared_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        assert 0 < self.segment_bytes <= SEGMENT_BYTES_MAX

    def within(self, limit: int | None) -> LogSettings:
        """For a log that gives up what is more than a limit: segments go as a whole, so each is a small part of it."""
        if limit is None:
            return self
        size = min(self.segment_bytes, max(1, limit // PARTS))
        return replace(self, segment_bytes=size, retired_bytes=min(self.retired_bytes, size))


class SegmentLog:
    """The one writer of a log, and a view of it. ``identity``, 16 random bytes, names a log that is new.

    :raises NoLog: if there are segments but nothing that says of which log.
    :raises UnknownFormat: if a newer Holdfast wrote it.
    :raises DiskFailed: if the files cannot be read or written.
    """

    def __init__(
        self,
        files: Files,
        identity: bytes,
        settings: LogSettings | None = None,
        *,
        deep: bool = False,
    ) -> None:
        assert len(identity) == 16
        self._files = files
        self._settings = settings or LogSettings()
        self._waiting: list[Batch] = []
        self._written = 0  #: bytes, by the last commit
        self._failure: DiskFailed | None = None
        findings = _examined(files, identity, deep=deep)
        self.identity = findings.manifest.identity
        self.view: LogView = findings.view
        #: found at start; ``deep`` looks into sealed segments too
        self.damages: Sequence[Damage] = findings.damages
        self.cut: Cut | None = findings.cut  #: the torn tail that was cut off at start
        self._last = self.view.last_index
        self._active: Segment | None = None
        self._begin(findings)

    # What it holds

    @property
    def last_index(self) -> int:
        """The last one that is stable; 0 if there never was one."""
        return self.view.last_index

    @property
    def failure(self) -> DiskFailed | None:
        """Why nothing will be stable any more, if so."""
        return self._failure

    # Appending

    def append(self, indexes: Sequence[int], records: Sequence[bytes], time: int = 0) -> None:
        """Have records written by the next ``commit``; nothing happens before.

        :raises InvalidBatch: if the indexes do not increase from what was appended last.
        :raises DiskFailed: if the log has failed.
        """
        self.take(Batch(indexes, records, time).checked(self._last))

    def take(self, batch: Batch) -> None:
        """The same for a batch that was checked already, against what was appended last.

        :raises DiskFailed: if the log has failed.
        """
        self._check()
        assert batch.indexes[0] > self._last
        self._waiting.append(batch)
        self._last = batch.indexes[-1]

    def commit(self) -> None:
        """Write what was appended and make it stable.

        :raises DiskFull: if there is no room; what is above ``last_index`` was not kept, and is forgotten here too.
        :raises DiskFailed: if nobody knows what was kept; from then on always.
        """
        self._check()
        try:
            while self._waiting:
                self._write(self._next_segment())
        except DiskFull:
            self._waiting.clear()
            self._last = self.last_index
            raise
        except DiskFailed as failure:
            self._failure = failure
            raise

    def prepare(self) -> None:
        """Between two commits, when nobody waits for one: have room ready for the next, if they are small.

        :raises DiskFailed: as ``commit``.
        """
        self._check()
        active = self._active
        if active is None or not 0 < self._written <= SMALL_BYTES:
            return
        room = min(self._settings.prepared_bytes, self._settings.segment_bytes - active.end)
        if room > 0:
            try:
                self._files.prepare(active.name, room)
            except DiskFailed as failure:
                self._failure = failure
                raise

    def has_room(self, bytes_wanted: int) -> bool:
        """Whether the disk would take so many bytes now."""
        return self._files.room() >= bytes_wanted

    def may_free(self, through: int) -> bool:
        """Whether files would go if everything up to this index did."""
        active = self._active
        if active is not None and active.last <= through:
            return active.end >= self._settings.retired_bytes
        return any(segment.last <= through for segment in self.view.segments)

    def chop(self, through: int) -> None:
        """Drop all records up to this index, for good; files go when nothing in them is left.

        :raises DiskFull: if not even the reserve gives room to write that down.
        :raises DiskFailed: as ``commit``.
        """
        self._check()
        view = self.view
        through = min(through, self.last_index)
        if through <= view.chopped:
            return
        try:
            self._save(through)
            view.chopped = through
            self._retire()
            kept = [segment for segment in view.segments if segment.last > through or segment is self._active]
            gone = view.segments[: len(view.segments) - len(kept)]
            view.segments = kept
            for segment in gone:
                self._files.remove(segment.name)
            self._restore_reserve()
        except DiskFailed as failure:
            self._failure = failure
            raise

    def checkpoint(self) -> None:
        """Write down how far the log is stable, for readers in other processes and for the next start."""
        self._check()
        self._save(self.view.chopped)

    def close(self) -> None:
        """Commit, and write down where the log ends: a tail that is lost from now on will be missed."""
        if self._failure is None:
            self.commit()
            if self._active is not None:
                self._end_at(self._active)
            self.checkpoint()

    # Starting

    def _begin(self, findings: Findings) -> None:
        files, survey = self._files, findings.survey
        if survey is not None:
            last = survey.segment
            self._end_at(last)
            # A sync that failed in an earlier life may have left bytes in memory that are not on the disk.
            files.rewrite(last.name, min(survey.mark, last.end))
            files.sync(last.name)
            last.size = last.end
            if all(damage.file != last.name for damage in findings.damages):
                self._active = last
        for name in findings.leftovers:
            files.remove(name)
        with suppress(DiskFull):  # a log that cannot be written can still be read
            self._save(self.view.chopped)
            self._retire()
            self._restore_reserve()

    # Writing

    def _next_segment(self) -> Segment:
        active = self._active
        if active is not None and active.end < self._settings.segment_bytes:
            return active
        if active is not None:
            self._seal(active)
        return self._new_segment()

    def _write(self, segment: Segment) -> None:
        """As many of the waiting batches as this segment takes, in one write and one sync."""
        heads: list[Head] = []
        pieces: list[bytes] = []
        end, taken = segment.end, 0
        while taken < len(self._waiting) and (not taken or end < self._settings.segment_bytes):
            batch, taken = joined(self._waiting, taken)
            blocks = list(parts(batch))
            for part in blocks:
                more = part is not blocks[-1]
                head, *block = encode(part, seed=segment.seed, offset=end, synced=segment.end, more=more)
                heads.append(head)
                pieces += block
                end = head.end
        self._append_stable(segment, *pieces)
        self._written = end - segment.end
        for head in heads:
            segment.note(head, head.records)
        del self._waiting[:taken]

    def _append_stable(self, segment: Segment, *pieces: bytes) -> None:
        try:
            self._files.append_stable(segment.name, *pieces)
        except DiskFull:
            self._files.truncate(segment.name, segment.end)
            self._files.sync(segment.name)
            raise

    def _end_at(self, segment: Segment) -> None:
        """Have a file end where its segment does, without a torn tail, or room that was prepared."""
        if (self._files.size(segment.name) or 0) > segment.end:
            self._files.truncate(segment.name, segment.end)

    def _seal(self, segment: Segment) -> None:
        self._end_at(segment)
        footer = segment.footer().encode(segment.seed)
        self._append_stable(segment, footer)
        segment.size = segment.end + len(footer)
        segment.is_sealed = True
        self._active = None

    def _new_segment(self) -> Segment:
        base = self.last_index + 1
        segment = Segment(base, seed_of(self.identity, base), last=base - 1)
        segments = self.view.segments
        if segments and segments[-1].base == base:
            segments.pop()  # its header is broken, and there is nothing in it
        elif self._files.size(segment.name) is not None:
            raise DiskFailed(
                segment.name, "a file that is not of this log stands where its next segment belongs"
            )
        self._files.replace(segment.name, SegmentHeader(self.identity, base).encode())
        segment.missing, self.view.missing_at_end = self.view.missing_at_end, None
        segments.append(segment)
        self._active = segment
        with suppress(DiskFull):  # an older manifest only knows less
            self._save(self.view.chopped)
        return segment

    def _retire(self) -> None:
        """Begin a segment if nothing is left in the last one; that one goes now, or at the next start."""
        active = self._active
        if active is None or active.last > self.view.chopped:
            return
        if active.end >= self._settings.retired_bytes:
            try:
                self._new_segment()
            except DiskFull:
                self._files.remove(RESERVE)
                self._new_segment()

    def _save(self, chopped: int) -> None:
        segment = self.view.segments[-1] if self.view.segments else None
        base, end = (segment.base, segment.end) if segment else (0, 0)
        data = Manifest(self.identity, chopped, base, end, self.last_index).encode()
        try:
            self._files.replace(MANIFEST, data)
        except DiskFull:
            self._files.remove(RESERVE)
            self._files.replace(MANIFEST, data)

    def _restore_reserve(self) -> None:
        if self._files.size(RESERVE) != RESERVE_BYTES:
            try:
                self._files.replace(RESERVE, bytes(RESERVE_BYTES))
            except DiskFull:
                self._files.remove(RESERVE)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure


def _examined(files: Files, identity: bytes, *, deep: bool) -> Findings:
    try:
        return examine(files, deep=deep)
    except NoLog:
        if files.names():
            raise
    files.replace(MANIFEST, Manifest(identity).encode())
    return examine(files)
