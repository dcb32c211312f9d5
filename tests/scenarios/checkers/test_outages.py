"""When something was broken, as those tell who broke it and those who noticed."""

from __future__ import annotations

from math import inf

from holdfast.scenarios.checkers.copies import copies
from holdfast.scenarios.checkers.history import History
from holdfast.scenarios.checkers.outages import Outage, outages
from scenario_traces import Lines


def broken(lines: Lines) -> list[Outage]:
    return outages(History(lines.trace()).faults)


def told(lines: Lines, t: float, kind: str, *nodes: str) -> None:
    """By the first of them, of itself and the other."""
    lines.add(t, nodes[0], kind, nodes=list(nodes))


def test_what_the_script_breaks_is_broken_until_it_repairs_it() -> None:
    lines = Lines()
    lines.fault(1, "cut", "b0", "b1")
    lines.fault(3, "heal", "b1")
    lines.fault(5, "freeze", "b2")
    assert broken(lines) == [(1, 3), (5, inf)]


def test_a_broker_is_not_back_before_its_neighbours_have_met_it() -> None:
    lines = Lines()
    lines.fault(1, "crash", "b1")
    told(lines, 1.1, "disconnect", "b0", "b1")
    lines.fault(2, "restart", "b1")
    told(lines, 6, "reconnect", "b0", "b1")
    told(lines, 7, "disconnect", "b0", "b1")
    told(lines, 8, "reconnect", "b0", "b2")
    told(lines, 9, "reconnect", "b0", "b1")
    assert broken(lines) == [(1, 6), (7, 9)]


def test_until_then_going_past_it_is_no_waste() -> None:
    lines = Lines(guarantee="reliable", delta=1)
    lines.fault(1, "crash", "b0")
    told(lines, 1.1, "disconnect", "b1", "b0")
    lines.fault(2, "restart", "b0")
    told(lines, 6, "reconnect", "b1", "b0")
    for n, t in ((1, 4.5), (2, 8.0)):
        lines.publish(t, n)
        lines.forward(t, n, "p", "b1")
    assert [violation.message.split()[0] for violation in copies(lines.trace())] == ["p#2"]


def test_who_crashes_has_forgotten_whom_it_lost() -> None:
    lines = Lines()
    told(lines, 1, "disconnect", "b0", "b1")
    lines.fault(2, "crash", "b0")
    lines.fault(4, "restart", "b0")
    assert broken(lines) == [(1, 4)]
