"""What a log relies on, asked of the real files and of the simulated disk alike."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from holdfast.simulator.disk import SimulatedDisk
from holdfast.storage.files import DiskFailed, DiskFull, Files, Subfolder
from holdfast.storage.real_files import RealFiles


@pytest.fixture(params=["real", "simulated", "subfolder"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    if request.param == "real":
        with RealFiles(tmp_path / "a" / "log") as real:
            yield real
    elif request.param == "simulated":
        yield SimulatedDisk(Random(1))
    else:
        disk = SimulatedDisk(Random(1))
        disk.append("one", b"a file of somebody else")
        yield Subfolder(disk, "log")


def test_what_is_appended_is_seen_at_once(files: Files) -> None:
    files.append("one", b"ab")
    files.append("one", b"cd")
    assert files.read("one") == b"abcd"
    files.sync("one")
    assert files.read("one") == b"abcd"


def test_many_pieces_are_written_as_one(files: Files) -> None:
    pieces = [b"%d," % i for i in range(3000)]
    files.append("one", *pieces)
    files.append_stable("one", *pieces)
    assert files.read("one") == 2 * b"".join(pieces)


def test_what_is_appended_to_stay_is_seen_at_once_behind_what_was_there(files: Files) -> None:
    files.append_stable("one", b"ab")
    files.append_stable("one", b"cd", b"ef")
    files.append("one", b"gh")
    files.append_stable("one", b"ij")
    assert files.read("one") == b"abcdefghij"


def test_part_of_a_file(files: Files) -> None:
    files.append("one", b"abcdef")
    assert files.read("one", 2, 3) == b"cde"
    assert files.read("one", 4, 9) == b"ef"
    assert files.read("one", 9, 1) == b""
    assert files.read("one", 3) == b"def"


def test_a_file_that_is_not_there(files: Files) -> None:
    assert files.read("none") is None
    assert files.size("none") is None
    files.remove("none")
    assert files.names() == []


def test_a_file_is_cut_off_and_goes_on_there(files: Files) -> None:
    files.append("one", b"abcdef")
    files.truncate("one", 2)
    assert files.read("one") == b"ab"
    files.append("one", b"xy")
    files.sync("one")
    assert files.read("one") == b"abxy"
    assert files.size("one") == 4


def test_rewriting_changes_nothing_that_is_seen(files: Files) -> None:
    files.append("one", b"abcdef")
    files.sync("one")
    files.rewrite("one", 3)
    files.sync("one")
    files.append("one", b"g")
    assert files.read("one") == b"abcdefg"


def test_replacing_makes_a_file_or_gives_it_another_content(files: Files) -> None:
    files.replace("one", b"new")
    assert files.read("one") == b"new"
    files.append("one", b"er")
    files.replace("one", b"old")
    files.append("one", b"er")
    assert files.read("one") == b"older"
    assert files.names() == ["one"]


def test_names_are_sorted_and_removed_files_gone(files: Files) -> None:
    for name in ("b", "c", "a"):
        files.append(name, b"")
    assert files.names() == ["a", "b", "c"]
    files.remove("b")
    assert files.names() == ["a", "c"]
    files.append("b", b"again")
    assert files.read("b") == b"again"


def test_there_is_room(files: Files) -> None:
    assert files.room() > 0


def test_however_many_files_are_written_few_stay_open(tmp_path: Path) -> None:
    with RealFiles(tmp_path) as files:
        before = len(os.listdir("/proc/self/fd"))
        for i in range(50):
            files.append(f"{i}", b"x")
            files.sync(f"{i}")
        assert len(os.listdir("/proc/self/fd")) <= before + 4
        files.append("0", b"y")
        assert files.read("0") == b"xy"


def test_two_writers_do_not_share_a_folder(tmp_path: Path) -> None:
    with RealFiles(tmp_path) as files:
        with pytest.raises(DiskFailed, match="another process writes here"):
            RealFiles(tmp_path)
        files.append("one", b"x")
        assert RealFiles(tmp_path, write=False).read("one") == b"x"
    with RealFiles(tmp_path):
        pass


def test_what_a_crash_left_of_a_replacement_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "one:new").write_bytes(b"half")
    with RealFiles(tmp_path) as files:
        assert files.names() == []
        files.replace("one", b"whole")
        assert files.read("one") == b"whole"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DiskFailed, match="log: Not a directory"):
        RealFiles(tmp_path / "file" / "log")


def test_what_is_said_to_be_stable_was_handed_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a file is synced, and its folder after it is made, renamed or removed; a power cut asks for both."""
    calls: list[str] = []
    links = Path("/proc/self/fd")

    def noting(call: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def sync(descriptor: int, *more: Any) -> Any:
            calls.append(f"{call} {os.readlink(links / str(descriptor)).removeprefix(str(tmp_path))}")
            return original(descriptor, *more)

        return sync

    def told() -> list[str]:
        found, calls[:] = calls[:], []
        return found

    def noting_write(descriptor: int, pieces: list[bytes], offset: int, flags: int = 0) -> int:
        write = stable if flags == os.RWF_DSYNC else plain
        written: int = write(descriptor, pieces, offset, flags)
        return written

    plain, stable = os.pwritev, noting("pwritev", os.pwritev)
    with RealFiles(tmp_path / "log") as files:
        monkeypatch.setattr(os, "pwritev", noting_write)
        monkeypatch.setattr(os, "fdatasync", noting("fdatasync", os.fdatasync))
        monkeypatch.setattr(os, "fsync", noting("fsync", os.fsync))
        files.append("one", b"x")
        assert told() == []
        files.sync("one")
        assert told() == ["fdatasync /log/one", "fsync /log"]
        files.append("one", b"y")
        files.sync("one")
        assert told() == ["fdatasync /log/one"]
        files.append_stable("one", b"z")
        assert told() == ["pwritev /log/one"]
        files.append_stable("three", b"z")
        assert told() == ["fdatasync /log/three", "fsync /log"], "its folder is to know it"
        files.prepare("one", 1_000)
        assert told() == ["fdatasync /log/one"]
        files.append_stable("one", b"z")
        assert told() == ["pwritev /log/one"]
        files.replace("two", b"z")
        assert told() == ["fdatasync /log/two:new", "fsync /log", "fsync /log"]
        files.remove("two")
        assert told() == ["fsync /log"]
    with RealFiles(tmp_path / "a" / "b"):
        assert told() == ["fsync ", "fsync /a"]


@pytest.mark.parametrize("problem", [errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL])
def test_where_no_write_is_stable_by_itself_it_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: int
) -> None:
    asked: list[int] = []
    write = os.pwritev

    def refuse(descriptor: int, pieces: list[bytes], offset: int, flags: int = 0) -> int:
        if not flags:
            return write(descriptor, pieces, offset)
        asked.append(problem)
        raise OSError(problem, os.strerror(problem))

    with RealFiles(tmp_path) as files:
        files.append_stable("one", b"a")
        monkeypatch.setattr(os, "pwritev", refuse)
        for more in (b"b", b"c"):
            files.append_stable("one", more)
        assert files.read("one") == b"abc"
        assert asked == [problem], "once is enough"


