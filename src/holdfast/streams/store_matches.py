"""The filtering logs of a broker, one for each pubend it follows: noted, read, chopped.

What is noted in a turn shares one commit per log. After a full or failing disk a filtering log is of no more use and is
opened again: it then knows what is on the disk. Silence behind the last match leaves no record there, but what was told
as stable was noted in this life, so the opened log is told of it. Notes that were made before the core could hear of
the failure are refused with what was lost: taken behind a hole, they would make silence of it.

Where a log cannot be read, or its end is damaged, nothing is known of the ticks it was said to cover: any of them may
match. A subscriber then has everything filtered once more, and misses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from holdfast.errors import EnvironmentsFault
from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.storage.damage import DamagedRecord
from holdfast.storage.files import DiskFailed, DiskFull, Files
from holdfast.storage.filtering_log import FilteringLog, Reading
from holdfast.storage.log import LogSettings
from holdfast.streams.storing import (
    ChopMatches,
    DiskInput,
    ForgetMatches,
    MatchesFailed,
    MatchesRead,
    MatchesStable,
    MatchesState,
    NoteMatches,
    ReadMatches,
)

__all__ = ["MatchesLane"]

READS_MAX: Final = 1_000  #: of one log that can be continued; who comes back later walks its chain again
CHECKPOINT_RECORDS: Final = 50_000  #: so many noted ticks at most are read again at start
PREPARED_BYTES: Final = 1 << 17  #: room for notes: they are small, and there may be many logs

_MatchesEffect = NoteMatches | ReadMatches | ChopMatches | ForgetMatches


class _Way(NamedTuple):
    """A subscriber's way through a log, which goes on where its last reading ended."""

    readings: Iterator[Reading]
    position: Tick
    limit: int


@dataclass(slots=True)
class _Matches:
    """One filtering log, and who is on its way through it; ``log`` is None while it cannot be opened."""

    log: FilteringLog | None = None
    stable: Tick = ORIGIN  #: everything noted up to here is on disk
    refusals: int = 0  #: how many ``MatchesFailed`` were told
    reason: str = ""  #: of the last of them
    ways: dict[int, _Way] = field(default_factory=dict)
    noted: int = 0  #: records since the last checkpoint


