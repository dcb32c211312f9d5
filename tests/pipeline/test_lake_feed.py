"""The lake as a broker reads it: what was logged, byte for byte, or the loss of it (issue 6, part 5)."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

import pyarrow.parquet as pq
from hand_written import PUBEND, STREAM, HandWritten, event, events
from lakes import table_in, take_all
from msgspec.structs import replace

from drawn_events import an_event
from drawn_filters import Seeded
from holdfast.intervals import Intervals, Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Lost, Tick
from holdfast.pipeline.lake import feeding
from holdfast.pipeline.lake.compact import compact
from holdfast.pipeline.lake.feeding import LakeFeed
from holdfast.pipeline.ranges import Ranges
from holdfast.runtime.lake_process import LakeProcess
from holdfast.runtime.priority import NICENESS, back_cores
from holdfast.streams.records import read_record
from holdfast.streams.store_lake import Lake, LakePage, LakeUnreadable


@pytest.fixture
def written(tmp_path: Path) -> Iterator[HandWritten]:
    with HandWritten(tmp_path / "streams", segment_bytes=20_000) as folder:
        yield folder


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.pipeline.lake.writing.ROW_GROUP_ROWS", 10)
    monkeypatch.setattr("holdfast.pipeline.pages.BATCH_ROWS", 10)


def logged_in(folder: Path, upto: Tick) -> dict[Tick, Publication]:
    """What the log has, by tick, as it stands there."""
    found: dict[Tick, Publication] = {}
    for piece in Ranges(folder / "streams").scan(PUBEND, 0, upto):
        if not isinstance(piece, Lost):
            found |= dict(zip(piece.indexes, map(read_record, piece.records), strict=True))
    return found


def feed_of(folder: Path) -> LakeFeed:
    return LakeFeed(folder / "lake")


@contextmanager
def process_of(folder: Path) -> Iterator[LakeProcess]:
    """As a broker has it."""
    lake = LakeProcess([sys.executable, "-m", "holdfast.pipeline.lake.feeder", str(folder / "lake")])
    try:
        yield lake
    finally:
        lake.close()


def page_of(feed: Lake, after: Tick, upto: Tick, limit: int) -> LakePage:
    """A page; one who died over it is asked once more, as a broker does."""
    try:
        return feed.page(PUBEND, after, upto, limit)
    except LakeUnreadable as error:
        if "has died of it" not in str(error):
            raise
        return feed.page(PUBEND, after, upto, limit)


def read(feed: Lake, after: Tick, upto: Tick, limit: int = 1_000) -> LakePage:
    """All of a range, page by page."""
    ticks: list[Tick] = []
    publications: list[Publication] = []
    lost: list[Lost] = []
    absent: list[Span] = []
    damages: list[str] = []
    while after < upto:
        page = page_of(feed, after, upto, limit)
        assert after < page.covered <= upto
        assert len(page.ticks) <= limit
        assert all(after < tick <= page.covered for tick in page.ticks)
        ticks += page.ticks
        publications += page.publications
        lost += page.lost
        absent += page.absent
        damages += page.damages
        after = page.covered
    return LakePage(upto, ticks, publications, lost, absent, damages)


def a_table(written: HandWritten, folder: Path, seed: int) -> tuple[Seeded, Tick, dict[Tick, Publication]]:
    """A log of drawn events, with times of nanoseconds, in several files of a table; its end, and what was in it."""
    source = Seeded(random.Random(seed))
    tick = 0
    for _ in range(4):
        made = {}
        for _ in range(25):
            tick += source.random.choice([1, 1, 5, 100])
            time = source.random.choice([None, source.random.randrange(2**61)])
            made[tick] = replace(an_event(source), time=time)
        written.publish(made)
        written.vouch(tick)
        take_all(folder)
    return source, tick, logged_in(folder, tick)


@pytest.mark.parametrize("seed", range(4))
def test_what_it_gives_is_what_the_log_had(written: HandWritten, tmp_path: Path, seed: int) -> None:
    source, end, were = a_table(written, tmp_path, seed)
    written.release(end)
    assert not logged_in(tmp_path, end), "the log has forgotten it"
    feed = feed_of(tmp_path)
    for _ in range(20):
        after = source.random.randrange(end)
        upto = source.random.randint(after + 1, end)
        page = read(feed, after, upto, source.random.choice([1, 3, 7, 1_000]))
        wanted = {tick: each for tick, each in were.items() if after < tick <= upto}
        assert dict(zip(page.ticks, page.publications, strict=True)) == wanted
        assert list(page.ticks) == sorted(wanted)
        assert not page.lost
        assert not page.absent


def test_it_reads_while_the_table_is_compacted_and_vacuumed(written: HandWritten, tmp_path: Path) -> None:
    """It has looked at a version whose files are gone: another has the same rows."""
    _, end, were = a_table(written, tmp_path, 1)
    written.release(end)
    feed = feed_of(tmp_path)
    assert feed.page(PUBEND, 0, end, 5).ticks == sorted(were)[:5]
    mine = table_in(tmp_path)
    assert compact(mine).before > 1
    assert mine.vacuum(0)
    page = read(feed, 0, end, 5)
    assert dict(zip(page.ticks, page.publications, strict=True)) == were
    assert not page.lost


def test_what_it_does_not_have_is_absent(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events(range(10, 100, 10)))
    written.vouch(90)
    written.release(30)
    take_all(tmp_path)
    written.publish(events(range(100, 200, 10)))
    written.vouch(190)
    feed = feed_of(tmp_path)
    page = read(feed, 0, 190)
    assert page.ticks == [40, 50, 60, 70, 80, 90]
    assert Intervals(page.absent) == Intervals([(0, 30), (90, 190)])
    take_all(tmp_path)
    assert read(feed, 90, 190).ticks == list(range(100, 200, 10)), "and later it does"
    other = feed.page("orders@porto/0", 5, 25, 10)
    assert (other.covered, list(other.absent)) == (25, [(5, 25)])


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_a_gap_of_the_log_is_one_of_the_lake(written: HandWritten, tmp_path: Path, limit: int) -> None:
    written.publish(events(range(10, 60, 10)))
    written.vouch(50)
    take_all(tmp_path)
    written.publish(events(range(60, 110, 10)))
    written.vouch(100)
    written.release(80, "max_bytes")
    take_all(tmp_path)
    feed = feed_of(tmp_path)
    page = read(feed, 0, 100, limit)
    assert page.ticks == [10, 20, 30, 40, 50, 90, 100]
    assert Intervals(each[:2] for each in page.lost) == Intervals([(50, 80)])
    assert {each.reason for each in page.lost} == {"max_bytes"}
    [part] = feed.page(PUBEND, 60, 70, limit).lost
    assert part == (60, 70, "max_bytes")


def test_a_table_that_is_not_there_is_no_loss(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events([10, 20]))
    written.vouch(20)
    feed = feed_of(tmp_path)
    with pytest.raises(LakeUnreadable, match="there is no table here"):
        feed.page(PUBEND, 0, 20, 10)
    take_all(tmp_path)
    assert feed.page(PUBEND, 0, 20, 10).ticks == [10, 20]
    (tmp_path / "lake").rename(tmp_path / "away")
    feed = feed_of(tmp_path)
    with pytest.raises(LakeUnreadable):
        feed.page(PUBEND, 0, 20, 10)


def test_a_lake_that_goes_away_meanwhile_is_no_loss(written: HandWritten, tmp_path: Path) -> None:
    _, end, were = a_table(written, tmp_path, 3)
    feed = feed_of(tmp_path)
    first = feed.page(PUBEND, 0, end, 5)
    (tmp_path / "lake").rename(tmp_path / "away")
    with pytest.raises(LakeUnreadable):
        read(feed, first.covered, end)
    (tmp_path / "away").rename(tmp_path / "lake")
    assert [*first.ticks, *read(feed, first.covered, end).ticks] == sorted(were)


def test_anothers_table_is_not_read(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events([10]))
    written.vouch(10)
    take_all(tmp_path)
    (tmp_path / "lake" / STREAM).rename(tmp_path / "lake" / "bills")
    with pytest.raises(LakeUnreadable, match="of the stream orders; expected that of bills"):
        feed_of(tmp_path).page("bills@lisbon/0", 0, 10, 10)


@pytest.mark.parametrize("seed", range(1))
def test_a_damaged_file_is_named_and_never_served(written: HandWritten, tmp_path: Path, seed: int) -> None:
    """Bits are flipped anywhere; all that comes is right, what does not come is lost, and the rest is there.

    In a process of its own, as brokers have it: pyarrow does not survive every file.
    """
    source, end, were = a_table(written, tmp_path, seed)
    written.release(end)
    paths = [tmp_path / "lake" / STREAM / file.path for file in table_in(tmp_path).files()]
    for _ in range(3):
        path = source.random.choice(paths)
        whole = path.read_bytes()
        data = bytearray(whole)
        for _ in range(3):
            data[source.random.randrange(len(data))] ^= 1 << source.random.randrange(8)
        path.write_bytes(data)
        with process_of(tmp_path) as lake:
            page = read(lake, 0, end, 20)
        given = dict(zip(page.ticks, page.publications, strict=True))
        gone = Intervals(each[:2] for each in page.lost)
        assert given == {tick: each for tick, each in were.items() if tick not in gone}
        assert {each.reason for each in page.lost} <= {"damaged"}
        assert bool(page.damages) == bool(page.lost)
        assert all(path.name in damage for damage in page.damages)
        path.write_bytes(whole)


def test_it_gives_way_to_its_broker(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events([1]))
    written.vouch(1)
    take_all(tmp_path)
    with process_of(tmp_path) as lake:
        read(lake, 0, 1)
        assert lake._child is not None
        assert os.getpriority(os.PRIO_PROCESS, lake._child.pid) >= NICENESS
        assert os.sched_getaffinity(lake._child.pid) == back_cores()


def test_one_damaged_row_group_costs_no_other(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events(range(1, 101)))
    written.vouch(100)
    take_all(tmp_path)
    [path] = (tmp_path / "lake" / STREAM).glob("*.parquet")
    group = pq.read_metadata(path).row_group(4)
    payloads = next(
        group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema == "payload"
    )
    at = payloads.data_page_offset + payloads.total_compressed_size // 2
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)
    page = read(feed_of(tmp_path), 0, 100)
    assert list(page.lost) == [(40, 50, "damaged")]
    assert page.ticks == [*range(1, 41), *range(51, 101)]
    assert path.name in page.damages[0]


@pytest.mark.parametrize("how", ["cut off", "deleted"])
def test_a_file_that_is_not_whole_is_lost_and_named(written: HandWritten, tmp_path: Path, how: str) -> None:
    for start in (1, 31, 61):
        written.publish(events(range(start, start + 30)))
        written.vouch(start + 29)
        take_all(tmp_path)
    second = sorted(table_in(tmp_path).files(), key=lambda file: file.tick)[1]
    path = tmp_path / "lake" / STREAM / second.path
    if how == "deleted":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-100])
    page = read(feed_of(tmp_path), 0, 90)
    assert Intervals(each[:2] for each in page.lost) == Intervals([(30, 60)])
    assert page.ticks == [*range(1, 31), *range(61, 91)]
    assert second.path in page.damages[0]


def test_a_row_group_is_read_once_for_who_reads_on(
    written: HandWritten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few are kept, whatever is read."""
    written.publish({tick: event(tick) for tick in range(1, 101)})
    written.vouch(100)
    take_all(tmp_path)
    made: list[Tick] = []
    group = feeding._Group

    class Counted(group):  # type: ignore[misc, valid-type]
        def __init__(self, title: str, pubend: str, after: Tick, *rest: object) -> None:
            made.append(after)
            super().__init__(title, pubend, after, *rest)

    monkeypatch.setattr(feeding, "_Group", Counted)
    feed = feed_of(tmp_path)
    for tick in range(1, 101):
        assert feed.page(PUBEND, tick - 1, tick, 1_000).ticks == [tick]
    assert made == list(range(0, 100, 10))
    assert len(feed._groups) == feeding.GROUPS_MAX
