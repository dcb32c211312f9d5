"""A batch that stands in many blocks is there as a whole after a crash, or not at all: as epochs need."""

from __future__ import annotations

from random import Random

from log_fixtures import contents, simulated, small_log

from holdfast.storage.files import Files
from holdfast.storage.log import LogSettings
from holdfast.storage.packing import BLOCK_RECORDS_MAX
from holdfast.storage.reader import LogReader

LARGE = LogSettings(segment_bytes=1 << 20)
RECORDS = 3 * BLOCK_RECORDS_MAX + 5
BEFORE = {1: b"before"}
BATCH = {10 + i: b"%d" % i for i in range(RECORDS)}


def written() -> tuple[Files, str, int]:
    """A log with a commit, and behind it a batch of four blocks; its file, and where that begins."""
    disk = simulated()
    log = small_log(disk, LARGE)
    log.append(list(BEFORE), list(BEFORE.values()))
    log.commit()
    begins = log.view.segments[-1].end
    log.append(list(BATCH), list(BATCH.values()))
    log.commit()
    return disk, log.view.segments[-1].name, begins


def test_a_batch_that_was_torn_anywhere_is_not_there_at_all_not_even_for_readers() -> None:
    files, name, begins = written()
    size = files.size(name) or 0
    assert len(contents(LogReader(files, unsynced=True).view)) == 1 + RECORDS
    for end in sorted([*Random(1).sample(range(begins, size), 40), size - 1], reverse=True):
        files.truncate(name, end)
        reader = LogReader(files, unsynced=True)
        assert contents(reader.view) == BEFORE, end
    log = small_log(files, LARGE)
    assert contents(log.view) == BEFORE
    log.append([5], [b"after"])
    log.commit()
    assert contents(small_log(files, LARGE).view) == {**BEFORE, 5: b"after"}


def test_a_batch_of_which_only_the_middle_was_lost_is_not_there_at_all() -> None:
    """A disk may write the last sectors first."""
    files, name, begins = written()
    data = files.read(name) or b""
    middle = data.index(b"HFbm", begins + 100)
    files.truncate(name, middle)
    files.append(name, bytes(100), data[middle + 100 :])
    files.sync(name)
    assert contents(small_log(files, LARGE).view) == BEFORE


def test_a_batch_that_is_whole_is_there_though_nobody_heard_that_it_is_stable() -> None:
    files, _, _ = written()
    assert contents(small_log(files, LARGE).view) == BEFORE | BATCH
