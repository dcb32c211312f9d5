"""The log as a table of Delta: every row once, gaps in their place, columns that come later; and who may write."""

from __future__ import annotations

import random
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

import pyarrow.parquet as pq
from deltalake import DeltaTable
from hand_written import PUBEND, STREAM, HandWritten, event, events
from lakes import logged, origins_in, stored, table_in, take_all

from holdfast.cli.free_ports import free_ports
from holdfast.pipeline.errors import ReaderUnreachable
from holdfast.pipeline.lake.compact import compact
from holdfast.pipeline.lake.errors import ForeignTable, LakeBusy, LakeFailed, NoTable, OtherType
from holdfast.pipeline.lake.run import take_round
from holdfast.pipeline.lake.table import LakeTable
from holdfast.pipeline.origins import Origins
from holdfast.runtime.addresses import Address


@pytest.fixture
def written(tmp_path: Path) -> Iterator[HandWritten]:
    with HandWritten(tmp_path / "streams", segment_bytes=20_000) as folder:
        yield folder


def test_the_table_is_the_log_and_says_how_far_it_goes(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events(range(10, 980, 10)))
    written.publish(events([980, 990]))
    written.vouch(990)
    written.flip(b"payload 500;")
    rounds = take_all(tmp_path, rows_max=1)
    assert rounds[0].ranges == {PUBEND: (0, 990)}, "a page is taken whole"
    assert sum(each.gaps for each in rounds) == 1
    assert table_in(tmp_path).place(PUBEND) == 990
    assert stored(tmp_path) == logged(tmp_path, 990)
    written.publish(events([1_000, 1_010]))
    written.vouch(1_010)
    assert [each.ranges for each in take_all(tmp_path)] == [{PUBEND: (990, 1_010)}]
    assert take_all(tmp_path) == []
    found = stored(tmp_path)
    assert found == logged(tmp_path, 1_010)
    assert [row["after"] for row in found[1:]] == [row["tick"] for row in found[:-1]], (
        "without hole or overlap"
    )


def test_what_the_log_has_forgotten_before_the_first_round_is_not_in_the_table_and_later_it_is_a_gap(
    written: HandWritten, tmp_path: Path
) -> None:
    written.publish(events([10, 20, 30]))
    written.vouch(30)
    written.release(20, "no room")
    take_all(tmp_path)
    assert [(row["kind"], row["after"], row["tick"]) for row in stored(tmp_path)] == [("event", 20, 30)]
    written.publish(events([40, 50]))
    written.vouch(50)
    written.release(40, "too old")
    take_all(tmp_path)
    assert [(row["kind"], row["after"], row["tick"], row["reason"]) for row in stored(tmp_path)] == [
        ("event", 20, 30, None),
        ("gap", 30, 40, "too old"),
        ("event", 40, 50, None),
    ]


def test_a_wrong_type_is_null_in_its_column_kept_in_attributes_and_counted(
    written: HandWritten, tmp_path: Path
) -> None:
    written.publish({10: event(1, price=1.5), 20: event(2, price=2, sym=True), 30: event(3)})
    written.vouch(30)
    [taken] = take_all(tmp_path)
    assert taken.mistyped == {"price": 1, "sym": 1}
    assert [row["a"]["price"] for row in stored(tmp_path)] == [1.5, None, None]
    assert stored(tmp_path) == logged(tmp_path, 30)
    note = DeltaTable(tmp_path / "lake" / STREAM).history(1)[0]["holdfast"]
    assert '"mistyped": {"price": 1, "sym": 1}' in note
    assert f'"ranges": {{"{PUBEND}": [0, 30]}}' in note


