"""Stores to try things on, and a core's bookkeeping of one: what it may be told, and what it must find again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random

import msgspec

from holdfast.clock import MILLISECOND
from holdfast.intervals import Intervals, Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Lost, Tick
from holdfast.simulator.clock import VirtualClock
from holdfast.simulator.disk import SimulatedDisk
from holdfast.simulator.store import SimulatedStore
from holdfast.storage.commits import REOPEN_BYTES
from holdfast.storage.files import Files, Subfolder
from holdfast.storage.filtering_log import Reading
from holdfast.storage.log import LogSettings
from holdfast.storage.tables import Change, SimulatedTables
from holdfast.streams.ends import PUBENDS
from holdfast.streams.pubend import Kept
from holdfast.streams.store import Lane, Store
from holdfast.streams.storing import (
    AppendEvents,
    ChopEvents,
    ChopMatches,
    DiskInput,
    EventsChopped,
    EventsRead,
    EventsRefused,
    EventsStable,
    EventsTried,
    LogState,
    MatchesFailed,
    MatchesRead,
    MatchesStable,
    MatchesState,
    NoteMatches,
    ReadEvents,
    ReadMatches,
    Save,
    Saved,
    SaveFailed,
    TryEvents,
)

SMALL = LogSettings(segment_bytes=600, retired_bytes=1)
PUBEND = "orders@b1/0"


def publication(tick: Tick) -> Publication:
    """What the tests log under a tick: of every length, and different from any other."""
    return Publication("p", tick, b"%d." % tick * (tick % 7))


def publications(ticks: Sequence[Tick]) -> list[Publication]:
    return [publication(tick) for tick in ticks]


def row(upto: Tick = 0, lost: Sequence[Lost] = (), released: Sequence[Lost] = ()) -> bytes:
    """What a pubend keeps, as its core saves it."""
    return msgspec.msgpack.encode(Kept(upto=upto, lost=list(lost), released=list(released)))


class DiskFolders:
    """Folders of one simulated disk."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk

    def names(self) -> list[str]:
        return sorted({name.split("/")[0] for name in self._disk.names()})

    def files(self, name: str) -> Files:
        return Subfolder(self._disk, name)


class Bench:
    """A store without time: what is done is done at once."""

    def __init__(self, settings: LogSettings = SMALL, seed: int = 0) -> None:
        self.disk = SimulatedDisk(Random(seed), sectors=True)
        self.tables = SimulatedTables()
        self._settings = settings
        self.start()

    def start(self) -> None:
        self.store = Store(DiskFolders(self.disk), self.tables, lambda: bytes(range(16)), self._settings)
        self.recovered = self.store.recover()

    def crash(self) -> None:
        self.disk.crash()
        self.start()

    @property
    def segments(self) -> list[str]:
        """The files of all logs."""
        return [name for name in self.disk.names() if name.endswith("segment")]

    def append(self, *batches: Sequence[Tick], refusals: int = 0, pubend: str = PUBEND) -> list[DiskInput]:
        """All in one turn."""
        effects = [AppendEvents(pubend, ticks, publications(ticks), refusals) for ticks in batches]
        return self.do(*effects)

    def do(self, *effects: AppendEvents | ChopEvents) -> list[DiskInput]:
        """In one turn, and what comes after it."""
        return [*self.store.turn(Lane.EVENTS, effects), *self.store.rest(Lane.EVENTS, is_idle=False)]

    def read(self, *spans: Span, limit: int = 1_000, pubend: str = PUBEND) -> EventsRead:
        [answer] = self.store.turn(Lane.READS, [ReadEvents(pubend, spans, limit)])
        assert isinstance(answer, EventsRead)
        return answer

    def chop(self, through: Tick, pubend: str = PUBEND) -> EventsChopped:
        *_, answer = self.do(ChopEvents(pubend, through))
        assert isinstance(answer, EventsChopped)
        return answer

    def save(self, *changes: Change) -> list[DiskInput]:
        return self.store.turn(Lane.TABLES, [Save(1, changes)])


def told(answer: EventsRead) -> tuple[list[Span], list[Tick], list[Lost]]:
    """What a read says; every event must be the one that was logged."""
    assert list(answer.publications) == publications(answer.ticks)
    return list(answer.parts), list(answer.ticks), list(answer.lost)


