"""Where standard output is full or closed, a command says so, or goes on; it never shows its insides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = {
    "lines": ["filter", "explain", "#"],
    "a plan": ["network", "plan"],
    "events": ["match", "filters", "events"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network file, filters and events."""
    folder = tmp_path_factory.mktemp("streams")
    (folder / "filters").write_text("#\n")
    (folder / "events").write_text('{"topic": "a"}\n')
    _run(folder, "", "init", check=True)
    return folder


def _run(
    folder: Path, redirection: str, *arguments: str, check: bool = False
) -> subprocess.CompletedProcess[str]:
    command = f'exec "$0" -m holdfast.cli.main "$@" {redirection}'
    return subprocess.run(
        ["sh", "-c", command, sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=30,
        check=check,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("name", COMMANDS)
def test_output_that_cannot_be_written_is_named(folder: Path, name: str) -> None:
    done = _run(folder, "> /dev/full", *COMMANDS[name])
    assert (done.returncode, done.stderr) == (1, "holdfast: input or output: No space left on device\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_output_to_nowhere_goes_there(folder: Path, name: str) -> None:
    done = _run(folder, ">&-", *COMMANDS[name])
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("redirection", [">&-", "> /dev/null"])
def test_help_to_nowhere_is_no_error(folder: Path, redirection: str) -> None:
    assert _run(folder, redirection, "--help").returncode == 0


def test_errors_to_nowhere_do_not_hide_the_status(folder: Path) -> None:
    done = _run(folder, "2>&-", "filter", "explain", "a WHERE")
    assert (done.returncode, done.stdout) == (2, "")


def test_nothing_is_published_from_nowhere(folder: Path) -> None:
    done = _run(folder, "<&-", "match", "filters", "-")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
