"""Pages of rows: the columns of contracts.md §7, as many as are wanted, from where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from hand_written import PUBEND, STREAM, HandWritten, event, events

from holdfast.filters.evaluate import compile_filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.pipeline.columns import COLUMNS
from holdfast.pipeline.errors import BadRequest, Gap
from holdfast.pipeline.pages import read_page
from holdfast.pipeline.portions import reach
from holdfast.pipeline.ranges import Ranges
from holdfast.pipeline.requests import ReachRequest, ReadRequest

DECLARED = {"i": "BIGINT", "price": "DOUBLE", "sym": "STRING", "hot": "BOOLEAN", "raw": "BINARY"}


@pytest.fixture
def written(tmp_path: Path) -> Iterator[HandWritten]:
    with HandWritten(tmp_path / "streams", segment_bytes=20_000) as folder:
        yield folder


def rows(ranges: Ranges, upto: int, **options: Any) -> list[dict[str, Any]]:
    """All rows of (0, upto], page by page."""
    found: list[dict[str, Any]] = []
    wanted = {"columns": ("kind", "after", "tick", "reason"), "after": 0, **options}
    while True:
        page = read_page(ranges, ReadRequest(STREAM, PUBEND, upto=upto, **wanted))
        found += [row for batch in page.batches for row in batch.to_pylist()]
        if page.covered == upto:
            return found
        assert page.covered > wanted["after"], "a page that goes nowhere"
        wanted |= {"after": page.covered, "told": page.told}


def test_a_row_has_all_of_its_event(written: HandWritten) -> None:
    made = event(7, price=1.5, sym="é", hot=True, raw=b"\0", only="here")
    written.publish({10_000_007: made})
    written.vouch(10_000_007)
    [row] = rows(Ranges(written.folder), 10_000_007, columns=tuple(COLUMNS), attributes=DECLARED)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    variant = row.pop("attributes")
    assert set(variant) == {"value", "metadata"}
    assert row == {
        "kind": "event",
        "stream": STREAM,
        "pubend": PUBEND,
        "incarnation": 1,
        "after": 0,
        "tick": 10_000_007,
        "topic": "orders/1",
        "publisher": "p",
        "n": 1,
        "time": epoch + timedelta(microseconds=7),
        "accepted": epoch + timedelta(microseconds=10_000_007),
        "content_type": "text/plain",
        "payload": b"payload 7;",
        "a": {"i": 7, "price": 1.5, "sym": "é", "hot": True, "raw": b"\0"},
        "tags": [],
        "reason": None,
    }


def test_a_value_of_another_type_is_null_in_a(written: HandWritten) -> None:
    written.publish({10: event(1, price=1, sym=True, hot=0, raw="text")})
    written.publish({20: event(2, i=2.0), 30: event(3, i=True)})
    written.vouch(30)
    found = rows(Ranges(written.folder), 30, columns=("a",), attributes=DECLARED)
    absent = dict.fromkeys(DECLARED)
    assert [row["a"] for row in found] == [{**absent, "i": 1}, absent, absent]


def test_gaps_and_silences_are_rows_for_who_wants_them(written: HandWritten) -> None:
    written.publish(events([10, 20, 30, 40]))
    written.vouch(40)
    written.release(20, "no room")
    ranges = Ranges(written.folder)
    event_30 = {"kind": "event", "after": 20, "tick": 30, "reason": None}
    gap = {"kind": "gap", "after": 0, "tick": 20, "reason": "no room"}
    silence = {"kind": "silence", "after": 30, "tick": 35, "reason": None}
    assert rows(ranges, 35, gaps="row") == [gap, event_30]
    assert rows(ranges, 35, gaps="row", silence=True) == [gap, event_30, silence]
    assert rows(ranges, 35, gaps="ignore") == [event_30]
    assert rows(ranges, 30, gaps="row", silence=True) == [gap, event_30]
    with pytest.raises(Gap, match=r"orders@lisbon/0 has lost \(0, 20\]: no room"):
        rows(ranges, 35)
    full = rows(ranges, 35, gaps="row", columns=tuple(COLUMNS), attributes=DECLARED)[0]
    of_events = ("topic", "publisher", "n", "time", "accepted", "content_type", "payload", "attributes", "a")
    assert all(full[name] is None for name in of_events)


def test_a_record_that_is_no_event_is_damaged(written: HandWritten) -> None:
    written.write([10], [b"\x93\xa1p\x01\xc4\x01\xff"])
    written.write([20], [b"?"])
    written.vouch(20)
    found = rows(Ranges(written.folder), 20, gaps="row")
    assert [(row["after"], row["tick"]) for row in found] == [(9, 10), (19, 20)]
    assert {row["reason"] for row in found} == {"damaged"}
    silences = rows(Ranges(written.folder), 20, gaps="ignore", silence=True)
    assert [(row["after"], row["tick"]) for row in silences] == [(0, 9), (10, 19)]


@pytest.mark.parametrize("filter", [None, "# WHERE i > 0"])
@pytest.mark.parametrize("bad", [{1}, {50}, {100}, {20, 21, 77}, set(range(1, 101))])
def test_records_that_are_no_events_are_damaged_among_others_that_are(
    written: HandWritten, bad: set[int], filter: str | None
) -> None:
    """All of them are made into columns at once, and the good ones are not lost with the bad."""
    for i in range(1, 101):
        if i in bad:
            written.write([i * 10], [b"\x93\xa1p\x01\xc4\x01\xff"])
        else:
            written.publish({i * 10: event(i)})
    written.vouch(1_000)
    found = rows(Ranges(written.folder), 1_000, gaps="row", filter=filter)
    expected = []
    for i in range(1, 101):
        kind, reason = ("gap", "damaged") if i in bad else ("event", None)
        after = i * 10 - 1 if i in bad else (i - 1) * 10
        expected.append({"kind": kind, "after": after, "tick": i * 10, "reason": reason})
    assert found == expected
    with pytest.raises(Gap, match="damaged"):
        rows(Ranges(written.folder), 1_000, filter=filter)


@pytest.mark.parametrize(
    "filter", ["orders/1", "# WHERE i > 50 AND i < 90", "orders/+ WHERE NOT i = 3", "none/#"]
)
@pytest.mark.parametrize("size", [1, 3, 100_000])
def test_a_filter_means_what_it_means_to_a_subscriber(written: HandWritten, filter: str, size: int) -> None:
    made = events(range(1, 100))
    written.publish(made)
    written.vouch(99)
    matches = compile_filter(parse_filter(filter))
    expected = [tick for tick, each in made.items() if matches(Subject(each))]
    found = rows(Ranges(written.folder), 99, filter=filter, events=size)
    assert [row["tick"] for row in found] == expected
    assert [row["after"] for row in found] == [0, *expected[:-1]][: len(expected)]  # whatever the pages were


def test_pages_end_with_what_was_looked_through(
    written: HandWritten, monkeypatch: pytest.MonkeyPatch
) -> None:
    for first in range(1, 100, 9):
        written.publish(events(range(first, first + 9)))
    written.vouch(99)
    ranges = Ranges(written.folder)
    expected = rows(ranges, 99, filter="# WHERE i = 97", silence=True)
    assert [row["after"] for row in expected] == [0, 97]
    monkeypatch.setattr("holdfast.pipeline.portions.LOOKED_BYTES_MAX", 100)
    request = ReadRequest(STREAM, PUBEND, 0, 99, ("tick",), filter="# WHERE i = 97")
    assert read_page(ranges, request).covered < 10
    assert rows(ranges, 99, filter="# WHERE i = 97", silence=True) == expected


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"columns": ("nothing",)}, "no column 'nothing'"),
        ({"columns": ()}, "expected at least one"),
        ({"columns": ("a",)}, "no attribute is declared"),
        ({"attributes": {"x": "DATE"}}, "x is DATE; expected BOOLEAN"),
        ({"filter": "a WHERE"}, "column 8"),
    ],
)
def test_what_makes_no_sense_is_refused(written: HandWritten, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadRequest, match=problem):
        rows(Ranges(written.folder), 0, **options)


def test_so_many_events_go_so_far(written: HandWritten) -> None:
    written.publish(events(range(10, 100, 10)))
    written.vouch(90)
    written.release(20)
    ranges = Ranges(written.folder)

    def ask(after: int, events: int, size: int = 1 << 20) -> tuple[int, int]:
        answer = reach(ranges, ReachRequest(PUBEND, after, 90, events, size))
        return answer.covered, answer.events

    assert ask(20, 3) == (50, 3)
    assert ask(0, 3) == (40, 3)  # the gap is one
    assert ask(0, 1) == (20, 1)
    assert ask(45, 100) == (90, 5)
    assert ask(20, 100, 1) == (30, 1)
