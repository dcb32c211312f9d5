"""The persistent filtering log: which events matched which subscribers, so that catching up never filters twice.

What matched anybody is noted from time to time, and each subscriber's part of that says how far back its previous one
is: reading for one subscriber follows its own chain and touches nothing else [BZA §4.2, Fig 2; R1.24-R1.29]. One log
per pubend (B1.12).

Departures. [BZA] writes a record for every tick, and points back by 8-byte indexes: 8+16n bytes. Our records, the
*sheets*, have all ticks of one commit, and name and link each of their subscribers once; they are numbered densely, so
that numbers and distances are short. A walk goes backwards and delivery forwards, so [BZA] walks the whole chain for
each buffer; we note on the first walk where each stretch of as many matches as a buffer holds begins.

Order of writing (B1.5): records, sync, metadata. The metadata are only a short cut: at start the log beyond them is
read, and if they point past its end they are not believed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final

from google_crc32c import value

from holdfast.storage.block import Batch
from holdfast.storage.damage import Damage, DamagedRecord
from holdfast.storage.files import Files
from holdfast.storage.log import LogSettings, SegmentLog
from holdfast.storage.rows import Rows
from holdfast.storage.sheet import Noted, Sheet, parted, read_sheet, written

__all__ = ["CatchUpRead", "FilteringLog", "Reading"]

METADATA: Final = "matches"
_MAGIC: Final = b"HFmatch2"
_FIELDS: Final = Struct("<8sQQQQQ")
_CRC: Final = Struct("<I")
_OPEN: Final = 1 << 62  #: what is broken was the end: nobody knows up to which tick, until the next is noted

#: Sheets of so many ticks are kept as they were read: those who were away together come back together.
RECENT_TICKS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of one subscriber's ticks above ``after``, in order.

    Up to ``lost_through`` the log was chopped: L. From there to ``unsure_through`` it is damaged: any tick may
    match, Q. From there to ``known_through`` the ``matches`` are Q and all others S. Above it nothing is known yet.
    """

    after: int
    lost_through: int
    unsure_through: int
    matches: Sequence[int]
    known_through: int


