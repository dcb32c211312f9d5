"""Every bit flipped, every file cut off anywhere: found, named, never served; and everything else is served.

Issue 5: "a bit flipped and a segment truncated in a real log: found, named …, never delivered; the rest is served".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from log_fixtures import IDENTITY, Crash, CrashingFiles, filled, holes, record, served, simulated, small_log

from holdfast.simulator.disk import SimulatedDisk
from holdfast.storage.block import BATCH_BYTES_MAX, Batch, InvalidBatch
from holdfast.storage.damage import Cut, Damage, DamagedRecord
from holdfast.storage.log import RESERVE, SMALL_BYTES, LogSettings, SegmentLog
from holdfast.storage.manifest import MANIFEST, Manifest
from holdfast.storage.opening import NoLog
from holdfast.storage.reader import LogReader
from holdfast.storage.real_files import RealFiles
from holdfast.storage.segment_format import SegmentHeader, UnknownFormat, base_of, name_of
from holdfast.storage.walk import FileGone

CHOPPED = 20
RECORDS = {index: record(index) for index in range(10, 190, 10)}
KEPT = {index: data for index, data in RECORDS.items() if index > CHOPPED}


@pytest.fixture(scope="module", params=[0, 100], ids=["closed", "with room prepared"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a small real log: two sealed segments, one that is not, a chop point in the first; closed.

    Or as a crash would leave them, with zeros where the next commits would have gone.
    """
    folder = tmp_path_factory.mktemp("real") / "log"
    with RealFiles(folder) as files:
        log = small_log(files, LogSettings(212))
        assert filled(log, 6) == RECORDS
        log.chop(CHOPPED)
        log.close()
    found = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != RESERVE}
    names = [name for name in found if base_of(name)]
    assert [base_of(name) for name in names] == [1, 61, 121]
    assert len(found[LAST]) == LAST_BYTES
    found[LAST] += bytes(request.param)
    return found


def disk_with(files: dict[str, bytes]) -> SimulatedDisk:
    disk = simulated()
    for name, data in files.items():
        disk.replace(name, data)
    return disk


def check(reader: LogReader | SegmentLog, context: object) -> None:
    """Nothing wrong is served, and whatever is missing was named beforehand and is named in its place."""
    found = served(reader.view)
    assert found.items() <= RECORDS.items(), context
    named = [damage for damage in reader.damages if damage.loses_records]
    cut = reader.cut if isinstance(reader, SegmentLog) else reader.torn
    told = {index for damage in holes(reader.view) if isinstance(damage, Damage) for index in span(damage)}
    for index in KEPT.keys() - found.keys():
        torn = cut is not None and cut.first <= index <= cut.last
        assert torn or any(index in span(damage) for damage in named), (context, index)
        assert torn or index in told, (context, index)
        if not torn:
            with pytest.raises(DamagedRecord):
                reader.view.read(index)
    for index, data in found.items():
        if index > reader.view.chopped:
            assert reader.view.read(index) == data, context


def span(damage: Damage) -> range:
    return range(damage.first, damage.last + 1) if damage.loses_records else range(0)


LAST, LAST_BYTES = name_of(121), 323  #: the last segment, and how much of it was written


def is_room(name: str, place: int) -> bool:
    """Whether nothing was written there."""
    return name == LAST and place >= LAST_BYTES


def flips(whole: dict[str, bytes], bits: range) -> Iterator[tuple[str, int, dict[str, bytes]]]:
    """Of all that was written."""
    for name, data in whole.items():
        for place in range(len(data)):
            if is_room(name, place):
                break
            for bit in bits:
                flipped = bytearray(data)
                flipped[place] ^= 1 << bit
                yield name, 8 * place + bit, whole | {name: bytes(flipped)}


def test_every_flipped_bit_is_found_and_named(whole: dict[str, bytes]) -> None:
    lost = 0
    for name, bit, files in flips(whole, range(8)):
        reader = LogReader(disk_with(files), unsynced=True, deep=True)
        assert any(damage.file == name for damage in reader.damages), (name, bit)
        found = served(reader.view)
        assert found.items() <= RECORDS.items(), (name, bit)
        lost += len(KEPT) - len(found.keys() & KEPT.keys())
        if bit % 8 == 3:
            check(reader, (name, bit))
    assert 0 < lost < 8 * 3000, "most flips cost one record, some a block, many none"


def test_a_writer_that_starts_on_a_flipped_bit_goes_on_and_never_forgets_it(whole: dict[str, bytes]) -> None:
    for name, bit, files in flips(whole, range(5, 6)):
        disk = disk_with(files)
        log = small_log(disk)
        check(log, (name, bit))
        first = [hole for hole in holes(log.view) if isinstance(hole, Damage)]
        log.append([1000], [b"more"])
        log.commit()
        again = small_log(disk)
        assert again.view.read(1000) == b"more", (name, bit)
        assert log.damages, (name, bit)
        assert [hole for hole in holes(again.view) if isinstance(hole, Damage)] == first, (name, bit)


