"""Reading pubends' logs beside who writes them: exactly what is there, what is lost with its reason, and no more.

Issue 5 §1 (damage is never served, the rest is), R1.15 and I18 (what was released is announced, and why).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import PUBEND, SMALL, Bench, publications, row, told

from examples import examples
from holdfast.intervals import Intervals, Span
from holdfast.messages.ticks import Lost, Tick
from holdfast.simulator.disk import SimulatedDisk
from holdfast.storage.files import DiskFailed
from holdfast.storage.log import LogSettings
from holdfast.storage.tables import Change
from holdfast.streams.ends import PUBENDS
from holdfast.streams.records import record_of
from holdfast.streams.store import Lane
from holdfast.streams.storing import EventsRead, ReadEvents


def filled(
    events: int, step: int = 10, batch: int = 4, settings: LogSettings = SMALL
) -> tuple[Bench, list[Tick]]:
    """Events at step, 2·step, …, some of them in each commit."""
    bench = Bench(settings)
    ticks = [step * (i + 1) for i in range(events)]
    for start in range(0, events, batch):
        bench.append(ticks[start : start + batch])
    return bench, ticks


def test_a_read_ends_at_so_many_bytes_and_has_one_event_at_least() -> None:
    bench, ticks = filled(40)
    three = sum(len(record_of(each)) for each in publications(ticks[:3]))
    for bytes_max, count in ((1, 1), (three, 3), (three + 1, 4)):
        [read] = bench.store.turn(Lane.READS, [ReadEvents(PUBEND, [(0, 400)], 1_000, bytes_max)])
        assert isinstance(read, EventsRead)
        assert (list(read.ticks), list(read.parts)) == (ticks[:count], [(0, ticks[count - 1])])


@examples(200)
@given(
    spans=st.lists(st.tuples(st.integers(0, 900), st.integers(1, 60)), max_size=40),
    limit=st.integers(1, 60),
    chopped=st.integers(0, 90),
    segment_bytes=st.sampled_from([100, 600, 1 << 20]),
)
def test_a_read_is_the_part_of_the_log_it_says_it_is(
    spans: list[tuple[Tick, Tick]], limit: int, chopped: int, segment_bytes: int
) -> None:
    bench, ticks = filled(80, settings=LogSettings(segment_bytes))
    through = bench.chop(10 * chopped).through
    assert through in (0, 10 * chopped, 800)
    wanted = Intervals((after, after + width) for after, width in spans)
    parts, found, lost = told(bench.read(*wanted, limit=limit))
    asked = wanted.within(0, 800)
    assert Intervals(parts) == Intervals(asked).intersection(Intervals([(0, parts[-1][1] if parts else 0)]))
    within = Intervals(parts)
    assert found == [tick for tick in ticks if tick in within and tick > through]
    assert lost == [Lost(*part, "released") for part in within.within(0, through)]
    assert len(found) <= limit
    assert parts == asked or len(found) == limit, "it ends only at its limit"


def test_reads_of_a_log_that_is_read_on_cover_everything_once() -> None:
    bench, ticks = filled(200)
    left: list[Span] = [(0, 2_000)]
    found: list[Tick] = []
    while left:
        answer = bench.read(*left, limit=7)
        found += answer.ticks
        left = [*Intervals(left).difference(Intervals(answer.parts))]
    assert found == ticks


class CountingDisk(SimulatedDisk):
    """Counts the bytes that are read."""

    bytes_read = 0

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes | None:
        data = super().read(name, offset, length)
        self.bytes_read += len(data or b"")
        return data


def test_thousands_of_single_ticks_cost_one_pass_and_a_few_far_apart_only_what_is_near_them() -> None:
    bench, ticks = filled(20_000, batch=100, settings=LogSettings(1 << 19))
    size = sum(bench.disk.size(name) or 0 for name in bench.segments)
    bench.disk.__class__ = CountingDisk
    assert isinstance(bench.disk, CountingDisk)
    assert list(bench.read(*((tick - 1, tick) for tick in ticks[::3]), limit=10_000).ticks) == ticks[::3]
    assert bench.disk.bytes_read < 2 * size
    bench.disk.bytes_read = 0
    far = [ticks[100], ticks[101], ticks[15_000]]
    assert list(bench.read(*((tick - 1, tick) for tick in far)).ticks) == far
    assert bench.disk.bytes_read < size / 2


# What is lost


def test_what_was_chopped_is_lost_for_the_reasons_its_pubend_gave() -> None:
    bench, _ = filled(10, settings=LogSettings(100))
    released = [Lost(0, 25, "acknowledged"), Lost(30, 50, "max_retain"), Lost(50, 90, "expired")]
    bench.save(Change(PUBENDS, PUBEND, row(released=released, lost=[Lost(92, 95, "restored")])))
    assert told(bench.read((20, 60)))[2] == [], "not chopped yet: it is still there"
    bench.chop(60)
    lost = [
        Lost(20, 25, "acknowledged"),
        Lost(25, 30, "released"),
        Lost(30, 50, "max_retain"),
        Lost(50, 60, "expired"),
    ]
    for _ in range(2):
        parts, ticks, found = told(bench.read((20, 100)))
        assert (parts, ticks, found) == ([(20, 100)], [70, 80, 90, 100], [*lost, Lost(92, 95, "restored")])
        assert told(bench.read((24, 25), (40, 41)))[2] == [
            Lost(24, 25, "acknowledged"),
            Lost(40, 41, "max_retain"),
        ]
        bench.crash()
    bench.save(Change(PUBENDS, PUBEND, None))
    assert told(bench.read((20, 60)))[2] == [Lost(20, 60, "released")]


def test_a_flipped_bit_costs_one_event_and_the_rest_is_served() -> None:
    bench, ticks = filled(80)
    segments = {name: bytearray(bench.disk.read(name) or b"") for name in bench.segments}
    [(name, data)] = [(name, data) for name, data in segments.items() if b"240.240." in data]
    data[data.index(b"240.240.")] ^= 4
    bench.disk.replace(name, bytes(data))
    parts, found, lost = told(bench.read((0, 800)))
    assert parts == [(0, 800)]
    assert found == [tick for tick in ticks if tick != 240]
    assert lost == [Lost(239, 240, "damaged")]
    assert told(bench.read((200, 239), (240, 260))) == (
        [(200, 239), (240, 260)],
        [210, 220, 230, 250, 260],
        [],
    )


def test_a_record_that_is_whole_and_no_event_is_damaged_too() -> None:
    bench, _ = filled(4)
    log = bench.store._events.logs[PUBEND].log
    log.append([50], [b"\xc1 no event"])
    log.commit()
    bench.append([60])
    assert told(bench.read((0, 60))) == ([(0, 60)], [10, 20, 30, 40, 60], [Lost(49, 50, "damaged")])


def test_a_segment_that_is_gone_at_start_is_lost_and_said_so() -> None:
    bench, ticks = filled(80)
    bench.disk.remove(bench.segments[2])
    bench.crash()
    [lost] = bench.recovered.logs[PUBEND].lost
    assert lost.reason == "damaged"
    parts, found, said = told(bench.read((0, 800)))
    assert (parts, said) == ([(0, 800)], [lost])
    assert found == [tick for tick in ticks if not lost.after < tick <= lost.upto]
    assert 0 < len(ticks) - len(found) < 40


# Beside the writer


class Interfering(SimulatedDisk):
    """Has something happen when it is read for the nth time, as another thread would."""

    reads_left = 0
    bench: Bench

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes | None:
        self.reads_left -= 1
        if self.reads_left == 0:
            self.bench.chop(500)
        return super().read(name, offset, length)


@pytest.mark.parametrize("reads", range(1, 8))
def test_what_is_chopped_while_it_is_read_is_lost_never_silent(reads: int) -> None:
    bench, ticks = filled(80)
    bench.disk.__class__ = Interfering
    assert isinstance(bench.disk, Interfering)
    bench.disk.bench, bench.disk.reads_left = bench, reads
    parts, found, lost = told(bench.read((100, 800)))
    assert bench.disk.reads_left <= 0, "it did happen"
    assert parts == [(100, 800)]
    assert lost == [Lost(100, 500, "released")]
    assert found == [tick for tick in ticks if tick > 500]


def test_nothing_is_said_of_what_a_commit_has_not_told_yet() -> None:
    """While a commit is noted, the view's end is ahead of what a scan would find."""
    bench, _ = filled(8)
    entry = bench.store._events.logs[PUBEND]
    entry.stable = 60
    assert told(bench.read((20, 200))) == ([(20, 60)], [30, 40, 50, 60], [])
    entry.stable = 80
    assert told(bench.read((60, 200))) == ([(60, 80)], [70, 80], [])
    assert told(bench.read((80, 200))) == ([], [], []), "the log does not know of silence"


class Unreadable(SimulatedDisk):
    """Cannot read one of its files."""

    broken = ""

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes | None:
        if name == self.broken:
            raise DiskFailed(name, "Input/output error")
        return super().read(name, offset, length)


def test_a_read_that_fails_says_what_it_knows_and_declares_nothing_lost() -> None:
    bench, ticks = filled(80)
    names = bench.segments
    bench.disk.__class__ = Unreadable
    assert isinstance(bench.disk, Unreadable)
    bench.disk.broken = names[2]
    answer = bench.read((0, 800))
    [(after, upto)] = answer.parts
    assert (after, list(answer.ticks), list(answer.lost)) == (0, [tick for tick in ticks if tick <= upto], [])
    assert 0 < upto < 800
    bench.disk.broken = ""
    assert list(bench.read((upto, 800)).ticks) == [tick for tick in ticks if tick > upto]


def test_a_pubend_without_a_log_is_read_as_nothing() -> None:
    nothing: list[Span] = []
    answer = Bench().read((0, 10), pubend="nobody")
    assert isinstance(answer, EventsRead)
    assert (list(answer.parts), list(answer.publications)) == (nothing, publications([]))
