"""Reading the logs of pubends for those who ask, beside the thread that writes them.

Who catches up asks for single ticks, thousands of them close to each other or far apart, or for long ranges. Either way
a block is read once: a scan goes on from one wanted range to the next, and jumps where the log's sparse index says that
there are blocks between them that nobody wants.

A log may be chopped while it is read, and what was chopped under a scan simply does not come. So how far it is chopped
is looked at *after* the scan: up to there everything is lost, whatever was found.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from holdfast.intervals import Intervals, Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ORIGIN, Lost, Tick
from holdfast.storage.block import Batch
from holdfast.storage.damage import Damage
from holdfast.storage.files import DiskFailed
from holdfast.storage.view import LogView
from holdfast.streams.pubend import RELEASED
from holdfast.streams.records import read_record
from holdfast.streams.store_events import DAMAGED, PubendLog
from holdfast.streams.storing import EventsRead, ReadEvents

__all__ = ["ReadsLane", "Row", "losses"]

WINDOW_BYTES: Final = 1 << 17  #: read at once: two of the largest blocks


class Row(msgspec.Struct, frozen=True):
    """What whoever reads logs needs of a pubend's row, which is a ``pubend.Kept``."""

    upto: Tick = ORIGIN
    lost: tuple[Lost, ...] = ()
    released: tuple[Lost, ...] = ()
    created: Tick = ORIGIN
    incarnation: int = 1


class ReadsLane:
    """Reads of all logs. ``logs`` and ``rows`` belong to other threads, which only put whole new values there."""

    def __init__(self, logs: Mapping[str, PubendLog], rows: Mapping[str, Row]) -> None:
        self._logs = logs
        self._rows = rows

    def turn(self, effects: Sequence[ReadEvents]) -> list[EventsRead]:
        """Carry out what has come."""
        return [self._read(effect) for effect in effects]

    def _read(self, effect: ReadEvents) -> EventsRead:
        """Nothing is said of ticks above the last stable event: the log does not know of silence."""
        entry = self._logs.get(effect.pubend)
        if entry is None:
            return EventsRead(effect.pubend, (), (), ())
        view = entry.log.view
        wanted = Intervals(effect.spans).within(ORIGIN, entry.stable)
        found = _Found(effect.limit, effect.bytes_max)
        with suppress(DiskFailed):  # what was read before is known; the rest may be asked for again
            found.scan(view, wanted)
        chopped = view.chopped
        parts = _up_to(found.covered, wanted)
        keep = bisect_right(found.ticks, chopped)
        lost = losses(parts, self._rows.get(effect.pubend, Row()), chopped, found.damaged)
        return EventsRead(effect.pubend, parts, found.ticks[keep:], found.publications[keep:], lost)


class _Found:
    """What a read has come upon, in order, up to ``covered``; it ends at so many events, or bytes of them."""

    def __init__(self, limit: int, bytes_max: int | None) -> None:
        assert limit > 0
        self._limit = limit
        self._bytes_max = bytes_max
        self._bytes = 0
        self.covered: Tick = ORIGIN
        self.ticks: list[Tick] = []
        self.publications: list[Publication] = []
        self.damaged: list[Span] = []

    def scan(self, view: LogView, wanted: Sequence[Span]) -> None:
        """Read the wanted ranges, which ascend, in as few scans as make sense."""
        at = 0
        while at < len(wanted):
            for item in view.scan(wanted[at][0], wanted[-1][1], WINDOW_BYTES):
                if isinstance(item, Batch):
                    self._take(item, wanted, at)
                elif isinstance(item, Damage):
                    self.damaged.append((item.first - 1, item.last))
                    self.covered = item.last
                else:
                    self.covered = item.through
                if self._is_full:
                    return
                at = bisect_right(wanted, self.covered, lo=at, key=_upto)
                if at == len(wanted) or _is_far(view, self.covered, wanted[at][0]):
                    break
            else:
                self.covered = wanted[-1][1]
                return

    @property
    def _is_full(self) -> bool:
        """The rest is for the next read."""
        has_enough = self._bytes_max is not None and self._bytes >= self._bytes_max
        return has_enough or len(self.ticks) >= self._limit

    def _take(self, batch: Batch, wanted: Sequence[Span], at: int) -> None:
        indexes, records, _ = batch
        stop = 0
        for after, upto in wanted[at : bisect_left(wanted, indexes[-1], lo=at, key=_after)]:
            start = bisect_right(indexes, after, lo=stop)
            stop = bisect_right(indexes, upto, lo=start)
            for tick, record in zip(indexes[start:stop], records[start:stop], strict=True):
                self.covered = tick
                try:
                    publication = read_record(record)
                except msgspec.MsgspecError:  # whole, and not what a pubend writes
                    self.damaged.append((tick - 1, tick))
                    continue
                self.ticks.append(tick)
                self.publications.append(publication)
                self._bytes += len(record)
                if self._is_full:
                    return
        self.covered = indexes[-1]


def _is_far(view: LogView, position: Tick, after: Tick) -> bool:
    """Whether blocks behind a position can be left out on the way to the first tick above another."""
    segments = view.segments
    i = bisect_left(segments, after + 1, key=lambda segment: segment.last)
    return i < len(segments) and segments[i].entry_before(after + 1) > position


def _up_to(covered: Tick, wanted: Sequence[Span]) -> list[Span]:
    """The ranges, which ascend, as far as a tick."""
    parts = list(wanted[: bisect_left(wanted, covered, key=_after)])
    if parts and parts[-1][1] > covered:
        parts[-1] = parts[-1][0], covered
    return parts


def losses(parts: Sequence[Span], row: Row, chopped: Tick, damaged: Sequence[Span]) -> list[Lost]:
    """What is lost of the parts that were read; the first reason there is counts."""
    unexplained = Intervals(parts)
    found: list[Lost] = []
    for after, upto, reason in _reasons(row, chopped, damaged):
        pieces = unexplained.within(after, upto)
        if pieces:
            found += [Lost(*piece, reason) for piece in pieces]
            unexplained.remove(after, upto)
    found.sort()
    return found


def _reasons(row: Row, chopped: Tick, damaged: Sequence[Span]) -> Iterator[Lost]:
    for after, upto, reason in row.released:
        yield Lost(after, min(upto, chopped), reason)
    yield from row.lost
    yield Lost(ORIGIN, chopped, RELEASED)
    for after, upto in damaged:
        yield Lost(after, upto, DAMAGED)


def _after(span: Span) -> Tick:
    return span[0]


def _upto(span: Span) -> Tick:
    return span[1]
