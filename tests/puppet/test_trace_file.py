from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.clock import SECOND
from holdfast.puppet.trace_file import TraceFile, read_trace_file, unsubscribed_in


def opened(path: Path, *, at: int = 3 * SECOND // 2) -> TraceFile:
    file = TraceFile(path, "b1", lambda: at)
    file.began = SECOND
    return file


def test_a_line_has_its_time_since_the_beginning_and_its_position(tmp_path: Path) -> None:
    file = opened(tmp_path / "t")
    file.write("crash", {"nodes": ["b2"]})
    file.write("restart", {"nodes": ["b2"]})
    file.flush()
    assert read_trace_file(tmp_path / "t") == [
        {"t": 0.5, "i": 1, "node": "b1", "kind": "crash", "nodes": ["b2"]},
        {"t": 0.5, "i": 2, "node": "b1", "kind": "restart", "nodes": ["b2"]},
    ]
    file.close()


def test_positions_go_on_in_the_next_life(tmp_path: Path) -> None:
    for _ in range(3):
        file = opened(tmp_path / "t")
        file.write("crash", {"nodes": []})
        file.close()
    assert [line["i"] for line in read_trace_file(tmp_path / "t")] == [1, 2, 3]


def test_what_was_not_flushed_is_not_in_the_file(tmp_path: Path) -> None:
    file = opened(tmp_path / "t")
    file.write("crash", {"nodes": []})
    assert read_trace_file(tmp_path / "t") == []
    file.close()


@pytest.mark.parametrize("torn", [1, 10, -1])
def test_half_a_line_is_cut_off_by_the_reader_and_by_the_next_life(tmp_path: Path, torn: int) -> None:
    file = opened(tmp_path / "t")
    file.write("crash", {"nodes": ["first"]})
    file.close()
    whole = (tmp_path / "t").read_bytes()
    (tmp_path / "t").write_bytes(whole + whole[:torn])
    assert [line["i"] for line in read_trace_file(tmp_path / "t")] == [1]
    file = opened(tmp_path / "t")
    file.write("crash", {"nodes": ["second"]})
    file.close()
    assert [(line["i"], line["nodes"]) for line in read_trace_file(tmp_path / "t")] == [
        (1, ["first"]),
        (2, ["second"]),
    ]


def test_a_node_that_never_wrote_has_an_empty_trace(tmp_path: Path) -> None:
    assert read_trace_file(tmp_path / "nobody") == []


def test_what_is_told_before_the_script_began_is_left_out(tmp_path: Path) -> None:
    times = iter([9 * SECOND, 10 * SECOND])
    file = TraceFile(tmp_path / "t", "b1", lambda: next(times))
    file.write("disconnect", {"nodes": ["b1", "b2"]})  # nobody knows yet when that is
    file.began = 10 * SECOND
    file.write("disconnect", {"nodes": ["b1", "b2"]})
    file.write("reconnect", {"nodes": ["b1", "b2"]})
    file.close()
    lines = read_trace_file(tmp_path / "t")
    assert [(line["t"], line["i"], line["kind"]) for line in lines] == [(0.0, 1, "reconnect")]


# Records


def read_once(file: TraceFile, tick: int) -> None:
    """Silence up to a tick, for a subscription that is kept."""
    asked = {"subscriber": "b1", "subscription": "mine", "pubend": "x"}
    file.write("silence", {**asked, "after": tick - 1, "upto": tick})
    file.remember("mine", f"token {tick}")


def test_the_last_record_is_found_again_and_is_no_line(tmp_path: Path) -> None:
    file = opened(tmp_path / "t")
    assert file.records == {}
    file.remember("other", "here")
    for tick in (1, 2):
        read_once(file, tick)
        file.flush()
    file.close()
    again = opened(tmp_path / "t")
    assert again.records == {"mine": "token 2", "other": "here"}
    again.write("crash", {"nodes": []})
    again.close()
    assert [(line["i"], line["kind"]) for line in read_trace_file(tmp_path / "t")] == [
        (1, "silence"),
        (2, "silence"),
        (3, "crash"),
    ]


def test_what_was_read_and_its_record_are_written_both_or_neither_wherever_a_kill_cuts_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t"
    file = opened(path)
    read_once(file, 1)
    file.flush()
    file.write("crash", {"nodes": []})
    file.flush()
    settled = path.read_bytes()
    read_once(file, 2)
    file.close()
    whole = path.read_bytes()
    for end in range(len(settled), len(whole) + 1):
        path.write_bytes(whole[:end])
        kinds = [line["kind"] for line in read_trace_file(path)]
        assert kinds == (["silence", "crash", "silence"] if end == len(whole) else ["silence", "crash"])
        life = opened(path)
        assert life.records == {"mine": "token 2" if end == len(whole) else "token 1"}
        life.close()


def test_lines_without_a_record_of_their_own_stay(tmp_path: Path) -> None:
    """What is read for a subscription that is not kept."""
    file = opened(tmp_path / "t")
    file.remember("mine", "here")
    file.write("silence", {"subscriber": "b1", "subscription": "hers", "pubend": "x", "after": 0, "upto": 5})
    file.close()
    assert len(read_trace_file(tmp_path / "t")) == 1


def test_what_a_process_has_heard_the_end_of_is_in_its_file(tmp_path: Path) -> None:
    assert unsubscribed_in(tmp_path / "t") == []
    file = opened(tmp_path / "t")
    asked = {"subscriber": "b1", "filter": "#", "durable": True}
    for kind, subscription in (("subscribe", "unsubscribe"), ("unsubscribe", "a"), ("unsubscribed", "a")):
        file.write(kind, {**asked, "subscription": subscription})
    file.remember("unsubscribe", "here")
    file.write("unsubscribe", {**asked, "subscription": "b"})
    file.flush()
    file.write("unsubscribe", {**asked, "subscription": "c"})
    assert unsubscribed_in(tmp_path / "t") == ["a", "b"]
    file.close()
