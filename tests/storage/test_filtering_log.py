"""The persistent filtering log [BZA §4.2]: R1.24-R1.29, B1.5-B1.7, I21, schedules X20 and X21."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_fixtures import IDENTITY, Crash, CrashingFiles, simulated

from examples import examples
from holdfast.storage.files import Files
from holdfast.storage.filtering_log import METADATA, FilteringLog, Reading
from holdfast.storage.log import LogSettings

SMALL = LogSettings(segment_bytes=500, retired_bytes=1)


def opened(files: Files) -> FilteringLog:
    return FilteringLog(files, IDENTITY, SMALL)


def noted(log: FilteringLog, matches: Sequence[tuple[int, Sequence[int]]]) -> None:
    """Write ticks, each in a record of its own."""
    for each in matches:
        log.write([each])
        log.commit()


def test_x20_the_read_window_holds_the_oldest_matches() -> None:
    log = opened(simulated())
    log.write([(tick, [7]) for tick in range(10, 1001, 10)])
    log.commit()
    read = log.read(7, after=0, limit=30)
    first = read.next_reading()
    assert first.matches == list(range(10, 301, 10))
    assert first.known_through == 309
    assert [reading.matches for reading in read] == [
        list(range(310, 601, 10)),
        list(range(610, 901, 10)),
        list(range(910, 1001, 10)),
    ]


FIGURE_2 = [(1, [1, 3]), (3, [1, 2]), (4, [3]), (5, [2])]


def check_figure_2(log: FilteringLog) -> None:
    """read(s3, [1, 10]) = Q at 1 and 4; S at 2, 3, 5; unknown from 6."""
    assert list(log.read(3, 0, 100)) == [Reading(0, 0, 0, [1, 4], 5)]


def test_figure_2_record_by_record_and_as_one_sheet() -> None:
    """The chain is i3 → i1 → ⊥; what is committed together is one record, and linked to the one before it."""
    apart, together = opened(simulated()), opened(simulated())
    noted(apart, FIGURE_2)
    check_figure_2(apart)
    assert list(apart.chain(3, 0)) == [(3, [4]), (1, [1])]
    assert apart.log.last_index == 4
    together.write(FIGURE_2)
    together.commit()
    check_figure_2(together)
    together.write([(7, [2, 3]), (8, [3])])
    together.commit()
    assert list(together.chain(3, 0)) == [(2, [7, 8]), (1, [1, 4])]
    assert list(together.chain(3, 1)) == [(2, [7, 8]), (1, [4])]
    assert list(together.chain(1, 0)) == [(1, [1, 3])]
    assert together.last_matches() == {1: 3, 2: 7, 3: 8}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("point", ["after append", "after sync", "after metadata"])
def test_x21_wherever_it_crashes_redelivery_makes_it_whole(point: str, seed: int) -> None:
    files = CrashingFiles(simulated(seed))
    log = opened(files)
    log.write(FIGURE_2[:2])
    log.checkpoint()
    log.write(FIGURE_2[2:])
    files.crash_in({"after append": 1, "after sync": 3, "after metadata": 5}[point])
    with pytest.raises(Crash):
        log.checkpoint()
    files.crash_at = -1
    files.disk.crash()
    again = opened(files)
    if point != "after append":
        assert again.last_timestamp == 5, "what was synced is found, with metadata or without"
    again.write(FIGURE_2)  # latestDelivered was not saved: everything comes again
    again.commit()
    check_figure_2(again)
    check_figure_2(opened(files))


def test_x21_metadata_that_point_past_the_log_are_not_believed() -> None:
    disk = simulated()
    log = opened(disk)
    noted(log, FIGURE_2)
    log.checkpoint()
    metadata = disk.read(METADATA) or b""
    younger = simulated()
    log = opened(younger)
    noted(log, FIGURE_2[:2])
    younger.replace(METADATA, metadata)
    again = opened(younger)
    assert again.last_timestamp == 3
    again.write(FIGURE_2)
    again.commit()
    check_figure_2(again)


def test_broken_metadata_cost_only_time() -> None:
    disk = simulated()
    log = opened(disk)
    log.write(FIGURE_2)
    log.checkpoint()
    data = disk.read(METADATA) or b""
    for broken in (b"", data[:-1], b"?" + data[1:], data[:20] + bytes([data[20] ^ 1]) + data[21:]):
        disk.replace(METADATA, broken)
        check_figure_2(opened(disk))


def test_i21_a_tick_takes_at_most_8_and_16n_bytes() -> None:
    """8+8n while numbers and distances fit into 4 bytes (R1.26 allows 8+16n), and much less where many are noted."""
    log = opened(simulated())
    log.write([(9, list(range(25)))])
    log.commit()
    log.write([(tick, list(range(25))) for tick in range(10, 110)])
    log.commit()
    log.write([(110, [3, 1 << 40]), (111, [3])])
    log.commit()
    log.write([(tick, [tick % 25]) for tick in range(112, 312)])
    log.commit()
    records = [len(log.log.view.read(number) or b"") for number in range(1, 6)]
    by_bits, by_places = 8 + 8 * 100 + (8 + 13) * 25, 8 + 8 * 200 + 10 * 25 + 2 * 200
    assert records == [8 + 8 * 25, by_bits, 8 + 16 * 2, 8 + 8, by_places]
    assert [reading.matches for reading in log.read(1 << 40, 0, 5)] == [[110]]
    (reading,) = log.read(3, 107, 20)
    assert reading.matches == [108, 109, 110, 111, *range(128, 312, 25)]


def test_ticks_that_match_nobody_leave_no_record() -> None:
    """R1.25."""
    log = opened(simulated())
    log.write([(5, []), (6, [1]), (7, [])])
    log.advance(12)
    log.commit()
    assert log.log.last_index == 1
    assert list(log.read(1, 0, 9)) == [Reading(0, 0, 0, [6], 12)]
    assert list(log.read(2, 3, 9)) == [Reading(3, 3, 3, [], 12)]
    log.write([(13, [])])
    assert list(log.read(2, 3, 9)) == [Reading(3, 3, 3, [], 13)], "nothing waits to be stable"


def test_chopping_ends_chains_and_is_told_to_who_stands_below() -> None:
    """B1.7: a token older than the chop point gets the part below as lost, once."""
    disk = simulated()
    log = opened(disk)
    noted(log, [(tick, [tick % 3, 9]) for tick in range(10, 500, 10)])
    log.chop(205)
    for found in (log, opened(disk)):
        assert found.log.view.first_index == 21
        assert [r.lost_through for r in found.read(9, 100, 15)] == [205, 359]
        assert next(iter(found.read(9, 100, 3))).matches == [210, 220, 230]
        assert [r.lost_through for r in found.read(9, 300, 100)] == [300]
        assert sum(len(reading.matches) for reading in found.read(9, 0, 4)) == 29


def test_a_sheet_that_is_chopped_in_its_midst_is_kept_and_its_beginning_is_lost() -> None:
    disk = simulated()
    log = opened(disk)
    log.write([(tick, [9]) for tick in range(10, 100, 10)])
    log.chop(45)
    for found in (log, opened(disk)):
        assert found.log.view.first_index == 1
        assert list(found.read(9, 0, 100)) == [Reading(0, 45, 45, [50, 60, 70, 80, 90], 90)]
    log.chop(90)
    assert log.log.view.chopped == 1


def test_without_metadata_what_was_chopped_is_unsure_and_not_silent() -> None:
    """Nobody knows any more up to which tick: everything before the first record may have matched."""
    disk = simulated()
    log = opened(disk)
    noted(log, [(tick, [9]) for tick in range(10, 100, 10)])
    log.chop(45)
    disk.replace(METADATA, b"?")
    assert list(opened(disk).read(9, 0, 100)) == [Reading(0, 0, 49, [50, 60, 70, 80, 90], 90)]
    log.chop(90)
    disk.replace(METADATA, b"?")
    again = opened(disk)
    again.advance(95)
    assert list(again.read(9, 0, 100)) == [Reading(0, 0, 95, [], 95)]


@pytest.mark.parametrize("together", [1, 3, 20])
@pytest.mark.parametrize("read_before", [0, 1, 2, 4])
@pytest.mark.parametrize("chopped", [5, 45, 50, 105, 170, 200])
def test_early_release_under_a_subscriber_that_is_catching_up(
    chopped: int, read_before: int, together: int
) -> None:
    """Whatever is released meanwhile is lost or was delivered; nothing is delivered twice or passed over in silence."""
    log = opened(simulated())
    ticks = range(10, 201, 10)
    for first in range(0, len(ticks), together):
        log.write([(tick, [7]) for tick in ticks[first : first + together]])
        log.commit()
    read = log.read(7, 0, 4)
    readings = [read.next_reading() for _ in range(read_before)]
    log.chop(chopped)
    readings += read
    delivered = [tick for reading in readings for tick in reading.matches]
    lost = {t for reading in readings for t in range(reading.after + 1, reading.lost_through + 1)}
    assert delivered == sorted(set(delivered))
    assert set(delivered) | lost >= set(range(10, 201, 10))
    assert not lost & set(delivered)
    assert [reading.after for reading in readings] == [
        0,
        *(reading.known_through for reading in readings[:-1]),
    ]
    assert readings[-1].known_through == 200


def test_a_subscriber_that_is_gone_has_no_chain() -> None:
    log = opened(simulated())
    log.write(FIGURE_2)
    log.commit()
    log.forget(3)
    assert list(log.chain(3, 0)) == []


def broken(files: CrashingFiles, number: int) -> None:
    """Flip a bit in a record."""
    log = opened(files)
    data = log.log.view.read(number)
    assert data is not None
    for name in files.names():
        content = files.read(name) or b""
        if name.endswith(".segment") and data in content:
            at = content.index(data)
            files.disk.replace(name, content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            return
    raise AssertionError("the record is in some segment")


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(("together", "number"), [(1, 1), (1, 5), (1, 9), (3, 1), (3, 2), (3, 3), (9, 1)])
def test_a_broken_record_makes_ticks_unsure_and_never_silent(together: int, number: int, saved: bool) -> None:
    files = CrashingFiles(simulated())
    log = opened(files)
    for first in range(1, 10, together):
        log.write([(10 * i, [i % 2, 8]) for i in range(first, first + together)])
        log.commit()
    noted(log, [(100, [8])])
    if saved:
        log.checkpoint()
    else:
        log.commit()
        log.log.close()
    broken(files, number)
    again = opened(files)
    for subscriber in (0, 1, 8):
        truth = [10 * i for i in range(1, 10) if subscriber in (i % 2, 8)] + [100] * (subscriber == 8)
        sure = list(again.read(subscriber, 0, 4))
        possible = {
            tick for r in sure for tick in (*range(r.lost_through + 1, r.unsure_through + 1), *r.matches)
        }
        assert set(truth) <= possible
        assert sure[-1].known_through == 100


@pytest.mark.parametrize("number", [1, 5, 9, 10])
def test_what_is_unsure_stays_so_when_the_chains_are_saved_and_the_log_is_opened_again(number: int) -> None:
    """A chain that begins behind a broken record must not be saved as if there had been none."""
    files = CrashingFiles(simulated())
    log = opened(files)
    noted(log, [(10 * i, [i % 2, 8]) for i in range(1, 11)])
    log.log.close()
    broken(files, number)
    first = opened(files)
    unsure = first.unsure_through
    assert unsure >= 10 * number, "also where the last one is broken: nobody knows its tick"
    first.write([(110, [7])])
    first.checkpoint()
    again = opened(files)
    assert again.unsure_through == min(unsure, 109)
    [reading] = again.read(number % 2, 0, 100)
    assert 10 * number in reading.matches or 10 * number <= reading.unsure_through


@examples(150)
@given(
    seed=st.integers(0, 1000),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("write"), st.integers(1, 30), st.sets(st.integers(0, 5))),
            st.tuples(st.just("commit"), st.just(0), st.just(set())),
            st.tuples(st.just("checkpoint"), st.just(0), st.just(set())),
            st.tuples(st.just("chop"), st.integers(0, 100), st.just(set())),
            st.tuples(st.just("crash"), st.integers(0, 12), st.just(set())),
        ),
        max_size=40,
    ),
    after=st.integers(0, 600),
    limit=st.integers(1, 7),
)
def test_i21_it_agrees_with_a_plain_table_through_crashes(
    seed: int, steps: list[tuple[str, int, set[int]]], after: int, limit: int
) -> None:
    """The twin: every write in a dict; after a crash everything comes again, as the consolidated stream does."""
    files = CrashingFiles(simulated(seed))
    log = opened(files)
    truth: dict[int, set[int]] = {}
    tick = chopped = 0
    for step, number, subscribers in [*steps, ("commit", 0, set())]:
        if step == "crash":
            files.crash_in(number)
            continue
        try:
            if step == "write":
                tick += number
                truth[tick] = subscribers
                log.write([(tick, sorted(subscribers))])
            elif step == "chop":
                chopped = max(chopped, tick * number // 100)
                log.chop(tick * number // 100)
            else:
                getattr(log, step)()
        except Crash:
            files.crash_at = -1
            files.disk.crash()
            log = opened(files)
            log.write([(t, sorted(truth[t])) for t in truth if t > log.last_timestamp])
            log.commit()
    files.crash_at = -1
    log.commit()
    for subscriber in range(6):
        readings = list(log.read(subscriber, after, limit))
        start = max(after, log.chopped)
        assert log.chopped <= chopped
        expected = [t for t in truth if t > start and subscriber in truth[t]]
        assert [t for reading in readings for t in reading.matches] == expected
        assert all(len(reading.matches) <= limit for reading in readings)
        assert readings[0].lost_through == start
        assert readings[-1].known_through == max(after, log.last_timestamp)
        for reading in readings:
            assert all(reading.unsure_through < t <= reading.known_through for t in reading.matches)
            assert reading.unsure_through <= max(reading.after, log.chopped)
