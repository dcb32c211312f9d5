"""Filtering logs as a store keeps them: nothing noted becomes silence, whatever the disk does.

R1.19 and R1.27 (what is known is stable), R1.29 and B1.6 (reading in batches), B1.5, I16, X21.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from stores import PUBEND, Bench, subscribers

from holdfast.messages.ticks import Tick
from holdfast.simulator.disk import SimulatedDisk
from holdfast.storage.files import DiskFailed
from holdfast.storage.filtering_log import CatchUpRead, Reading
from holdfast.storage.log import LogSettings
from holdfast.storage.tables import Change
from holdfast.streams import store_matches
from holdfast.streams.ends import MATCH_ENDS
from holdfast.streams.store import Lane
from holdfast.streams.storing import (
    ChopMatches,
    DiskEffect,
    DiskInput,
    ForgetMatches,
    MatchesFailed,
    MatchesRead,
    MatchesStable,
    MatchesState,
    NoteMatches,
    ReadMatches,
    Save,
)

WHOLE = LogSettings(1 << 20)


def note(after: Tick, upto: Tick, refusals: int = 0) -> NoteMatches:
    """What matches above one tick, up to another."""
    ticks = range(after + 1, upto + 1)
    return NoteMatches(PUBEND, [(t, subscribers(t)) for t in ticks if subscribers(t)], upto, refusals)


def done(bench: Bench, *effects: DiskEffect) -> list[DiskInput]:
    return bench.store.turn(Lane.TABLES, effects)


def read(bench: Bench, after: Tick, *, noted: Tick, limit: int = 1_000, subscriber: int = 2) -> Reading:
    [answer] = done(bench, ReadMatches(PUBEND, subscriber, after, limit, noted))
    assert isinstance(answer, MatchesRead)
    return answer.reading


def matched(after: Tick, upto: Tick, subscriber: int = 2) -> Sequence[Tick]:
    return [tick for tick in range(after + 1, upto + 1) if subscriber in subscribers(tick)]


class CountingDisk(SimulatedDisk):
    """Counts its syncs."""

    syncs = 0

    def sync(self, name: str) -> None:
        self.syncs += 1
        super().sync(name)


def test_the_notes_of_a_turn_share_a_sync_and_reads_of_it_find_them() -> None:
    bench = Bench(WHOLE)
    done(bench, note(0, 1))
    bench.disk.__class__ = CountingDisk
    assert isinstance(bench.disk, CountingDisk)
    answers = done(bench, ReadMatches(PUBEND, 2, 0, 99, 0), note(1, 30), note(30, 50))
    assert answers[0] == MatchesStable(PUBEND, 50)
    assert isinstance(answers[1], MatchesRead)
    assert answers[1].reading == Reading(0, 0, 0, matched(0, 50), 50)
    assert bench.disk.syncs == 1


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[Tick]:
    """Where chains were walked from their end back to, each time one was."""
    found: list[Tick] = []
    walk = CatchUpRead._walk

    def counted(way: CatchUpRead) -> None:
        found.append(way._after)
        walk(way)

    monkeypatch.setattr(CatchUpRead, "_walk", counted)
    return found


def portions(bench: Bench, noted: Tick, limit: int) -> Iterator[Reading]:
    position = 0
    while position < noted:
        reading = read(bench, position, noted=noted, limit=limit)
        yield reading
        position = reading.known_through


def test_a_chain_is_walked_once_however_many_readings_it_takes(walks: list[Tick]) -> None:
    bench = Bench(WHOLE)
    done(bench, note(0, 300))
    readings = list(portions(bench, 300, limit=7))
    assert [tick for reading in readings for tick in reading.matches] == matched(0, 300)
    assert len(readings) > 5
    assert walks == [0]


def test_who_comes_from_elsewhere_or_with_another_limit_walks_anew(walks: list[Tick]) -> None:
    bench = Bench(WHOLE)
    done(bench, note(0, 300))
    reading = read(bench, 0, noted=300, limit=7)
    at = reading.known_through
    assert read(bench, 3, noted=300, limit=7).matches == matched(3, 300)[:7]
    assert list(read(bench, at, noted=300, limit=9).matches) == matched(at, 300)[:9]
    assert walks == [0, 3, at]


def test_ways_that_are_not_gone_on_with_are_forgotten_in_the_end(
    monkeypatch: pytest.MonkeyPatch, walks: list[Tick]
) -> None:
    monkeypatch.setattr(store_matches, "READS_MAX", 1)
    bench = Bench(WHOLE)
    done(bench, note(0, 300))
    at = read(bench, 0, noted=300, limit=7).known_through
    read(bench, 0, noted=300, limit=7, subscriber=5_000_000_000)
    assert list(read(bench, at, noted=300, limit=7).matches) == matched(at, 300)[:7]
    assert walks == [0, 0, at]


def test_a_note_made_before_a_refusal_was_heard_is_refused_with_it() -> None:
    """Else what was refused would be silence for ever: the log would stand behind it."""
    bench = Bench(WHOLE)
    done(bench, note(0, 9))
    bench.disk.capacity = 0
    [failed] = done(bench, note(9, 20))
    assert isinstance(failed, MatchesFailed)
    assert (failed.upto, "no space left" in failed.reason) == (9, True)
    bench.disk.capacity = 1 << 62
    assert done(bench, note(20, 30)) == []
    assert done(bench, note(9, 40, refusals=1)) == [MatchesStable(PUBEND, 40)]
    assert read(bench, 0, noted=40).matches == matched(0, 40)


def test_silence_that_was_told_as_stable_is_still_known_after_a_full_disk() -> None:
    bench = Bench(WHOLE)
    done(bench, note(0, 9), NoteMatches(PUBEND, [], 50, 0))
    bench.disk.capacity = 0
    [failed] = done(bench, NoteMatches(PUBEND, [(60, [2])], 60, 0))
    assert isinstance(failed, MatchesFailed)
    assert failed.upto == 50
    assert read(bench, 0, noted=50) == Reading(0, 0, 0, matched(0, 9), 50)


def test_a_log_that_cannot_be_opened_any_more_leaves_everything_unsure_and_may_heal() -> None:
    bench = Bench(WHOLE)
    done(bench, note(0, 30))
    bench.disk.is_failing = True
    [failed] = done(bench, note(30, 40))
    [again] = done(bench, note(30, 40, refusals=1))
    for answer in (failed, again):
        assert isinstance(answer, MatchesFailed)
        assert (answer.upto, "sync failed" in answer.reason) == (30, True)
    assert read(bench, 5, noted=30) == Reading(5, 5, 30, (), 30)
    bench.disk.is_failing = False
    assert done(bench, note(30, 40, refusals=2)) == [MatchesStable(PUBEND, 40)]
    assert read(bench, 5, noted=40).matches == matched(5, 40)


def test_silence_behind_the_last_match_is_known_by_the_core_when_it_starts_again() -> None:
    bench = Bench(WHOLE)
    done(bench, NoteMatches(PUBEND, [(4, [2])], 50, 0))
    bench.crash()
    assert bench.recovered.matches == {PUBEND: MatchesState(4, 0, 0, {2: 4})}
    assert read(bench, 0, noted=50) == Reading(0, 0, 0, [4], 50)


def test_a_log_that_was_closed_knows_everything_and_is_not_read_again() -> None:
    bench = Bench(WHOLE)
    done(bench, NoteMatches(PUBEND, [(4, [2])], 50, 0))
    bench.store.close()
    bench.crash()
    assert bench.recovered.matches == {PUBEND: MatchesState(50, 0, 0, {2: 4})}


def test_where_chains_begin_is_saved_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_matches, "CHECKPOINT_RECORDS", 5)
    bench = Bench(WHOLE)
    done(bench, note(0, 3))
    assert not [name for name in bench.disk.names() if name.endswith("/matches")]
    done(bench, note(3, 30))
    assert [name for name in bench.disk.names() if name.endswith("/matches")]
    bench.crash()
    assert read(bench, 0, noted=30).matches == matched(0, 30)


def test_what_was_chopped_is_lost_and_who_is_forgotten_matches_nothing() -> None:
    bench = Bench()
    for after in range(0, 200, 10):
        done(bench, note(after, after + 10))
    assert done(bench, ChopMatches(PUBEND, 100), ForgetMatches(PUBEND, 1)) == []
    for _ in range(2):
        assert read(bench, 0, noted=200) == Reading(0, 100, 100, matched(100, 200), 200)
        bench.store.close()
        bench.crash()
    assert read(bench, 0, noted=200, subscriber=1).matches == []
    done(bench, ChopMatches("nobody", 5), ForgetMatches("nobody", 1))
    at = read(bench, 100, noted=200, limit=3).known_through
    done(bench, ForgetMatches(PUBEND, 2))
    assert read(bench, at, noted=200, limit=3).matches == [], "nor does who was on its way"


def test_a_chop_that_found_no_room_is_no_failure_of_the_notes() -> None:
    bench = Bench()
    done(bench, note(0, 50))
    bench.disk.capacity = 0
    assert done(bench, ChopMatches(PUBEND, 20)) == []
    bench.disk.capacity = 1 << 62
    assert done(bench, note(50, 60)) == [MatchesStable(PUBEND, 60)]
    assert read(bench, 20, noted=60).matches == matched(20, 60)


# Damage


def test_a_log_whose_end_is_gone_is_unsure_as_far_as_it_had_come() -> None:
    """Its file was removed: what matched there must not seem silent (X21)."""
    bench = Bench()
    for after in range(0, 200, 10):
        done(bench, note(after, after + 10))
    bench.store.close()
    done(bench, note(200, 260))
    *_, last = [name for name in bench.disk.names() if name.endswith("segment")]
    bench.disk.remove(last)
    bench.crash()
    state = bench.recovered.matches[PUBEND]
    reading = read(bench, 0, noted=260)
    assert (reading.unsure_through, reading.known_through, list(reading.matches)) == (260, 260, [])
    assert state.last_timestamp < 260
    done(bench, note(260, 300))
    assert read(bench, 260, noted=300).matches == matched(260, 300)
    assert read(bench, 100, noted=300).unsure_through == 260


@pytest.mark.parametrize("is_saved", [True, False])
def test_an_end_that_looks_torn_is_lost_if_it_was_there_when_something_was_saved(is_saved: bool) -> None:
    """A bit of the very last commit has changed: only the tables know that it is not one that never was whole."""
    bench = Bench(WHOLE)
    done(bench, note(0, 50), note(50, 100))
    if is_saved:
        done(bench, Save(1, [Change("hosted", PUBEND, b"delivered up to 100")]))
    [name] = [name for name in bench.disk.names() if name.endswith("segment")]
    whole = bench.disk.read(name)
    assert whole is not None
    bench.disk.replace(name, whole[:-1] + bytes([whole[-1] ^ 1]))
    bench.crash()
    reading = read(bench, 0, noted=100)
    assert reading.unsure_through == (100 if is_saved else 0)
    assert is_saved or reading.matches != matched(0, 100), "which is why it has to be saved"


def test_what_the_tables_say_of_the_ends_of_filtering_logs_is_read_or_named() -> None:
    bench = Bench(WHOLE)
    done(bench, note(0, 50), Save(1, [Change(MATCH_ENDS, "other", b"\xc1")]))
    with pytest.raises(DiskFailed, match="in match_ends cannot be read"):
        bench.crash()


def test_if_notes_go_on_behind_an_end_that_is_gone_all_before_them_is_unsure() -> None:
    bench = Bench()
    for after in range(0, 200, 10):
        done(bench, note(after, after + 10))
    *_, last = [name for name in bench.disk.names() if name.endswith("segment")]
    bench.disk.remove(last)
    bench.crash()
    done(bench, note(230, 260))
    first = matched(230, 260, 5_000_000_000)[0]
    assert first - 1 <= read(bench, 0, noted=260).unsure_through < 260


class Unreadable(SimulatedDisk):
    """Cannot be read."""

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes | None:
        raise DiskFailed(name, "Input/output error")


def test_a_log_that_cannot_be_read_now_leaves_its_ticks_unsure() -> None:
    bench = Bench()
    done(bench, note(0, 200))
    bench.disk.__class__ = Unreadable
    assert read(bench, 10, noted=200) == Reading(10, 10, 200, (), 200)
    bench.disk.__class__ = SimulatedDisk
    assert read(bench, 10, noted=200).matches == matched(10, 200)


def test_a_log_that_is_not_there_makes_silence_of_nothing() -> None:
    assert read(Bench(), 10, noted=200) == Reading(10, 10, 200, (), 200)
    assert read(Bench(), 10, noted=0) == Reading(10, 10, 10, (), 10)