class MatchesLane:
    """All filtering logs."""

    def __init__(
        self, files_of: Callable[[str], Files], identity: Callable[[], bytes], settings: LogSettings
    ) -> None:
        self._files_of = files_of
        self._identity = identity
        self._settings = replace(settings, prepared_bytes=min(PREPARED_BYTES, settings.prepared_bytes))
        self._all: dict[str, _Matches] = {}
        self._noted: dict[str, _Matches] = {}  #: in the last turn

    def open(self, pubend: str, at_least: int) -> MatchesState:
        """Open a log that was found at start, and had so many records; raises what ``SegmentLog`` does."""
        log = self._opened(pubend, at_least)
        self._all[pubend] = _Matches(log, log.last_timestamp)
        return MatchesState(log.last_timestamp, log.chopped, log.unsure_through, log.last_matches())

    def turn(self, effects: Sequence[_MatchesEffect]) -> list[DiskInput]:
        """Carry out what has come; what is noted first, so that reads find it on disk."""
        inputs: list[DiskInput] = []
        noted: dict[str, _Matches] = {}
        for effect in effects:
            if isinstance(effect, NoteMatches) and (matches := self._note(effect)):
                noted[effect.pubend] = matches
            elif isinstance(effect, ForgetMatches):
                self._forget(effect)
        for pubend, matches in noted.items():
            inputs.append(self._commit(pubend, matches))
        self._noted = noted
        for effect in effects:
            if isinstance(effect, ReadMatches):
                inputs.append(MatchesRead(effect.pubend, effect.subscriber, self._read(effect)))
            elif isinstance(effect, ChopMatches):
                self._chop(effect)
        return inputs

    def rest(self) -> None:
        """When nobody waits: have room ready for the next notes."""
        for pubend, matches in self._noted.items():
            if (log := matches.log) is not None:
                self._try(pubend, matches, log.log.prepare)

    def close(self) -> None:
        """Save where chains begin; the next start then reads nothing."""
        for matches in self._all.values():
            if matches.log is not None:
                with suppress(DiskFull, DiskFailed):  # it is only a short cut
                    matches.log.checkpoint()
                    matches.log.log.close()

    @property
    def ends(self) -> dict[str, int]:
        """By pubend how many records are on disk."""
        return {pubend: each.log.log.last_index for pubend, each in self._all.items() if each.log is not None}

    # Writing

    def _note(self, effect: NoteMatches) -> _Matches | None:
        """Have matches written by the next commit; None if they were refused with what came before them."""
        pubend = effect.pubend
        matches = self._all.get(pubend)
        if matches is None:
            matches = self._all[pubend] = _Matches()
        if effect.refusals != matches.refusals:
            return None
        log = matches.log
        if log is None:
            self._reopen(pubend, matches)
            log = matches.log
        if log is not None:
            log.write(effect.records)
            log.advance(effect.upto)
            matches.noted += len(effect.records)
        return matches

    def _commit(self, pubend: str, matches: _Matches) -> DiskInput:
        log = matches.log
        if log is None:
            return self._failed(pubend, matches)
        try:
            log.commit()
        except (DiskFull, DiskFailed) as error:
            matches.reason = str(error)
            self._reopen(pubend, matches)
            return self._failed(pubend, matches)
        matches.stable = log.last_timestamp
        if matches.noted >= CHECKPOINT_RECORDS:
            self._do(pubend, matches, log.checkpoint)
        return MatchesStable(pubend, matches.stable)

    def _failed(self, pubend: str, matches: _Matches) -> MatchesFailed:
        matches.refusals += 1
        return MatchesFailed(pubend, matches.stable, matches.reason)

    def _chop(self, effect: ChopMatches) -> None:
        matches = self._all.get(effect.pubend)
        if matches is not None and (log := matches.log) is not None:
            self._do(effect.pubend, matches, lambda: log.chop(effect.through))
            if matches.log is log:
                matches.stable = log.last_timestamp

    def _forget(self, effect: ForgetMatches) -> None:
        matches = self._all.get(effect.pubend)
        if matches is not None:
            matches.ways.pop(effect.subscriber, None)
            if matches.log is not None:
                matches.log.forget(effect.subscriber)

    def _do(self, pubend: str, matches: _Matches, work: Callable[[], None]) -> None:
        """Something that nobody waits for, and that will be tried again some day."""
        matches.noted = 0
        self._try(pubend, matches, work)

    def _try(self, pubend: str, matches: _Matches, work: Callable[[], None]) -> None:
        try:
            work()
        except (DiskFull, DiskFailed) as error:
            matches.reason = str(error)
            self._reopen(pubend, matches)

    # Opening

    def _opened(self, pubend: str, at_least: int = 0) -> FilteringLog:
        return FilteringLog(self._files_of(pubend), self._identity(), self._settings, at_least=at_least)

    def _reopen(self, pubend: str, matches: _Matches) -> None:
        matches.log = None
        matches.ways.clear()  # they lead through the old one
        try:
            log = self._opened(pubend)
        except EnvironmentsFault as error:
            matches.reason = str(error)
            return
        matches.log = log
        log.advance(matches.stable)
        matches.stable = log.last_timestamp

    # Reading

    def _read(self, effect: ReadMatches) -> Reading:
        """What the log says; a reading that follows on the last one goes on where that ended."""
        subscriber, after, limit, noted = effect.subscriber, effect.after, effect.limit, effect.noted
        matches = self._all.get(effect.pubend)
        if matches is None:
            return _unsure(after, noted)
        if matches.log is None:
            self._reopen(effect.pubend, matches)
        log = matches.log
        if log is None:
            return _unsure(after, max(noted, matches.stable))
        if noted > matches.stable:  # silence leaves no record, and the log was opened since
            log.advance(noted)
            matches.stable = noted
        way = matches.ways.pop(subscriber, None)
        if way is None or (way.position, way.limit) != (after, limit):
            way = _Way(iter(()), after, limit)
        try:
            readings, reading = _next(way, log, subscriber)
        except DiskFailed:
            return _unsure(after, matches.stable)
        matches.ways[subscriber] = _Way(readings, reading.known_through, limit)
        if len(matches.ways) > READS_MAX:
            del matches.ways[next(iter(matches.ways))]
        return reading


def _next(way: _Way, log: FilteringLog, subscriber: int) -> tuple[Iterator[Reading], Reading]:
    """The next reading on a way; when it has ended, or is broken off, the first of a new one."""
    # It may have been damaged since it was walked: who walks anew will know how far.
    with suppress(DamagedRecord, StopIteration):
        return way.readings, next(way.readings)
    readings = iter(log.read(subscriber, way.position, way.limit))
    return readings, next(readings)


def _unsure(after: Tick, upto: Tick) -> Reading:
    """Any tick may match."""
    known_through = max(after, upto)
    return Reading(after, after, known_through, (), known_through)
