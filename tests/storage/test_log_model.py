"""The log against a plain list, through crashes at every point.

Issue 5 §1 and §8, R1.28: after a restart everything that was said to be stable is there, nothing that was not appended
is, the order is kept; and no crash is ever taken for damage.
"""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from log_fixtures import Crash, CrashingFiles, contents, record, simulated, small_log

from examples import examples
from holdfast.storage.log import LogSettings, SegmentLog
from holdfast.storage.opening import NoLog
from holdfast.storage.reader import LogReader


class Twin:
    """What the log must hold: ``stable`` certainly, and of ``waiting`` a prefix once a commit was begun."""

    def __init__(self, seed: int, segment_bytes: int) -> None:
        self.files = CrashingFiles(simulated(seed))
        self.settings = LogSettings(segment_bytes)
        self.stable: list[int] = []
        self.waiting: list[int] = []
        self.chopped = 0
        self.next = 1
        self.log: SegmentLog | None = None
        self.open()

    def open(self) -> None:
        self.log = small_log(self.files, self.settings)
        assert list(self.log.damages) == []

    def append(self, count: int, step: int) -> None:
        assert self.log is not None
        indexes = [self.next + step * (i + 1) for i in range(count)]
        self.log.append(indexes, [record(index) for index in indexes], time=self.next)
        self.waiting += indexes
        self.next = indexes[-1] + 1

    def commit(self) -> None:
        assert self.log is not None
        self.log.commit()
        self.stable += self.waiting
        self.waiting = []

    def chop(self, percent: int) -> None:
        assert self.log is not None
        last = self.log.last_index
        self.log.chop(last * percent // 100)
        self.chopped = max(self.chopped, min(last * percent // 100, last))

    def checkpoint(self) -> None:
        assert self.log is not None
        self.log.checkpoint()

    def prepare(self) -> None:
        assert self.log is not None
        self.log.prepare()

    def restart(self) -> None:
        assert self.log is not None
        self.log.close()
        self.stable += self.waiting
        self.waiting = []
        self.open()

    def power_cut(self) -> None:
        """Everything but the disk is gone; the log must hold what it promised, and may hold what it was asked to."""
        self.files.crash_at = -1
        self.files.disk.crash()
        self.open()
        assert self.log is not None
        assert self.log.view.chopped >= self.chopped
        self.chopped = self.log.view.chopped
        found = list(contents(self.log.view))
        everything = [index for index in self.stable + self.waiting if index > self.chopped]
        certain = sum(index > self.chopped for index in self.stable)
        assert found == everything[: max(certain, len(found))]
        self.stable = found
        self.waiting = []
        self.next = max(self.log.last_index + 1, 1)

    def check(self) -> None:
        assert self.log is not None
        view = self.log.view
        expected = {index: record(index) for index in self.stable if index > self.chopped}
        assert contents(view) == expected
        assert view.first_index == next(iter(expected), None)
        assert self.log.last_index == max([*self.stable[-1:], self.chopped])
        for index in (*list(expected)[::5], self.chopped, self.log.last_index + 1):
            assert view.read(index) == expected.get(index)
        reader = LogReader(self.files)
        assert reader.damages == []
        seen = contents(reader.view)
        assert list(seen.items()) == list(expected.items())[: len(seen)]
        assert contents(LogReader(self.files, unsynced=True).view) == expected


STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 6), st.integers(1, 9)),
    st.tuples(st.just("commit")),
    st.tuples(st.just("chop"), st.integers(0, 110)),
    st.tuples(st.just("checkpoint")),
    st.tuples(st.just("prepare")),
    st.tuples(st.just("restart")),
    st.tuples(st.just("crash"), st.integers(0, 24)),
)


@examples(300)
@given(
    seed=st.integers(0, 1 << 16),
    segment_bytes=st.sampled_from([1, 300, 900]),
    steps=st.lists(STEPS, max_size=30),
)
@example(
    0, 300, [("append", 3, 1), ("commit",), ("append", 3, 1), ("crash", 3), ("commit",), ("append", 1, 1)]
)
def test_through_any_history_the_log_is_the_list(
    seed: int, segment_bytes: int, steps: list[tuple[str, int, int]]
) -> None:
    twin = Twin(seed, segment_bytes)
    for step, *arguments in steps:
        if step == "crash":
            twin.files.crash_in(*arguments)
            continue
        try:
            getattr(twin, step)(*arguments)
        except Crash:
            twin.power_cut()
        if twin.files.crash_at < 0:
            twin.check()
    twin.files.crash_at = -1
    twin.power_cut()
    twin.check()


@pytest.mark.parametrize("seed", range(6))
def test_a_crash_at_every_single_operation(seed: int) -> None:
    """The same history again and again, the power going half an operation later each time."""
    at = 0
    while True:
        twin = Twin(seed, segment_bytes=300)
        twin.files.crash_in(at)
        try:
            for _ in range(3):
                twin.append(4, 3)
                twin.append(2, 1)
                twin.commit()
                twin.prepare()
                twin.append(1, 1)
                twin.commit()
                twin.chop(40)
            twin.restart()
        except Crash:
            twin.power_cut()
            twin.check()
            twin.append(2, 2)
            twin.commit()
            twin.check()
            at += 1
        else:
            break
    assert at > 30, "there were as many places to crash at"


@pytest.mark.parametrize("seed", range(4))
def test_a_crash_at_every_operation_of_the_start_itself(seed: int) -> None:
    at = 0
    while True:
        twin = Twin(seed, segment_bytes=300)
        for _ in range(3):
            twin.append(4, 3)
            twin.commit()
        twin.append(4, 3)
        twin.files.crash_in(1)
        with pytest.raises(Crash):
            twin.commit()
        twin.files.disk.crash()
        twin.files.crash_in(at)
        try:
            twin.open()
        except Crash:
            twin.power_cut()
            twin.check()
            at += 1
        else:
            break
    assert at >= 4


def test_a_new_log_whose_making_is_cut_short_is_made_again() -> None:
    for at in range(4):
        files = CrashingFiles(simulated())
        files.crash_in(at)
        try:
            small_log(files)
        except Crash:
            files.crash_at = -1
            files.disk.crash()
        assert contents(small_log(files).view) == {}


def test_an_empty_folder_is_no_log_to_a_reader() -> None:
    with pytest.raises(NoLog, match="no manifest and no segment of a log"):
        LogReader(simulated())


@examples(60)
@given(
    st.sets(st.integers(1, 400), min_size=1), st.integers(0, 420), st.integers(0, 420), st.integers(60, 4000)
)
def test_a_scan_is_the_slice_whatever_is_read_at_once(
    indexes: set[int], after: int, through: int, window: int
) -> None:
    log = small_log(simulated())
    ordered = sorted(indexes)
    for start in range(0, len(ordered), 7):
        part = ordered[start : start + 7]
        log.append(part, [record(index) for index in part])
        log.commit()
    found = [i for item in log.view.scan(after, through, window=window) for i in item.indexes]  # type: ignore[union-attr]
    assert found == [index for index in ordered if after < index <= through]
    assert [index for index in range(402) if log.view.read(index) is not None] == ordered
    assert bisect_right(ordered, log.last_index) == len(ordered)
