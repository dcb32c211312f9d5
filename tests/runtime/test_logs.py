from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from holdfast.clock import MILLISECOND, SECOND
from holdfast.messages.publications import Accepted
from holdfast.messages.session import Heartbeat
from holdfast.overlay.transport import Received, Send
from holdfast.runtime import logs
from holdfast.runtime.logs import OF_A_TEXT_MAX, RECORDS_MAX, TEXTS_MAX, RateLimit
from raw_peer import RawPeer, hello
from scripted_core import ScriptedCore, driven


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Where records go; the logger is as before afterwards."""
    before = logs.LOGGER.level, logs.LOGGER.propagate, list(logs.LOGGER.handlers)
    yield io.StringIO()
    logs.LOGGER.level, logs.LOGGER.propagate, logs.LOGGER.handlers = before[0], before[1], before[2]


def test_a_record_is_one_json_object_on_one_line(stream: io.StringIO) -> None:
    logs.write_to(stream)
    logs.log("warning", "peer given up", {"node": "b1", "reason": "a\nb\x1b[31m é", "n": 3})
    [line] = stream.getvalue().splitlines()
    assert line.isascii()
    record = json.loads(line)
    assert record.pop("time").endswith("+00:00")
    assert record == {
        "level": "warning",
        "text": "peer given up",
        "node": "b1",
        "reason": "a\nb\x1b[31m é",
        "n": 3,
    }


def test_a_field_of_a_strangers_cannot_stand_in_for_ours(stream: io.StringIO) -> None:
    logs.write_to(stream)
    logs.log("info", "x", {"level": "error", "text": "forged", "reason": "y" * 10_000})
    record = json.loads(stream.getvalue())
    assert (record["level"], record["text"], len(record["reason"])) == ("info", "x", 501)


def test_people_get_a_transcript(stream: io.StringIO) -> None:
    logs.write_to(stream, form="text")
    logs.log("info", "in session\x1b", {"node": "b1", "peer": "b2\n"})
    assert stream.getvalue()[12:] == " info    b1 = in session·  peer='b2\\n'\n"


def test_every_message_is_in_the_transcript_of_a_driver_that_transcribes(stream: io.StringIO) -> None:
    logs.write_to(stream, form="text", level="debug")

    async def main() -> None:
        core = ScriptedCore(
            lambda stimulus: [Send(1, [Accepted(1)])] if isinstance(stimulus, Received) else [], name="b1"
        )
        async with driven(core, log=logs.log, transcribe=True) as (_, port), await RawPeer.dial(port) as peer:
            await peer.send(hello("p"), Heartbeat(), Heartbeat())
            await peer.next()

    asyncio.run(main())
    lines = [line[13:] for line in stream.getvalue().splitlines()]
    assert "debug   b1 < received  peer='p' messages='Hello, Heartbeat×2'" in lines
    assert "debug   b1 > sent  peer='p' messages='Accepted'" in lines


def test_a_bug_comes_with_its_traceback(stream: io.StringIO) -> None:
    logs.write_to(stream)
    try:
        raise KeyError("where")
    except KeyError as error:
        logs.bug("a turn failed", error, {"input": "Wake"})
    record = json.loads(stream.getvalue())
    assert (record["level"], record["input"]) == ("error", "Wake")
    assert "KeyError: 'where'" in record["traceback"]


def test_records_below_the_level_are_not_written(stream: io.StringIO) -> None:
    logs.write_to(stream, level="warning")
    logs.log("info", "x", {})
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("form", "level", "expected"), [("xml", "info", "json or text"), ("json", "loud", "debug")]
)
def test_a_format_or_level_that_does_not_exist_is_refused(form: str, level: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        logs.write_to(io.StringIO(), form=form, level=level)


def record(text: str, level: int = logging.INFO) -> logging.LogRecord:
    made = logging.LogRecord("holdfast", level, "", 0, "%s", (text,), None)
    made.text = text
    return made


def test_of_one_text_so_many_pass_in_a_second_and_the_rest_is_counted() -> None:
    now = 0
    limit = RateLimit(lambda: now)
    assert sum(limit.filter(record("x")) for _ in range(100)) == OF_A_TEXT_MAX
    assert limit.filter(record("y"))
    now = SECOND - MILLISECOND
    assert not limit.filter(record("x"))
    now = SECOND
    later = record("x")
    assert limit.filter(later)
    assert later.suppressed == 91  # type: ignore[attr-defined]


def test_inventing_texts_does_not_get_around_the_limit_nor_fill_memory() -> None:
    limit = RateLimit(lambda: 0)
    assert sum(limit.filter(record(f"text {n}")) for n in range(10_000)) == RECORDS_MAX
    assert len(limit._texts) == TEXTS_MAX + 1


def test_errors_pass_beside_a_flood_of_warnings() -> None:
    limit = RateLimit(lambda: 0)
    for n in range(500):
        limit.filter(record(f"text {n}"))
    assert limit.filter(record("a bug", logging.ERROR))
    assert sum(limit.filter(record("a bug", logging.ERROR)) for _ in range(100)) == OF_A_TEXT_MAX - 1