def test_what_a_stable_write_leaves_is_written_and_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    write = os.pwritev

    def in_part(descriptor: int, pieces: list[bytes], offset: int, flags: int = 0) -> int:
        return write(descriptor, [b"bcd"] if flags else pieces, offset)

    with RealFiles(tmp_path) as files:
        files.append_stable("one", b"a")
        monkeypatch.setattr(os, "pwritev", in_part)
        monkeypatch.setattr(os, "fdatasync", synced.append)
        files.append_stable("one", b"bc", b"de", b"f")
        assert files.read("one") == b"abcdef"
        assert len(synced) == 1


@pytest.mark.parametrize(
    ("problem", "is_written", "kind"),
    [
        (errno.ENOSPC, False, DiskFull),
        (errno.EDQUOT, False, DiskFull),
        (errno.ENOSPC, True, DiskFailed),
        (errno.EINVAL, True, DiskFailed),
        (errno.EIO, False, DiskFailed),
        (errno.EIO, True, DiskFailed),
    ],
)
def test_a_stable_write_that_fails_has_found_no_room_only_if_nothing_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: int, is_written: bool, kind: type[Exception]
) -> None:
    """Else it was the sync, and nobody knows what is on disk."""

    def fail(descriptor: int, pieces: list[bytes], offset: int, *_: object) -> int:
        if is_written:
            os.pwrite(descriptor, b"".join(pieces), offset)
        raise OSError(problem, os.strerror(problem))

    with RealFiles(tmp_path) as files:
        files.append_stable("one", b"a")
        monkeypatch.setattr(os, "pwritev", fail)
        with pytest.raises(kind):
            files.append_stable("one", b"b")


