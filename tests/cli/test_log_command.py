"""`holdfast log` on good, damaged, torn, empty, missing and foreign folders."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from holdfast.cli.main import main
from holdfast.storage.log import LogSettings, SegmentLog
from holdfast.storage.real_files import RealFiles
from holdfast.storage.real_tables import RealTables
from holdfast.storage.segment_format import name_of
from holdfast.storage.tables import Change
from holdfast.streams.ends import LEASES, Leased, match_end


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with RealFiles(tmp_path / "log") as files:
        log = SegmentLog(files, bytes(range(16)), LogSettings(300))
        for i in range(1, 13):
            log.append([10 * i], [b"record %d \x00" % i * 3], time=1_763_210_000_000_000_000 + i)
            log.commit()
        log.chop(25)
        log.close()
    return tmp_path / "log"


#: What is said of a log whose broker's tables are not there.
ALONE = "unknown   whether the end of a log is whole is not known: there is no tables.sqlite beside it\n"


def flip(path: Path, text: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(text)] ^= 4
    path.write_bytes(bytes(data))


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["log", *map(str, arguments)])
    return status, *capsys.readouterr()


def test_a_good_log_verifies(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert run(capsys, "verify", folder) == (
        0,
        f"{ALONE}{folder}: four segments, 12 records; nothing is damaged\n",
        "",
    )
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before, "nothing is changed"


def test_damage_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flip(folder / name_of(31), b"record 5")
    status, out, _ = run(capsys, "verify", folder)
    assert status == 1
    assert "bytes: a record is broken; record 50 is lost\n" in out
    assert out.startswith(f"{ALONE}damaged   {name_of(31)}, offset ")
    assert out.endswith("; one place is damaged\n")
    status, out, _ = run(capsys, "verify", folder, "--output", "json")
    assert status == 1
    (damage,) = json.loads(out)["damages"]
    assert (damage["file"], damage["first_lost"], damage["last_lost"]) == (name_of(31), 50, 50)


def test_a_truncated_segment_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / name_of(31)
    path.write_bytes(path.read_bytes()[:100])
    status, out, _ = run(capsys, "verify", folder)
    assert status == 1
    assert (
        f"damaged   {name_of(31)}, offset 40, 60 bytes: no whole block where one should begin; records from 31"
        in out
    )


def test_dump_shows_every_record_and_every_hole_in_its_place(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(folder / name_of(31), b"record 5")
    status, out, _ = run(capsys, "dump", folder, "--through", 70)
    assert status == 1
    lines = out.splitlines()
    assert lines[0] == "chopped   records up to 25 were released"
    assert (
        lines[1] == "                  30 2025-11-15T12:33:20Z       30 bytes  record 3 ·record 3 ·record 3 ·"
    )
    assert lines[2].split()[0] == "40"
    assert lines[3].startswith("damaged   ")
    assert [line.split()[0] for line in lines[4:]] == ["60", "70"]


def test_dump_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "dump", folder, "--output", "json", "--after", 100)
    assert status == 0
    found = [json.loads(line) for line in out.splitlines()]
    assert [line["index"] for line in found] == [110, 120]
    assert base64.b64decode(found[0]["base64"]) == b"record 11 \x00" * 3
    assert found[0]["time"] == 1_763_210_000_000_000_011
    _, out, _ = run(capsys, "dump", folder, "--output", "json")
    assert json.loads(out.splitlines()[0]) == {"chopped": 25}


def test_stat_says_what_there_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "stat", folder)
    assert status == 0
    assert "identity    000102030405060708090a0b0c0d0e0f\n" in out
    assert "first index 30\nlast index  120\n" in out
    assert f"{name_of(1)}" in out
    _, out, _ = run(capsys, "stat", folder, "--output", "json")
    said = json.loads(out)
    assert said["records"] == 12
    assert said["bytes"] == sum(path.stat().st_size for path in folder.glob("*.segment"))
    assert said["segments"][0]["sealed"] is True
    assert said["segments"][-1]["sealed"] is False
    assert said["segments"][0]["first_index"] == 10


def test_a_torn_tail_is_no_damage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last = sorted(folder.glob("*.segment"))[-1]
    with last.open("ab") as file:
        file.write(b"HFbk and no more")
    status, out, _ = run(capsys, "verify", folder)
    assert status == 0
    assert f"torn      {last.name}, offset " in out
    assert "a torn tail of 16 bytes; it names no record" in out


def test_an_empty_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RealFiles(tmp_path) as files:
        SegmentLog(files, bytes(16))
    assert run(capsys, "verify", tmp_path)[:2] == (
        0,
        f"{ALONE}{tmp_path}: no segments, no records; nothing is damaged\n",
    )
    assert run(capsys, "dump", tmp_path) == (0, "", "")
    assert "first index none\n" in run(capsys, "stat", tmp_path)[1]


@pytest.mark.parametrize("command", ["verify", "dump", "stat"])
def test_folders_that_hold_no_log(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = tmp_path / "nowhere"
    assert run(capsys, command, nowhere) == (
        2,
        "",
        f"holdfast: {nowhere}: no such folder; expected one with the segments of a log\n",
    )
    assert run(capsys, command, tmp_path) == (
        2,
        "",
        f"holdfast: {tmp_path}: no manifest and no segment of a log\n",
    )
    (tmp_path / "notes.txt").write_text("somebody else's")
    assert run(capsys, command, tmp_path)[0] == 2
    (tmp_path / "manifest").write_text("somebody else's")
    assert run(capsys, command, tmp_path) == (
        2,
        "",
        f"holdfast: {tmp_path}: a broken manifest and no segment\n",
    )


def test_all_logs_of_a_broker_are_verified_at_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One finds ``data/root`` in the network file, not the names of the logs."""
    streams = tmp_path / "data" / "root" / "streams"
    for name in ("events", "matches"):
        shutil.copytree(folder, streams / name)
    flip(streams / "events" / name_of(31), b"record 5")
    for place in (streams, streams.parent, streams.parent.parent):
        status, out, _ = run(capsys, "verify", place)
        assert status == 1
        assert [line.split()[0] for line in out.splitlines()] == [
            "unknown",
            "damaged",
            f"{streams / 'events'}:",
            f"{streams / 'matches'}:",
        ]
        for command in ("dump", "stat"):
            status, _, err = run(capsys, command, place)
            assert status == 2
            assert err == (
                f"holdfast: {place}: no log, but a folder with logs below; expected one of\n"
                f"    {streams / 'events'}\n    {streams / 'matches'}\n"
            )


