"""Group commit: what is said to be stable is; a failing disk is never believed; a full one refuses and heals."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_fixtures import IDENTITY, contents, record, simulated, small_log

from examples import examples
from holdfast.simulator.disk import SimulatedDisk
from holdfast.storage.block import InvalidBatch
from holdfast.storage.commits import Commits, CommitState, Progress
from holdfast.storage.files import DiskFailed, DiskFull
from holdfast.storage.log import RESERVE, LogSettings, SegmentLog
from holdfast.storage.real_files import RealFiles


def test_everything_that_waits_shares_one_commit() -> None:
    disk = simulated()
    commits = Commits(small_log(disk, LogSettings(1 << 20)))
    assert commits.commit() is None
    assert [commits.append([i], [b"x" * i]) for i in range(1, 6)] == [1, 2, 3, 4, 5]
    assert commits.waiting_bytes == 15
    assert commits.commit() == Progress(5, 5, CommitState.OPEN)
    disk.crash()
    log = small_log(disk)
    assert list(contents(log.view)) == [1, 2, 3, 4, 5]


def test_a_failing_sync_is_final_even_when_the_disk_recovers() -> None:
    disk = simulated()
    commits = Commits(small_log(disk, LogSettings(1 << 20)))
    commits.append([1], [b"a"])
    commits.commit()
    commits.append([2], [b"b"])
    commits.append([3], [b"c"])
    disk.is_failing = True
    progress = commits.commit()
    assert progress == Progress(1, 3, CommitState.FAILED, commits.reason)
    assert "sync failed" in progress.reason
    disk.is_failing = False
    assert not commits.reopen()
    assert commits.state is CommitState.FAILED
    with pytest.raises(DiskFailed):
        commits.log.commit()
    with pytest.raises(DiskFailed):
        commits.log.chop(1)
    assert contents(commits.log.view) == {1: b"a"}, "reading goes on"
    commits.log.close()
    disk.crash()
    assert list(contents(small_log(disk).view)) == [1]


def test_what_a_failed_sync_left_in_memory_is_written_again_at_the_next_start() -> None:
    """The pages look clean; only writing them once more makes the disk hold what is then served."""
    disk = simulated()
    log = small_log(disk, LogSettings(1 << 20))
    log.append([1], [b"a"])
    log.commit()
    log.append([2], [b"b"])
    disk.is_failing = True
    with pytest.raises(DiskFailed):
        log.commit()
    disk.is_failing = False
    again = small_log(disk, LogSettings(1 << 20))
    served = contents(again.view)
    assert served == {1: b"a", 2: b"b"}
    disk.crash()
    assert contents(small_log(disk, LogSettings(1 << 20)).view) == served


class FailingOnce(SimulatedDisk):
    """A disk on which one sync fails, counted from when it is armed."""

    fails_in = -1

    def sync(self, name: str) -> None:
        self.is_failing = self.fails_in == 0
        self.fails_in -= 1
        super().sync(name)
        self.is_failing = False


@pytest.mark.parametrize("fails_in", range(3))
def test_a_sync_that_fails_while_a_segment_is_sealed_or_filled_is_final_too(fails_in: int) -> None:
    disk = FailingOnce(Random(0))
    log = small_log(disk, LogSettings(1))
    log.append([1], [b"a"])
    log.commit()
    disk.fails_in = fails_in
    log.append([2], [b"b"])
    if fails_in == 2:
        log.commit()  # the footer and the record, no more
        assert log.last_index == 2
        return
    with pytest.raises(DiskFailed):
        log.commit()
    assert log.last_index == 1
    disk.is_failing = False
    with pytest.raises(DiskFailed):
        log.commit()
    assert isinstance(log.failure, DiskFailed)


def full_disk(room: int) -> tuple[SimulatedDisk, Commits]:
    disk = simulated()
    commits = Commits(small_log(disk, LogSettings(600)))
    commits.append([1], [b"first"])
    commits.commit()
    disk.capacity -= disk.room() - room
    return disk, commits


@pytest.mark.parametrize("room", range(0, 260, 20))
def test_a_full_disk_refuses_clearly_reads_on_and_heals(room: int) -> None:
    disk, commits = full_disk(room)
    commits.append([10], [b"x" * 100])
    commits.append([11], [b"y" * 100])
    progress = commits.commit()
    assert progress is not None
    if progress.state is CommitState.OPEN:
        assert room >= 168
        return
    assert progress == Progress(1, 3, CommitState.FULL, progress.reason)
    assert "no space left on the disk" in progress.reason
    assert contents(commits.log.view) == {1: b"first"}
    assert not commits.reopen()
    disk.capacity += 1 << 30
    assert commits.reopen()
    assert commits.append([10], [b"again"]) == 4
    assert commits.commit() == Progress(4, 4, CommitState.OPEN)
    disk.crash()
    log = small_log(disk)
    assert contents(log.view) == {1: b"first", 10: b"again"}
    assert list(log.damages) == []
    assert log.cut is None, "the half-written tail was cut off long ago"


def test_what_became_stable_before_the_disk_was_full_is_acknowledged() -> None:
    disk, commits = full_disk(500)
    for index in range(2, 30):
        commits.append([index], [b"x" * 40])
    progress = commits.commit()
    assert progress is not None
    assert progress.state is CommitState.FULL
    assert commits.log.last_index == progress.stable, "index and position are the same here"
    disk.crash()
    assert list(contents(small_log(disk).view)) == list(range(1, progress.stable + 1))


def test_a_full_disk_can_be_chopped_and_that_makes_room() -> None:
    disk = simulated()
    log = small_log(disk, LogSettings(2000))
    for index in range(1, 100):
        log.append([index], [b"x" * 100])
        log.commit()
    disk.capacity -= disk.room()
    before = len(log.view.segments)
    log.chop(60)
    assert len(log.view.segments) < before
    assert disk.room() > 0
    assert log.view.first_index == 61
    disk.crash()
    assert list(contents(small_log(disk).view)) == list(range(61, 100))
    assert disk.size(RESERVE) is not None, "given up, and restored from the room there was"


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_last_segment_that_has_filled_the_disk_goes_when_all_of_it_is_chopped(
    *, is_restarted: bool
) -> None:
    """Else nothing could be appended, so that it would never be sealed, so that it would never go."""
    disk = simulated()
    commits = Commits(small_log(disk, LogSettings()))
    last = 30
    commits.append(range(1, last + 1), [bytes(100_000)] * last)
    commits.commit()
    disk.capacity -= disk.room()
    commits.append([last + 1], [b"refused"])
    commits.commit()
    assert commits.state is CommitState.FULL
    commits.log.chop(last - 1)
    assert not commits.reopen(), "one record is still wanted"
    commits.log.chop(last)
    if is_restarted:
        disk.crash()
        commits = Commits(small_log(disk, LogSettings()))
    assert commits.reopen()
    assert commits.log.last_index == last
    commits.append([last + 1], [b"taken"])
    commits.commit()
    disk.crash()
    log = small_log(disk, LogSettings())
    assert contents(log.view) == {last + 1: b"taken"}
    assert list(log.damages) == []


def test_a_log_on_a_full_disk_opens_for_reading() -> None:
    disk = simulated()
    log = small_log(disk)
    log.append([1], [b"a"])
    log.commit()
    disk.remove(RESERVE)
    disk.capacity -= disk.room()
    assert contents(small_log(disk).view) == {1: b"a"}


def test_indexes_start_again_after_what_was_refused() -> None:
    disk, commits = full_disk(0)
    commits.append([10], [b"x" * 100])
    commits.commit()
    disk.capacity += 1 << 30
    commits.reopen()
    with pytest.raises(InvalidBatch):
        commits.append([1], [b""])
    commits.append([2], [b""])


@examples(120)
@given(seed=st.integers(0, 1000), choices=st.lists(st.integers(0, 9), max_size=40))
def test_whatever_the_disk_does_only_what_is_stable_is_acknowledged(seed: int, choices: list[int]) -> None:
    """Appends, commits, a disk that fills, empties and fails, in any order; then the power goes."""
    disk = SimulatedDisk(Random(seed), sectors=True)
    commits = Commits(small_log(disk, LogSettings(400)))
    acknowledged: dict[int, bytes] = {}
    batches: dict[int, dict[int, bytes]] = {}
    decided = index = 0
    for choice in choices:
        if choice <= 4:
            indexes = [index + 1 + i * choice for i in range(choice % 3 + 1)] if choice else [index + 1]
            if commits.state is not CommitState.OPEN:
                continue
            position = commits.append(indexes, [record(i) for i in indexes])
            batches[position] = {i: record(i) for i in indexes}
            index = indexes[-1]
        elif choice <= 6:
            progress = commits.commit()
            if progress is not None:
                for position in range(decided + 1, progress.stable + 1):
                    acknowledged |= batches[position]
                decided = progress.decided
                index = max(acknowledged, default=0)  # what was refused is free again
                assert progress.decided == commits.position
        elif choice == 7:
            disk.capacity = 1 << 62 if disk.capacity < 1 << 62 else disk.capacity - disk.room() + 100
        elif choice == 8:
            commits.reopen()
        else:
            disk.is_failing = not disk.is_failing
    assert contents(commits.log.view) == acknowledged
    disk.is_failing = False
    disk.capacity = 1 << 62
    disk.crash()
    log = small_log(disk)
    found = contents(log.view)
    assert acknowledged.items() <= found.items()
    assert list(found)[: len(acknowledged)] == list(acknowledged)
    if commits.state is not CommitState.FAILED:
        assert found == acknowledged
    assert list(log.damages) == []


LIMITED = """
import resource, signal, sys
from pathlib import Path
from holdfast.storage.log import SegmentLog
from holdfast.storage.real_files import RealFiles
from holdfast.storage.files import DiskFailed
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = SegmentLog(RealFiles(Path(sys.argv[1])), bytes(16))
log.append([1], [b"a" * 1000]); log.commit()
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
log.append([2], [b"b" * 5000])
try:
    log.commit()
except DiskFailed as failure:
    print(failure, log.last_index)
"""


def test_a_real_write_that_stops_half_way_is_cut_off_at_the_next_start(tmp_path: Path) -> None:
    assert hasattr(resource, "RLIMIT_FSIZE")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, tmp_path], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "00000000000000000001.segment: File too large 1\n"
    with RealFiles(tmp_path) as files:
        log = SegmentLog(files, IDENTITY)
        assert contents(log.view) == {1: b"a" * 1000}
        assert log.cut is not None
        assert log.cut.length > 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_real_disk_without_room_is_told_from_one_that_fails(tmp_path: Path) -> None:
    with RealFiles(tmp_path) as files:
        os.symlink("/dev/full", tmp_path / "full")
        with pytest.raises(DiskFull, match="full: no space left on the disk"):
            files.append("full", b"x")
