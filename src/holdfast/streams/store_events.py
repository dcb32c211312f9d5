"""The logs of a broker's own pubends, written: everything that was appended in a turn shares one commit per log.

A full disk refuses all that waits (``storage.commits``). The pubend may have appended more before it could hear of
that, and what it appended was built on what was refused; so each append says how many refusals its pubend had heard
of, and one that has missed some is dropped without a word: it was refused with them. Appends that know of all
refusals open the log again, if there is room; so does ``TryEvents``, without anything to append.

What nobody waits for comes when everybody has his answers: logs are chopped, and where commits are small room is
prepared for the next. That of a pubend is chopped when it becomes smaller: what was given up is in the tables anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from holdfast.errors import EnvironmentsFault
from holdfast.messages.ticks import Lost, Tick
from holdfast.storage.block import Batch
from holdfast.storage.commits import REOPEN_BYTES, Commits, CommitState
from holdfast.storage.files import DiskFailed, DiskFull, Files
from holdfast.storage.log import LogSettings, SegmentLog
from holdfast.storage.view import LogView
from holdfast.streams.records import read_record
from holdfast.streams.storing import (
    STAGED,
    AppendEvents,
    ChopEvents,
    DiskInput,
    EventsChopped,
    EventsRefused,
    EventsStable,
    EventsTried,
    LogState,
    TryEvents,
)

__all__ = ["DAMAGED", "EventsLane", "PubendLog", "log_state"]

#: Why ticks are lost that nobody gave up.
DAMAGED: Final = "damaged"

#: About so many events are read at start, or bytes of them, for publishers that ask where theirs stand.
RECENT_EVENTS: Final = 10_000
RECENT_BYTES: Final = 16 << 20
WAITING_BYTES: Final = 64 << 20  #: so much waits for one commit at most


@dataclass(slots=True)
class PubendLog:
    """A log that is open. One thread writes it, another one reads its view, up to ``stable``.

    The view's own end is no bound for a reader: while a commit is noted it is ahead of what a scan would find.
    """

    log: SegmentLog
    commits: Commits
    stable: Tick  #: set when a commit has returned
    told: int = 0  #: the position of the last append whose fate the core has heard

    @classmethod
    def opened(cls, files: Files, identity: bytes, settings: LogSettings) -> PubendLog:
        """Open or make a log; raises what ``SegmentLog`` does."""
        log = SegmentLog(files, identity, settings)
        return cls(log, Commits(log), log.last_index)


class EventsLane:
    """Appends and chops; ``logs`` are those that exist, by pubend."""

    def __init__(
        self,
        files_of: Callable[[str], Files],
        identity: Callable[[], bytes],
        settings_of: Callable[[str], LogSettings],
    ) -> None:
        self.logs: dict[str, PubendLog] = {}
        self._files_of = files_of
        self._identity = identity
        self._settings_of = settings_of
        self._refusals: dict[str, int] = {}
        self._to_chop: list[ChopEvents] = []
        self._appended: dict[str, PubendLog] = {}  #: in the last turn

    def open(self, pubend: str) -> PubendLog:
        """The log of a pubend, made if it is not there; raises what ``SegmentLog`` does."""
        entry = self.logs.get(pubend)
        if entry is None:
            entry = PubendLog.opened(self._files_of(pubend), self._identity(), self._settings_of(pubend))
            self.logs[pubend] = entry
        return entry

    def turn(self, effects: Sequence[AppendEvents | TryEvents | ChopEvents]) -> list[DiskInput]:
        """Carry out what has come; what somebody waits for."""
        inputs: list[DiskInput] = []
        appended: dict[str, PubendLog] = {}
        for effect in effects:
            if isinstance(effect, AppendEvents) and (entry := self._append(effect, inputs)):
                appended[effect.pubend] = entry
                if entry.commits.waiting_bytes > WAITING_BYTES:
                    self._commit(effect.pubend, entry, inputs)
        for pubend, entry in appended.items():
            self._commit(pubend, entry, inputs)
        self._appended = appended
        for effect in effects:
            if isinstance(effect, ChopEvents):
                self._to_chop.append(effect)
            elif isinstance(effect, TryEvents):
                self._try(effect.pubend, inputs)
        return inputs

    def rest(self, *, is_idle: bool) -> list[DiskInput]:
        """Carry out what nobody waits for; if something has come meanwhile, only what was asked for."""
        inputs: list[DiskInput] = []
        to_chop, self._to_chop = self._to_chop, []
        for effect in to_chop:
            self._chop(effect, inputs)
        if is_idle:
            for pubend, entry in self._appended.items():
                self._do(pubend, entry, entry.log.prepare, inputs)
        return inputs

    def close(self) -> None:
        """Write down where the logs end. What was said to be stable is, whether or not that succeeds."""
        for entry in self.logs.values():
            try:
                entry.log.close()
            except (DiskFull, DiskFailed):
                continue  # only the manifest knows less

    # Appending

    def _append(self, effect: AppendEvents, inputs: list[DiskInput]) -> PubendLog | None:
        """Have events written by the next commit of their log, which is returned; None if they are refused."""
        pubend, ticks = effect.pubend, effect.ticks
        if effect.refusals != self._refusals.get(pubend, 0):
            return None
        try:
            entry = self.open(pubend)
        except DiskFull as error:
            self._refuse(pubend, str(error), inputs, is_final=False)
            return None
        except EnvironmentsFault as error:
            self._refuse(pubend, str(error), inputs, is_final=True)
            return None
        commits = entry.commits
        if not commits.reopen():
            self._refuse(pubend, commits.reason, inputs, is_final=commits.state is CommitState.FAILED)
            return None
        commits.append(ticks, effect.records, time=ticks[-1] * 1_000)
        return entry

    def _commit(self, pubend: str, entry: PubendLog, inputs: list[DiskInput]) -> None:
        progress = entry.commits.commit()
        if progress is None:
            return
        entry.stable = entry.log.last_index
        if progress.stable > entry.told:
            inputs.append(EventsStable(pubend, progress.stable - entry.told, entry.log.view.size))
        entry.told = progress.decided
        if progress.state is not CommitState.OPEN:
            self._refuse(pubend, progress.reason, inputs, is_final=progress.state is CommitState.FAILED)

    def _try(self, pubend: str, inputs: list[DiskInput]) -> None:
        try:
            entry = self.open(pubend)
            is_open = entry.commits.reopen() and entry.log.has_room(REOPEN_BYTES)
        except EnvironmentsFault as error:
            inputs.append(EventsTried(pubend, str(error)))
        else:
            problem = entry.commits.reason or "no space left on the disk"
            inputs.append(EventsTried(pubend, None if is_open else problem))

    def _refuse(self, pubend: str, reason: str, inputs: list[DiskInput], *, is_final: bool) -> None:
        self._refusals[pubend] = self._refusals.get(pubend, 0) + 1
        inputs.append(EventsRefused(pubend, reason, is_final))

    # What nobody waits for

    def _chop(self, effect: ChopEvents, inputs: list[DiskInput]) -> None:
        entry = self.logs.get(effect.pubend)
        if entry is None:
            inputs.append(EventsChopped(effect.pubend, 0, ()))
            return
        if effect.pubend == STAGED or entry.log.may_free(effect.through):
            self._do(effect.pubend, entry, lambda: entry.log.chop(effect.through), inputs)
        view = entry.log.view
        inputs.append(EventsChopped(effect.pubend, view.chopped, _segments(view)))

    def _do(self, pubend: str, entry: PubendLog, work: Callable[[], None], inputs: list[DiskInput]) -> None:
        had_failed = entry.log.failure is not None
        try:
            work()
        except DiskFull:
            pass  # no room even to say that it is chopped: what comes back says that it was not done
        except DiskFailed as failure:
            if not had_failed:
                entry.told = entry.commits.fail(failure).decided
                self._refuse(pubend, str(failure), inputs, is_final=True)


# Starting


def log_state(entry: PubendLog, upto: Tick, end: Tick) -> LogState:
    """What a pubend has to know of its log at start, if its marks are of the events up to a tick.

    There were events on disk up to ``end``, not below ``upto``: a log that ends before has lost them.
    """
    log, view = entry.log, entry.log.view
    lost = [Lost(damage.first - 1, damage.last, DAMAGED) for damage in log.damages if damage.loses_records]
    if end > log.last_index:
        lost.append(Lost(log.last_index, end, DAMAGED))
    tail = [
        (tick, read_record(record))
        for item in view.scan(min(upto, _recent(view)))
        if isinstance(item, Batch)
        for tick, record in zip(item.indexes, item.records, strict=True)
    ]
    return LogState(max(log.last_index, end), tail, lost, _segments(view))


def _recent(view: LogView) -> Tick:
    """A tick above which stand about the last ``RECENT_EVENTS``, or ``RECENT_BYTES``."""
    events, size = RECENT_EVENTS, RECENT_BYTES
    for segment in reversed(view.segments):
        if segment.records > events or segment.size > size:
            entries = len(segment.firsts)
            share = min(events / max(1, segment.records), size / segment.size)
            first = entries - ceil(share * entries)
            return segment.firsts[first] - 1 if first < entries else segment.last
        events -= segment.records
        size -= segment.size
    return view.chopped


def _segments(view: LogView) -> Sequence[tuple[Tick, int]]:
    return [(segment.last, segment.size) for segment in view.segments]
