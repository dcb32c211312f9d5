"""`holdfast match` as contracts.md §3 has it."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.cli.main import main

FILTERS = "-- a comment\n\norders/# WHERE price > 100\nnews/# WHERE XPATH '//b'\n--\n#\n"
EVENTS = [
    {"topic": "orders/eu", "attributes": {"price": 101.5}},
    {"topic": "orders/eu", "attributes": {"price": None}},
    {"topic": "/news/x", "payload": "<a><b/></a>", "content_type": "text/xml"},
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    filters, events = tmp_path / "filters", tmp_path / "events"
    filters.write_text(FILTERS)
    events.write_text("".join(json.dumps(event) + "\n\n" for event in EVENTS))
    return filters, events


def test_matches_are_physical_line_numbers(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["match", *map(str, files)]) == 0
    out, err = capsys.readouterr()
    assert out == (
        '{"event": 0, "matches": [3, 6]}\n{"event": 1, "matches": [6]}\n{"event": 2, "matches": [4, 6]}\n'
    )
    assert err == "", "no progress where standard error is no terminal"


def test_all_bad_filters_are_reported_before_any_output(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    filters, events = files
    filters.write_text("a WHERE x =\n-- fine\nb\nc WHERE XPATH '/d['\n")
    assert main(["match", str(filters), str(events)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert (
        f"{filters}, line 1, column 12: unexpected end of the filter; expected an attribute or a literal"
        in err
    )
    assert f"{filters}, line 4, column 19: in XPATH: unexpected end" in err
    assert err.startswith("holdfast: 2 bad filters\n")


def test_a_bad_event_is_reported_where_it_stands(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    filters, events = files
    events.write_text('{"topic": "orders/eu"}\n\n{"topic": "a/+"}\n{"topic": "b"}\n')
    assert main(["match", str(filters), str(events)]) == 2
    out, err = capsys.readouterr()
    assert out == '{"event": 0, "matches": [6]}\n', "what stood before it was matched, nothing after it"
    assert err.startswith(f"holdfast: {events}, line 3, column 2: topic: ")


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ('{"topic": "a",}', "line 1, column 15: json: is not JSON: "),
        ('{"topic": "a", "attributes": {"b": [1]}}', "line 1, column 31: attributes.b: is an array; "),
        (
            '{"topic": "a", "atributes": {}}',
            "line 1, column 16: atributes: is not a member of an event; did you mean",
        ),
        ("{}", "line 1, column 1: topic: "),
        ("[1]", "line 1, column 1: json: must be an object"),
        ('{"topic": ' + "[" * 100_000, "line 1, column 1: json: "),
        ('{"topic": "a", "attributes": {"n": ' + "9" * 5_000 + "}}", "line 1, column 31: attributes.n: "),
        ('  {"attributes": {"topic": 1}}', "line 1, column 3: topic: is missing"),
        ('{"topic": "a", "attributes": {"b": "a", "a": [1]}}', "line 1, column 41: attributes.a: "),
        ('{"topic": "payload", "payload": 5}', "line 1, column 22: payload: "),
        ('{"topic": "a", "topic": "b"}', "line 1, column 16: topic: appears twice"),
    ],
)
def test_a_bad_event_has_a_column(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], line: str, place: str
) -> None:
    files[1].write_text(line)
    assert main(["match", *map(str, files)]) == 2
    assert place in capsys.readouterr().err


def test_a_line_that_is_not_utf8_hides_no_other_bad_filter(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files[0].write_bytes(b"# WHERE\n#\n# WHERE \xff = 1\n# WHERE a =\n")
    assert main(["match", *map(str, files)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("holdfast: 3 bad filters\n")
    assert "line 1, column 8: " in err
    assert "line 3, column 9: byte 0xFF is not UTF-8; expected UTF-8 text" in err
    assert "line 4, column 12: " in err


@pytest.mark.parametrize("which", [0, 1])
def test_bytes_that_are_not_utf8_are_named(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], which: int
) -> None:
    files[which].write_bytes(
        b"#\n# WHERE x = '\xff'\n" if which == 0 else b'{"topic": "a"}\n{"topic": "\xff"}\n'
    )
    assert main(["match", *map(str, files)]) == 2
    column = 14 if which == 0 else 12
    assert f"line 2, column {column}: byte 0xFF is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("which", [0, 1])
def test_a_missing_file_is_named(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], which: int
) -> None:
    files[which].unlink()
    assert main(["match", *map(str, files)]) == 2
    assert capsys.readouterr().err == f"holdfast: {files[which]}: No such file or directory\n"


def test_a_byte_order_mark_and_carriage_returns_do_no_harm(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    filters, events = files
    filters.write_bytes(b"\xef\xbb\xbforders/+\r\n\r\n#\r\n")
    events.write_bytes(b'\xef\xbb\xbf{"topic": "orders/x"}\r\n')
    assert main(["match", str(filters), str(events)]) == 0
    assert capsys.readouterr().out == '{"event": 0, "matches": [1, 3]}\n'


def test_the_last_line_needs_no_newline(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    filters, events = files
    filters.write_text("#")
    events.write_text('{"topic": "a"}')
    assert main(["match", str(filters), str(events)]) == 0
    assert capsys.readouterr().out == '{"event": 0, "matches": [1]}\n'


def test_no_filters_and_no_events_are_no_error(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for path in files:
        path.write_text("\n\n")
    assert main(["match", *map(str, files)]) == 0
    assert capsys.readouterr().out == ""


def test_standard_input_is_read_for_a_dash(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"topic": "orders/x"}\n{"topic": 1}\n'))
    )
    assert main(["match", str(files[0]), "-"]) == 2
    out, err = capsys.readouterr()
    assert out == '{"event": 0, "matches": [6]}\n'
    assert err.startswith("holdfast: standard input, line 2, column 2: topic: ")


def test_an_event_is_answered_before_the_next_one_arrives(files: tuple[Path, Path]) -> None:
    command = [sys.executable, "-m", "holdfast.cli.main", "match", str(files[0]), "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for i in range(3):
            process.stdin.write(b'{"topic": "a"}\n')
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == {"event": i, "matches": [6]}
        process.stdin.close()
        assert process.wait() == 0


def test_a_reader_that_leaves_early_causes_no_complaint(files: tuple[Path, Path]) -> None:
    files[1].write_text('{"topic": "a"}\n' * 50_000)
    command = [sys.executable, "-m", "holdfast.cli.main", "match", *map(str, files)]
    reading, writing = os.pipe()
    process = subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    os.read(reading, 10)
    os.close(reading)
    _, err = process.communicate()
    assert err == b""
    assert process.returncode == 141


def test_progress_on_a_terminal_leaves_the_output_alone(files: tuple[Path, Path]) -> None:
    files[1].write_text('{"topic": "orders/x"}\n' * 20_000)
    command = [sys.executable, "-m", "holdfast.cli.main", "match", *map(str, files)]
    terminal, end = pty.openpty()
    output = files[0].with_name("output")
    shown = b""
    with output.open("wb") as written, subprocess.Popen(command, stdout=written, stderr=end):
        os.close(end)
        with suppress(OSError):  # how a terminal says that nobody is left at its other end
            while chunk := os.read(terminal, 65_536):
                shown += chunk
    os.close(terminal)
    lines = output.read_text().splitlines()
    assert len(lines) == 20_000
    assert json.loads(lines[-1]) == {"event": 19_999, "matches": [6]}
    assert b"events" in shown
    assert b"matches" not in shown
