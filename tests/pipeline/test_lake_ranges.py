"""The lake answers what the log answers, request for request; and where the log has forgotten, both together do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

from hand_written import PUBEND, STREAM, HandWritten, event, events
from lakes import logged, origins_in, rows_of, stored, table_in, take_all

from drawn_events import an_event
from drawn_filters import NAMES, Seeded, a_filter
from holdfast.filters.text import filter_text
from holdfast.pipeline.errors import BadRequest, Gap, NoPubend, NotStable
from holdfast.pipeline.lake.compact import compact
from holdfast.pipeline.lake.errors import NoTable
from holdfast.pipeline.lake.ranges import LakeRanges
from holdfast.pipeline.origins import Origins
from holdfast.pipeline.requests import ReachRequest, ReadRequest

KINDS = ["BIGINT", "DOUBLE", "STRING", "BOOLEAN", "BINARY"]


@pytest.fixture
def written(tmp_path: Path) -> Iterator[HandWritten]:
    with HandWritten(tmp_path / "streams", segment_bytes=20_000) as folder:
        yield folder


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.pipeline.lake.writing.ROW_GROUP_ROWS", 10)
    monkeypatch.setattr("holdfast.pipeline.pages.BATCH_ROWS", 10)


def lake_in(folder: Path, *, prune: bool = True) -> LakeRanges:
    return LakeRanges(folder / "lake" / STREAM, STREAM, prune=prune)


def both_in(folder: Path) -> Origins:
    return Origins(STREAM, {"lisbon": folder / "streams"}, folder / "lake" / STREAM)


def a_log(written: HandWritten, folder: Path, seed: int) -> tuple[Seeded, list[Any], int]:
    """A log of drawn events with a damaged place, taken into the lake in several rounds; some filters; its end."""
    source = Seeded(random.Random(seed))
    filters = [a_filter(source) for _ in range(10)]
    tick = 0
    for part in range(6):
        made = {}
        for _ in range(20):
            tick += source.random.choice([1, 1, 5, 100])
            made[tick] = an_event(source, filters)
        if part == 2:
            tick += 10
            made[tick] = event(77_777)
        written.publish(made)
    tick += 1
    written.publish({tick: event(1)})
    written.vouch(tick)
    written.flip(b"payload 77777;")
    while (table := table_in(folder)).place(PUBEND) != tick:
        take_all(folder, rows_max=source.random.choice([1, 30]))
        if source.random.random() < 0.5:
            compact(table)
    return source, filters, tick


@pytest.mark.parametrize("seed", range(5))
def test_the_lake_answers_as_the_log_does(
    written: HandWritten, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges, filters, columns and attributes drawn at random; pruning changes nothing."""
    declared = {name: random.Random(f"{seed} {name}").choice(KINDS) for name in NAMES[1:]}
    monkeypatch.setattr("lakes.DECLARED", declared)
    source, filters, last = a_log(written, tmp_path, seed)
    rng = source.random
    for _ in range(15):
        after, upto = sorted(rng.sample(range(last + 1), 2))
        attributes = {name: rng.choice(KINDS) for name in NAMES}
        options: dict[str, Any] = {
            "after": after,
            "filter": rng.choice([None, "#", *map(filter_text, filters)]),
            "gaps": rng.choice(["row", "ignore"]),
            "silence": rng.random() < 0.5,
            "attributes": attributes,
            "told": rng.choice([None, max(after - 1, 0)]),
        }
        expected = logged(tmp_path, upto, **options)
        assert rows_of(lake_in(tmp_path), upto, **options) == expected, options
        assert rows_of(lake_in(tmp_path, prune=False), upto, **options) == expected, options


@pytest.mark.parametrize("seed", range(5))
def test_both_together_answer_as_the_log_did_before_it_forgot(
    written: HandWritten, tmp_path: Path, seed: int
) -> None:
    source, filters, last = a_log(written, tmp_path, 100 + seed)
    rng = source.random
    queries = []
    for _ in range(15):
        after, upto = sorted(rng.sample(range(last + 1), 2))
        options: dict[str, Any] = {
            "after": after,
            "filter": rng.choice([None, *map(filter_text, filters)]),
            "gaps": rng.choice(["row", "ignore"]),
            "silence": rng.random() < 0.5,
            "columns": rng.choice(
                [("tick",), ("after", "tick", "a"), ("reason", "kind", "after", "tick", "topic")]
            ),
        }
        queries.append((upto, options, logged(tmp_path, upto, **options)))
    written.release(rng.randrange(1, last), "no room")
    for upto, options, expected in queries:
        assert rows_of(both_in(tmp_path).of(PUBEND), upto, **options) == expected, options


def test_what_went_between_planning_and_reading_is_read_in_the_lake(
    written: HandWritten, tmp_path: Path
) -> None:
    written.publish(events(range(10, 500, 10)))
    written.vouch(490)
    take_all(tmp_path)
    written.publish(events(range(500, 1_000, 10)))
    written.vouch(990)
    expected = logged(tmp_path, 990)
    origins = both_in(tmp_path)
    assert origins.ends()[PUBEND] == (1, 0, 990)
    written.release(300)
    assert rows_of(origins.of(PUBEND), 990) == expected
    take_all(tmp_path)
    written.release(900)  # the table, as it was known, does not go so far
    assert rows_of(origins.of(PUBEND), 990) == expected
    assert origins.ends()[PUBEND] == (1, 0, 990)


