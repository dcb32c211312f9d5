"""Ranges of a broker's pubends, read from its folder by another process than the broker.

Nothing is served that a power cut could take back: sealed segments, what a later commit vouches for, and what the
broker's tables say has been on disk, which they do about a second after it was (``streams.ends``). Nothing is locked
and nothing is written, so the broker does not notice.

What is not there any more comes in its place, as the ``Lost`` a subscriber would hear of: released with its reason,
damaged, restored from a backup. Everything else of a range that is no event is silence. The log may be chopped while it
is read; what went under a scan is looked up again, and is lost too.

How far nothing more can come is known, too (``silence``): by what each pubend has promised on disk, and, of pubends
that are not there yet, by the clock, which is the broker's: a pubend is saved before it takes its first event.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from holdfast.intervals import Intervals, Span
from holdfast.messages.ticks import ORIGIN, Lost, Tick
from holdfast.pipeline.errors import NoPubend, NotStable
from holdfast.runtime.tables_copy import TablesCopy
from holdfast.storage.block import Batch
from holdfast.storage.damage import Damage
from holdfast.storage.opening import NoLog
from holdfast.storage.reader import LogReader
from holdfast.storage.real_files import RealFiles
from holdfast.storage.view import LogView
from holdfast.streams.ends import EVENTS, Ends, folder_of, read_ends
from holdfast.streams.pubend_names import stream_in
from holdfast.streams.store_events import DAMAGED
from holdfast.streams.store_reads import Row, losses

__all__ = ["End", "Piece", "Ranges", "Silence"]

#: What a scan comes upon: events under their ticks, or ticks that are gone.
Piece = Batch | Lost

WINDOW_BYTES: Final = 1 << 20

#: By so much a broker's clock may be behind ours; it looks at it every second, and a millisecond is not worth telling.
CLOCK_TICKS: Final = 5_000


class End(NamedTuple):
    """How far a pubend goes: (first, last] can be read, and what was before is gone or never was."""

    incarnation: int
    first: Tick
    last: Tick


class Silence(NamedTuple):
    """Of a stream: up to here no event comes that is not there; and how far its pubends can be read, at least so far.

    What is read behind the last event is silence.
    """

    upto: Tick
    pubends: dict[str, End]


class _Snapshot(NamedTuple):
    """A pubend as of now; ``view`` is None if there is no log."""

    row: Row
    view: LogView | None
    stable: Tick  #: the last event that is known to have been on disk, whether or not it still is
    silent: Tick  #: no other comes up to here

    @property
    def gone(self) -> Tick:
        """Up to here there is nothing any more, or never was: the log may not have been chopped for so little."""
        chopped = ORIGIN if self.view is None else self.view.chopped
        return max([self.row.created, chopped, *(lost.upto for lost in self.row.released)])

    @property
    def last(self) -> Tick:
        """Everything up to here is decided; what is lost beyond the last event is, if nothing is under way before."""
        last = max(self.stable, self.gone)
        for after, upto, _ in sorted((*self.row.lost, *self.row.released)):
            if after <= last:
                last = max(last, upto)
        return last

    @property
    def decided(self) -> Tick:
        """The same, and the silence behind it: so far it can be read, and will always be the same."""
        return max(self.last, self.silent)

    @property
    def end(self) -> End:
        return End(self.row.incarnation, self.gone, self.last)

    def losses(self, after: Tick, upto: Tick) -> list[Lost]:
        """What is known to be gone in a range, ascending."""
        parts: list[Span] = [(max(after, self.row.created), upto)]
        if parts[0][0] >= upto:
            return []
        end = max(self.gone, self.view.last_index if self.view is not None else ORIGIN)
        missing: list[Span] = [(end, self.stable)] if end < self.stable else []
        return losses(parts, self.row, self.gone, missing)


class Ranges:
    """The pubends of one broker; ``folder`` is that of its store. For any number of threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._tables = TablesCopy(folder)
        self._readers: dict[str, LogReader] = {}

    def ends(self, stream: str) -> dict[str, End]:
        """By pubend of a stream, how far it goes.

        :raises DiskFailed: if the folder cannot be read.
        """
        with self._lock:
            return {pubend: each.end for pubend, each in self._of(stream).items()}

    def silence(self, stream: str) -> Silence:
        """Up to where the pubends of a stream, those that are here and those to come, are silent or can be read.

        :raises DiskFailed: if the folder cannot be read.
        """
        with self._lock:
            found = self._of(stream)
            now = self._tables.as_of // 1_000 - CLOCK_TICKS
        upto = min([now, *(each.decided for each in found.values())])
        ends = {pubend: each.end._replace(last=each.decided) for pubend, each in found.items()}
        return Silence(max(upto, ORIGIN), ends)

    def _of(self, stream: str) -> dict[str, _Snapshot]:
        ends = self._known()
        return {each: self._snapshot(each, ends) for each in sorted(ends.rows) if stream_in(each) == stream}

    def incarnation(self, pubend: str) -> int:
        """That of the log as it is now."""
        with self._lock:
            row = self._known().rows.get(pubend)
        return Row().incarnation if row is None else row.incarnation

    def scan(self, pubend: str, after: Tick, upto: Tick) -> Iterator[Piece]:
        """Everything there is in (after, upto], in order; what is in no piece is silence.

        :raises NoPubend: if there is none of this name.
        :raises NotStable: if the range goes beyond what is on disk for good.
        :raises DiskFailed: if the folder cannot be read.
        """
        snapshot = self._now(pubend)
        if upto > snapshot.decided:
            problem = f"{pubend} is stable up to {snapshot.decided}, and {upto} was asked for"
            raise NotStable(problem)
        known = deque(snapshot.losses(after, upto))
        lost_through = ORIGIN
        if snapshot.view is not None:
            for item in snapshot.view.scan(after, upto, WINDOW_BYTES):
                if isinstance(item, Batch):
                    for piece in _around(item, lost_through, known):
                        if isinstance(piece, Lost):
                            lost_through = piece.upto
                        yield piece
                elif isinstance(item, Damage) and item.loses_records:
                    self._explain(pubend, (max(item.first - 1, after), min(item.last, upto)), upto, known)
        yield from known

    def _explain(self, pubend: str, span: Span, upto: Tick, known: deque[Lost]) -> None:
        """Something is damaged, or gone: perhaps it was chopped meanwhile, and the tables say why.

        ``known``, what is lost from here on, becomes what is known now.
        """
        begin = min([span[0], *(lost.after for lost in known)])
        found = self._now(pubend).losses(begin, upto)
        explained = Intervals()
        for lost in found:
            explained.add(lost.after, lost.upto)
        found += [Lost(*rest, DAMAGED) for rest in explained.gaps(*span)]
        known.clear()
        known.extend(sorted(found))

    def _now(self, pubend: str) -> _Snapshot:
        with self._lock:
            ends = self._known()
            if pubend not in ends.rows:
                raise NoPubend(f"there is no pubend {pubend} here")
            return self._snapshot(pubend, ends)

    def _known(self) -> Ends:
        return read_ends(self._tables.read() or {})

    def _snapshot(self, pubend: str, ends: Ends) -> _Snapshot:
        """The log is looked at after the tables: what they vouch for has been there."""
        row, vouched = ends.rows[pubend], ends.events.get(pubend, ORIGIN)
        silent = ends.silent.get(pubend, ORIGIN)
        try:
            reader = self._readers.get(pubend)
            if reader is None:
                files = RealFiles(self._folder / folder_of(EVENTS, pubend), write=False)
                reader = self._readers[pubend] = LogReader(files)
            reader.refresh(vouched)
        except NoLog:
            self._readers.pop(pubend, None)
            return _Snapshot(row, None, vouched, silent)
        return _Snapshot(row, reader.view, reader.stable, silent)


def _around(batch: Batch, lost_through: Tick, known: deque[Lost]) -> Iterator[Piece]:
    """A batch and what is lost before and within it; what was said to be lost is not served, even if it is there."""
    indexes, records, time = batch
    start = bisect_right(indexes, lost_through)
    while known and known[0].after < indexes[-1]:
        lost = known.popleft()
        stop = bisect_right(indexes, lost.after, lo=start)
        if stop > start:
            yield Batch(indexes[start:stop], records[start:stop], time)
        yield lost
        start = bisect_right(indexes, lost.upto, lo=stop)
    if start == 0:
        yield batch
    elif start < len(indexes):
        yield Batch(indexes[start:], records[start:], time)
