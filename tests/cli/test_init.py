"""`holdfast init`: the file it writes can be used as it is, and tells the truth about the defaults."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from holdfast.cli.init import DEFAULT_FILE
from holdfast.cli.main import main
from holdfast.runtime.network_file import Network, read_network
from holdfast.runtime.network_keys import REQUIRED, STREAM, TABLES

SHOWN_DEFAULT = re.compile(r"^#(?=[a-z_]+ = )", re.MULTILINE)


def network_of(path: Path, text: str) -> Network:
    path.write_text(text)
    return read_network(path)


def test_the_file_is_written_and_makes_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert "holdfast up\n" in capsys.readouterr().out
    network = read_network(tmp_path / "network.toml")
    assert [(broker.name, broker.parent) for broker in network.brokers] == [
        ("root", None),
        ("left", "root"),
        ("right", "root"),
    ]
    assert [stream.topics for stream in network.streams] == [("#",)]


def test_a_file_that_is_there_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("mine")
    assert main(["init", str(path)]) == 2
    assert f"{path}: it is there already, and is left alone" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_another_name_is_carried_into_the_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.toml"
    assert main(["init", str(path)]) == 0
    assert f"holdfast up --network {path}" in capsys.readouterr().out


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "no" / "network.toml"
    assert main(["init", str(path)]) == 2
    assert capsys.readouterr().err == f"holdfast: {path}: No such file or directory\n"


def test_taking_away_every_comment_sign_before_a_default_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    assert network_of(path, SHOWN_DEFAULT.sub("", DEFAULT_FILE)) == network_of(path, DEFAULT_FILE)


def test_every_default_of_the_code_is_shown() -> None:
    shown = tomllib.loads(SHOWN_DEFAULT.sub("", DEFAULT_FILE))
    for table, keys in TABLES.items():
        for name, key in keys.items():
            found = (shown[table] if table else shown)[name]
            assert key.default in (REQUIRED, found), name
    (stream,) = shown["stream"]
    for name, key in STREAM.items():
        assert key.default in (REQUIRED, stream.get(name)), name
