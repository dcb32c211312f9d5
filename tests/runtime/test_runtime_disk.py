"""Numbers that survive: whatever step a crash comes at, nothing handed out is handed out again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import EnvironmentsFault
from holdfast.identity import is_first_life
from holdfast.runtime.disk import CannotStore, DamagedFile, NumberStore, next_incarnation


class Crash(Exception):
    """The machine stops here."""


def crash_at(monkeypatch: pytest.MonkeyPatch, step: int) -> Callable[[], int]:
    """Let the step-th call that reaches the disk crash instead; returns how many there were."""
    calls = 0

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == step:
                raise Crash
            return real(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", counted(os.fsync))
    monkeypatch.setattr(os, "replace", counted(os.replace))
    return lambda: calls


def test_the_lives_of_a_node_are_counted_from_the_time_when_its_folder_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network remembers the last one, whatever becomes of the folder."""
    clock = 1000.7
    monkeypatch.setattr(time, "time", lambda: clock)
    folder = tmp_path / "not" / "there yet"
    first = next_incarnation(folder)
    clock = 1020.9
    assert [next_incarnation(folder) for _ in range(2)] == [first + 1, first + 2]
    shutil.rmtree(folder)
    again = next_incarnation(folder)
    assert again > first + 2
    assert [is_first_life(each) for each in (first, first + 1, again)] == [True, False, True]


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_crash_at_any_step_never_makes_an_incarnation_come_twice(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = next_incarnation(tmp_path)
    with monkeypatch.context() as patch:
        calls = crash_at(patch, step)
        with pytest.raises(Crash):
            next_incarnation(tmp_path)
        assert calls() == step
    assert next_incarnation(tmp_path) - first in (1, 2)


def test_a_number_is_returned_only_after_file_and_folder_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("incarnation").unlink(missing_ok=True)
    calls = crash_at(monkeypatch, step=0)
    next_incarnation(tmp_path)
    assert calls() == 3  # the file, its renaming, the folder


def test_every_folder_that_is_made_is_synced_into_the_one_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    folder = tmp_path / "data" / "brokers" / "b1"
    next_incarnation(folder)
    above = [tmp_path, tmp_path / "data", tmp_path / "data" / "brokers"]
    assert synced[:3] == [path.stat().st_ino for path in above]
    assert synced[-1] == folder.stat().st_ino


def test_a_disk_that_cannot_be_written_is_the_environments_fault_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.write_text("in the way")
    store = NumberStore(folder, "p")
    calls: list[Callable[[], int]] = [store.next_number, lambda: next_incarnation(folder)]
    for call in calls:
        with pytest.raises(CannotStore, match=f"{folder}: .*File exists") as failed:
            call()
        assert isinstance(failed.value, EnvironmentsFault)
        assert failed.value.folder == folder
    folder.unlink()
    assert store.next_number() == 1


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_crash_while_reserving_loses_numbers_and_repeats_none(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = NumberStore(tmp_path, "p", block=3)
    used = [store.next_number() for _ in range(3)]
    with monkeypatch.context() as patch:
        crash_at(patch, step)
        with pytest.raises(Crash):
            store.next_number()
    again = [store.next_number() for _ in range(4)]
    restarted = [NumberStore(tmp_path, "p", block=3).next_number() for _ in range(2)]
    numbers = used + again + restarted
    assert numbers == sorted(set(numbers))


def test_numbers_increase_over_lives_and_stay_above_what_they_are_told(tmp_path: Path) -> None:
    store = NumberStore(tmp_path, "p", block=10)
    assert [store.next_number(), store.next_number(), store.next_number(above=5)] == [1, 2, 6]
    assert store.next_number(above=1_000) == 1_001
    assert NumberStore(tmp_path, "p", block=10).next_number() == 1_011


def test_the_disk_is_asked_once_per_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = crash_at(monkeypatch, step=0)
    store = NumberStore(tmp_path, "p", block=100)
    assert [store.next_number() for _ in range(250)] == list(range(1, 251))
    assert calls() == 3 * 3


def test_two_stores_of_one_publisher_never_give_the_same_number(tmp_path: Path) -> None:
    stores = [NumberStore(tmp_path, "p", block=2) for _ in range(2)]
    numbers = [store.next_number() for _ in range(10) for store in stores]
    assert len(set(numbers)) == 20


@pytest.mark.parametrize(
    "names",
    [
        ("a", "b"),
        ("a/b", "a%2Fb"),
        (".", ".."),
        ("x" * 300, "x" * 299 + "y"),
        ("", "é"),
        ("x.new", "x"),
        ("x:new", "x"),
    ],
)
def test_publishers_do_not_share_numbers(tmp_path: Path, names: tuple[str, str]) -> None:
    assert [NumberStore(tmp_path, name).next_number() for name in names] == [1, 1]
    assert [NumberStore(tmp_path, name).next_number() for name in names] == [10_001, 10_001]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:-10],
    "another value": lambda data: data.replace(b'"value": 1', b'"value": 9'),
    "no number": lambda data: data.replace(b'"value": 1', b'"value": "1"'),
    "another version": lambda data: data.replace(b'"version": 1', b'"version": 2'),
    "another kind": lambda data: data.replace(b"incarnation", b"incantation"),
    "no object": lambda data: b"[1]",
    "no text": lambda data: bytes(range(256)) * 100,
    "nested": lambda data: b"[" * 4000,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, damage: str) -> None:
    next_incarnation(tmp_path)
    path = tmp_path / "incarnation"
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.raises(DamagedFile, match=str(path)):
        next_incarnation(tmp_path)


def test_what_is_on_disk_says_what_it_is(tmp_path: Path) -> None:
    last = next_incarnation(tmp_path)
    record = json.loads((tmp_path / "incarnation").read_text())
    assert (record["version"], record["kind"], record["value"]) == (1, "incarnation", last)


def test_processes_that_start_at_once_get_different_incarnations(tmp_path: Path) -> None:
    code = "import sys, pathlib; from holdfast.runtime.disk import next_incarnation as n\n"
    code += "for _ in range(20): print(n(pathlib.Path(sys.argv[1])))"
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    numbers = [int(line) for process in started for line in process.communicate(timeout=30)[0].split()]
    assert len(set(numbers)) == 40
