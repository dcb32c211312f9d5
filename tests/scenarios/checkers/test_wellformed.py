"""A trace that does not contradict itself."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.scenarios.checkers.wellformed import wellformed
from holdfast.scenarios.trace import TraceLine
from scenario_traces import Lines, good_run


def problems(trace: Sequence[TraceLine]) -> list[str]:
    found = wellformed(trace)
    assert {violation.kind for violation in found} <= {"malformed"}
    return [violation.message for violation in found]


def test_a_good_run_passes() -> None:
    assert problems(good_run().trace()) == []


def test_run_is_first_and_end_is_last_and_each_stands_once() -> None:
    trace = good_run().trace()
    no_run, no_end = "'run' is not the first line and no other", "'end' is not the last line and no other"
    assert problems(trace[:-1]) == [no_end]
    assert no_run in problems(trace[1:])
    assert problems([*trace[1:], trace[0]])[0] == no_run
    assert no_end in problems([*trace, trace[-1]])
    assert problems([]) == [no_run, no_end]


def test_a_line_that_is_missing_repeated_or_out_of_place_is_caught() -> None:
    trace = good_run().trace()
    at = next(i for i, line in enumerate(trace) if line["node"] == "s1" and line["i"] == 2)
    assert problems([*trace[:at], *trace[at + 1 :]]) == ["s1 wrote line 3, not 2"]
    assert problems([*trace[:at], trace[at], *trace[at:]]) == ["s1 wrote line 2, not 3"]
    (violation,) = wellformed([*trace[:at], *trace[at + 1 :]])
    assert [line["i"] for line in violation.lines] == [1, 3]
    (violation,) = wellformed([*trace[: at - 1], *trace[at:]])
    assert [line["i"] for line in violation.lines] == [2]


def test_a_node_that_goes_back_in_time_is_caught_and_others_may_be_behind() -> None:
    trace = good_run().trace()
    at = max(i for i, line in enumerate(trace) if line["node"] == "s2")
    assert problems([*trace[:at], {**trace[at], "t": 0.5}, *trace[at + 1 :]]) == [
        "s2 went back in time from 5.03 to 0.5"
    ]


def test_what_is_no_filter_is_caught() -> None:
    lines = Lines()
    lines.subscribe(1, filter="a WHERE")
    (problem,) = problems(lines.trace())
    assert problem.startswith("s1 asked for what is no filter: line 1, column 8")
