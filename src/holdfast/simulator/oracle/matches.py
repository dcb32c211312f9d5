"""I21: what the filtering logs on a broker's disk say, against what pubends have logged and every reader's filter.

Looked into as the next life would: a copy is opened, and read for every durable reader that is on the same disk.
Above the reader's start here, and above what was chopped, up to the end of the log and to what is said to be delivered,

- every event that matches its filter is named, unless the log itself says that it is not sure, or names the beginning
  of what its pubend has lost or given up;
- nothing else is named;
- no record is larger than 8+16n bytes for each of its ticks, of n readers.

The copy is taken between two things a disk does, so a crash may follow; the next life begins with just this.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, pairwise
from random import Random
from struct import Struct
from typing import Final
from urllib.parse import quote

from holdfast.broker.durable.records import (
    HOSTED,
    PLACES,
    PUBENDS,
    READERS,
    HostedRow,
    PlaceRow,
    ReaderRow,
    parted,
    read,
)
from holdfast.intervals import Intervals
from holdfast.simulator.disk import SimulatedDisk
from holdfast.simulator.oracle.pubends import KnownPubend
from holdfast.simulator.world import Node
from holdfast.storage.block import Batch
from holdfast.storage.files import Subfolder
from holdfast.storage.filtering_log import FilteringLog, Reading
from holdfast.streams.pubend import Kept

__all__ = ["gone_from", "imprecise"]

READING_MAX: Final = 100
_WORD: Final = Struct("<Q")
_WIDE: Final = 1 << 63  #: in the tick of a record whose numbers have eight bytes instead of four
_MANY: Final = 1 << 62  #: with it, in the first word of a record of many ticks
_MAPPED: Final = 1 << 61  #: with these, of one that has a bit for each tick and reader


def imprecise(node: Node, pubends: Mapping[str, KnownPubend], gone: Mapping[str, Intervals]) -> Iterator[str]:
    """What is wrong with the filtering logs of one broker."""
    assert node.store is not None
    tables = node.store.tables
    filters = {
        row.number: (name, row.filter)
        for name, value in tables.read(READERS).items()
        for row in [read(READERS, name, value, ReaderRow)]
    }
    logs: dict[str, FilteringLog] = {}
    for pubend, value in tables.read(HOSTED).items():
        log = _opened(node.disk, pubend)
        if log is not None:
            log.advance(read(HOSTED, pubend, value, HostedRow).delivered)
            logs[pubend] = log
            yield from (f"{node.name} {pubend}: {each}" for each in _oversized(log))
    for key, value in tables.read(PLACES).items():
        number, pubend = parted(key)
        if int(number) in filters and pubend in logs:
            name, filter = filters[int(number)]
            start = read(PLACES, key, value, PlaceRow).start
            readings = list(logs[pubend].read(int(number), start, READING_MAX))
            known = pubends[pubend]
            for each in _wrong(readings, known, filter, gone.get(pubend, Intervals())):
                yield f"{node.name} {pubend}: {name}, from {start} on, {each}"


def gone_from(nodes: Iterable[Node]) -> dict[str, Intervals]:
    """By pubend the ticks that its broker has given up, or says it has lost."""
    found: dict[str, Intervals] = {}
    for node in nodes:
        assert node.store is not None
        for pubend, value in node.store.tables.read(PUBENDS).items():
            kept = read(PUBENDS, pubend, value, Kept)
            spans = found[pubend] = Intervals()
            for each in (*kept.lost, *kept.released):
                spans.add(each.after, each.upto)
    return found


def _opened(disk: SimulatedDisk, pubend: str) -> FilteringLog | None:
    """A copy of a filtering log; None if there is none."""
    files, copy = Subfolder(disk, f"matches-{quote(pubend, safe='@')}"), SimulatedDisk(Random(0))
    for name in files.names():
        copy.replace(name, files.read(name) or b"")
    return FilteringLog(copy, bytes(16)) if copy.names() else None


def _oversized(log: FilteringLog) -> Iterator[str]:
    for item in log.log.view.scan(0):
        for record in item.records if isinstance(item, Batch) else ():
            (word,) = _WORD.unpack_from(record)
            if word & _WIDE and word & _MANY:
                (tick,) = _WORD.unpack_from(record, 8)
                ticks, matches = word & 0xFFFF, _matches_of_many(record, word)
            else:
                width = 16 if word & _WIDE else 8
                tick, ticks = word & ~_WIDE, 1
                matches = len({record[at : at + width // 2] for at in range(8, len(record), width)})
            if len(record) > 8 * ticks + 16 * matches:
                yield f"{len(record)} bytes for {matches} matches from {tick} on"


def _matches_of_many(record: bytes, word: int) -> int:
    """How many different matches are in a record of many ticks."""
    ticks, readers = word & 0xFFFF, word >> 16 & 0xFFFF_FFFF
    at = 8 + 8 * ticks + 8 * readers
    if word & _MAPPED:
        return int.from_bytes(record[at:]).bit_count()
    counts = Struct(f"<{readers}H").unpack_from(record, at)
    positions = Struct(f"<{sum(counts)}H").unpack_from(record, at + 2 * readers)
    ends = list(accumulate(counts, initial=0))
    return sum(len(set(positions[begin:end])) for begin, end in pairwise(ends))


def _wrong(readings: list[Reading], pubend: KnownPubend, filter: str, gone: Intervals) -> Iterator[str]:
    sure, known_through = readings[0].unsure_through, readings[-1].known_through
    named = [tick for reading in readings for tick in reading.matches]
    for tick in pubend.within(sure, known_through + 1):
        if (
            pubend.is_for(filter, tick)
            and not _is_in(named, tick)
            and not _is_announced(named, tick, sure, gone)
        ):
            yield f"has matched {tick}, and the log does not say so"
    for tick in named:
        if tick not in gone and not pubend.is_for(filter, tick):
            yield f"has not matched {tick}, and the log says so"


def _is_in(named: list[int], tick: int) -> bool:
    at = bisect_left(named, tick)
    return at < len(named) and named[at] == tick


def _is_announced(named: list[int], tick: int, sure: int, gone: Intervals) -> bool:
    """Whether a tick is gone, and the log names where that begins, or began before it is sure of anything."""
    if tick not in gone:
        return False
    after, _ = gone.around(tick)
    return after < sure or bisect_right(named, after) < bisect_right(named, tick)
