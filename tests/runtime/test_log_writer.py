"""A log whose reader stops costs lines, which are counted, and never time."""

from __future__ import annotations

import io
import json
import os
import select
import time
from collections.abc import Iterator

import pytest

from holdfast.runtime import log_writer, logs
from holdfast.runtime.log_writer import LogWriter


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Both ends of a pipe; the logger is as before afterwards."""
    before = logs.LOGGER.level, logs.LOGGER.propagate, list(logs.LOGGER.handlers)
    monkeypatch.setattr(log_writer, "LINES_MAX", 20)
    reads, writes = os.pipe()
    with os.fdopen(reads) as reader, os.fdopen(writes, "w") as writer:
        yield reader, writer
    logs.LOGGER.level, logs.LOGGER.propagate, logs.LOGGER.handlers = before


def write_until_full(output: LogWriter, writer: io.TextIOWrapper) -> int:
    """Log until the pipe takes nothing more, and then the queue; how many lines that took."""
    lines = 0
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if output.has_room():
            logs.log("debug", "a line", {"i": lines, **{f"long{k}": "x" * 500 for k in range(10)}})
            lines += 1
        elif not select.select([], [writer], [], 0)[1]:
            return lines
    raise AssertionError("the pipe is never full")


def test_lines_are_written_in_their_order_and_the_last_before_the_end(
    pipe: tuple[io.TextIOWrapper, io.TextIOWrapper],
) -> None:
    reader, writer = pipe
    with LogWriter(writer) as output:
        for i in range(10):
            output.write(f"{i}\n")
    assert [reader.readline() for _ in range(10)] == [f"{i}\n" for i in range(10)]


def test_a_reader_that_stops_costs_lines_and_what_is_lost_is_counted(
    pipe: tuple[io.TextIOWrapper, io.TextIOWrapper],
) -> None:
    reader, writer = pipe
    with LogWriter(writer) as output:
        logs.write_to(output, level="debug", has_room=output.has_room)
        lines = write_until_full(output, writer)
        for _ in range(5):
            logs.log("error", "lost", {})
        records = [json.loads(reader.readline()) for _ in range(lines)]
        assert [record["i"] for record in records] == list(range(lines))
        logs.log("info", "heard", {})
        said = [json.loads(reader.readline())]
        while said[-1]["text"] != "heard":
            said.append(json.loads(reader.readline()))
        assert sum(record.get("suppressed", 0) + (record["text"] == "lost") for record in said) == 5


def test_a_reader_that_never_reads_again_does_not_keep_the_process(
    pipe: tuple[io.TextIOWrapper, io.TextIOWrapper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "LAST_LINES_SECONDS", 0.01)
    reader, writer = pipe
    with LogWriter(writer) as output:
        logs.write_to(output, level="debug", has_room=output.has_room)
        write_until_full(output, writer)
    assert output._thread.is_alive()
    reader.close()
    output._thread.join(10)
    assert not output._thread.is_alive()