def test_attributes_that_are_declared_later_have_a_column_from_then_on_and_after_compaction_from_the_start(
    written: HandWritten, tmp_path: Path
) -> None:
    table = table_in(tmp_path, {})
    written.publish({10: event(1, price=1.5)})
    written.vouch(10)
    take_round(table, origins_in(tmp_path))
    assert "a" not in stored(tmp_path)[0]
    table = table_in(tmp_path, {"price": "DOUBLE"})
    written.publish({20: event(2, price=2.5)})
    written.vouch(20)
    take_round(table, origins_in(tmp_path))
    assert [row["a"] for row in stored(tmp_path)] == [None, {"price": 2.5}]
    compact(table)
    assert [row["a"] for row in stored(tmp_path)] == [{"price": 1.5}, {"price": 2.5}]
    assert table_in(tmp_path, {"i": "BIGINT"}).attributes == {"price": "DOUBLE", "i": "BIGINT"}
    with pytest.raises(OtherType, match="price is DOUBLE in the table, and declared STRING; expected DOUBLE"):
        table_in(tmp_path, {"price": "STRING"})
    with pytest.raises(OtherType, match=r"Price is declared, and the table has price, .* expected price"):
        table_in(tmp_path, {"Price": "DOUBLE"})


def test_row_groups_are_full_and_no_larger_than_they_may_be(
    written: HandWritten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of small files that are put together neither."""
    monkeypatch.setattr("holdfast.pipeline.lake.writing.ROW_GROUP_ROWS", 10)
    for last in (8, 16, 24):
        written.publish(events(range(last - 7, last + 1)))
        written.vouch(last)
        take_all(tmp_path)
    compact(table_in(tmp_path))
    [path] = (tmp_path / "lake" / STREAM / each.path for each in table_in(tmp_path).files())
    metadata = pq.read_metadata(path)
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [10, 10, 4]


def test_columns_are_written_as_their_values_are(
    written: HandWritten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dictionary only where values come again, differences where they ascend; a name of ours may be theirs too."""
    monkeypatch.setattr("holdfast.pipeline.lake.writing.DICTIONARY_BYTES", 1_024)
    attributes = {"tick": "BIGINT", "x.y": "STRING"}
    count = 3_000
    values: dict[int, dict[str, int | str]] = {i: {"tick": -i, "x.y": "same"} for i in range(1, count + 1)}
    written.publish({i: event(i, **each) for i, each in values.items()})
    written.vouch(count)
    table = table_in(tmp_path, attributes)
    take_round(table, origins_in(tmp_path))
    [path] = (tmp_path / "lake" / STREAM / each.path for each in table.files())
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    by_name = {each.path_in_schema: each for each in columns}
    for name in ("after", "tick", "n", "time", "accepted"):
        assert "DELTA_BINARY_PACKED" in by_name[name].encodings
        assert by_name[name].total_uncompressed_size < 2 * count
    for name in ("kind", "topic", "attributes.metadata", "a.x.y"):
        assert "RLE_DICTIONARY" in by_name[name].encodings
        assert by_name[name].total_uncompressed_size < count
    for name in ("payload", "attributes.value", "rest"):
        assert "RLE_DICTIONARY" not in by_name[name].encodings
    least = 8 * count
    assert least < by_name["a.tick"].total_uncompressed_size < 1.2 * least, "a dictionary of all of them"
    assert [row["a"]["tick"] for row in stored(tmp_path)] == [-i for i in range(1, count + 1)]


def test_of_two_who_write_at_the_same_time_one_is_refused_and_nothing_is_there_twice(
    written: HandWritten, tmp_path: Path
) -> None:
    written.publish(events(range(10, 100, 10)))
    written.vouch(90)
    ours, theirs = table_in(tmp_path), table_in(tmp_path)
    assert take_round(theirs, origins_in(tmp_path)) is not None
    with pytest.raises(LakeBusy, match="somebody else writes this table too"):
        take_round(ours, origins_in(tmp_path))
    assert stored(tmp_path) == logged(tmp_path, 90)
    ours.refresh()
    assert take_round(ours, origins_in(tmp_path)) is None


def test_of_two_who_compact_at_the_same_time_one_is_refused(written: HandWritten, tmp_path: Path) -> None:
    for tick in (10, 20, 30):
        written.publish(events([tick]))
        written.vouch(tick)
        take_all(tmp_path)
    ours, theirs = table_in(tmp_path), table_in(tmp_path)
    written.publish(events([40]))
    written.vouch(40)
    take_all(tmp_path)  # who only adds is in nobody's way
    assert compact(theirs).before == 3
    with pytest.raises(LakeBusy):
        compact(ours)
    assert stored(tmp_path) == logged(tmp_path, 40)


def test_compaction_changes_no_row_and_breaks_no_reader_until_the_vacuum(
    written: HandWritten, tmp_path: Path
) -> None:
    for tick in range(10, 110, 10):
        written.publish(events([tick]))
        written.vouch(tick)
        take_all(tmp_path)
    before = stored(tmp_path)
    table = table_in(tmp_path)
    old = table.version
    made = compact(table)
    assert (made.before, made.after, len(table.files())) == (10, 1, 1)
    assert compact(table) == (0, 0, 0)
    assert stored(tmp_path) == before == stored(tmp_path, old) == logged(tmp_path, 100)
    assert table.vacuum(grace_hours=1) == []
    assert len(table.vacuum(grace_hours=0)) == 10
    table.checkpoint()
    assert stored(tmp_path) == before
    with pytest.raises(FileNotFoundError):
        stored(tmp_path, old)
    assert table_in(tmp_path).place(PUBEND) == 100, "also from a checkpoint"


def test_large_files_are_left_alone(written: HandWritten, tmp_path: Path) -> None:
    for tick in range(10, 90, 10):
        written.publish(events([tick]))
        written.vouch(tick)
        take_all(tmp_path)
    table = table_in(tmp_path)
    size = max(file.size for file in table.files())
    assert compact(table, target_bytes=size).before == 0
    assert compact(table, target_bytes=3 * size).after == 2 + (8 % 3 > 1)
    assert stored(tmp_path) == logged(tmp_path, 80)


def test_what_is_no_table_of_ours_is_left_alone(tmp_path: Path) -> None:
    import pyarrow as pa

    with pytest.raises(NoTable, match="'holdfast lake run' makes it"):
        LakeTable(tmp_path / "none", STREAM)
    DeltaTable.create(tmp_path / "foreign", pa.schema([("x", pa.int64())]))
    with pytest.raises(ForeignTable, match="that holdfast did not make; expected that of orders"):
        LakeTable.made(tmp_path / "foreign", STREAM, {})
    LakeTable.made(tmp_path / "prices", "prices", {})
    with pytest.raises(ForeignTable, match="of the stream prices; expected that of orders"):
        LakeTable.made(tmp_path / "prices", STREAM, {})
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "thesis.txt").write_text("mine")
    with pytest.raises(ForeignTable, match="something here that is no table"):
        LakeTable.made(tmp_path / "junk", STREAM, {})
    (tmp_path / "file").write_text("")
    with pytest.raises(LakeFailed, match="file"):
        LakeTable.made(tmp_path / "file" / "orders", STREAM, {})