def test_what_is_in_neither_is_a_gap(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events([10, 20, 30]))
    written.vouch(30)
    written.release(10)
    take_all(tmp_path)
    written.publish(events([40, 50, 60]))
    written.vouch(60)
    written.release(50, "no room")
    origin = both_in(tmp_path).of(PUBEND)
    found = [(row["kind"], row["after"], row["tick"]) for row in rows_of(origin, 60)]
    assert found == [("gap", 0, 10), ("event", 10, 20), ("event", 20, 30), ("gap", 30, 50), ("event", 50, 60)]
    with pytest.raises(Gap, match=r"has lost \(30, 50\]: no room"):
        rows_of(origin, 60, after=10, gaps="fail")
    assert [row["tick"] for row in rows_of(origin, 60, gaps="ignore", columns=("tick",))] == [20, 30, 60]
    first = rows_of(lake_in(tmp_path), 30)[0]
    assert (first["kind"], first["after"], first["tick"], first["reason"]) == (
        "gap",
        0,
        10,
        "not in the lake",
    )


def test_a_gap_is_cut_where_a_range_ends(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events([10]))
    written.vouch(10)
    take_all(tmp_path)
    written.publish(events([20, 50, 60]))
    written.vouch(60)
    written.release(50)
    take_all(tmp_path)
    found = rows_of(lake_in(tmp_path), 40, after=20)
    assert [(row["kind"], row["after"], row["tick"]) for row in found] == [("gap", 20, 40)]
    found = rows_of(lake_in(tmp_path), 55, after=5)
    assert [(row["kind"], row["after"], row["tick"]) for row in found] == [
        ("event", 5, 10),
        ("gap", 10, 50),
        ("silence", 50, 55),
    ]


def test_a_pubend_whose_broker_is_gone_is_read_in_the_lake(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events([10, 20]))
    written.vouch(20)
    take_all(tmp_path)
    expected = logged(tmp_path, 20)
    origins = Origins(STREAM, {}, tmp_path / "lake" / STREAM)
    assert origins.ends() == {PUBEND: (1, 0, 20)}
    assert rows_of(origins.of(PUBEND), 20) == expected
    with pytest.raises(NoTable):
        Origins(STREAM, {}, tmp_path / "nothing").ends()


def test_so_many_events_go_as_far_as_in_the_log(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events(range(10, 500, 10)))
    written.publish(events([500]))
    written.vouch(500)
    written.flip(b"payload 250;")
    take_all(tmp_path, rows_max=30)
    log = origins_in(tmp_path).of(PUBEND)
    before = {}
    for after in (0, 5, 10, 240, 255, 490):
        for count in (1, 3, 12, 100):
            request = ReachRequest(PUBEND, after, 495, count, 1 << 40)
            here = log.reach(request)
            before[request] = (here.covered, here.events)
            there = lake_in(tmp_path).reach(request)
            assert (there.covered, there.events) == before[request], request
    written.release(300)
    for request, expected in before.items():
        found = both_in(tmp_path).of(PUBEND).reach(request)
        assert (found.covered, found.events) == expected, request
    small = lake_in(tmp_path).reach(ReachRequest(PUBEND, 0, 500, 100, 1))
    assert (small.covered, small.events) == (10, 1), "the first may be larger than all may be"


def test_files_that_were_compacted_and_vacuumed_meanwhile_are_no_trouble(
    written: HandWritten, tmp_path: Path
) -> None:
    for tick in range(10, 60, 10):
        written.publish(events([tick]))
        written.vouch(tick)
        take_all(tmp_path)
    lake = lake_in(tmp_path)
    page = lake.page(ReadRequest(STREAM, PUBEND, 0, 50, ("tick",)))
    assert page.covered == 10
    table = table_in(tmp_path)
    compact(table)
    table.vacuum(grace_hours=0)
    assert [row["tick"] for row in rows_of(lake, 50, columns=("tick",), after=10)] == [20, 30, 40, 50]
    assert len(stored(tmp_path)) == 5


def test_what_makes_no_sense_is_refused(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events([10]))
    written.vouch(10)
    take_all(tmp_path)
    lake = lake_in(tmp_path)
    with pytest.raises(NotStable, match="up to 10, and 20 was asked for"):
        rows_of(lake, 20)
    with pytest.raises(NoPubend):
        lake.page(ReadRequest(STREAM, "orders@porto/0", 0, 10, ("tick",)))
    with pytest.raises(BadRequest, match="column 8"):
        rows_of(lake, 10, filter="a WHERE")
    with pytest.raises(BadRequest, match="no column"):
        rows_of(lake, 10, columns=("x",))


def test_a_selective_filter_reads_little(
    written: HandWritten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes counted, never time [issue 6: less than a tenth]."""
    monkeypatch.setattr("holdfast.pipeline.lake.writing.ROW_GROUP_ROWS", 250)
    made = {}
    for t in range(1, 5_001):
        payload = random.Random(t).randbytes(600)
        made[t] = msgspec.structs.replace(event(t, price=t / 2, sym=f"{t:06}"), payload=payload)
    written.publish(made)
    written.vouch(5_000)
    take_all(tmp_path)
    for wanted in ("# WHERE price BETWEEN 520 AND 521", "# WHERE sym = '000700'", "# WHERE i = 3 OR i = 4"):
        lake = lake_in(tmp_path)
        found = rows_of(lake, 5_000, filter=wanted, silence=False)
        assert found == rows_of(lake_in(tmp_path, prune=False), 5_000, filter=wanted, silence=False)
        assert 0 < len(found) <= 3
        assert lake.read_bytes < lake.table_bytes / 10, wanted
