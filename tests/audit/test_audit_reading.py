"""Traces that cannot be read are refused by file, line and problem [contracts.md §5, §6]."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from audited import clean, encoded, find, verdict_on
from holdfast.pipeline.audit.chronicle import ChronicleError
from holdfast.pipeline.audit.engine import audit, choose
from holdfast.pipeline.audit.traces import TraceError, read_traces

TREE: dict[str, str | None] = {"b": None, "p": "b", "u": "b"}
RUN: dict[str, Any] = {
    "guarantee": "reliable",
    "order": "FIFO",
    "delta": 0,
    "routing": "filter",
    "tree": TREE,
}


def line(kind: str, i: int = 1, node: str = "master", t: float = 0.0, **fields: Any) -> bytes:
    return json.dumps({"t": t, "i": i, "node": node, "kind": kind, **fields}).encode() + b"\n"


HEAD = line("run", **RUN)
END = line("end", 2, t=9.0, drained=True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"{", "not JSON"),
        (b'{"t": 1.0, "i": 2, "node": "p", "ki', "not JSON"),
        (b"\xff\xfe\n", "not JSON"),
        (b"[1]\n", "Expected `object`"),
        (b'{"i": 1, "node": "p", "kind": "end", "drained": true}', "no field `t`"),
        (line("unheard-of"), "kind is 'unheard-of'; expected one of run, publish"),
        (line("publish", node="p", publisher="p", n=1, attributes={}), "publish has no topic"),
        (line("publish", node="p", publisher="p", n="1", topic="a", attributes={}), "Expected `int`"),
        (line("publish", node="p", publisher="p", n=1, topic="a", attributes={"x": [1]}), "'x' is nested"),
        (line("publish", node="p", publisher="p", n=2**64, topic="a", attributes={}), "- at `n`"),
        (
            line("deliver", node="u", subscriber="u", subscription="w", publisher="p", n=1),
            "deliver has no topic",
        ),
        (line("subscribe", subscriber="u", subscription="w", filter="a WHERE", durable=False), "is none"),
        (line("forward", publisher="p", n=1, to="u"), "forward has no from"),
        (line("run", **{**RUN, "guarantee": "perfect"}), "guarantee of run is 'perfect'"),
        (line("run", **{**RUN, "order": "fifo"}), "expected one of NO, FIFO, TOTAL"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: bytes, problem: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(HEAD + b"\n" + text)
    with pytest.raises(TraceError) as caught:
        list(read_traces([path]))
    assert str(caught.value).startswith(f"{path}, line 3: ")
    assert problem in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="none: No such file or directory"):
        choose([tmp_path / "none"])


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([END], "has no 'run' line"),
        ([HEAD], "has no 'end' line: the trace is cut"),
        ([HEAD, HEAD, END], "has two 'run' lines"),
    ],
)
def test_a_run_without_its_beginning_or_its_end_is_refused(
    tmp_path: Path, lines: list[bytes], problem: str
) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"".join(lines))
    with pytest.raises(ChronicleError, match=problem):
        audit([path], "local")


def test_an_empty_trace_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"\n")
    with pytest.raises(TraceError, match="there is no line in it"):
        audit([path], "local")


def test_a_run_without_an_end_is_judged_as_far_as_it_can_be_if_that_is_expected() -> None:
    """What came after something that is missing shows that it is lost; what is missing at the end may be on its way."""
    trace = clean("reliable")[:-1]
    lost, pending = find(trace, "deliver", subscription="all", publisher="q")[-2:]
    trace.remove(pending)
    verdict = verdict_on(trace, unfinished=True)
    assert verdict.is_kept
    assert verdict.notes == [
        "run: no end: what had not come and was not passed over is not judged, nor what was not accepted"
    ]
    trace = clean("reliable")[:-1]
    trace.remove(lost)
    assert verdict_on(trace, unfinished=True).counts == {"lost": 1}


def test_a_run_that_was_not_drained_says_what_is_not_judged() -> None:
    trace = clean("durable")
    trace[-1]["drained"] = False
    trace.remove(find(trace, "accepted")[-1])
    trace.remove(find(trace, "deliver", subscription="all", publisher="p")[-1])
    verdict = verdict_on(trace)
    assert "not drained" in verdict.notes[0]
    assert "unaccepted" not in verdict.counts


def test_runs_are_told_apart_by_a_field_or_by_their_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    one.write_bytes(b"".join(encoded([{**line, "run": 7} for line in clean("best-effort")])))
    one.write_bytes(one.read_bytes() + b"".join(encoded([{**each, "run": "x"} for each in clean("total")])))
    two.write_bytes(b"".join(encoded(clean("reliable"))))
    assert {run for run, _ in read_traces([one, two])} == {"7", "x", str(two)}
    verdict = audit([one, two], "local")
    assert (verdict.runs, verdict.is_kept) == (3, True)


def test_bytes_among_attributes_are_bytes(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    attributes = {"raw": {"base64": "AAE="}, "x": 1}
    path.write_bytes(line("publish", node="p", publisher="p", n=1, topic="a", attributes=attributes))
    ((_, read),) = read_traces([path])
    assert read.attributes == {"raw": b"\0\1", "x": 1}


def test_what_the_audit_does_not_ask_about_is_ignored(tmp_path: Path) -> None:
    """Traces may carry more: vectors, holders, the settings of the run."""
    path = tmp_path / "trace.jsonl"
    path.write_bytes(line("run", **RUN, seed=1, world="real", vectors=[[1]]) + END)
    assert audit([path], "local").is_kept