def test_every_file_cut_off_anywhere_is_found_and_named(whole: dict[str, bytes]) -> None:
    for name, data in whole.items():
        for size in range(len(data)):
            reader = LogReader(disk_with(whole | {name: data[:size]}), unsynced=True, deep=True)
            is_whole = is_room(name, size)
            assert any(damage.file == name for damage in reader.damages) != is_whole, (name, size)
            assert not is_whole or served(reader.view).keys() >= KEPT.keys(), (name, size)
            check(reader, (name, size))


def test_a_bit_that_is_set_where_nothing_was_written_costs_nothing(whole: dict[str, bytes]) -> None:
    """It looks like the beginning of a commit that a crash cut short."""
    for place in range(LAST_BYTES, len(whole[LAST])):
        flipped = bytearray(whole[LAST])
        flipped[place] ^= 1 << place % 8
        log = small_log(disk_with(whole | {LAST: bytes(flipped)}))
        assert log.cut is not None
        assert (log.cut.offset, log.cut.first) == (LAST_BYTES, 0)
        assert list(log.damages) == []
        assert served(log.view).keys() >= KEPT.keys()


def test_a_writer_that_starts_on_a_file_cut_off_goes_on_and_never_forgets_it(whole: dict[str, bytes]) -> None:
    for name, data in whole.items():
        for size in range(0, len(data), 7):
            disk = disk_with(whole | {name: data[:size]})
            log = small_log(disk)
            check(log, (name, size))
            lost = RECORDS.keys() - served(log.view).keys()
            log.append([1000], [b"more"])
            log.commit()
            again = small_log(disk)
            assert again.view.read(1000) == b"more", (name, size)
            told = {i for hole in holes(again.view) if isinstance(hole, Damage) for i in span(hole)}
            assert {index for index in lost if index > log.view.chopped} <= told, (name, size)


def test_every_file_that_is_gone_is_missed(whole: dict[str, bytes]) -> None:
    for name in whole:
        rest = {other: data for other, data in whole.items() if other != name}
        reader = LogReader(disk_with(rest), unsynced=True, deep=True)
        assert reader.damages, name
        check(reader, name)


def test_a_flipped_bit_in_a_record_costs_that_record_alone(whole: dict[str, bytes]) -> None:
    name = name_of(61)
    at = whole[name].index(record(90))
    flipped = bytearray(whole[name])
    flipped[at] ^= 1
    reader = LogReader(disk_with(whole | {name: bytes(flipped)}), deep=True)
    assert KEPT.keys() - served(reader.view).keys() == {90}
    assert [str(damage) for damage in reader.damages] == [
        f"{name}, offset {at}, {len(record(90))} bytes: a record is broken; record 90 is lost"
    ]
    with pytest.raises(DamagedRecord, match=r"record 90: .* record 90 is lost"):
        reader.view.read(90)


def test_without_scrubbing_damage_in_a_sealed_segment_is_found_when_it_is_read(
    whole: dict[str, bytes],
) -> None:
    name = name_of(61)
    flipped = bytearray(whole[name])
    flipped[whole[name].index(record(90))] ^= 1
    log = small_log(disk_with(whole | {name: bytes(flipped)}), deep=False)
    assert list(log.damages) == []
    check_found = [hole for hole in holes(log.view) if isinstance(hole, Damage)]
    assert [(damage.first, damage.last) for damage in check_found] == [(90, 90)]


def test_damage_is_told_in_its_place_among_the_records(whole: dict[str, bytes]) -> None:
    name = name_of(61)
    flipped = bytearray(whole[name])
    flipped[whole[name].index(record(90))] ^= 1
    view = LogReader(disk_with(whole | {name: bytes(flipped)})).view
    told = [list(item.indexes) if isinstance(item, Batch) else type(item) for item in view.scan(60, 120)]
    assert told == [[70, 80], Damage, [100, 110, 120]]


def test_a_payload_that_contains_a_block_is_never_taken_for_one(whole: dict[str, bytes]) -> None:
    """Somebody publishes a piece of the very log; the block around it is then damaged, and the search begins."""
    stolen = whole[name_of(61)][40:]
    disk = simulated()
    log = small_log(disk, LogSettings(1 << 20))
    log.append([5], [stolen])
    log.commit()
    log.append([500], [b"after"])
    log.commit()
    log.close()
    data = bytearray(disk.read(name_of(1)) or b"")
    data[41] ^= 1  # in the magic of the first block
    disk.replace(name_of(1), bytes(data))
    reader = LogReader(disk)
    assert served(reader.view) == {500: b"after"}
    assert [(damage.first, damage.last) for damage in reader.damages] == [(1, 499)]


