from __future__ import annotations

from holdfast.scenarios.trace import TraceLine
from holdfast.scenarios.traffic import link_traffic, traffic_table


def forward(a: str, b: str) -> TraceLine:
    return {"kind": "forward", "from": a, "to": b, "publisher": "p", "n": 1, "again": False}


def test_copies_are_counted_by_link_and_direction() -> None:
    trace = [forward("a", "b"), forward("b", "a"), forward("a", "b"), {"kind": "publish"}]
    assert link_traffic(trace) == {("a", "b"): 2, ("b", "a"): 1}


def test_a_table_sets_runs_side_by_side_and_sums_them() -> None:
    columns = {"filter": {("a", "b"): 2}, "flooding": {("a", "b"): 10, ("b", "c"): 10}}
    assert traffic_table(columns) == (
        "link    filter  flooding\n"
        "a -> b       2        10\n"
        "b -> c       0        10\n"
        "all          2        20\n"
    )
