"""The persistent filtering log: which events matched which subscribers, so that catching up never filters twice.

One record for every tick that matched anybody, and in it for each subscriber how far back its previous record is:
reading for one subscriber follows its own chain and touches nothing else [BZA §4.2, Fig 2; R1.24-R1.29]. One log per
pubend (B1.12).

Departures. [BZA] points back by 8-byte indexes, 8+16n bytes a record. Our records are numbered densely, so number
and distance mostly fit into 4 bytes each: 8+8n; where one does not, the record is wide, 8+16n (I21). A walk goes
backwards and delivery forwards, so [BZA] walks the whole chain for each buffer; we note a waypoint at every buffer's
edge on the first walk and come back to it.

Order of writing (B1.5): records, sync, metadata. The metadata are only a short cut: at start the log beyond them is
read, and if they point past its end they are not believed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from struct import Struct
from typing import Final

from google_crc32c import value

from holdfast.storage.block import Batch
from holdfast.storage.damage import Damage, DamagedRecord
from holdfast.storage.files import Files
from holdfast.storage.log import LogSettings, SegmentLog

__all__ = ["CatchUpRead", "FilteringLog", "Reading"]

METADATA: Final = "matches"
_MAGIC: Final = b"HFmatch2"
_FIELDS: Final = Struct("<8sQQQQQ")
_CRC: Final = Struct("<I")
_TICK: Final = Struct("<Q")
_WIDE: Final = 1 << 63
_OPEN: Final = 1 << 62  #: what is broken was the end: nobody knows up to which tick, until the next is noted

#: So many records are kept as they were read: those who were away together come back together.
RECENT_RECORDS: Final = 8_192

_NARROW_MAX: Final = (1 << 32) - 1


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
        self._waiting: list[bytes] = []
        self._recent: deque[_Run] = deque()
        self._recent_records = 0
        self.last_timestamp = 0  #: ticks up to here are known (R1.27)
        self.chopped = 0  #: ticks up to here are lost
        self._unsure_through = 0  #: up to here records are broken whose subscribers nobody knows
        self._recover(at_least)

    # Writing

    def write(self, matches: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Note the subscribers of ticks, both ascending; ticks that are known already are left out (B1.5).

        Ticks without a subscriber leave no record (R1.25). Nothing is stable before ``commit``.
        """
        for tick, subscribers in matches:
            if tick > self.last_timestamp:
                self._unsure_through = min(self._unsure_through, tick - 1)
                self.last_timestamp = tick
                if subscribers:
                    self._number += 1
                    self._waiting.append(self._record(tick, subscribers))

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
        if self._waiting:
            first = self._number - len(self._waiting) + 1
            self.log.append(range(first, self._number + 1), self._waiting, time)
            self._waiting = []
            self.log.commit()

    def checkpoint(self) -> None:
        """Commit, and save where each subscriber's chain begins: the next start reads only what comes after."""
        self.commit()
        entries = [number for pair in self._last.items() for number in pair]
        known = self._number, self.last_timestamp, self.chopped, self._unsure_through
        fields = _FIELDS.pack(_MAGIC, *known, len(self._last))
        fields += _numbers(len(entries), "Q").pack(*entries)
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

    def _record(self, tick: int, subscribers: Sequence[int]) -> bytes:
        number, last = self._number, self._last
        pairs: list[int] = []
        for subscriber in subscribers:
            before = last.get(subscriber)
            pairs += (subscriber, 0 if before is None else number - before)
            last[subscriber] = number
        if max(pairs) <= _NARROW_MAX:
            return _TICK.pack(tick) + _numbers(len(pairs), "I").pack(*pairs)
        return _TICK.pack(tick | _WIDE) + _numbers(len(pairs), "Q").pack(*pairs)

    # Reading

    @property
    def unsure_through(self) -> int:
        """Records at or below this tick are broken, and nobody knows whose they were."""
        return self._unsure_through

    def read(self, subscriber: int, after: int, limit: int) -> CatchUpRead:
        """The ticks above one that matched a subscriber, oldest first, ``limit`` at a time (R1.29, B1.6).

        Everything written must be committed; what is written later is not part of it.
        """
        assert not self._waiting, "commit first: only what is stable is known (R1.19)"
        return CatchUpRead(self, subscriber, after, limit)

    def last_matches(self) -> dict[int, int]:
        """By subscriber the tick of its last record; where that is broken, everything may have matched."""
        found: dict[int, int] = {}
        for subscriber in self._last:
            try:
                found[subscriber] = next((tick for _, tick in self.chain(subscriber, 0)), 0)
            except DamagedRecord:
                found[subscriber] = self.last_timestamp
        return found

    def chain(self, subscriber: int, after: int, start: int | None = None) -> Iterator[tuple[int, int]]:
        """Number and tick of a subscriber's records above a tick, from the latest, or one given, backwards.

        :raises DamagedRecord: where the chain leads to a record that is broken.
        """
        number = self._last.get(subscriber, 0) if start is None else start
        run = None
        while number > self.log.view.chopped:
            if run is None or number < run.first:
                run = self._run(number)
                if run is None:
                    return  # chopped a moment ago
            tick, distance = run.link(number, subscriber)
            if tick <= after:
                return
            yield number, tick
            if not distance:
                return
            number -= distance

    def _run(self, number: int) -> _Run | None:
        """The records around one, as they were read the last time or now."""
        for run in self._recent:
            if run.first <= number < run.first + len(run.records):
                run.become_popular()
                return run
        batch = self.log.view.batch_with(number)
        if batch is None:
            return None
        run = _Run(batch.indexes[0], batch.records)
        self._recent.appendleft(run)
        self._recent_records += len(run.records)
        while self._recent_records > RECENT_RECORDS and len(self._recent) > 1:
            self._recent_records -= len(self._recent.pop().records)
        return run

    # Starting

    def _recover(self, at_least: int) -> None:
        saved = self._metadata()
        done, is_broken = 0, False
        if saved is not None:
            done, self.last_timestamp, self.chopped, self._unsure_through, self._last = saved
        for item in self.log.view.scan(done):
            if isinstance(item, Damage):
                is_broken = True
            elif isinstance(item, Batch):
                if is_broken:
                    # Whoever matched there would seem not to have: until this whole record nothing is sure.
                    self._unsure_through, is_broken = _parsed(item.records[0])[0] - 1, False
                self._take_in(item)
        if is_broken or self._number < at_least:
            self._unsure_through = _OPEN

    def _take_in(self, batch: Batch) -> None:
        for number, record in zip(batch.indexes, batch.records, strict=True):
            tick, pairs = _parsed(record)
            self.last_timestamp = max(self.last_timestamp, tick)
            for subscriber in pairs[::2]:
                self._last[subscriber] = number

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
        entries = _numbers(2 * count, "Q").unpack_from(fields, _FIELDS.size)
        last = dict(zip(entries[::2], entries[1::2], strict=True))
        return number, last_timestamp, chopped, unsure, last

    def _number_at(self, tick: int) -> int:
        """The number of the last record at or below a tick, by halving."""
        low, high = self.log.view.chopped, self.log.last_index
        while low < high:
            middle = (low + high + 1) // 2
            if self._tick_of(middle) <= tick:
                low = middle
            else:
                high = middle - 1
        return low

    def _tick_of(self, number: int) -> int:
        """The tick of a record; of one that is broken, that of the next whole one: less is chopped, never more."""
        for item in self.log.view.scan(number - 1, window=1 << 16):
            if isinstance(item, Batch):
                return _parsed(item.records[0])[0]
        return _WIDE