def test_a_torn_tail_is_cut_and_reported() -> None:
    disk = simulated()
    log = small_log(disk, LogSettings(1 << 20))
    filled(log, 2)
    name = name_of(1)
    whole = disk.size(name)
    log.append([100, 101], [b"x" * 50, b"y" * 50])
    log.commit()
    data = disk.read(name) or b""
    disk.replace(name, data[:-3])
    assert whole is not None
    again = small_log(disk, LogSettings(1 << 20))
    assert list(again.damages) == []
    assert again.cut == Cut(name, whole, len(data) - 3 - whole)
    assert str(again.cut).endswith("bytes; it names no record")
    assert disk.size(name) == whole
    assert again.last_index == 60


ROOMY = LogSettings(1 << 20)


def test_room_that_was_prepared_is_no_torn_tail() -> None:
    disk = simulated()
    log = small_log(disk, ROOMY)
    filled(log, 2)
    log.prepare()
    [segment] = [name for name in disk.names() if base_of(name)]
    assert (disk.read(segment) or b"").endswith(bytes(1 << 18))
    written = filled(log, 1)
    size = log.view.size
    disk.crash()
    reader = LogReader(disk, unsynced=True, deep=True)
    assert (reader.torn, reader.damages, reader.view.size) == (None, [], size)
    again = small_log(disk, ROOMY)
    assert (again.cut, list(again.damages), disk.size(segment)) == (None, [], size)
    assert served(again.view).items() >= written.items()


def test_a_commit_torn_in_room_that_was_prepared_is_cut_off() -> None:
    outcomes: set[bool] = set()
    for seed in range(40):
        files = CrashingFiles(simulated(seed))
        log = small_log(files, ROOMY)
        written = filled(log, 2)
        log.prepare()
        log.append([1_000, 1_001], [b"a" * 100, b"b" * 100])
        files.crash_in(1)  # after it was written, before it was synced
        with pytest.raises(Crash):
            log.commit()
        files.crash_at = -1
        files.disk.crash()
        again = small_log(files, ROOMY)
        is_there = again.view.read(1_000) is not None
        outcomes.add(is_there)
        assert list(again.damages) == []
        assert served(again.view).keys() == written.keys() | ({1_000, 1_001} if is_there else set())
        filled(again, 1)
        assert small_log(files, ROOMY).cut is None
    assert outcomes == {False, True}


def test_a_sealed_segment_has_no_room() -> None:
    disk = simulated()
    log = small_log(disk, LogSettings(segment_bytes=400))
    while len(log.view.segments) < 3:
        filled(log, 1)
        log.prepare()
    for segment in log.view.segments[:-1]:
        assert disk.size(segment.name) == segment.size
        assert segment.is_sealed
    assert LogReader(disk, deep=True).damages == []


def test_room_is_prepared_where_commits_are_small() -> None:
    disk = simulated()
    log = small_log(disk, ROOMY)
    log.prepare()
    assert not [name for name in disk.names() if base_of(name)], "there is nothing to prepare"
    log.append([1], [bytes(SMALL_BYTES + 1)])
    log.commit()
    [segment] = [name for name in disk.names() if base_of(name)]
    size = disk.size(segment)
    log.prepare()
    assert disk.size(segment) == size
    log.append([2], [b"small"])
    log.commit()
    log.prepare()
    prepared = disk.size(segment)
    assert prepared is not None
    assert prepared >= log.view.size + (1 << 19)
    log.close()
    assert disk.size(segment) == log.view.size


def test_a_record_broken_in_the_last_commit_cuts_it_off_by_name() -> None:
    disk = simulated()
    log = small_log(disk, LogSettings(1 << 20))
    filled(log, 2)
    log.append([100, 101], [b"x" * 50, b"y" * 50])
    log.commit()
    data = bytearray(disk.read(name_of(1)) or b"")
    data[-1] ^= 1
    disk.replace(name_of(1), bytes(data))
    again = small_log(disk, LogSettings(1 << 20))
    assert again.cut is not None
    assert (again.cut.first, again.cut.last) == (100, 101)
    assert again.last_index == 60


def test_a_record_broken_before_the_last_commit_is_damage_and_not_a_torn_tail() -> None:
    disk = simulated()
    log = small_log(disk, LogSettings(1 << 20))
    filled(log, 3)
    data = bytearray(disk.read(name_of(1)) or b"")
    data[data.index(record(50))] ^= 1
    disk.replace(name_of(1), bytes(data))
    again = small_log(disk, LogSettings(1 << 20))
    assert again.cut is None
    assert [(damage.first, damage.last) for damage in again.damages] == [(50, 50)]
    assert again.last_index == 90