class FilteringLog:
    """The matches of one pubend's events with the subscribers of one broker. Subscribers are numbers below 2⁶³.

    :raises NoLog, UnknownFormat, DiskFailed: as ``SegmentLog``.
    """

    def __init__(
        self, files: Files, identity: bytes, settings: LogSettings | None = None, *, at_least: int = 0
    ) -> None:
        self.log = SegmentLog(files, identity, settings)
        self._files = files
        self._number = self.log.last_index  #: of the last record written, stable or not
        self._last: dict[int, int] = {}  #: lastIndex(s), for what was written
        self._waiting: list[Noted] = []
        self._rows = Rows()
        self._recent: dict[int, Sheet] = {}  #: by number, the one last asked for at the end
        self._recent_ticks = 0
        self.last_timestamp = 0  #: ticks up to here are known (R1.27)
        self.chopped = 0  #: ticks up to here are lost
        self._unsure_through = 0  #: up to here records are broken whose subscribers nobody knows
        self._recover(at_least)

    # Writing

    def write(self, matches: Sequence[Noted]) -> None:
        """Note the subscribers of ticks, both ascending; ticks that are known already are left out (B1.5).

        Ticks without a subscriber leave no record (R1.25). Nothing is stable before ``commit``.
        """
        if matches and matches[0][0] <= self.last_timestamp:
            matches = [noted for noted in matches if noted[0] > self.last_timestamp]
        if matches:
            if self._unsure_through >= matches[0][0]:
                self._unsure_through = matches[0][0] - 1
            self.last_timestamp = matches[-1][0]
            self._waiting += matches

    def advance(self, tick: int) -> None:
        """Nothing else matched up to this tick, but for what was noted and is broken."""
        if tick > self.last_timestamp:
            self._unsure_through = min(self._unsure_through, tick)
            self.last_timestamp = tick

    def commit(self, time: int = 0) -> None:
        """Make what was written stable.

        :raises DiskFull, DiskFailed: as ``SegmentLog.commit``; either way this object is of no more use: open it
        again.
        """
        waiting, self._waiting = [noted for noted in self._waiting if noted[1]], []
        if waiting:
            records: list[bytes] = []
            first = self._number + 1
            for piece in parted(waiting):
                records += written(piece, first + len(records), self._last, self._rows)
            self._number += len(records)
            self.log.append(range(first, self._number + 1), records, time)
            self.log.commit()

    def checkpoint(self) -> None:
        """Commit, and save where each subscriber's chain begins: the next start reads only what comes after."""
        self.commit()
        entries = [number for pair in self._last.items() for number in pair]
        known = self._number, self.last_timestamp, self.chopped, self._unsure_through
        fields = _FIELDS.pack(_MAGIC, *known, len(self._last))
        fields += Struct(f"<{len(entries)}Q").pack(*entries)
        self._files.replace(METADATA, fields + _CRC.pack(value(fields)))

    def chop(self, tick: int) -> None:
        """Forget everything up to a tick (B1.7); a subscriber that stands below it has lost something."""
        if tick > self.chopped:
            self.commit()
            through = self._number_at(tick)
            self.chopped = tick
            self.last_timestamp = max(self.last_timestamp, tick)
            self.checkpoint()  # first: what is gone must be known to be gone
            self.log.chop(through)

    def forget(self, subscriber: int) -> None:
        """A subscriber is gone for good."""
        self._last.pop(subscriber, None)
        self._rows.forget()

    # Reading

    @property
    def unsure_through(self) -> int:
        """Records at or below this tick are broken, and nobody knows whose they were."""
        return self._unsure_through

    def read(self, subscriber: int, after: int, limit: int) -> CatchUpRead:
        """The ticks above one that matched a subscriber, oldest first, ``limit`` at a time (R1.29, B1.6).

        Everything written must be committed; what is written later is not part of it.
        """
        is_stable = not any(subscribers for _, subscribers in self._waiting)
        assert is_stable, "commit first: only what is stable is known (R1.19)"
        return CatchUpRead(self, subscriber, after, limit)

    def last_matches(self) -> dict[int, int]:
        """By subscriber the tick of its last record; where that is broken, everything may have matched."""
        found: dict[int, int] = {}
        for subscriber in self._last:
            try:
                found[subscriber] = next((ticks[-1] for _, ticks in self.chain(subscriber, 0)), 0)
            except DamagedRecord:
                found[subscriber] = self.last_timestamp
        return found

    def chain(self, subscriber: int, after: int, start: int | None = None) -> Iterator[tuple[int, list[int]]]:
        """A subscriber's ticks above one, sheet by sheet, from its latest, or one given, backwards; with their numbers.

        :raises DamagedRecord: where the chain leads to a record that is broken.
        """
        number = self._last.get(subscriber, 0) if start is None else start
        while number > self.log.view.chopped:
            sheet = self._sheet(number)
            if sheet is None:
                return  # chopped a moment ago
            ticks, distance = sheet.of(subscriber)
            first = bisect_right(ticks, after)
            if first < len(ticks):
                yield number, ticks[first:]
            if first or not distance:
                return
            number -= distance

    def _sheet(self, number: int) -> Sheet | None:
        """A sheet, as it was read the last time or now; None if it was chopped."""
        sheet = self._recent.pop(number, None)
        if sheet is None:
            batch = self.log.view.batch_with(number)
            if batch is None:
                return None
            sheet = read_sheet(batch.records[number - batch.indexes[0]])
            self._recent_ticks += len(sheet.ticks)
        self._recent[number] = sheet
        while self._recent_ticks > RECENT_TICKS and len(self._recent) > 1:
            self._recent_ticks -= len(self._recent.pop(next(iter(self._recent))).ticks)
        return sheet

    # Starting

    def _recover(self, at_least: int) -> None:
        saved = self._metadata()
        done, is_broken = 0, self.log.view.chopped > 0  # without them nobody knows which ticks were chopped
        if saved is not None:
            done, self.last_timestamp, self.chopped, self._unsure_through, self._last = saved
            is_broken = False
        for item in self.log.view.scan(done):
            if isinstance(item, Damage):
                is_broken = True
            elif isinstance(item, Batch):
                if is_broken:
                    # Whoever matched there would seem not to have: until this whole record nothing is sure.
                    self._unsure_through, is_broken = read_sheet(item.records[0]).ticks[0] - 1, False
                self._take_in(item)
        if is_broken or self._number < at_least:
            self._unsure_through = _OPEN

    def _take_in(self, batch: Batch) -> None:
        for number, record in zip(batch.indexes, batch.records, strict=True):
            sheet = read_sheet(record)
            self.last_timestamp = max(self.last_timestamp, sheet.ticks[-1])
            self._last.update(dict.fromkeys(sheet.subscribers, number))

    def _metadata(self) -> tuple[int, int, int, int, dict[int, int]] | None:
        data = self._files.read(METADATA)
        if data is None or len(data) < _FIELDS.size + _CRC.size:
            return None
        fields = data[: -_CRC.size]
        magic, number, last_timestamp, chopped, unsure, count = _FIELDS.unpack_from(fields)
        if magic != _MAGIC or _CRC.unpack(data[-_CRC.size :])[0] != value(fields):
            return None
        if number > self.log.last_index:
            return None  # X21: they know of more than there is
        entries = Struct(f"<{2 * count}Q").unpack_from(fields, _FIELDS.size)
        last = dict(zip(entries[::2], entries[1::2], strict=True))
        return number, last_timestamp, chopped, unsure, last

    def _number_at(self, tick: int) -> int:
        """The number of the last sheet that has nothing above a tick, by halving."""
        low, high = self.log.view.chopped, self.log.last_index
        while low < high:
            middle = (low + high + 1) // 2
            if self._last_tick_of(middle) <= tick:
                low = middle
            else:
                high = middle - 1
        return low

    def _last_tick_of(self, number: int) -> int:
        """That of a sheet; of one that is broken, that of the next whole one: less is chopped, never more."""
        for item in self.log.view.scan(number - 1, window=1 << 16):
            if isinstance(item, Batch):
                return read_sheet(item.records[0]).ticks[-1]
        return _OPEN


