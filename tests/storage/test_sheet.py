"""Sheets, the records of a filtering log, against what was noted [I21, R1.26]."""

from __future__ import annotations

from itertools import accumulate
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.storage import sheet as module
from holdfast.storage.rows import BITS_MAX, ROWS_MAX, Rows
from holdfast.storage.sheet import ListedSheet, MappedSheet, Noted, parted, read_sheet, written

SUBSCRIBERS = st.integers(0, 12) | st.integers(2**32 - 2, 2**32 + 2) | st.just(2**63 - 1)
NOTED = st.lists(
    st.tuples(st.integers(1, 2**40), st.sets(SUBSCRIBERS, min_size=1).map(sorted)), min_size=1, max_size=12
).map(
    lambda found: list(zip(accumulate(tick for tick, _ in found), (each for _, each in found), strict=True))
)


@examples(300)
@given(st.lists(NOTED, min_size=1, max_size=6), st.sampled_from([1, 2**32 - 3, 2**40]))
def test_every_subscriber_finds_its_ticks_and_its_record_before_and_no_more_bytes_are_used_than_allowed(
    sheets: list[list[Noted]], number: int
) -> None:
    last: dict[int, int] = {}
    rows = Rows()
    before: dict[int, int] = {}  #: the truth
    for noted in sheets:
        found: list[Noted] = []
        records = written(noted, number, last, rows)
        assert sum(map(len, records)) <= sum(8 + 16 * len(subscribers) for _, subscribers in noted)
        for record in records:
            sheet = read_sheet(record)
            for subscriber in sheet.subscribers:
                ticks, distance = sheet.of(subscriber)
                found += [(tick, [subscriber]) for tick in ticks]
                assert distance == (number - before[subscriber] if subscriber in before else 0)
                before[subscriber] = number
            number += 1
        assert sorted(found) == [(tick, [each]) for tick, subscribers in noted for each in subscribers]
    assert last == before


@examples(200)
@given(st.lists(st.sets(st.integers(0, 12), min_size=1).map(sorted), min_size=1, max_size=5), st.randoms())
def test_lists_that_are_the_same_are_noted_as_if_they_were_not(lists: list[list[int]], rng: Random) -> None:
    shared = [rng.choice(lists) for _ in range(40)]
    noted = list(enumerate(shared, start=1))
    apart = [(tick, list(subscribers)) for tick, subscribers in noted]
    rows = Rows()
    assert written(noted, 7, {3: 2}, rows) == written(apart, 7, {3: 2}, Rows())
    assert written(noted, 7, {3: 2}, rows) == written(apart, 7, {3: 2}, rows), "known by now"


@examples(300)
@given(st.lists(st.sets(st.integers(0, 40), min_size=1).map(sorted), min_size=2, max_size=70))
def test_of_places_and_bits_what_takes_less_is_written(lists: list[list[int]]) -> None:
    (record,) = written(list(enumerate(lists, start=1)), 7, {}, Rows())
    sheet = read_sheet(record)
    matches, subscribers = sum(map(len, lists)), len(set().union(*lists))
    bits = 8 + 8 * len(lists) + subscribers * (8 + (len(lists) + 7) // 8)
    places = 8 + 8 * len(lists) + subscribers * 10 + 2 * matches
    assert isinstance(sheet, MappedSheet if bits + 2 * subscribers <= places else ListedSheet)
    assert len(record) == (bits if isinstance(sheet, MappedSheet) else places)


def test_where_many_have_bits_places_are_written_until_those_are_forgotten() -> None:
    rows = Rows()
    all_of_them = list(range(500))
    assert rows.columns([all_of_them] * 8, 10**9) == dict.fromkeys(all_of_them, b"\xff")
    assert rows.columns([[1, 2]] * 40, 2 * 80) is None
    rows.forget()
    assert rows.columns([[1, 2]] * 40, 2 * 80) == dict.fromkeys([1, 2], b"\xff" * 5)


@pytest.mark.parametrize("each", [1, 10, 2 * BITS_MAX])
def test_where_too_many_are_named_places_are_written_and_nothing_grows(each: int) -> None:
    rows = Rows()
    lists = [list(range(start, start + each)) for start in range(0, 2 * BITS_MAX, each)]
    assert rows.columns(lists, 10**9) is None
    assert rows.columns(lists, 10**9) is None
    assert len(rows._bits) <= BITS_MAX + 10
    assert not rows._rows
    assert not rows._lists
    rows.forget()
    assert rows.columns([[1]] * 8, 8) == {1: b"\xff"}


def test_no_more_rows_are_remembered_than_so_many() -> None:
    rows = Rows()
    for start in range(0, 5 * ROWS_MAX, 100):
        rows.columns([[each % 7] for each in range(start, start + 100)], 10**9)
        assert len(rows._rows) == len(rows._lists) <= ROWS_MAX + 100


@examples(100)
@given(NOTED, st.integers(1, 5), st.integers(1, 6))
def test_pieces_are_what_was_noted_and_none_is_too_large(
    noted: list[Noted], ticks_max: int, matches_max: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TICKS_MAX", ticks_max)
        patch.setattr(module, "MATCHES_MAX", matches_max)
        pieces = list(parted(noted))
    assert [each for piece in pieces for each in piece] == noted
    assert all(1 <= len(piece) <= ticks_max for piece in pieces)
    assert all(
        len(piece) == 1 or sum(len(subscribers) for _, subscribers in piece) <= matches_max
        for piece in pieces
    )
