"""Reading a log whose writer is in another process, and never seeing what is not stable."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from log_fixtures import (
    IDENTITY,
    Crash,
    CrashingFiles,
    contents,
    filled,
    holes,
    record,
    simulated,
    small_log,
)

from holdfast.simulator.disk import SimulatedDisk
from holdfast.storage.block import Batch
from holdfast.storage.damage import Damage
from holdfast.storage.log import LogSettings, SegmentLog
from holdfast.storage.manifest import MANIFEST
from holdfast.storage.reader import LogReader
from holdfast.storage.real_files import RealFiles
from holdfast.storage.segment_format import base_of
from holdfast.storage.view import Chopped

WRITER = """
import sys
from pathlib import Path
from typing import Any
from holdfast.storage.log import LogSettings, SegmentLog
from holdfast.storage.real_files import RealFiles
from holdfast.storage.segment_format import base_of
log = SegmentLog(RealFiles(Path(sys.argv[1])), bytes(16), LogSettings(4000))
for i in range(600):
    log.append([3 * i + 1, 3 * i + 2], [b"%d" % i * (i % 40), b"x" * 20], time=i)
    log.commit()
    if i % 50 == 49:
        log.chop(i)
    if i == 20:
        print("under way", flush=True)
log.close()
"""


def test_reading_beside_a_writer_in_another_process(tmp_path: Path) -> None:
    """Every look sees a prefix of what is written, whole and in order, and the last look all of it."""
    expected = {3 * i + 1: b"%d" % i * (i % 40) for i in range(600)} | {
        3 * i + 2: b"x" * 20 for i in range(600)
    }
    with subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"under way\n"
        reader = LogReader(RealFiles(tmp_path, write=False))
        seen = looks = 0
        is_running = True
        while is_running:
            is_running = writer.poll() is None
            reader.refresh()
            assert reader.damages == []
            found = contents(reader.view, after=seen)
            chopped = reader.view.chopped
            assert list(found) == [
                i for i in sorted(expected) if max(seen, chopped) < i <= reader.view.last_index
            ]
            assert all(expected[index] == data for index, data in found.items())
            seen = max(seen, reader.view.last_index)
            looks += 1
        assert seen == 3 * 599 + 2
        assert looks > 3


def test_a_reader_sees_the_last_commit_once_something_vouches_for_it() -> None:
    disk = simulated()
    log = small_log(disk, LogSettings(1 << 20))
    filled(log, 2)
    reader = LogReader(disk)
    assert list(contents(reader.view)) == [10, 20, 30]
    assert list(contents(LogReader(disk, unsynced=True).view)) == [10, 20, 30, 40, 50, 60]
    log.checkpoint()
    reader.refresh()
    assert list(contents(reader.view)) == [10, 20, 30, 40, 50, 60]
    filled(log, 2)
    reader.refresh()
    assert reader.view.last_index == 90


def test_a_reader_sees_what_somebody_else_vouches_for_and_counts_nothing_beyond_as_stable() -> None:
    disk = simulated()
    log = small_log(disk, LogSettings(1 << 20))
    filled(log, 2)
    reader = LogReader(disk)
    reader.refresh(50)
    assert reader.stable == 50
    # blocks are whole; who reads stops at what is stable
    assert list(contents(reader.view, after=30)) == [40, 50, 60]
    filled(log, 1)
    reader.refresh()
    assert reader.stable == 60
    assert list(contents(reader.view)) == [10, 20, 30, 40, 50, 60]


def test_a_torn_tail_that_is_written_again_to_the_same_size_is_seen_once_it_is_vouched_for(
    tmp_path: Path,
) -> None:
    """Nothing tells the two apart but what is vouched for: by name, manifest and size nothing has changed."""
    with closing(RealFiles(tmp_path)) as files:
        log = small_log(files, LogSettings(1 << 20))
        written = filled(log, 2)
        log.checkpoint()
        filled(log, 1)
        [segment] = tmp_path.glob("*.segment")
    torn = segment.read_bytes()
    segment.write_bytes(torn[:-1] + bytes([torn[-1] ^ 1]))
    reader = LogReader(RealFiles(tmp_path, write=False))
    reader.refresh(60)
    assert contents(reader.view) == written
    manifest = (tmp_path / MANIFEST).read_bytes()
    with closing(RealFiles(tmp_path)) as files:
        log = small_log(files, LogSettings(1 << 20))
        assert log.cut is not None
        others = {index: bytes(len(record(index))) for index in (70, 80, 90)}
        log.append(list(others), list(others.values()))
        log.commit()
    assert (segment.stat().st_size, (tmp_path / MANIFEST).read_bytes()) == (len(torn), manifest)
    reader.refresh(60)
    assert contents(reader.view) == written, "what the last commit wrote is not known to be stable"
    reader.refresh(90)
    assert contents(reader.view) == written | others


def test_a_reader_follows_through_rolls_and_chops() -> None:
    disk = simulated()
    log = small_log(disk)
    filled(log, 1)
    reader = LogReader(disk)
    for _ in range(12):
        filled(log, 3)
        log.chop(log.last_index - 120)
        reader.refresh()
        assert reader.damages == []
        found = list(contents(reader.view))
        assert found[0] == log.view.first_index
        assert log.last_index - found[-1] in (0, 30)
    assert reader.identity == IDENTITY
    assert len({segment.name for segment in reader.view.segments}) > 1


def test_a_chop_under_a_scan_is_told_and_not_taken_for_damage() -> None:
    disk = simulated()
    log = small_log(disk)
    filled(log, 20)
    assert len(log.view.segments) > 3
    scan = log.view.scan(window=64)
    next(scan)
    log.chop(300)
    rest = list(scan)
    assert [item for item in rest if isinstance(item, Damage)] == []
    assert any(isinstance(item, Chopped) and item.through == 300 for item in rest)


class ChoppedMeanwhile:
    """Files of a log that is chopped while somebody looks at them, between the manifest and the names."""

    def __init__(self, disk: SimulatedDisk, log: SegmentLog) -> None:
        self._disk = disk
        self._log = log

    def names(self) -> list[str]:
        self._log.chop(self._log.last_index - 50)
        return self._disk.names()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)


def test_a_log_chopped_while_a_reader_opens_it_is_looked_at_again() -> None:
    disk = simulated()
    log = small_log(disk)
    filled(log, 20)
    files: Any = ChoppedMeanwhile(disk, log)
    reader = LogReader(files)
    assert reader.damages == []
    assert reader.view.chopped == log.view.chopped > 0


def test_what_a_crash_left_of_a_chop_is_cleared_away_at_the_next_start() -> None:
    files = CrashingFiles(simulated())
    log = small_log(files)
    filled(log, 20)
    before = len(log.view.segments)
    files.crash_in(2)
    with pytest.raises(Crash):
        log.chop(450)
    files.crash_at = -1
    files.disk.crash()
    assert len([name for name in files.names() if base_of(name)]) == before
    assert LogReader(files, unsynced=True).view.first_index == 460
    again = small_log(files)
    assert list(again.damages) == []
    assert [name for name in files.names() if base_of(name)] == [
        segment.name for segment in again.view.segments
    ]
    assert len(again.view.segments) < before


def test_what_was_chopped_is_said_first() -> None:
    log = small_log(simulated())
    filled(log, 4)
    log.chop(35)
    assert holes(log.view) == [Chopped(35)]
    assert log.view.first_index == 40
    assert log.view.read(30) is None
    assert next(iter(log.view.scan(35))) != Chopped(35)


def test_a_reader_beside_a_torn_write_waits_for_the_rest() -> None:
    disk = simulated()
    log = small_log(disk, LogSettings(1 << 20))
    filled(log, 2)
    name = log.view.segments[-1].name
    size = disk.size(name)
    filled(log, 1)
    data = disk.read(name) or b""
    disk.replace(name, data[:-5])
    reader = LogReader(disk)
    assert reader.damages == []
    assert reader.view.last_index == 30, "nothing whole vouches for the second commit either"
    disk.replace(name, data)
    log.checkpoint()
    reader.refresh()
    assert reader.view.last_index == 90
    assert reader.view.read(70) == record(70)
    assert reader.view.segments[-1].end == disk.size(name) != size


def test_a_sealed_segment_says_what_it_holds() -> None:
    disk = simulated()
    log = small_log(disk)
    filled(log, 12)
    for segment in LogReader(disk).view.segments[:-1]:
        items = list(log.view.scan(segment.base - 1, segment.last))
        batches = [item for item in items if isinstance(item, Batch)]
        assert segment.is_sealed
        assert batches == items
        assert segment.records == sum(len(batch.indexes) for batch in batches)
        times = [batch.time for batch in batches]
        assert (segment.earliest, segment.latest) == (min(times), max(times))
        assert (segment.first, segment.last) == (batches[0].indexes[0], batches[-1].indexes[-1])
    assert sum(segment.records for segment in log.view.segments) == 36


def test_a_log_of_ticks_that_are_far_apart(tmp_path: Path) -> None:
    """Indexes are ticks of a clock in nanoseconds: huge, and nowhere dense."""
    ticks = [1_763_210_000_000_000_000 + i * 7_919_000_000 for i in range(300)]
    with RealFiles(tmp_path) as files:
        log = SegmentLog(files, IDENTITY, LogSettings(3000))
        for tick in ticks:
            log.append([tick], [b"%d" % tick])
            log.commit()
        assert list(contents(log.view)) == ticks
        assert log.view.read(ticks[150]) == b"%d" % ticks[150]
        assert log.view.read(ticks[150] + 1) is None
        log.chop(ticks[100] + 5)
        assert log.view.first_index == ticks[101]
        log.close()
    assert list(contents(LogReader(RealFiles(tmp_path, write=False)).view)) == ticks[101:]


@pytest.mark.parametrize("size", [0, 1, 65_000, 66_000, 300_000])
def test_records_of_any_size(size: int) -> None:
    log = small_log(simulated(), LogSettings(1 << 20))
    log.append(range(1, 6), [bytes([i]) * size for i in range(5)])
    log.commit()
    assert contents(log.view) == {i + 1: bytes([i]) * size for i in range(5)}
    assert log.view.read(4) == bytes([3]) * size