class CatchUpRead:
    """A subscriber's way through the log, from where it stood to where the log stood when it began.

    One walk backwards notes where each stretch of at least ``limit`` matches begins, and keeps the oldest (B1.6): the
    first batch comes from there, and each further one from the next stretch.
    """

    def __init__(self, log: FilteringLog, subscriber: int, after: int, limit: int) -> None:
        assert limit > 0
        self._log = log
        self._subscriber = subscriber
        self._limit = limit
        self._after = after
        self._end = max(after, log.last_timestamp)
        self._unsure_through = max(after, log.chopped, min(log.unsure_through, self._end))
        self._stretches: list[int] = []  #: the sheets they begin with, the oldest at the end
        self._matches: list[int] = []  #: those that come next, in order, and were not handed out yet
        self._is_done = False
        self._walk()

    def __iter__(self) -> Iterator[Reading]:
        while not self._is_done:
            yield self.next_reading()

    def next_reading(self) -> Reading:
        """The next batch; to be asked for when everything of the last one was delivered (R1.29)."""
        assert not self._is_done
        while len(self._matches) <= self._limit and self._stretches:
            self._matches += self._stretch(self._stretches.pop())
        matches, self._matches = self._matches[: self._limit], self._matches[self._limit :]
        self._is_done = not self._matches
        known_through = self._end if self._is_done else self._matches[0] - 1
        lost_through = max(self._after, min(self._log.chopped, known_through))
        unsure_through = max(lost_through, min(self._unsure_through, known_through))
        sure = matches[bisect_right(matches, unsure_through) :]  # some may have been released since the walk
        reading = Reading(self._after, lost_through, unsure_through, sure, known_through)
        self._after = known_through
        return reading

    def _walk(self) -> None:
        oldest: list[list[int]] = []  #: the matches of a stretch, sheet by sheet backwards
        count = 0
        try:
            for number, ticks in self._log.chain(self._subscriber, self._unsure_through):
                if not oldest or count >= self._limit:
                    self._stretches.append(number)
                    oldest, count = [], 0
                oldest.append(ticks)
                count += len(ticks)
        except DamagedRecord:
            self._unsure_through = oldest[-1][0] - 1 if oldest else self._end
        if oldest:
            self._stretches.pop()
            self._matches = _ascending(oldest)

    def _stretch(self, number: int) -> list[int]:
        """The matches of a stretch, above those that were read; without what was released meanwhile."""
        after = self._matches[-1] if self._matches else self._after
        return _ascending([ticks for _, ticks in self._log.chain(self._subscriber, after, number)])


def _ascending(backwards: list[list[int]]) -> list[int]:
    return [tick for ticks in reversed(backwards) for tick in ticks]
