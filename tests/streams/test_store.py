"""The store against plain twins: what is said to be stable is found again, through crashes and full disks.

Issue 5 §1 and §8; R1.5 (accepted means on disk), B1.5, I16.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from stores import PUBEND, Bench, Twin, publication, row, told

from examples import examples
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Lost
from holdfast.simulator.disk import SimulatedDisk
from holdfast.storage.files import DiskFailed
from holdfast.storage.log import LogSettings
from holdfast.storage.tables import Change, SimulatedTables
from holdfast.streams import store_events
from holdfast.streams.ends import PUBENDS
from holdfast.streams.store import Lane
from holdfast.streams.storing import (
    AppendEvents,
    ChopEvents,
    EventsChopped,
    EventsRefused,
    EventsStable,
    EventsTried,
    Save,
    Saved,
    SaveFailed,
    TryEvents,
)

STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 6), st.integers(1, 9)),
    st.tuples(st.just("append"), st.integers(1, 6), st.integers(1, 9)),
    st.tuples(st.just("read"), st.integers(0, 200), st.integers(1, 9), st.integers(1, 8)),
    st.tuples(st.just("try_events")),
    st.tuples(st.just("chop"), st.integers(0, 100)),
    st.tuples(st.just("note"), st.integers(1, 9)),
    st.tuples(st.just("read_matches"), st.sampled_from([1, 2, 5_000_000_000]), st.integers(1, 5)),
    st.tuples(st.just("chop_matches"), st.integers(0, 100)),
    st.tuples(st.just("save"), st.sampled_from("ab"), st.sampled_from("xy"), st.binary(max_size=3)),
    st.tuples(st.just("wait"), st.integers(0, 8)),
    st.tuples(st.just("wait"), st.integers(0, 8)),
    st.tuples(st.just("fill"), st.integers(0, 300)),
    st.tuples(st.just("empty")),
    st.tuples(st.just("crash")),
)

#: What is refused, and what was asked for behind it before that was heard.
REFUSED = [
    *(("append", 3, 2), ("note", 9), ("wait", 8), ("fill", 0), ("append", 3, 2), ("note", 9), ("wait", 1)),
    *(("append", 3, 2), ("note", 9), ("wait", 4), ("empty",), ("append", 2, 3), ("note", 9), ("wait", 8)),
]
#: The same, and by the time that is carried out there is room again.
STALE = [
    *(("append", 3, 2), ("note", 9), ("wait", 8), ("fill", 0), ("append", 3, 2), ("note", 9), ("wait", 1)),
    *(("append", 3, 2), ("note", 9), ("wait", 5), ("empty",), ("wait", 9)),
]


@examples(300)
@given(seed=st.integers(0, 1 << 16), steps=st.lists(STEPS, max_size=40))
@example(seed=0, steps=REFUSED)
@example(seed=1, steps=STALE)
@example(seed=2, steps=STALE)
@example(seed=3, steps=STALE)
def test_through_any_history_the_store_is_its_twin(seed: int, steps: list[tuple[Any, ...]]) -> None:
    twin = Twin(seed)
    for step, *arguments in steps:
        getattr(twin, step)(*arguments)
    twin.crash()
    twin.append(3, 1)
    twin.note(9)
    twin.wait(100)
    assert not twin.appended, "it goes on"
    assert twin.noted_stable == twin.noted
    twin.read(0, 9, 1_000)
    twin.read_matches(1, 1_000)
    twin.wait(100)
    twin.crash()


class CountingDisk(SimulatedDisk):
    """Counts what is asked of it."""

    syncs = 0

    def sync(self, name: str) -> None:
        self.syncs += 1
        super().sync(name)


# Appending


def test_everything_appended_to_a_log_in_a_turn_shares_one_sync() -> None:
    bench = Bench(LogSettings(1 << 20))
    bench.append([1])
    bench.disk.__class__ = CountingDisk
    assert isinstance(bench.disk, CountingDisk)
    [stable] = bench.append([2], [3, 4], [9])
    assert isinstance(stable, EventsStable)
    assert (stable.pubend, stable.appends) == (PUBEND, 3)
    assert bench.disk.syncs == 1
    bench.crash()
    assert told(bench.read((0, 9))) == ([(0, 9)], [1, 2, 3, 4, 9], [])


def test_logs_of_several_pubends_are_told_apart_whatever_their_names() -> None:
    """R1.28: one log for each pubend; in folders of their own, not in one file."""
    bench = Bench()
    names = ["a/b@c d/0", "a%2Fb@c d/0", "ü@b/1", "..", "events-x"]
    for tick, name in enumerate(names, 1):
        bench.append([tick], pubend=name)
    bench.crash()
    found = {name: [tick for tick, _ in state.tail] for name, state in bench.recovered.logs.items()}
    assert found == {name: [tick] for tick, name in enumerate(names, 1)}


def test_after_a_full_disk_only_appends_that_know_of_it_are_taken() -> None:
    """What was appended meanwhile was built on what was refused."""
    bench = Bench(LogSettings(1 << 20))
    bench.append([1])
    bench.disk.capacity = bench.disk.capacity - bench.disk.room() + 100
    [refused] = bench.append([2, 3, 4, 5, 6])
    assert isinstance(refused, EventsRefused)
    assert (refused.is_final, "no space left" in refused.reason) == (False, True)
    assert bench.append([7], [8]) == [], "they are refused already"
    [again] = bench.append([2], refusals=1)
    assert isinstance(again, EventsRefused), "there is still no room"
    bench.disk.capacity = 1 << 62
    assert bench.append([3], refusals=1) == []
    [stable] = bench.append([2], [3], refusals=2)
    assert isinstance(stable, EventsStable)
    assert stable.appends == 2
    assert told(bench.read((0, 3))) == ([(0, 3)], [1, 2, 3], [])


@pytest.mark.parametrize("before", [[], [1]], ids=["no log yet", "a log"])
def test_whether_there_is_room_again_can_be_asked(before: list[int]) -> None:
    """Nothing is appended for that, and appends that have missed the refusal are not taken after it either."""
    bench = Bench(LogSettings(1 << 20))
    if before:
        bench.append(before)
    bench.disk.capacity = bench.disk.capacity - bench.disk.room() + 10
    assert [type(each) for each in bench.append([2])] == [EventsRefused]
    [tried] = bench.store.turn(Lane.EVENTS, [TryEvents(PUBEND)])
    assert isinstance(tried, EventsTried)
    assert "no space left" in (tried.problem or "")
    bench.disk.capacity = 1 << 62
    assert bench.store.turn(Lane.EVENTS, [TryEvents(PUBEND)]) == [EventsTried(PUBEND, None)]
    assert bench.append([3]) == []
    assert [type(each) for each in bench.append([4], refusals=1)] == [EventsStable]
    assert told(bench.read((0, 4)))[1] == [*before, 4]


def test_a_log_is_tried_after_what_was_appended_before() -> None:
    bench = Bench(LogSettings(1 << 20))
    bench.disk.capacity = 10
    answers = bench.store.turn(
        Lane.EVENTS, [TryEvents(PUBEND), AppendEvents(PUBEND, [1], [publication(1)], 0)]
    )
    assert [type(each) for each in answers] == [EventsRefused, EventsTried]


def test_a_disk_that_is_full_when_a_log_is_to_be_made_refuses_and_heals() -> None:
    bench = Bench()
    bench.disk.capacity = 10
    [refused] = bench.append([1])
    assert isinstance(refused, EventsRefused)
    assert not refused.is_final
    bench.disk.capacity = 1 << 62
    assert [type(stimulus) for stimulus in bench.append([1], refusals=1)] == [EventsStable]


def test_a_disk_that_failed_is_never_believed_again() -> None:
    bench = Bench(LogSettings(1 << 20))
    bench.append([1])
    bench.disk.is_failing = True
    [refused] = bench.append([2])
    assert isinstance(refused, EventsRefused)
    assert refused.is_final
    bench.disk.is_failing = False
    [again] = bench.append([3], refusals=1)
    assert isinstance(again, EventsRefused)
    assert again.is_final
    assert told(bench.read((0, 9))) == ([(0, 1)], [1], []), "reading goes on"
    bench.store.close()
    bench.crash()
    assert [tick for tick, _ in bench.recovered.logs[PUBEND].tail][:1] == [1]


def test_a_log_too_large_for_one_commit_is_committed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_events, "WAITING_BYTES", 20)
    bench = Bench()
    inputs = bench.append(*([tick] for tick in range(1, 40)))
    assert len(inputs) > 3
    assert sum(stimulus.appends for stimulus in inputs if isinstance(stimulus, EventsStable)) == 39


# Chopping


def test_a_chop_says_what_is_left() -> None:
    bench = Bench()
    for tick in range(1, 60):
        bench.append([tick])
    whole = bench.chop(0)
    chopped = bench.chop(30)
    assert (whole.through, chopped.through) == (0, 30)
    assert chopped.segments == [part for part in whole.segments if part[0] > 30] != whole.segments
    assert chopped.segments[-1][0] == 59
    assert bench.chop(5, pubend="nobody") == EventsChopped("nobody", 0, ())


def test_a_chop_that_could_not_be_written_down_says_so() -> None:
    bench = Bench(LogSettings(1 << 20, retired_bytes=1))
    bench.append([1, 2, 3])
    bench.disk.capacity = 0
    bench.disk.remove("events-orders@b1%2F0/reserve")
    assert bench.chop(3).through == 0
    bench.disk.capacity = 1 << 62
    assert bench.chop(3).through == 3


def test_a_log_is_not_chopped_where_nothing_would_go() -> None:
    """That takes as long as several syncs, and who appends next would wait for it."""
    bench = Bench(LogSettings(segment_bytes=300, retired_bytes=200))
    for tick in range(1, 20):
        bench.append([tick])
    first, *_, last = bench.chop(0).segments
    assert bench.chop(first[0] - 1).through == 0
    assert bench.chop(first[0]).through == first[0]
    assert bench.chop(first[0] + 1).through == first[0], "the next segment is not chopped wholly"
    assert bench.chop(last[0]).through == last[0]
    bench.append([20])
    assert bench.chop(20).through == last[0], "so little is kept"


def test_a_chop_on_a_failing_disk_ends_the_log() -> None:
    bench = Bench(LogSettings(1 << 20, retired_bytes=1))
    bench.append([1, 2, 3])
    bench.disk.is_failing = True
    inputs = bench.do(ChopEvents(PUBEND, 3))
    assert [type(stimulus) for stimulus in inputs] == [EventsRefused, EventsChopped]
    inputs = bench.do(ChopEvents(PUBEND, 3))
    assert [type(stimulus) for stimulus in inputs] == [EventsChopped], "that was told"


# Room


def test_room_is_prepared_after_a_small_commit_if_nobody_waits() -> None:
    bench = Bench(LogSettings(1 << 20))
    bench.store.turn(Lane.EVENTS, [AppendEvents(PUBEND, [1], [publication(1)], 0)])
    [segment] = bench.segments
    size = bench.disk.size(segment)
    assert bench.store.rest(Lane.EVENTS, is_idle=False) == []
    assert bench.disk.size(segment) == size
    assert bench.store.rest(Lane.EVENTS) == []
    assert (bench.disk.size(segment) or 0) > 1 << 18
    assert told(bench.read((0, 1))) == ([(0, 1)], [1], [])
    bench.crash()
    assert [tick for tick, _ in bench.recovered.logs[PUBEND].tail] == [1]


def test_room_that_cannot_be_prepared_on_a_failing_disk_ends_the_log() -> None:
    bench = Bench(LogSettings(1 << 20))
    bench.store.turn(Lane.EVENTS, [AppendEvents(PUBEND, [1], [publication(1)], 0)])
    bench.disk.is_failing = True
    [refused] = bench.store.rest(Lane.EVENTS)
    assert isinstance(refused, EventsRefused)
    assert refused.is_final
    assert bench.store.rest(Lane.EVENTS) == [], "that was told"


# Tables


class CountingTables(SimulatedTables):
    """Counts its transactions, and may fail."""

    transactions = 0
    is_failing = False

    def apply(self, changes: Any) -> None:
        self.transactions += 1
        if self.is_failing:
            raise DiskFailed("tables", "Input/output error")
        super().apply(changes)


def test_the_saves_of_a_turn_are_one_transaction_and_the_last_stands_for_all() -> None:
    """R1.31: whatever waits shares a transaction."""
    bench = Bench()
    tables = bench.tables = CountingTables()
    bench.start()
    saves = [Save(n, [Change("t", f"k{n}", b"%d" % n)]) for n in (5, 6, 7)]
    assert bench.store.turn(Lane.TABLES, saves) == [Saved(7)]
    assert tables.transactions == 1
    bench.crash()
    assert bench.recovered.tables == {"t": {"k5": b"5", "k6": b"6", "k7": b"7"}}


def test_saves_that_find_no_room_fail_and_later_ones_may_not_and_a_failure_is_for_good() -> None:
    bench = Bench()
    tables = bench.tables = CountingTables()
    bench.start()
    tables.is_full = True
    saves = [Save(n, [Change("t", "k", b"")]) for n in (1, 2)]
    failed = bench.store.turn(Lane.TABLES, saves)
    assert [(each.number, each.is_final) for each in failed if isinstance(each, SaveFailed)] == [
        (1, False),
        (2, False),
    ]
    tables.is_full = False
    assert bench.store.turn(Lane.TABLES, saves) == [Saved(2)]
    tables.is_failing = True
    [final] = bench.store.turn(Lane.TABLES, [Save(3, [Change("t", "k", b"3")])])
    assert final == SaveFailed(3, "tables: Input/output error", is_final=True)
    tables.is_failing = False
    [still] = bench.store.turn(Lane.TABLES, [Save(4, [Change("t", "k", b"4")])])
    assert still == SaveFailed(4, "tables: Input/output error", is_final=True)
    assert tables.read("t") == {"k": b""}


# Starting


def test_a_pubend_that_has_only_a_row_has_an_empty_log() -> None:
    bench = Bench()
    bench.save(Change(PUBENDS, PUBEND, row()))
    bench.crash()
    state = bench.recovered.logs[PUBEND]
    assert (state.last, state.tail, list(state.lost)) == (0, (), [])
    assert [type(stimulus) for stimulus in bench.append([1])] == [EventsStable]


def test_a_log_that_ends_below_what_its_pubend_knew_has_lost_its_end() -> None:
    bench = Bench()
    bench.append([1, 2])
    bench.save(Change(PUBENDS, PUBEND, row(upto=7)), Change(PUBENDS, "gone", row(upto=5)))
    bench.crash()
    state = bench.recovered.logs[PUBEND]
    assert (state.last, list(state.lost)) == (7, [Lost(2, 7, "damaged")])
    assert [tick for tick, _ in state.tail] == [1, 2]
    gone = bench.recovered.logs["gone"]
    assert (gone.last, list(gone.lost)) == (5, [Lost(0, 5, "damaged")])


def test_at_start_no_more_than_so_many_bytes_of_events_below_the_marks_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of large events the last few thousand would fill a broker's memory."""
    monkeypatch.setattr(store_events, "RECENT_BYTES", 20_000)
    bench = Bench(LogSettings(100_000))
    large = [Publication("p", tick, bytes(1_000)) for tick in range(1, 501)]
    for start in range(0, 500, 5):
        ticks = range(start + 1, start + 6)
        bench.store.turn(Lane.EVENTS, [AppendEvents(PUBEND, ticks, large[start : start + 5], 0)])
    bench.save(Change(PUBENDS, PUBEND, row(500)))
    bench.crash()
    found = [tick for tick, _ in bench.recovered.logs[PUBEND].tail]
    assert found == [*range(found[0], 501)]
    assert 10 <= len(found) <= 100