def test_where_room_is_prepared_zeros_are_replaced(files: Files) -> None:
    files.append_stable("one", b"ab")
    files.prepare("one", 10)
    assert files.read("one") == b"ab" + bytes(10)
    assert files.size("one") == 12
    files.append_stable("one", b"cd")
    files.append("one", b"ef")
    assert files.read("one") == b"abcdef" + bytes(6)
    files.prepare("one", 10)
    assert files.size("one") == 12, "half of it is there"
    files.append_stable("one", b"gh", b"ij", b"klmno")
    assert files.read("one") == b"abcdefghijklmno"


def test_room_is_prepared_anew_when_little_is_left(files: Files) -> None:
    files.append_stable("one", b"ab")
    files.prepare("one", 10)
    files.append("one", b"cdefgh")
    files.prepare("one", 10)
    assert files.read("one") == b"abcdefgh" + bytes(10)


def test_who_cuts_a_file_off_has_it_end_there(files: Files) -> None:
    files.append_stable("one", b"abcd")
    files.prepare("one", 10)
    files.truncate("one", 3)
    files.append_stable("one", b"x")
    assert files.read("one") == b"abcx"


def test_a_file_that_is_let_go_ends_where_it_was_written(tmp_path: Path) -> None:
    """Nobody could tell otherwise where what is appended next belongs."""
    with RealFiles(tmp_path) as files:
        files.append_stable("one", b"ab")
        files.prepare("one", 1_000)
        for i in range(10):
            files.append(f"{i}", b"x")
        files.append("one", b"cd")
        assert files.read("one") == b"abcd"
        files.prepare("one", 1_000)
    assert (tmp_path / "one").read_bytes() == b"abcd"


def test_without_room_nothing_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk(Random(1))
    disk.append("one", b"ab")
    disk.capacity = 8
    disk.prepare("one", 10)
    assert disk.size("one") == 2

    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with RealFiles(tmp_path) as files:
        files.append_stable("one", b"ab")
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", fail)
            files.prepare("one", 10)
        assert files.size("one") == 2
        files.prepare("one", files.room() // 10)
        assert files.size("one") == 2, "what others need is left to them"
        files.append_stable("one", b"cd")
        assert files.read("one") == b"abcd"


def test_in_room_that_was_prepared_it_is_the_sync_that_lacks_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with RealFiles(tmp_path) as files:
        files.append_stable("one", b"a")
        files.prepare("one", 100)
        monkeypatch.setattr(os, "pwritev", fail)
        with pytest.raises(DiskFailed):
            files.append_stable("one", b"b")


def test_a_file_has_another_state_when_something_was_done_to_it(files: Files) -> None:
    """Or none, until that can be known: times have steps."""

    def state() -> object:
        deadline = time.monotonic() + 10
        while (found := files.state("one")) is None:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        return found

    changes: list[Callable[[], None]] = [
        lambda: files.append("one", b"ab"),
        lambda: files.prepare("one", 10),
        lambda: files.append_stable("one", b"cd"),
        lambda: files.append("one", b"ef"),
        lambda: files.truncate("one", 3),
        lambda: files.replace("one", b"xyz"),
    ]
    files.append("one", b"")
    before = state()
    for change in changes:
        change()
        assert files.state("one") != before
        after = state()
        assert after != before
        assert state() == after
        before = after