def subscribers(tick: Tick) -> list[int]:
    """Who matches at a tick, as far as the tests are concerned."""
    return [subscriber for subscriber in (1, 2, 5_000_000_000) if tick * 7919 % 10 < subscriber % 9]


class Twin:
    """A core of one pubend and one filtering log over a simulated store, and what it knows to be true."""

    def __init__(self, seed: int) -> None:
        self.clock = VirtualClock()
        self.disk = SimulatedDisk(Random(seed), sectors=True)
        self.store = SimulatedStore(self.clock, self.disk, Random(seed + 1), self.hear, SMALL)
        self.stable: list[Tick] = []  #: accepted, and not chopped
        self.appended: deque[Sequence[Tick]] = deque()  #: and nothing heard of it yet
        self.refusals = 0
        self.last = 0
        self.chopped = self.chop_asked = 0
        self.noted = 0  #: matches were noted up to here,
        self.noted_stable = 0  #: and here they are on disk
        self.notes_refused = 0
        self.matches_chop_asked = 0
        self.position = 0  #: how far the subscriber who reads has come
        self.rows: dict[tuple[str, str], bytes] = {}
        self.saves: deque[tuple[int, str, str, bytes]] = deque()  #: and nothing heard of it yet
        self.saved = 0
        self.heard: list[str] = []
        self.store.start()

    # What the core does

    def append(self, count: int, step: int) -> None:
        ticks = [self.last + step * (i + 1) for i in range(count)]
        self.last = ticks[-1]
        self.appended.append(ticks)
        self.store.submit(AppendEvents(PUBEND, ticks, publications(ticks), self.refusals))

    def try_events(self) -> None:
        self.store.submit(TryEvents(PUBEND))

    def read(self, after: int, width: int, limit: int) -> None:
        spans = [(after + 9 * i, after + 9 * i + width) for i in range(12)]
        self.store.submit(ReadEvents(PUBEND, spans, limit))

    def chop(self, percent: int) -> None:
        if self.stable:
            through = self.stable[len(self.stable) * percent // 101]
            self.chop_asked = max(self.chop_asked, through)
            self.save(PUBENDS, PUBEND, row(released=[Lost(0, through // 2, "expired")]))
            self.store.submit(ChopEvents(PUBEND, through))

    def note(self, width: int) -> None:
        ticks = range(self.noted + 1, self.noted + width + 1)
        records = [(tick, subscribers(tick)) for tick in ticks if subscribers(tick)]
        self.noted += width
        self.store.submit(NoteMatches(PUBEND, records, self.noted, self.notes_refused))

    def read_matches(self, subscriber: int, limit: int) -> None:
        self.store.submit(ReadMatches(PUBEND, subscriber, self.position, limit, self.noted_stable))

    def chop_matches(self, percent: int) -> None:
        through = self.noted_stable * percent // 100
        self.matches_chop_asked = max(self.matches_chop_asked, through)
        self.store.submit(ChopMatches(PUBEND, through))

    def save(self, table: str, key: str, value: bytes) -> None:
        self.saved += 1
        self.saves.append((self.saved, table, key, value))
        self.store.submit(Save(self.saved, [Change(table, key, value)]))

    # What is done to it

    def wait(self, quarters: int) -> None:
        self.clock.run_until(self.clock.now + quarters * MILLISECOND // 4)

    def fill(self, room: int) -> None:
        self.disk.capacity = self.disk.capacity - self.disk.room() + room
        self.store.tables.is_full = True

    def empty(self) -> None:
        self.disk.capacity = 1 << 62
        self.store.tables.is_full = False

    def crash(self) -> None:
        """Everything that was promised is found again, and nothing that was not asked for."""
        self.store.crash()
        self.disk.crash()
        self.empty()
        self.store.start()
        self._find_log()
        self._find_matches()
        self._find_rows()
        self.refusals = self.notes_refused = 0

    def _find_log(self) -> None:
        state = self.store.recovered.logs.get(PUBEND, LogState(0, (), (), ()))
        asked = [tick for ticks in self.appended for tick in ticks]
        found = [tick for tick, _ in state.tail]
        assert [publication for _, publication in state.tail] == publications(found)
        certain = [tick for tick in self.stable if tick > self.chop_asked]
        assert set(found) >= set(certain)
        everything = [tick for tick in [*self.stable, *asked] if not found or tick >= found[0]]
        assert found == everything[: len(found)], "what was not heard of is there from its beginning, or not"
        assert list(state.lost) == []
        assert state.last >= max([*certain, *found], default=0)
        assert not found or state.segments[-1][0] == found[-1]
        self.stable, self.last = found, max(self.last, state.last)
        self.appended.clear()

    def _find_matches(self) -> None:
        state = self.store.recovered.matches.get(PUBEND, MatchesState(0, 0, 0))
        matched = [tick for tick in range(1, self.noted_stable + 1) if subscribers(tick)]
        assert state.last_timestamp >= max(matched, default=0)
        assert self.noted >= state.last_timestamp >= state.chopped
        assert self.matches_chop_asked >= state.chopped
        assert state.unsure_through == 0
        self.noted = self.noted_stable = state.last_timestamp
        self.position = 0

    def _find_rows(self) -> None:
        tables = self.store.recovered.tables
        found = {(table, key): value for table, rows in tables.items() for key, value in rows.items()}
        candidates = [dict(self.rows)]
        for _, table, key, value in self.saves:
            candidates.append({**candidates[-1], (table, key): value})
        assert found in candidates, "what was saved, and of what was being saved the first ones, or none"
        self.rows = found
        self.saves.clear()

    # What it hears

    def hear(self, stimulus: DiskInput) -> None:
        self.heard.append(type(stimulus).__name__)
        match stimulus:
            case EventsStable(_, appends, size):
                assert size <= sum(map(len, map(self.disk.read, self.disk.names())))  # type: ignore[arg-type]
                for _ in range(appends):
                    self.stable += self.appended.popleft()
            case EventsRefused(_, _, is_final):
                assert not is_final
                self.appended.clear()
                self.refusals += 1
                self.last = max(self.stable, default=0)
            case EventsTried(_, problem):
                assert (problem is None) == (self.disk.room() >= REOPEN_BYTES)
            case EventsChopped(_, through, segments):
                assert through <= self.chop_asked
                self.stable = [tick for tick in self.stable if tick > through]
                self.chopped = through
                assert [tick for tick, _ in segments if tick > through] or not self.stable
            case EventsRead():
                self._hear_events(stimulus)
            case MatchesStable(_, upto):
                assert self.noted_stable <= upto <= self.noted
                self.noted_stable = upto
            case MatchesFailed(_, upto, reason):
                assert self.noted_stable <= upto <= self.noted
                assert "no space" in reason
                self.noted = self.noted_stable = upto
                self.notes_refused += 1
            case MatchesRead(_, subscriber, reading):
                self._hear_matches(subscriber, reading)
            case Saved(number):
                while self.saves and self.saves[0][0] <= number:
                    _, table, key, value = self.saves.popleft()
                    self.rows[table, key] = value
            case SaveFailed(number):
                assert self.saves.popleft()[0] == number

    def _hear_events(self, answer: EventsRead) -> None:
        parts, ticks, lost = told(answer)
        within = Intervals(parts)
        assert ticks == [tick for tick in self.stable if tick in within]
        gone = [tick for after, upto, _ in lost for tick in range(after + 1, upto + 1)]
        chopped = max(self.chopped, *gone, 0)
        assert chopped <= self.chop_asked, "a chop may have been done in a crash, and nobody heard of it"
        assert gone == [tick for tick in range(1, chopped + 1) if tick in within]
        assert {each.reason for each in lost} <= {"released", "expired"}

    def _hear_matches(self, subscriber: int, reading: Reading) -> None:
        assert reading.lost_through <= max(reading.after, self.matches_chop_asked)
        assert reading.unsure_through == reading.lost_through
        assert reading.known_through <= max(reading.after, self.noted_stable)
        sure = range(reading.lost_through + 1, reading.known_through + 1)
        assert list(reading.matches) == [tick for tick in sure if subscriber in subscribers(tick)]
        self.position = reading.known_through
