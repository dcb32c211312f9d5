"""What was, out of lake and logs: the answers of a plain scan, in order, gaps in their place [issue 6, history]."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

import pyarrow.parquet as pq
from hand_written import NETWORK, PUBEND, HandWritten, event, events
from lakes import take_all

import holdfast
from drawn_events import an_event
from drawn_filters import Seeded, a_filter
from holdfast.client.item import Gap, LoggedEvent
from holdfast.events.event import Event
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.filters.text import filter_text
from holdfast.pipeline.errors import BadOption
from holdfast.pipeline.past import History, write_parquet


@pytest.fixture
def written(tmp_path: Path) -> Iterator[HandWritten]:
    (tmp_path / "network.toml").write_text(NETWORK)
    with HandWritten(tmp_path / "streams") as folder:
        yield folder


def history(folder: Path, filter: str = "#", **options: object) -> History:
    return holdfast.history(filter, network=folder / "network.toml", local_segments=True, **options)  # type: ignore[arg-type]


def ticks(found: History) -> list[int]:
    return [item.tick for item in found if isinstance(item, LoggedEvent)]


def typed(event: Event) -> tuple[object, ...]:
    attributes = sorted((name, type(value).__name__, value) for name, value in event.attributes.items())
    time = None if event.time is None else event.time // 1_000
    return event.topic, str(attributes), event.payload, event.content_type, time


@pytest.mark.parametrize("seed", range(6))
def test_history_is_a_plain_scan(
    written: HandWritten, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random filters and events; a part of them in the lake alone, a part in both, a part in the log alone."""
    monkeypatch.setattr("holdfast.pipeline.lake.writing.ROW_GROUP_ROWS", 10)
    monkeypatch.setattr("holdfast.pipeline.pages.BATCH_ROWS", 10)
    source = Seeded(random.Random(seed))
    filters = [a_filter(source) for _ in range(10)]
    made = {tick: an_event(source, filters) for tick in range(1, 151)}
    for low in range(1, 151, 50):
        written.publish({tick: made[tick] for tick in range(low, low + 50)})
        written.vouch(low + 49)
        if low == 51:
            take_all(tmp_path)
    written.release(source.random.randrange(1, 100))
    for text in map(filter_text, filters):
        matches = compile_filter(parse_filter(text))
        low, high = sorted(source.random.sample(range(1, 152), 2))
        expected = [tick for tick, each in made.items() if matches(Subject(each)) and low <= tick < high]
        since, until = (datetime.fromtimestamp(each / 1e6, UTC) for each in (low, high))
        found = list(history(tmp_path, text, since=since, until=until))
        assert [item.tick for item in found if isinstance(item, LoggedEvent)] == expected, text
        assert len(found) == len(expected), "no gap"
        for item in found:
            assert isinstance(item, LoggedEvent)
            assert typed(item) == typed(made[item.tick])


def test_since_is_meant_and_until_is_not(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events([10, 20, 30]))
    written.vouch(30)
    assert ticks(history(tmp_path)) == [10, 20, 30]
    assert ticks(
        history(tmp_path, since="1970-01-01T00:00:00.00001Z", until="1970-01-01T00:00:00.00003Z")
    ) == [10, 20]
    assert ticks(history(tmp_path, since=datetime(1970, 1, 1, 0, 0, 0, 11, UTC))) == [20, 30]
    assert ticks(history(tmp_path, "none/#")) == []
    with pytest.raises(BadOption, match="has no time zone"):
        history(tmp_path, since=datetime(1970, 1, 1))
    with pytest.raises(BadOption, match=r"since: .yesterday. is not an RFC 3339 time"):
        history(tmp_path, since="yesterday")
    with pytest.raises(BadOption, match="there is no stream prices"):
        history(tmp_path, stream="prices")
    with pytest.raises(holdfast.FilterError):
        history(tmp_path, "a WHERE")


def test_what_is_gone_everywhere_is_a_gap(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events([10, 20, 30]))
    written.vouch(30)
    take_all(tmp_path)
    written.publish(events([40, 50]))
    written.vouch(50)
    written.release(40, "no room")
    found = list(history(tmp_path))
    assert found[3] == Gap(PUBEND, 30, 40, "no room")
    assert ticks(history(tmp_path)) == [10, 20, 30, 50]
    assert ticks(history(tmp_path, read_from="log")) == [50]
    assert ticks(history(tmp_path, read_from="lake")) == [10, 20, 30]


def test_pubends_come_in_the_order_in_which_events_were_accepted(tmp_path: Path) -> None:
    """Two brokers, whose ticks are between each other."""
    text = NETWORK.replace('data = "."', 'data = "one"')
    other = '[[broker]]\nname = "porto"\nparent = "lisbon"\nlisten = "127.0.0.1:7001"\ndata = "two"\n'
    (tmp_path / "network.toml").write_text(text.replace("[[stream]]", f"{other}[[stream]]"))
    with (
        HandWritten(tmp_path / "one" / "streams") as one,
        HandWritten(tmp_path / "two" / "streams", pubend="orders@porto/0") as two,
    ):
        one.publish(events([10, 30, 31, 60]))
        one.vouch(60)
        two.publish(events([20, 40, 50, 70]))
        two.vouch(70)
        assert ticks(history(tmp_path)) == [10, 20, 30, 31, 40, 50, 60, 70]


def test_it_can_be_a_file(written: HandWritten, tmp_path: Path) -> None:
    written.publish({tick: event(tick, price=tick / 2) for tick in range(1, 101)})
    written.vouch(100)
    take_all(tmp_path)
    path = tmp_path / "found.parquet"
    assert write_parquet(history(tmp_path, "# WHERE price > 40"), path) == 20
    assert pq.read_table(path)["tick"].to_pylist() == list(range(81, 101))
    assert write_parquet(history(tmp_path), path, most=7) == 7
    found = history(tmp_path, "# WHERE price > 1e9", read_from="lake")
    assert list(found) == []
    assert 0 == found.read.bytes < found.read.of, "no file of it was opened"
