"""Users' programs that are killed or stand still: the short version; ``tests/real_programs.py`` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

import real_programs
from real_programs import differences

TROUBLES, SEED = 8, 13  #: of both kinds, for brokers and for programs


def test_from_table_to_table_everything_is_told_once_whoever_is_killed(tmp_path: Path) -> None:
    found, counts = real_programs.performed(TROUBLES, SEED, tmp_path)
    assert not found
    assert counts["troubles"] == TROUBLES
    for kind in ("killed brokers", "killed programs", "stalled brokers", "stalled programs"):
        assert counts[kind] > 0
    assert counts["events"] > 100
    assert counts["deliveries"] == counts["events"] * len(real_programs.CONSUMERS)


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        ([1, 2, 2, 3], "2 was read 2 times"),
        ([1, 3], "2 is missing"),
        ([1, 2, 3, 4], "4 was not told"),
        ([1, 3, 2], "not in order"),
    ],
)
def test_what_is_read_once_too_often_or_never_is_seen(read: list[int], problem: str) -> None:
    assert differences([1, 2, 3], [1, 2, 3]) == []
    assert differences([1, 2, 3], read) == [problem]