class _Run:
    """Records that are numbered densely. Who reads them first looks for its own link in each; then all are read.

    ``first``: the number of the first one.
    """

    __slots__ = ("_links", "first", "records")

    def __init__(self, first: int, records: Sequence[bytes]) -> None:
        self.first = first
        self.records = records
        self._links: list[tuple[int, Mapping[int, int]]] | None = None

    def become_popular(self) -> None:
        """Another one reads them: those who were away together come back together."""
        if self._links is None:
            self._links = [_linked(record) for record in self.records]

    def link(self, number: int, subscriber: int) -> tuple[int, int]:
        """The tick of a record, and how far back a subscriber's previous one is; 0: it has none."""
        if self._links is not None:
            tick, distances = self._links[number - self.first]
            return tick, distances[subscriber]
        tick, pairs = _parsed(self.records[number - self.first])
        return tick, pairs[2 * pairs[::2].index(subscriber) + 1]


class CatchUpRead:
    """A subscriber's way through the log, from where it stood to where the log stood when it began.

    One walk backwards counts the matches, keeps the oldest (B1.6) and notes every ``limit``-th: they are the first
    batch, and each further one is read from the nearest of those.
    """

    def __init__(self, log: FilteringLog, subscriber: int, after: int, limit: int) -> None:
        assert limit > 0
        self._log = log
        self._subscriber = subscriber
        self._limit = limit
        self._after = after
        self._end = max(after, log.last_timestamp)
        self._unsure_through = max(after, log.chopped, min(log.unsure_through, self._end))
        self._waypoints: list[int] = []
        self._oldest: deque[int] | None = deque(maxlen=limit + 1)  #: of the walk, and then the first batch
        self._left = 0  #: matches that were not handed out yet, all newer than those that were
        self._is_done = False
        self._walk()

    def __iter__(self) -> Iterator[Reading]:
        while not self._is_done:
            yield self.next_reading()

    def next_reading(self) -> Reading:
        """The next batch; to be asked for when everything of the last one was delivered (R1.29)."""
        assert not self._is_done
        newer = max(0, self._left - self._limit)
        matches, bound = self._matches(newer)
        self._is_done = newer == 0
        known_through = self._end if bound is None else bound - 1
        lost_through = max(self._after, min(self._log.chopped, known_through))
        unsure_through = max(lost_through, min(self._unsure_through, known_through))
        sure = matches[bisect_right(matches, unsure_through) :]  # some may have been released since the walk
        reading = Reading(self._after, lost_through, unsure_through, sure, known_through)
        self._left, self._after = newer, known_through
        return reading

    def _walk(self) -> None:
        oldest = self._oldest
        assert oldest is not None
        try:
            for number, tick in self._log.chain(self._subscriber, self._unsure_through):
                if self._left % self._limit == 0:
                    self._waypoints.append(number)
                self._left += 1
                oldest.append(tick)
        except DamagedRecord:
            self._unsure_through = oldest[-1] - 1 if oldest else self._end

    def _matches(self, newer: int) -> tuple[list[int], int | None]:
        """The oldest matches that are left, in order, and the one after them; ``newer`` of them stay."""
        if self._oldest is not None:
            ticks, self._oldest = list(self._oldest), None
        else:
            start = max(0, newer - 1)
            links = self._log.chain(self._subscriber, self._after, self._waypoints[start // self._limit])
            taken = islice(links, start % self._limit, start % self._limit + self._left - start)
            ticks = [tick for _, tick in taken]
        if newer and not ticks:
            return [], self._log.chopped + 1  # released under our feet, with the one after them
        bound = ticks.pop(0) if newer else None
        return ticks[::-1], bound


def _linked(record: bytes) -> tuple[int, Mapping[int, int]]:
    tick, pairs = _parsed(record)
    return tick, dict(zip(pairs[::2], pairs[1::2], strict=True))


def _parsed(record: bytes) -> tuple[int, tuple[int, ...]]:
    """The tick of a record, and subscriber and distance by turns."""
    tick: int = _TICK.unpack_from(record)[0]
    if tick & _WIDE:
        return tick ^ _WIDE, _numbers((len(record) - 8) // 8, "Q").unpack_from(record, 8)
    return tick, _numbers((len(record) - 8) // 4, "I").unpack_from(record, 8)


@lru_cache(maxsize=1024)
def _numbers(count: int, kind: str) -> Struct:
    return Struct(f"<{count}{kind}")
