"""Streams read in step: a batch ends where no broker can have anything earlier, and says so itself [issue 6 §6]."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from hand_written import STREAM, HandWritten, events
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from holdfast.cli.main import main
from holdfast.pipeline.errors import BadOption, NotStable
from holdfast.pipeline.in_step import InStepReader
from holdfast.pipeline.options import STREAMING, read_options
from holdfast.pipeline.ranges import CLOCK_TICKS, Ranges
from holdfast.streams.checkpoint_token import Place, Token

NETWORK = """
name = "two"
[[broker]]
name = "lisbon"
listen = "127.0.0.1:7000"
data = "lisbon"
[[broker]]
name = "porto"
parent = "lisbon"
listen = "127.0.0.1:7001"
data = "porto"
[[stream]]
name = "orders"
topics = ["#"]
"""
LISBON, PORTO = "orders@lisbon/0", "orders@porto/0"
EVERYTHING = ReadAllAvailable()


class Two(NamedTuple):
    """A stream with a pubend at each of two brokers."""

    network: Path
    lisbon: HandWritten
    porto: HandWritten


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    network = tmp_path / "network.toml"
    network.write_text(NETWORK)
    with ExitStack() as stack:
        lisbon, porto = (
            stack.enter_context(HandWritten(tmp_path / name / "streams", pubend=f"orders@{name}/0"))
            for name in ("lisbon", "porto")
        )
        lisbon.publish(events(range(10, 100, 10)))
        porto.publish(events([15, 25]))
        yield Two(network, lisbon, porto)


def reader_of(two: Two, **options: str) -> InStepReader:
    given = {"network": str(two.network), "stream": STREAM, "localSegments": "true", "inStep": "true"}
    given |= {"columns": "kind,pubend,tick,accepted", "startingOffsets": "earliest", **options}
    return InStepReader(read_options(given, STREAMING))


def offset(moment: int, **places: int) -> dict[str, str]:
    token = Token({f"orders@{broker}/0": Place(1, tick) for broker, tick in places.items()})
    return {"token": str(token), "moment": str(moment)}


def rows_between(reader: InStepReader, start: dict[str, str], end: dict[str, str]) -> list[tuple[Any, ...]]:
    """What Spark would get."""
    found: list[tuple[Any, ...]] = []
    for partition in reader.partitions(start, end):
        for batch in reader.read(partition):
            columns = batch.to_pydict()
            found += zip(columns["kind"], columns["pubend"], columns["accepted"], strict=True)
    return found


def at(tick: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick)


def test_a_batch_goes_as_far_as_every_broker_promises_and_tells_of_it_itself(two: Two) -> None:
    two.lisbon.vouch(90, silent=200)
    two.porto.vouch(25, silent=40)
    reader = reader_of(two)
    start = reader.initialOffset()
    assert start == offset(0, lisbon=0, porto=0)
    first = reader.latestOffset(start, EVERYTHING)
    assert first == offset(40, lisbon=40, porto=40), "porto may have something at 41"
    assert rows_between(reader, start, first) == [
        *(("event", LISBON, at(tick)) for tick in (10, 20, 30, 40)),
        *(("event", PORTO, at(tick)) for tick in (15, 25)),
        ("silence", "", at(40)),
    ]
    assert reader.latestOffset(first, EVERYTHING) == first, "nothing new is promised"
    two.porto.vouch(25, silent=300)
    second = reader.latestOffset(first, EVERYTHING)
    assert second == offset(200, lisbon=200, porto=200)
    assert rows_between(reader, first, second)[-2:] == [("event", LISBON, at(90)), ("silence", "", at(200))]


def test_silence_alone_is_a_batch_of_one_row(two: Two) -> None:
    two.lisbon.vouch(90, silent=500)
    two.porto.vouch(25, silent=500)
    reader = reader_of(two)
    start = offset(200, lisbon=200, porto=200)
    end = reader.latestOffset(start, EVERYTHING)
    assert end == offset(500, lisbon=500, porto=500)
    assert rows_between(reader, start, end) == [("silence", "", at(500))]


def test_without_a_promise_an_event_is_as_far_as_it_goes(two: Two) -> None:
    """So it is with brokers of before; an idle pubend holds up the others then."""
    two.lisbon.vouch(90)
    two.porto.vouch(25)
    assert reader_of(two).latestOffset(offset(0), EVERYTHING) == offset(25, lisbon=25, porto=25)


def test_a_limited_batch_ends_at_one_moment_too_and_every_event_comes_once(two: Two) -> None:
    two.lisbon.vouch(90, silent=100)
    two.porto.vouch(25, silent=100)
    reader = reader_of(two, maxEventsPerTrigger="4")
    place, found, moments = reader.initialOffset(), [], []
    while True:
        end = reader.latestOffset(place, ReadMaxRows(4))
        if end == place:
            break
        rows = rows_between(reader, place, end)
        assert len(rows) <= 5
        assert all(at(int(place["moment"])) < accepted <= at(int(end["moment"])) for _, _, accepted in rows)
        found += [(pubend, accepted) for kind, pubend, accepted in rows if kind == "event"]
        moments.append(int(end["moment"]))
        place = end
    assert moments[-1] == 100
    assert len(moments) > 2
    expected = [(LISBON, at(tick)) for tick in range(10, 100, 10)] + [(PORTO, at(15)), (PORTO, at(25))]
    assert sorted(found) == sorted(expected)


def test_a_pubend_that_is_idle_takes_no_share_of_a_batch(two: Two) -> None:
    two.lisbon.vouch(90, silent=100)
    two.porto.vouch(25, silent=100)
    reader = reader_of(two, maxEventsPerTrigger="4")
    start = offset(30, lisbon=30, porto=30)
    end = reader.latestOffset(start, ReadMaxRows(4))
    assert end == offset(70, lisbon=70, porto=70)
    assert len(rows_between(reader, start, end)) == 5


def test_available_now_ends_at_the_moment_it_began(two: Two) -> None:
    two.lisbon.vouch(90, silent=100)
    two.porto.vouch(25, silent=100)
    reader = reader_of(two)
    reader.prepareForTriggerAvailableNow()
    two.lisbon.vouch(90, silent=900)
    two.porto.vouch(25, silent=900)
    end = reader.latestOffset(offset(0), ReadMaxRows(100))
    assert end == offset(100, lisbon=100, porto=100)
    assert reader.latestOffset(end, EVERYTHING) == end


def test_what_comes_from_a_clock_that_is_behind_is_counted_at_the_moment_and_not_lost(two: Two) -> None:
    """The start names no place at porto: its pubend was not there then."""
    two.lisbon.vouch(90, silent=100)
    two.porto.vouch(25, silent=100)
    reader = reader_of(two)
    start = offset(20, lisbon=20)
    rows = rows_between(reader, start, reader.latestOffset(start, EVERYTHING))
    assert [accepted for _, pubend, accepted in rows if pubend == PORTO] == [at(21), at(25)]


def test_what_the_logs_have_forgotten_comes_from_the_lake_in_step_too(two: Two) -> None:
    two.lisbon.vouch(90, silent=100)
    two.porto.vouch(25, silent=100)
    assert main(["lake", "run", "--once", "--local-segments", "--network", str(two.network)]) == 0
    two.lisbon.release(50)
    two.porto.release(25)
    reader = reader_of(two)
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(100))
    assert end == offset(100, lisbon=100, porto=100)
    rows = rows_between(reader, reader.initialOffset(), end)
    assert [accepted for kind, pubend, accepted in rows if (kind, pubend) == ("event", LISBON)] == [
        at(tick) for tick in range(10, 100, 10)
    ]
    assert [accepted for kind, pubend, accepted in rows if (kind, pubend) == ("event", PORTO)] == [
        at(15),
        at(25),
    ]


def test_of_a_pubend_that_is_not_there_yet_the_clock_speaks(tmp_path: Path) -> None:
    ranges = Ranges(tmp_path)
    before = time.time_ns() // 1_000
    upto, pubends = ranges.silence(STREAM)
    assert before - CLOCK_TICKS <= upto <= time.time_ns() // 1_000 - CLOCK_TICKS
    assert pubends == {}


def test_nobody_reads_beyond_a_promise(two: Two) -> None:
    two.lisbon.vouch(90, silent=100)
    two.porto.vouch(25, silent=100)
    reader = reader_of(two)
    with pytest.raises(NotStable, match="stable up to 100, and 101 was asked for"):
        rows_between(reader, offset(0), offset(101, lisbon=101))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"columns": "kind,tick"}, "option columns: lacks kind or accepted, and inStep needs both"),
        ({"readFrom": "lake"}, "option readFrom: is lake, and inStep is true"),
        ({"inStep": "yes"}, "option inStep: is 'yes'; expected true or false"),
    ],
)
def test_what_does_not_go_together_is_refused(two: Two, options: dict[str, str], problem: str) -> None:
    with pytest.raises(BadOption, match=problem):
        reader_of(two, **options)
