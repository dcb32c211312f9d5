from __future__ import annotations

from random import Random

import pytest

from holdfast.simulator.disk import SimulatedDisk

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
