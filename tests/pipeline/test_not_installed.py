"""Without the extra ``spark`` it is said what is missing, once."""

from __future__ import annotations

from pathlib import Path

import pytest

import holdfast
from holdfast.cli.main import main
from holdfast.pipeline.errors import NotInstalled


@pytest.mark.parametrize("command", [["lake", "run"], ["lake", "ls"], ["lake", "compact"], ["history"]])
def test_what_is_missing_is_named(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    monkeypatch.setattr("holdfast.pipeline.history.find_spec", lambda name: None)
    assert main(command) == 2
    problem = "this needs pyarrow and deltalake; pip install 'holdfast[spark]'"
    assert capsys.readouterr().err == f"holdfast: {problem}\n"
    with pytest.raises(NotInstalled, match="this needs pyarrow and deltalake"):
        holdfast.history("#")
