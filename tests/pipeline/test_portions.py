"""Portions of logs on their way: rows are the same wherever they are made, and bad bytes are refused."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from examples import examples

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from hand_written import PUBEND, STREAM, HandWritten, event

from holdfast.messages.ticks import Lost
from holdfast.pipeline import portion_stream
from holdfast.pipeline.arrow_parts import stream_parts
from holdfast.pipeline.columns import COLUMNS
from holdfast.pipeline.errors import Gap
from holdfast.pipeline.pages import Page, read_page, rows_of
from holdfast.pipeline.portion_stream import portion_in, portion_parts
from holdfast.pipeline.portions import Events, Portion, read_portion
from holdfast.pipeline.ranges import Ranges
from holdfast.pipeline.requests import ReadRequest, RecordsRequest

LAST = 400
NO_PORTION = (pa.ArrowException, ValueError, OSError)  #: raised for what is none


@pytest.fixture(scope="module")
def ranges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranges]:
    """Of a log that was chopped, with events of two kinds, one that is none, a damaged one, and a claim."""
    folder: Path = tmp_path_factory.mktemp("kept") / "streams"
    with HandWritten(folder, segment_bytes=5_000) as written:
        for first in range(10, LAST, 50):
            ticks = range(first, min(first + 50, LAST + 1), 10)
            written.publish({tick: event(tick, price=1.5) if tick % 40 else event(tick) for tick in ticks})
        written.write([LAST + 1], [b"no event"])
        written.publish({LAST + 10: event(LAST + 10)})
        written.release(30, "no room")
        written.kept.lost.append(Lost(95, 105, "claimed"))
        written.save()
        written.vouch(LAST + 10, silent=LAST + 50)
        written.flip(b"payload 250;")
        yield Ranges(folder)


def sent(portion: Portion) -> Portion:
    """As it arrives."""
    parts, lost = portion_parts(portion)
    return portion_in(b"".join(parts), lost, portion.covered, portion.incarnation)


def at_once(ranges: Ranges, request: ReadRequest) -> Page:
    wanted = RecordsRequest(
        request.pubend,
        request.after,
        request.upto,
        request.filter,
        request.gaps,
        request.events,
        request.bytes,
    )
    return rows_of(sent(read_portion(ranges, wanted)), request)


@examples(150)
@given(
    after=st.integers(0, LAST + 20),
    length=st.integers(0, LAST + 20),
    events=st.integers(1, 50),
    size=st.integers(1, 3_000),
    filter=st.sampled_from([None, "orders/1", "# WHERE price > 1", "# WHERE i > 1000"]),
    gaps=st.sampled_from(["row", "ignore", "fail"]),
    silence=st.booleans(),
    piece=st.sampled_from([1, 3, 8_192]),
)
@example(
    after=0, length=LAST + 50, events=1_000, size=100_000, filter=None, gaps="row", silence=True, piece=4
)
def test_rows_are_the_same_wherever_they_are_made(
    ranges: Ranges,
    after: int,
    length: int,
    events: int,
    size: int,
    filter: str | None,
    gaps: Any,
    silence: bool,
    piece: int,
) -> None:
    upto = min(after + length, LAST + 50)
    request = ReadRequest(
        STREAM,
        PUBEND,
        min(after, upto),
        upto,
        tuple(COLUMNS),
        {"price": "DOUBLE"},
        filter,
        gaps,
        silence,
        events=events,
        bytes=size,
    )
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(portion_stream, "PIECE_EVENTS", piece)
        assert told(at_once, ranges, request) == told(read_page, ranges, request)


def told(reading: Callable[[Ranges, ReadRequest], Page], ranges: Ranges, request: ReadRequest) -> object:
    """All of a page, or what is said instead of it."""
    try:
        page = reading(ranges, request)
    except Gap as gap:
        return str(gap)
    return page.covered, page.told, page.schema, rows_in(page)


def rows_in(page: Page) -> list[dict[str, Any]]:
    return [row for batch in page.batches for row in batch.to_pylist()]


def test_what_the_log_of_these_tests_holds(ranges: Ranges) -> None:
    """Everything that can happen does, or the test above would show little."""
    request = ReadRequest(STREAM, PUBEND, 0, LAST + 50, ("kind", "tick", "reason"), gaps="row", silence=True)
    found = rows_in(read_page(ranges, request))
    assert {row["reason"] for row in found} == {None, "no room", "claimed", "damaged"}
    assert [row["tick"] for row in found if row["reason"] == "damaged"] == [250, LAST + 1]
    assert {row["kind"] for row in found} == {"event", "gap", "silence"}


def test_large_contents_are_sent_from_where_they_lie(ranges: Ranges) -> None:
    portion = read_portion(ranges, RecordsRequest(PUBEND, 30, 90))
    contents = [piece.records.content for piece in portion.pieces if isinstance(piece, Events)]
    parts, _ = portion_parts(portion)
    lying = [part.obj for part in parts if isinstance(part, memoryview)]
    assert contents
    assert all(any(content is each for each in lying) for content in contents)


def test_an_empty_portion_arrives(ranges: Ranges) -> None:
    assert sent(Portion([], 7, 3)) == Portion([], 7, 3)
    only_lost: Any = Portion([Lost(1, 2, "x"), Lost(2, 5, "y")], 7, 3)
    assert sent(only_lost) == only_lost


SCHEMA = pa.schema([pa.field("tick", pa.int64()), pa.field("record", pa.binary())])


def stream_of(*columns: Any, schema: Any = SCHEMA) -> bytes:
    return b"".join(stream_parts(schema, [pa.RecordBatch.from_arrays(list(columns), schema=schema)]))


def with_ends(*ends: int) -> bytes:
    """Two records that are said to end elsewhere than they do."""
    data = stream_of(pa.array([1, 2]), pa.array([b"1234", b"5678"], pa.binary()))
    told = struct.pack("<iii", 0, 4, 8)
    assert data.count(told) == 1
    return data.replace(told, struct.pack("<iii", *ends))


NO_PORTIONS = {
    "nothing": b"",
    "no Arrow": b"no Arrow at all, and not short either",
    "cut off": stream_of(pa.array([1]), pa.array([b"x"], pa.binary()))[:-20],
    "other columns": stream_of(pa.array([1]), schema=pa.schema([pa.field("tick", pa.int64())])),
    "no tick": stream_of(pa.array([None], pa.int64()), pa.array([b"x"], pa.binary())),
    "no record": stream_of(pa.array([1]), pa.array([None], pa.binary())),
    "beyond": with_ends(0, 4, 1_000_000),
    "backwards": with_ends(0, 6, 2),
    "before": with_ends(-8, 4, 8),
}


@pytest.mark.parametrize("data", NO_PORTIONS.values(), ids=list(NO_PORTIONS))
def test_what_is_no_portion_is_refused(data: bytes) -> None:
    with pytest.raises(NO_PORTION):
        portion_in(data, [], 10, 1)


@examples(200)
@given(place=st.integers(0, 2_000), byte=st.integers(0, 255))
def test_a_changed_byte_is_refused_or_is_some_other_record(place: int, byte: int) -> None:
    """Whatever it makes of the stream, nothing is read beyond its memory."""
    data = bytearray(stream_of(pa.array([1, 2, 3]), pa.array([b"one", b"", b"three"], pa.binary())))
    data[place % len(data)] = byte
    try:
        portion = portion_in(bytes(data), [], 10, 1)
    except NO_PORTION:
        return
    for piece in portion.pieces:
        assert isinstance(piece, Events)
        assert piece.records.start + piece.records.size <= len(piece.records.content)
        assert len(piece.records) == len(piece.ticks)
