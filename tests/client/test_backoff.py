"""Thousands of clients lose their broker at one moment, and do not come back at one moment."""

from __future__ import annotations

from holdfast.client.backoff import Backoff, Dials
from holdfast.clock import MILLISECOND, SECOND
from holdfast.overlay.transport import Connect

LEAST, MOST, PROBE = 400 * MILLISECOND, 2 * SECOND, 200 * MILLISECOND
HOME = Connect("home", "home:1")


def dials(name: str = "me") -> Dials:
    return Dials(name, LEAST, MOST, PROBE)


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff("me", 100, 1_000)
    for longest in (100, 200, 400, 800, 1_000, 1_000):
        assert longest / 2 <= backoff.next_pause() <= longest
    backoff.reset()
    assert backoff.next_pause() <= 100


def test_a_thousand_clients_come_back_spread_over_the_whole_pause() -> None:
    moments = sorted(Backoff(f"client-{i}", LEAST, MOST).next_pause() for i in range(1_000))
    tenth = LEAST // 20  # the pause is between half of LEAST and LEAST
    for i in range(10):
        low = LEAST // 2 + i * tenth
        assert 50 <= sum(low <= moment < low + tenth for moment in moments) <= 150


def test_who_was_never_dialled_is_dialled_at_once_and_then_later_and_later() -> None:
    held = dials()
    assert held.ask(HOME, 0) == [HOME]
    now = 0
    for longest in (LEAST, 2 * LEAST, 4 * LEAST, MOST, MOST):
        assert held.ask(HOME, now) == []
        due = held.next_deadline()
        assert due is not None
        assert longest / 2 - PROBE <= due - now <= longest - PROBE
        assert held.due(due - 1) == []
        assert held.due(due) == [HOME]
        assert held.next_deadline() is None
        now = due + PROBE


def test_a_pause_that_has_passed_already_is_none() -> None:
    """Where the probing of the node is slower than the pauses, as in a scenario, nothing is held back."""
    held = Dials("me", PROBE // 4, PROBE, PROBE)
    for attempt in range(8):
        assert held.ask(HOME, attempt * PROBE) == [HOME]


def test_a_node_that_has_answered_is_dialled_at_once_when_it_is_wanted_again() -> None:
    held = dials()
    held.ask(HOME, 0)
    held.ask(HOME, PROBE)
    held.answered("home")
    assert held.ask(HOME, 2 * PROBE) == [HOME]


def test_a_broker_all_its_clients_have_lost_is_not_dialled_by_all_at_once() -> None:
    moments = set()
    for i in range(100):
        held = dials(f"client-{i}")
        held.ask(HOME, 0)
        held.answered("home")
        held.lost("home", SECOND)
        held.ask(HOME, SECOND + PROBE)
        moments.add(held.next_deadline())
    assert len(moments) == 100


def test_what_failed_long_ago_does_not_count() -> None:
    held = dials()
    for attempt in range(6):
        held.ask(HOME, attempt * SECOND)
        held.due(attempt * SECOND + MOST)
    assert held.ask(HOME, 60 * SECOND) == [HOME]
