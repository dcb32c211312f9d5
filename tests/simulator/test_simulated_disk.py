from __future__ import annotations

from random import Random

import pytest

from holdfast.simulator.disk import SimulatedDisk
from holdfast.storage.files import DiskFailed, DiskFull

WRITES = [b"alpha", b"beta", b"gamma"]


def after_crash(seed: int, synced: int) -> bytes:
    disk = SimulatedDisk(Random(seed))
    for i, data in enumerate(WRITES):
        if i == synced and synced:
            disk.sync("log")
        disk.append("log", data)
    if synced == len(WRITES):
        disk.sync("log")
    disk.crash()
    found = disk.read("log")
    assert found is not None
    return found


def test_a_reader_sees_what_is_not_synced() -> None:
    disk = SimulatedDisk(Random(0))
    disk.append("log", b"one")
    disk.append("log", b"two")
    assert disk.read("log") == b"onetwo"


def test_a_file_nobody_wrote_is_not_there() -> None:
    assert SimulatedDisk(Random(0)).read("log") is None


@pytest.mark.parametrize("synced", [0, 1, 2, 3])
def test_a_crash_keeps_what_was_synced_and_a_prefix_of_the_rest(synced: int) -> None:
    whole = b"".join(WRITES)
    for seed in range(50):
        kept = after_crash(seed, synced)
        assert whole.startswith(kept)
        assert len(kept) >= len(b"".join(WRITES[:synced]))


def test_crashes_lose_nothing_everything_and_tear_writes() -> None:
    kept = {after_crash(seed, 0) for seed in range(200)}
    assert {b"", b"alpha", b"alphabeta", b"alphabetagamma"} <= kept
    assert any(data not in (b"", b"alpha", b"alphabeta", b"alphabetagamma") for data in kept)


def test_the_seed_decides_what_survives() -> None:
    assert [after_crash(seed, 1) for seed in range(20)] == [after_crash(seed, 1) for seed in range(20)]


def test_what_survived_one_crash_survives_the_next() -> None:
    disk = SimulatedDisk(Random(3))
    disk.append("log", b"some")
    disk.crash()
    kept = disk.read("log")
    disk.crash()
    assert disk.read("log") == kept


def test_replacing_is_atomic_and_for_good() -> None:
    disk = SimulatedDisk(Random(0))
    disk.append("numbers", b"1")
    disk.replace("numbers", b"1000")
    disk.crash()
    assert disk.read("numbers") == b"1000"


def test_what_a_failed_sync_dropped_is_seen_until_the_crash() -> None:
    disk = SimulatedDisk(Random(0))
    disk.append("log", b"one")
    disk.sync("log")
    disk.append("log", b"two")
    disk.is_failing = True
    with pytest.raises(DiskFailed, match="log: sync failed"):
        disk.sync("log")
    disk.is_failing = False
    disk.sync("log")  # succeeds, and does not bring it back
    assert disk.read("log") == b"onetwo"
    disk.crash()
    assert disk.read("log") == b"one"


def test_writing_again_what_a_failed_sync_dropped_makes_it_stable() -> None:
    disk = SimulatedDisk(Random(0))
    disk.append("log", b"onetwo")
    disk.is_failing = True
    with pytest.raises(DiskFailed):
        disk.sync("log")
    disk.is_failing = False
    disk.rewrite("log", 0)
    disk.sync("log")
    disk.crash()
    assert disk.read("log") == b"onetwo"


def test_a_full_disk_takes_what_there_is_room_for() -> None:
    disk = SimulatedDisk(Random(0))
    disk.capacity = 8
    disk.append("log", b"12345")
    with pytest.raises(DiskFull):
        disk.append("log", b"67890")
    assert disk.read("log") == b"12345678"
    with pytest.raises(DiskFull):
        disk.replace("other", b"1")
    assert disk.names() == ["log"]
    disk.truncate("log", 5)
    assert disk.room() == 3


def test_cutting_off_is_stable_only_after_a_sync() -> None:
    found = set()
    for seed in range(20):
        disk = SimulatedDisk(Random(seed))
        disk.append("log", b"123456")
        disk.sync("log")
        disk.truncate("log", 2)
        disk.crash()
        found.add(disk.read("log"))
    assert found == {b"123456", b"12"}


def test_with_sectors_any_part_of_a_write_may_survive() -> None:
    found = set()
    for seed in range(60):
        disk = SimulatedDisk(Random(seed), sectors=True)
        disk.append("log", b"a" * 64 + b"b" * 64)
        disk.crash()
        found.add(disk.read("log"))
    assert found == {b"", b"a" * 64, bytes(64) + b"b" * 64, b"a" * 64 + b"b" * 64}
