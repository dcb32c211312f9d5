"""Durable streams on real processes under kill -9: the short version; ``tests/real_durable.py`` is the long one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import real_durable
from holdfast import Gap, LoggedEvent
from real_durable import Published, Reader, wrong_with

KILLS = 3
PAUSES = (0.0, 0.3)


def test_brokers_are_killed_and_nothing_accepted_is_lost_or_repeated(tmp_path: Path) -> None:
    found, counts = real_durable.performed(KILLS, 5, tmp_path, PAUSES)
    assert not found
    assert counts["kills"] == KILLS
    assert counts["events"] > 100
    assert counts["deliveries"] > counts["events"] * 10


# Whoever judges a run sees what is wrong with it


def event(n: int) -> LoggedEvent:
    return LoggedEvent(
        "orders/eu", {"price": 120}, publisher="p", n=n, pubend="orders@b/0", incarnation=1, tick=10 * n
    )


PUBLISHED = Published(
    sent={("p", n): ("orders/eu", 120) for n in (1, 2, 3)} | {("p", 4): ("audit/eu", 1)},
    accepted={("p", n): ("orders@b/0", 10 * n) for n in (1, 2, 3, 4)},
)
PLANTED: dict[str, Callable[[list[LoggedEvent]], list[LoggedEvent]]] = {
    "('p', 2) is missing": lambda given: [given[0], given[2]],
    "('p', 3) came 2 times": lambda given: [*given, given[2]],
    "('p', 1) at ('orders@b/0', 10) after 20": lambda given: [given[1], given[0], given[2]],
    "('p', 3) at ('orders@b/0', 31), accepted at": lambda given: [
        *given[:2],
        msgspec.structs.replace(given[2], tick=31),
    ],
    "('p', 4) was not wanted": lambda given: [*given, event(4)],
    "('p', 9) was not wanted": lambda given: [*given, event(9)],
}


def reader(given: list[LoggedEvent], *gaps: Gap) -> Reader:
    return Reader("u", "orders/#", "stay", False, "shb1", 1000, given, list(gaps))


@pytest.mark.parametrize("problem", PLANTED)
def test_a_planted_fault_is_found(problem: str) -> None:
    whole = [event(n) for n in (1, 2, 3)]
    assert not wrong_with(reader(whole), PUBLISHED)
    assert any(each.startswith(problem) for each in wrong_with(reader(PLANTED[problem](whole)), PUBLISHED))


def test_a_gap_is_a_fault_here() -> None:
    whole = [event(n) for n in (1, 2, 3)]
    assert wrong_with(reader(whole, Gap("orders@b/0", 0, 5, "max_retain")), PUBLISHED)
