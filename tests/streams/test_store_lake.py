"""The lake's lane: what a lake says of spans, within limits; what it never had is lost for the log's own reason."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from stores import PUBEND, publications

from holdfast.messages.ticks import Lost, Tick
from holdfast.streams import store_lake
from holdfast.streams.store_lake import LakeLane, LakePage, LakeUnreadable
from holdfast.streams.store_reads import Row
from holdfast.streams.storing import LakeRead, ReadLake

TICKS = list(range(10, 200, 10))


class Listed:
    """A lake with events at ``TICKS``; each page has a few, and it has nothing from 100 on, nor up to 20."""

    def __init__(self, size: int = 3) -> None:
        self.size = size
        self.asked: list[tuple[Tick, Tick, int]] = []
        self.away_from: Tick = 1_000

    def page(self, pubend: str, after: Tick, upto: Tick, limit: int) -> LakePage:
        self.asked.append((after, upto, limit))
        if after >= self.away_from:
            raise LakeUnreadable("gone fishing")
        if after < 20:
            return LakePage(min(20, upto), absent=[(after, min(20, upto))])
        if after >= 100:
            return LakePage(upto, absent=[(after, upto)])
        upto = min(upto, 100)
        found = [tick for tick in TICKS if after < tick <= upto and tick != 50][: min(self.size, limit)]
        covered = found[-1] if found else upto
        lost = [Lost(40, 50, "damaged")] if after < 50 <= covered else []
        return LakePage(covered, found, publications(found), lost, damages=["a file"] if lost else [])


def read(
    lake: Listed, spans: Sequence[tuple[Tick, Tick]], limit: int = 1_000, row: Row | None = None
) -> LakeRead:
    [answer] = LakeLane(lake, {} if row is None else {PUBEND: row}).turn([ReadLake(PUBEND, spans, limit)])
    assert list(answer.publications) == publications(answer.ticks)
    return answer


def test_spans_are_read_page_by_page_the_lowest_first() -> None:
    answer = read(Listed(), [(60, 75), (25, 55), (85, 90)])
    assert answer.ticks == [30, 40, 70, 90]
    assert answer.lost == [(40, 50, "damaged")]
    assert answer.damages == ["a file"]
    assert answer.parts[-1][1] == 90
    assert not answer.problem


@pytest.mark.parametrize("limit", [1, 2, 4, 5])
def test_it_ends_at_its_limit_and_says_how_far_it_came(limit: int) -> None:
    answer = read(Listed(), [(20, 100)], limit)
    assert answer.ticks == [30, 40, 60, 70, 80][:limit]
    assert answer.parts[-1][1] == answer.ticks[-1]


def test_and_at_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_lake, "READ_BYTES_MAX", 1)
    assert read(Listed(), [(20, 100)]).ticks == [30, 40, 60], "a page is taken whole"


def test_what_it_never_had_is_lost_for_the_reason_for_which_it_was_given_up() -> None:
    row = Row(
        released=(Lost(0, 15, "acknowledged"), Lost(15, 130, "max_bytes")), lost=(Lost(130, 140, "damaged"),)
    )
    answer = read(Listed(), [(0, 30), (90, 150)], row=row)
    assert answer.ticks == [30, 100]
    assert answer.lost == [
        (0, 15, "acknowledged"),
        (15, 20, "max_bytes"),
        (100, 130, "max_bytes"),
        (130, 140, "damaged"),
        (140, 150, "released"),
    ]


def test_what_was_read_before_it_failed_is_known_and_the_rest_is_not() -> None:
    lake = Listed()
    lake.away_from = 60
    answer = read(lake, [(20, 100)])
    assert (answer.ticks, answer.problem) == ([30, 40, 60], "gone fishing")
    assert answer.parts[-1][1] == 60
    lake.away_from = 0
    nothing = read(lake, [(20, 100)])
    assert (nothing.parts, nothing.ticks, nothing.lost, nothing.problem) == ([], [], [], "gone fishing")