@pytest.mark.parametrize(("end", "status"), [(120, 0), (121, 1)])
def test_an_end_that_only_the_tables_know_of_is_named(
    end: int, status: int, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log itself is as whole as can be: 120 is its last record."""
    streams = tmp_path / "root" / "streams"
    for name in ("events-orders@root%2F0", "matches-orders@root%2F0"):
        shutil.copytree(folder, streams / name)
    with RealTables(streams / "tables.sqlite") as tables:
        leased = msgspec.msgpack.encode(Leased(1_000, 1))
        tables.apply([Change(LEASES, "orders@root/0", leased), match_end("orders@root/0", end)])
        before = {path: path.read_bytes() for path in streams.iterdir() if path.is_file()}
        said = run(capsys, "verify", streams.parent)  # beside whoever has the tables open
        told = [
            json.loads(run(capsys, "verify", each, "--output", "json")[1])
            for each in sorted(streams.glob("*-o*"))
        ]
        assert {path: path.read_bytes() for path in streams.iterdir() if path.is_file()} == before
    assert said[0] == status
    assert (
        [each["end_lost"] for each in told] == [None, None]
        if not status
        else [None, {"after": 120, "upto": 121}]
    )
    problem = "the log ends at 120, and the broker's tables know that it went up to 121"
    assert (f"damaged   the end is lost: {problem}\n" in said[1]) == bool(status)


def test_a_log_that_only_the_tables_know_of_is_named_and_a_broker_without_any_is_well(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    streams = tmp_path / "data" / "root" / "streams"
    events, matches = (streams / f"{kind}-orders@root%2F0" for kind in ("events", "matches"))
    shutil.copytree(folder, matches)
    with RealTables(streams / "tables.sqlite") as tables:
        leased = msgspec.msgpack.encode(Leased(1_000, 900))
        tables.apply([Change(LEASES, "orders@root/0", leased)])
    for place in (streams, streams.parent, streams.parent.parent):
        status, out, _ = run(capsys, "verify", place)
        assert status == 1
        assert out.endswith(
            f"; nothing is damaged\n"
            f"damaged   the log is lost: the broker's tables know that it went up to 900\n"
            f"{events}: nothing is left\n"
        )
        _, out, _ = run(capsys, "verify", place, "--output", "json")
        [_, lost] = map(json.loads, out.splitlines())
        assert (lost["folder"], lost["end_lost"]) == (str(events), {"after": 0, "upto": 900})
    shutil.copytree(folder, events)
    assert run(capsys, "verify", tmp_path / "data")[0] == 1, "it ends below that"
    empty = tmp_path / "data" / "left" / "streams"
    empty.mkdir(parents=True)
    with RealTables(empty / "tables.sqlite"):
        assert run(capsys, "verify", empty.parent) == (0, f"{empty}: no log yet\n", "")


@pytest.mark.parametrize("size", [0, 20])
def test_dump_shows_a_log_whose_only_segment_was_cut_off_as_verify_finds_it(
    size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "events-orders@root%2F0"
    with RealFiles(log) as files:
        written = SegmentLog(files, bytes(range(16)))
        written.append([10, 20], [b"one", b"two"], time=1)
        written.commit()
    with RealTables(tmp_path / "tables.sqlite") as tables:
        leased = msgspec.msgpack.encode(Leased(1_000, 20))
        tables.apply([Change(LEASES, "orders@root/0", leased)])
    (segment,) = log.glob("*.segment")
    assert run(capsys, "dump", log)[0] == 0
    os.truncate(segment, size)
    header = f"{segment.name}, offset 0, 40 bytes: the segment's header is broken; no record is lost"
    status, out, _ = run(capsys, "dump", log)
    assert status == run(capsys, "verify", log)[0] == 1
    assert out == (
        f"damaged   {header}\n"
        "damaged   the end is lost: the log ends at 0, and the broker's tables know that it went up to 20\n"
    )
    status, out, _ = run(capsys, "dump", log, "--output", "json")
    assert status == 1
    [damaged, lost] = map(json.loads, out.splitlines())
    assert damaged["damage"]["file"] == segment.name
    assert lost == {"end_lost": {"after": 0, "upto": 20}}
    garbage(tmp_path / "tables.sqlite")
    status, out, _ = run(capsys, "dump", log, "--output", "json")
    assert status == 1
    assert "file is not a database" in json.loads(out.splitlines()[-1])["end_unknown"]


def test_dump_says_of_the_end_only_if_it_goes_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    garbage(folder.parent / "tables.sqlite")
    assert run(capsys, "dump", folder, "--through", 110)[0] == 0
    status, out, _ = run(capsys, "dump", folder, "--after", 110)
    assert status == 1
    assert out.splitlines()[-1].startswith("damaged   whether the end of a log is whole is not known: ")


def garbage(tables: Path) -> None:
    tables.write_bytes(b"no database" * 1_000)


def empty(tables: Path) -> None:
    tables.write_bytes(b"")


def folder_instead(tables: Path) -> None:
    tables.unlink()
    tables.mkdir()


def renamed(tables: Path) -> None:
    tables.rename(tables.with_name("tables.sqlite-old"))


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (garbage, "file is not a database"),
        (empty, "tables.sqlite: there is nothing in it"),
        (folder_instead, "Is a directory"),
        (renamed, "tables.sqlite is missing, and tables.sqlite-old is there"),
    ],
)
def test_tables_that_cannot_say_where_a_log_ended_are_named_as_damage(
    spoil: Callable[[Path], None],
    problem: str,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams = tmp_path / "root" / "streams"
    log = streams / "events-orders@root%2F0"
    shutil.copytree(folder, log)
    with RealTables(streams / "tables.sqlite") as tables:
        leased = msgspec.msgpack.encode(Leased(1_000, 120))
        tables.apply([Change(LEASES, "orders@root/0", leased)])
    assert run(capsys, "verify", log) == (0, f"{log}: four segments, 12 records; nothing is damaged\n", "")
    (streams / "tables.sqlite-reserve").unlink()
    spoil(streams / "tables.sqlite")
    for place in (log, streams, streams.parent):
        status, out, _ = run(capsys, "verify", place)
        assert status == 1
        said, verdict = out.splitlines()
        assert said.startswith("damaged   whether the end of a log is whole is not known: ")
        assert problem in said
        assert verdict == f"{log}: four segments, 12 records; nothing else is damaged"
        status, out, _ = run(capsys, "verify", place, "--output", "json")
        assert status == 1
        assert problem in json.loads(out)["end_unknown"]
    monkeypatch.chdir(log)
    assert problem in run(capsys, "verify", ".")[1]


def test_tables_that_cannot_be_read_are_named_where_all_logs_are_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    garbage(tmp_path / "tables.sqlite")
    status, out, _ = run(capsys, "verify", tmp_path)
    assert (status, out.splitlines()[1:]) == (1, [f"{tmp_path}: no log yet"])
    status, out, _ = run(capsys, "verify", tmp_path, "--output", "json")
    assert status == 1
    assert "file is not a database" in json.loads(out)["end_unknown"]


def test_of_a_log_that_was_copied_alone_it_is_not_known_whether_its_end_is_whole(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "verify", folder)[:2] == (
        0,
        f"{ALONE}{folder}: four segments, 12 records; nothing is damaged\n",
    )
    said = json.loads(run(capsys, "verify", folder, "--output", "json")[1])
    assert said["end_unknown"] == "there is no tables.sqlite beside it"


def test_a_range_that_ends_before_it_begins_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "holdfast: --after 10 is above --through 5: nothing is between\n"
    assert run(capsys, "dump", folder, "--after", 10, "--through", 5) == (2, "", said)


@pytest.mark.parametrize("command", ["verify", "dump", "stat"])
def test_a_file_is_said_to_be_one(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = folder / "manifest"
    said = f"holdfast: {manifest}: a file, not a folder; expected one with the segments of a log\n"
    assert run(capsys, command, manifest) == (2, "", said)


@contextmanager
def nobody() -> Iterator[None]:
    """Without the rights of root, if we have them."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("command", ["verify", "dump", "stat"])
@pytest.mark.parametrize("closed", ["", "manifest"])
def test_a_folder_that_may_not_be_read_is_as_a_file_that_may_not(
    closed: str, command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with TemporaryDirectory() as open_to_all:
        place = Path(open_to_all)
        place.chmod(0o755)
        log = shutil.copytree(folder, place / "log")
        assert run(capsys, command, log)[0] == 0
        (log / closed).chmod(0)
        with nobody():
            status, out, err = run(capsys, command, log)
        (log / closed).chmod(0o700)
    assert (status, out) == (2, "")
    assert err.startswith(f"holdfast: {log}")
    assert err.endswith(": Permission denied\n")


def test_a_broker_whose_folder_may_not_be_read_is_not_passed_over(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with TemporaryDirectory() as open_to_all:
        data = Path(open_to_all)
        data.chmod(0o755)
        for name in ("a", "b"):
            shutil.copytree(folder, data / name / "streams" / "events")
        assert run(capsys, "verify", data)[0] == 0
        (data / "b").chmod(0)
        with nobody():
            status, _, err = run(capsys, "verify", data)
        (data / "b").chmod(0o700)
    assert status == 2
    assert err == f"holdfast: {data / 'b' / 'manifest'}: Permission denied\n"


@pytest.mark.parametrize("text", ["x", "-5", "1.5", ""])
def test_an_index_is_a_whole_number(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(capsys, "dump", folder, f"--after={text}")
    assert f"argument --after: {text!r}: expected a whole number from 0\n" in capsys.readouterr().err