FULL = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from lakes import take_all
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
take_all(Path({folder!r}))
"""


def test_a_full_disk_is_one_error_and_the_table_is_as_it_was(written: HandWritten, tmp_path: Path) -> None:
    written.publish(events([10]))
    written.vouch(10)
    take_all(tmp_path)
    written.publish(
        {tick: event(tick, sym=random.Random(tick).randbytes(200).hex()) for tick in range(20, 2_000)}
    )
    written.vouch(1_999)
    script = FULL.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
    )
    assert "LakeFailed" in ran.stderr.splitlines()[-1], ran.stderr
    assert "file too large" in ran.stderr.splitlines()[-1], ran.stderr
    assert stored(tmp_path) == logged(tmp_path, 10)
    take_all(tmp_path)
    assert stored(tmp_path) == logged(tmp_path, 1_999)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY, "the child's alone"


def test_a_broker_that_is_away_holds_up_nobody_else(
    written: HandWritten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.pipeline.remote.PATIENCE_SECONDS", 0)
    written.publish(events([10]))
    written.vouch(10)
    away = Address("127.0.0.1", free_ports(1)[0])
    origins = Origins(STREAM, {"away": away, "lisbon": tmp_path / "streams"})
    table = table_in(tmp_path)
    taken = take_round(table, origins)
    assert taken is not None
    assert taken.ranges == {PUBEND: (0, 10)}
    assert "the log reader of broker away" in str(taken.problems["away"])
    with pytest.raises(ReaderUnreachable, match="broker away"):
        take_round(table, origins)
    assert stored(tmp_path) == logged(tmp_path, 10)