def test_damage_right_before_a_torn_tail_is_told_from_it() -> None:
    disk = simulated()
    log = small_log(disk, LogSettings(1 << 20))
    filled(log, 3)
    log.checkpoint()
    name = name_of(1)
    stable = disk.size(name) or 0
    filled(log, 1)
    data = bytearray(disk.read(name) or b"")
    third = data.index(b"HFbk", data.index(record(60)))
    data[third] ^= 1
    disk.replace(name, bytes(data[:-1]))
    again = small_log(disk, LogSettings(1 << 20))
    assert again.cut == Cut(name, stable, len(data) - 1 - stable)
    assert [(d.offset, d.length, d.first, d.last) for d in again.damages] == [(third, stable - third, 61, 90)]
    assert again.last_index == 90
    assert list(served(again.view)) == [10, 20, 30, 40, 50, 60]
    again.append([91], [b"more"])
    again.commit()
    assert list(served(small_log(disk).view)) == [10, 20, 30, 40, 50, 60, 91]


def test_a_segment_of_another_log_is_not_served(whole: dict[str, bytes]) -> None:
    foreign = simulated()
    other = SegmentLog(foreign, bytes(16), LogSettings(1 << 20))
    other.append([300], [b"not ours"])
    other.commit()
    disk = disk_with(whole | {name_of(300): foreign.read(name_of(1)) or b""})
    reader = LogReader(disk)
    assert served(reader.view) == KEPT
    assert [damage.problem for damage in reader.damages] == [
        "a segment of another log, or renamed; it is not served"
    ]


def test_a_foreign_segment_never_makes_one_of_ours_look_chopped(whole: dict[str, bytes]) -> None:
    foreign = SegmentHeader(bytes(16), 15).encode()
    for data in (foreign, foreign[:-1] + b"?"):
        disk = disk_with(whole | {name_of(15): data})
        log = small_log(disk)
        assert log.view.read(30) == record(30)
        assert disk.size(name_of(1)) is not None


def test_a_newer_format_is_refused_and_not_taken_for_damage(whole: dict[str, bytes]) -> None:
    import google_crc32c

    for name in (MANIFEST, name_of(61)):
        data = whole[name]
        fields = data[:8] + (2).to_bytes(4, "little") + data[12:]
        size = len(SegmentHeader(IDENTITY, 1).encode()) if name != MANIFEST else len(data)
        crc = google_crc32c.value(fields[: size - 4]).to_bytes(4, "little")
        disk = disk_with(whole | {name: fields[: size - 4] + crc + fields[size:]})
        with pytest.raises(UnknownFormat, match=f"{name}: expected format version 1, found 2"):
            LogReader(disk)


def test_files_without_anything_to_read_them_by_are_no_log() -> None:
    with pytest.raises(NoLog, match="a broken manifest and no segment"):
        LogReader(disk_with({MANIFEST: b"?"}))
    with pytest.raises(NoLog):
        small_log(disk_with({"notes.txt": b"somebody else's folder"}))
    with pytest.raises(NoLog):
        small_log(disk_with({name_of(7): b"nothing of ours"}))


def test_a_segment_removed_while_it_is_read_is_told(whole: dict[str, bytes]) -> None:
    disk = disk_with(whole)
    view = LogReader(disk).view
    disk.remove(name_of(61))
    lost = [hole for hole in holes(view) if isinstance(hole, Damage)]
    assert [(damage.first, damage.last, damage.problem) for damage in lost] == [(61, 120, "the file is gone")]
    assert issubclass(FileGone, Exception)


@pytest.mark.parametrize(
    ("indexes", "records", "problem"),
    [
        ([], [], "expected indexes above 0"),
        ([0], [b""], "expected indexes above 0"),
        ([1, 1], [b"", b""], "must strictly increase"),
        ([2, 1], [b"", b""], "must strictly increase"),
        (range(2, 0, -1), [b"", b""], "must strictly increase"),
        ([1, 2], [b""], "2 indexes for 1 records"),
        ([1 << 63], [b""], "up to 9223372036854775807"),
        ([1], [bytes(BATCH_BYTES_MAX + 1)], "bytes in one batch"),
    ],
)
def test_a_batch_that_cannot_be_appended_is_refused(
    indexes: Sequence[int], records: list[bytes], problem: str
) -> None:
    log = small_log(simulated())
    with pytest.raises(InvalidBatch, match=problem):
        log.append(indexes, records)
    log.commit()
    assert log.last_index == 0


def test_the_manifest_reads_back(whole: dict[str, bytes]) -> None:
    assert whole[MANIFEST] == Manifest(IDENTITY, CHOPPED, 121, LAST_BYTES, 180).encode()


def test_the_folder_of_a_real_log_holds_nothing_else(whole: dict[str, bytes], tmp_path: Path) -> None:
    assert sorted(whole) == [name_of(1), name_of(61), name_of(121), MANIFEST]