def test_at_start_come_all_events_above_the_marks_and_about_the_last_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_events, "RECENT_EVENTS", 100)
    bench = Bench(LogSettings(20_000))
    ticks = range(1, 2_001)
    for start in range(0, 2_000, 20):
        bench.append(ticks[start : start + 20])
    for upto, least in ((2_000, 100), (1_950, 100), (500, 1_500), (0, 2_000)):
        bench.save(Change(PUBENDS, PUBEND, row(upto)))
        bench.crash()
        found = [tick for tick, _ in bench.recovered.logs[PUBEND].tail]
        assert found == [*range(found[0], 2_001)]
        assert least <= len(found) <= least + 500
        assert bench.recovered.logs[PUBEND].tail[-1][1] == publication(2_000)


def test_however_many_events_are_recent_and_wherever_segments_end_a_log_is_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the last segments have just so many: a broker could not be started."""
    bench = Bench(LogSettings(300, retired_bytes=100))
    for tick in range(1, 61):
        bench.append([tick])
    bench.save(Change(PUBENDS, PUBEND, row(60)))
    for recent in range(70):
        monkeypatch.setattr(store_events, "RECENT_EVENTS", recent)
        bench.crash()
        found = [tick for tick, _ in bench.recovered.logs[PUBEND].tail]
        assert found == [*range(61 - len(found), 61)]
        assert min(recent, 60) <= len(found) <= recent + 10


def test_a_row_that_cannot_be_read_is_named() -> None:
    bench = Bench()
    bench.tables.apply([Change(PUBENDS, "p@b/0", b"\xc1")])
    with pytest.raises(DiskFailed, match="row of pubend p@b/0"):
        bench.start()


def test_appends_out_of_order_are_a_bug_of_the_core_and_raise() -> None:
    bench = Bench()
    bench.append([5])
    with pytest.raises(Exception, match="expected indexes above 5"):
        bench.store.turn(Lane.EVENTS, [AppendEvents(PUBEND, [5], [publication(5)], 0)])
