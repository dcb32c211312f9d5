"""The end of a log is known to the tables: what is lost there does not pass for a write that was torn.

Issue 5 §1 (damaged parts are named, never served); I16, I20. (The same of filtering logs: ``test_store_matches``; a
whole broker: ``tests/broker/test_durable_lost_end.py``; a real one: ``tests/runtime/test_damaged_logs.py``.)
"""

from __future__ import annotations

from copy import deepcopy

import msgspec
import pytest
from stores import PUBEND, Bench, row

from holdfast.messages.ticks import Lost
from holdfast.storage.files import DiskFailed
from holdfast.storage.log import LogSettings
from holdfast.storage.tables import Change
from holdfast.streams.ends import LEASES, MATCH_ENDS, PUBENDS, Ends, Leased, match_end, read_ends

WHOLE = LogSettings(1 << 20)


def leased(stable: int, pubend: str = PUBEND) -> Change:
    return Change(LEASES, pubend, msgspec.msgpack.encode(Leased(stable + 1_000, stable)))


def flip_the_last_bit(bench: Bench) -> None:
    name = max(name for name in bench.disk.names() if name.endswith("segment"))
    whole = bench.disk.read(name)
    assert whole is not None
    bench.disk.replace(name, whole[:-1] + bytes([whole[-1] ^ 1]))


def found(bench: Bench) -> tuple[list[int], int, list[Lost]]:
    """The events that are left, the end that is known, and what is lost."""
    state = bench.recovered.logs[PUBEND]
    return [tick for tick, _ in state.tail], state.last, list(state.lost)


@pytest.mark.parametrize("is_saved", [True, False])
def test_an_end_that_looks_torn_is_lost_if_it_was_saved_that_it_was_there(is_saved: bool) -> None:
    """A bit of the very last commit has changed: only the tables know that it is not one that never was whole."""
    bench = Bench(WHOLE)
    bench.append([1, 2])
    bench.append([5, 9])
    if is_saved:
        bench.save(leased(9))
    flip_the_last_bit(bench)
    bench.crash()
    assert found(bench) == ([1, 2], 9, [Lost(2, 9, "damaged")]) if is_saved else ([1, 2], 2, [])


def test_what_was_logged_behind_the_end_that_was_saved_may_be_torn() -> None:
    bench = Bench(WHOLE)
    bench.append([1, 2])
    bench.save(leased(2))
    bench.append([5, 9])
    flip_the_last_bit(bench)
    bench.crash()
    assert found(bench) == ([1, 2], 2, [])


def test_the_marks_of_publishers_are_read_up_to_the_end_whatever_was_saved_of_it() -> None:
    """The marks that were saved are of events up to 2: those of 5 and 9 are in the log only."""
    bench = Bench(WHOLE)
    bench.append([1, 2], [5, 9])
    bench.save(Change(PUBENDS, PUBEND, row(upto=2)), leased(9))
    bench.crash()
    assert found(bench) == ([1, 2, 5, 9], 9, [])


@pytest.mark.parametrize("settings", [WHOLE, LogSettings(600, retired_bytes=1)])
def test_a_log_that_was_chopped_wholly_has_lost_nothing(settings: LogSettings) -> None:
    bench = Bench(settings)
    bench.append(range(1, 40))
    bench.save(leased(39))
    is_chopped = bench.chop(39).through == 39
    for again in (bench.crash, bench.start):
        again()
        assert found(bench) == ([] if is_chopped else list(range(1, 40)), 39, [])


def test_a_log_of_which_no_file_is_left_is_lost_up_to_its_end() -> None:
    """The pubend's row is older: it was saved when the log began."""
    bench = Bench(WHOLE)
    bench.append([1, 2])
    bench.save(Change(PUBENDS, PUBEND, row(upto=1)), leased(2))
    for name in bench.disk.names():
        bench.disk.remove(name)
    bench.crash()
    assert found(bench) == ([], 2, [Lost(0, 2, "damaged")])


@pytest.mark.parametrize(
    ("logs", "tables", "lost"),
    [("old", "old", []), ("new", "old", []), ("new", "new", []), ("old", "new", [Lost(2, 9, "damaged")])],
)
def test_of_a_backup_the_logs_must_not_be_older_than_the_tables(
    logs: str, tables: str, lost: list[Lost]
) -> None:
    """Both older is a restored backup, which others tell of; logs that are older alone have lost their end."""
    bench = Bench(WHOLE)
    copies = {}
    for when, ticks in (("old", [1, 2]), ("new", [5, 9])):
        bench.append(ticks)
        bench.save(leased(ticks[-1]))
        copies[when] = deepcopy((bench.disk._files, bench.tables._tables))
    bench.disk._files, bench.tables._tables = copies[logs][0], copies[tables][1]
    bench.crash()
    assert found(bench)[2] == lost


def test_what_is_known_of_each_log_by_its_folder() -> None:
    rows = [
        Change(PUBENDS, "a@b/0", row(upto=7)),
        leased(5, "a@b/0"),
        leased(9, "ü@b/0"),
        match_end("a@b/0", 3),
    ]
    tables: dict[str, dict[str, bytes]] = {}
    for table, key, value in rows:
        assert value is not None
        tables.setdefault(table, {})[key] = value
    ends = read_ends(tables)
    assert ends == Ends(ends.rows, {"a@b/0": 7, "ü@b/0": 9}, {"a@b/0": 3}, {"a@b/0": 0, "ü@b/0": 0})
    assert ends.by_folder() == {"events-a@b%2F0": 7, "events-%C3%BC@b%2F0": 9, "matches-a@b%2F0": 3}


@pytest.mark.parametrize("table", [PUBENDS, LEASES, MATCH_ENDS])
def test_a_row_that_cannot_be_read_is_named(table: str) -> None:
    with pytest.raises(DiskFailed, match=f"the row of pubend p@b/0 in {table} cannot be read"):
        read_ends({table: {"p@b/0": b"\xc1"}})
