"""`holdfast pack-spark` as a user meets it: what it writes is in `tests/pipeline/test_archive_for_executors.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.main import main
from holdfast.pipeline import packing


def test_what_is_packed_is_said_with_what_to_do_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packing, "PACKED", ("msgspec",))
    path = tmp_path / "archive.tar.gz"
    assert main(["pack-spark", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{path}: ")
    assert f"--conf spark.archives=file://{path}#holdfast_packages\n" in out
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_package_that_is_not_here_is_named_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packing, "PACKED", ("msgspec", "no-such-package"))
    assert main(["pack-spark", str(tmp_path / "archive.tar.gz")]) == 1
    assert (
        "the package no-such-package is not installed here; install it with: pip" in capsys.readouterr().err
    )
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packing, "PACKED", ("msgspec",))
    path = tmp_path / "nowhere" / "archive.tar.gz"
    assert main(["pack-spark", str(path)]) == 1
    assert capsys.readouterr().err == f"holdfast: {path} cannot be written: No such file or directory\n"
