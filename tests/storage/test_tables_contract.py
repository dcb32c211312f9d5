"""Tables that change in transactions: the same of SQLite and of the simulated ones; and what a real file adds."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.storage.files import DiskFailed, DiskFull
from holdfast.storage.real_tables import RealTables
from holdfast.storage.tables import Change, SimulatedTables, Tables

names = st.sampled_from(["a", "b", "ä'\x00"])
changes = st.builds(Change, names, names, st.none() | st.binary(max_size=5))


@pytest.fixture(params=["real", "simulated"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tables]:
    if request.param == "simulated":
        yield SimulatedTables()
    else:
        with RealTables(tmp_path / "tables") as real:
            yield real


def test_rows_are_put_replaced_and_removed(tables: Tables) -> None:
    tables.apply([Change("t", "one", b"1"), Change("t", "two", b"2"), Change("u", "one", b"")])
    tables.apply([Change("t", "one", b"11"), Change("t", "two", None), Change("t", "never", None)])
    assert tables.read("t") == {"one": b"11"}
    assert tables.read("u") == {"one": b""}
    assert tables.read("nobody's") == {}


def test_what_is_read_is_a_copy(tables: Tables) -> None:
    tables.apply([Change("t", "one", b"1")])
    tables.read("t").clear()
    assert tables.read("t") == {"one": b"1"}


def test_nothing_to_change_changes_nothing(tables: Tables) -> None:
    tables.apply([])
    assert tables.read("t") == {}


@given(st.lists(st.lists(changes, max_size=4), max_size=6))
@settings(max_examples=30, deadline=None)
def test_both_agree(tmp_path_factory: pytest.TempPathFactory, batches: list[list[Change]]) -> None:
    path = tmp_path_factory.mktemp("tables") / "tables"
    simulated = SimulatedTables()
    for batch in batches:
        simulated.apply(batch)
        with RealTables(path) as real:  # opened anew every time: what was applied is in the file
            real.apply(batch)
            assert all(real.read(name) == simulated.read(name) for name in ("a", "b", "ä'\x00"))


def test_without_room_nothing_is_changed() -> None:
    tables = SimulatedTables()
    tables.apply([Change("t", "one", b"1")])
    tables.is_full = True
    with pytest.raises(DiskFull):
        tables.apply([Change("t", "one", None), Change("t", "two", b"2")])
    assert tables.read("t") == {"one": b"1"}
    tables.apply([Change("t", "one", None)])
    assert tables.read("t") == {}


def test_without_room_nothing_is_changed_in_a_file(tmp_path: Path) -> None:
    with RealTables(tmp_path / "tables") as tables:
        tables.apply([Change("t", "one", b"1")])
        [(pages,)] = tables._database.execute("PRAGMA page_count")
        tables._database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(DiskFull, match="tables: no space left"):
            tables.apply([Change("t", "one", b"2"), Change("t", "two", bytes(100_000))])
        assert tables.read("t") == {"one": b"1"}
        tables.apply([Change("t", "one", b"3")])
        assert tables.read("t") == {"one": b"3"}


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with RealTables(tmp_path / "tables"), pytest.raises(DiskFailed, match="another process has it"):
        RealTables(tmp_path / "tables")
    RealTables(tmp_path / "tables").close()


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"no database at all, but long enough to look like something" * 20, "file is not a database")],
)
def test_what_is_no_file_of_ours_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "tables").write_bytes(content)
    with pytest.raises(DiskFailed, match=f"tables: {said}"):
        RealTables(tmp_path / "tables")
    assert (tmp_path / "tables").read_bytes() == content


def test_a_strangers_database_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "tables")) as strange:
        strange.execute("CREATE TABLE theirs (x)")
    with pytest.raises(DiskFailed, match="not one of ours"):
        RealTables(tmp_path / "tables")


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    RealTables(tmp_path / "tables").close()
    with closing(sqlite3.connect(tmp_path / "tables")) as newer:
        newer.execute("PRAGMA user_version = 7")
    with pytest.raises(DiskFailed, match="has version 7, and this Holdfast knows up to 1"):
        RealTables(tmp_path / "tables")


def test_damage_is_found_at_start(tmp_path: Path) -> None:
    path = tmp_path / "tables"
    with RealTables(path) as tables:
        tables.apply([Change("t", f"{i:05}", bytes(200)) for i in range(500)])
    whole = bytearray(path.read_bytes())
    whole[3 * 4096 : 4 * 4096] = bytes(4096)
    path.write_bytes(whole)
    with pytest.raises(DiskFailed, match=r"damaged|malformed"):
        RealTables(path)


WRITER = """
import sys
from pathlib import Path
from holdfast.storage.real_tables import RealTables
from holdfast.storage.tables import Change
tables = RealTables(Path(sys.argv[1]))
i = 0
while True:
    i += 1
    tables.apply([Change("t", "a", b"%d" % i), Change("t", "b", b"%d" % i)])
    print(i, flush=True)
"""


def test_whoever_is_killed_keeps_what_it_applied_and_no_half_of_anything(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, tmp_path / "tables"], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        said = [int(writer.stdout.readline()) for _ in range(20)]
        os.kill(writer.pid, signal.SIGKILL)
        said += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
    with RealTables(tmp_path / "tables") as tables:
        rows = tables.read("t")
    assert rows["a"] == rows["b"]
    assert int(rows["a"]) in (said[-1], said[-1] + 1)
