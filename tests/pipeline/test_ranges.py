"""Ranges of logs as another process reads them: never past what is stable, nothing lost in silence [R1.7, B1.4]."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from hand_written import PUBEND, STREAM, HandWritten, events

from holdfast.messages.ticks import Lost
from holdfast.pipeline.errors import NoPubend, NotStable
from holdfast.pipeline.ranges import End, Ranges
from holdfast.storage.files import DiskFailed
from holdfast.streams.pubend import RESTORED


@pytest.fixture
def written(tmp_path: Path) -> Iterator[HandWritten]:
    with HandWritten(tmp_path / "streams", segment_bytes=2_000) as folder:
        yield folder


def told(ranges: Ranges, after: int, upto: int) -> list[int | Lost]:
    """Ticks of events and what is lost, in order."""
    found: list[int | Lost] = []
    for piece in ranges.scan(PUBEND, after, upto):
        found += [piece] if isinstance(piece, Lost) else piece.indexes
    return found


def test_the_last_commit_is_served_once_the_tables_vouch_for_it(written: HandWritten) -> None:
    ranges = Ranges(written.folder)
    assert ranges.ends(STREAM) == {PUBEND: End(1, 0, 0)}
    written.publish(events([10, 20]))
    written.publish(events([30, 40]))
    assert ranges.ends(STREAM)[PUBEND].last == 20  # the second commit shows that the first was synced
    with pytest.raises(NotStable, match="stable up to 20, and 30"):
        told(ranges, 0, 30)
    written.vouch(40)
    assert ranges.ends(STREAM)[PUBEND].last == 40
    assert told(ranges, 10, 35) == [20, 30]
    written.publish(events([50]))
    assert ranges.ends(STREAM)[PUBEND].last == 40
    assert told(ranges, 0, 40) == [10, 20, 30, 40]


def test_what_was_not_synced_and_was_written_anew_is_read_anew(written: HandWritten) -> None:
    """A commit that the disk refused is cut off, and other events are written in its place."""
    written.publish(events([10]))
    written.publish(events([20]))
    ranges = Ranges(written.folder)
    written.vouch(20)
    assert told(ranges, 0, 20) == [10, 20]
    [last] = sorted(written.log_folder.glob("*.segment"))
    whole = last.read_bytes()
    written.publish(events([30]))
    written.vouch(30)
    assert told(ranges, 0, 30) == [10, 20, 30]
    other = last.read_bytes()
    last.write_bytes(whole)
    assert told(ranges, 0, 30) == [10, 20, Lost(20, 30, "damaged")]
    last.write_bytes(other)
    assert told(ranges, 0, 30) == [10, 20, 30]


def test_what_was_released_is_lost_with_its_reason(written: HandWritten) -> None:
    for i in range(1, 100):
        written.publish(events([10 * i]))
    written.vouch(990)
    ranges = Ranges(written.folder)
    written.release(200, "retained for 1 s")
    written.release(300, "no room")
    assert ranges.ends(STREAM)[PUBEND] == End(1, 300, 990)
    assert told(ranges, 0, 320) == [
        Lost(0, 200, "retained for 1 s"),
        Lost(200, 300, "no room"),
        310,
        320,
    ]
    assert told(ranges, 250, 310) == [Lost(250, 300, "no room"), 310]


def test_what_is_chopped_under_a_scan_is_lost_with_its_reason_too(written: HandWritten) -> None:
    for i in range(1, 100):
        written.publish(events([10 * i]))
    written.vouch(990)
    scan = Ranges(written.folder).scan(PUBEND, 0, 990)
    first = next(scan)
    assert not isinstance(first, Lost)
    found: list[int | Lost] = list(first.indexes)
    written.release(800, "no room")
    for piece in scan:
        found += [piece] if isinstance(piece, Lost) else piece.indexes
    [gap] = [each for each in found if isinstance(each, Lost)]
    assert gap.reason == "no room"
    before = found[: found.index(gap)]
    behind = found[found.index(gap) + 1 :]
    assert before == [10 * i for i in range(1, len(before) + 1)]
    assert gap.after == before[-1]
    assert behind == [10 * i for i in range(gap.upto // 10 + 1, 100)]


def test_before_a_pubend_was_made_there_was_silence(written: HandWritten) -> None:
    written.kept.created = 500
    written.save()
    written.publish(events([510]))
    written.vouch(510)
    assert told(Ranges(written.folder), 0, 510) == [510]


def test_a_damaged_record_is_lost_and_its_neighbours_are_not(written: HandWritten) -> None:
    written.publish(events([10, 20, 30]))
    written.publish(events([40]))
    written.flip(b"payload 20;")
    assert told(Ranges(written.folder), 0, 30) == [10, Lost(19, 20, "damaged"), 30]


def test_what_a_restored_log_was_robbed_of_is_lost(written: HandWritten) -> None:
    written.publish(events([10]))
    written.kept.lost.append(Lost(10, 100, RESTORED))
    written.kept.incarnation = 2
    written.save()
    written.vouch(10)
    ranges = Ranges(written.folder)
    assert ranges.ends(STREAM)[PUBEND] == End(2, 0, 100)
    written.publish(events([110]))
    written.vouch(110)
    assert told(ranges, 0, 110) == [10, Lost(10, 100, RESTORED), 110]


def test_nothing_beyond_an_event_that_is_on_its_way_is_decided(written: HandWritten) -> None:
    """A log that was robbed says so while events before that are not on disk yet."""
    written.publish(events([10]))
    written.vouch(10)
    written.kept.lost.append(Lost(20, 100, RESTORED))
    written.save()
    assert Ranges(written.folder).ends(STREAM)[PUBEND].last == 10


def test_a_log_that_is_gone_is_lost(written: HandWritten) -> None:
    written.publish(events([10, 20]))
    written.vouch(20)
    for path in written.log_folder.iterdir():
        path.unlink()
    ranges = Ranges(written.folder)
    assert ranges.ends(STREAM)[PUBEND] == End(1, 0, 20)
    assert told(ranges, 0, 20) == [Lost(0, 20, "damaged")]


def test_who_is_not_here_is_named(written: HandWritten) -> None:
    ranges = Ranges(written.folder)
    assert ranges.ends("other") == {}
    with pytest.raises(NoPubend, match="no pubend other@x/0 here"):
        list(ranges.scan("other@x/0", 0, 0))
    assert Ranges(written.folder / "nowhere").ends(STREAM) == {}


def test_tables_that_cannot_be_read_are_no_broker_without_pubends(written: HandWritten) -> None:
    (written.folder / "tables.sqlite").write_bytes(b"no database, though it was one")
    (written.folder / "tables.sqlite-wal").unlink()
    with pytest.raises(DiskFailed, match=r"tables\.sqlite: no copy could be read"):
        Ranges(written.folder).ends(STREAM)
