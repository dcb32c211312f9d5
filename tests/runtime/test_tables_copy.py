"""The tables of a running broker, read by a copy: every copy is one that was, whatever SQLite does meanwhile."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import pytest

from holdfast.runtime import tables_copy
from holdfast.runtime.real_store import TABLES_FILE
from holdfast.runtime.tables_copy import TablesCopy
from holdfast.storage.files import DiskFailed
from holdfast.storage.real_tables import RealTables
from holdfast.storage.tables import Change

KEYS = [f"row {i}" for i in range(30)]


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[RealTables]:
    with RealTables(tmp_path / TABLES_FILE) as tables:
        yield tables


def write(tables: RealTables, number: int) -> None:
    """One transaction that changes every row, long enough that SQLite soon begins its log anew."""
    tables.apply([Change("t", key, number.to_bytes(8, "big") * 1_000) for key in KEYS])


def test_every_copy_is_of_one_moment(tmp_path: Path, tables: RealTables) -> None:
    write(tables, 0)
    stop = Event()
    written = 0

    def keep_writing() -> None:
        nonlocal written
        while not stop.is_set():
            written += 1
            write(tables, written)

    writer = Thread(target=keep_writing, daemon=True)
    writer.start()
    copy = TablesCopy(tmp_path)
    seen: set[bytes] = set()
    try:
        while len(seen) < 40:
            before = written
            try:
                found = copy.read()
            except DiskFailed:
                continue  # it is written all the time, indeed
            assert found is not None
            values = set(found["t"].values())
            assert len(values) == 1, "rows of two moments"
            assert len(found["t"]) == len(KEYS)
            seen.add(values.pop())
            assert written >= before
    finally:
        stop.set()
        writer.join(30)


def test_a_log_that_is_begun_anew_between_two_files_is_noticed(
    tmp_path: Path, tables: RealTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is copied before the first row's change gets into it, and what is copied then has only the last one's.

    Rows keep their sizes, and so their pages: nothing but the salt shows that such a copy never was.
    """
    copyfile = shutil.copyfile
    log = tmp_path / f"{TABLES_FILE}-wal"
    rows = [f"row {i:03}" for i in range(300)]
    first, last = rows[0], rows[-20::2]

    def begin_anew(value: bytes) -> None:
        salt = log.read_bytes()[16:24]
        while log.read_bytes()[16:24] == salt:
            tables.apply([Change("t", key, value * 300) for key in last])

    tables.apply([Change("t", key, b"old" * 300) for key in rows])
    begin_anew(b"old")

    def copied(source: Path, target: Path) -> None:
        copyfile(source, target)
        if source.name == TABLES_FILE and tables.read("t")[first].startswith(b"old"):
            tables.apply([Change("t", first, b"new" * 300)])
            begin_anew(b"new")

    monkeypatch.setattr(shutil, "copyfile", copied)
    found = TablesCopy(tmp_path).read()
    assert found is not None
    assert {found["t"][key] for key in (first, *last)} == {b"new" * 300}


def test_what_has_not_changed_is_not_copied_again(tmp_path: Path, tables: RealTables) -> None:
    write(tables, 1)
    for path in tmp_path.iterdir():
        os.utime(path, (1_000_000_000, 1_000_000_000))
    copy = TablesCopy(tmp_path)
    first = copy.read()
    assert copy.read() is first
    write(tables, 2)
    assert copy.read() is not first


def test_what_has_just_changed_may_change_again_without_getting_another_time(
    tmp_path: Path, tables: RealTables
) -> None:
    """The kernel's times have steps; it is told as of when the tables were these, and that must be true."""
    before = time.time_ns()
    write(tables, 1)
    copy = TablesCopy(tmp_path)
    copy.read()
    assert before < copy.as_of < time.time_ns()
    stamps = {path: path.stat() for path in tmp_path.iterdir()}
    write(tables, 2)  # in the log, in place of what was there, or behind it
    for path, found in stamps.items():
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    newest = copy.read()
    assert newest is not None
    assert newest["t"][KEYS[0]] == (2).to_bytes(8, "big") * 1_000


def test_no_tables_and_broken_ones_are_not_the_same(tmp_path: Path) -> None:
    assert TablesCopy(tmp_path).read() is None
    (tmp_path / TABLES_FILE).write_bytes(b"?" * 5_000)
    with pytest.raises(DiskFailed, match=r"no copy could be read: .*not a database"):
        TablesCopy(tmp_path).read()


def test_tables_that_break_later_are_as_they_were(tmp_path: Path) -> None:
    with RealTables(tmp_path / TABLES_FILE) as tables:
        write(tables, 1)
        copy = TablesCopy(tmp_path)
        first = copy.read()
    (tmp_path / TABLES_FILE).write_bytes(b"?" * 5_000)
    assert copy.read() is first


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no folder in memory")
@pytest.mark.parametrize(("times_free", "is_in_memory"), [(3, False), (5, True)])
def test_a_copy_is_made_in_memory_if_there_is_room(
    tmp_path: Path,
    tables: RealTables,
    monkeypatch: pytest.MonkeyPatch,
    times_free: int,
    is_in_memory: bool,
) -> None:
    write(tables, 1)
    size = sum((tmp_path / f"{TABLES_FILE}{end}").stat().st_size for end in ("", "-wal"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=times_free * size))
    copyfile, places = shutil.copyfile, set()

    def seen(source: Path, to: Path) -> Path:
        places.add(to.is_relative_to("/dev/shm"))
        return copyfile(source, to)

    monkeypatch.setattr(shutil, "copyfile", seen)
    assert TablesCopy(tmp_path).read() is not None
    assert places == {is_in_memory}


def test_what_the_killed_have_left_in_memory_is_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_copy, "_MEMORY", tmp_path)
    for name, age in (("holdfast-tables-old", 3_600), ("holdfast-tables-new", 1), ("another", 3_600)):
        (tmp_path / name).mkdir()
        (tmp_path / name / TABLES_FILE).touch()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    TablesCopy(tmp_path / "broker")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["another", "holdfast-tables-new"]
