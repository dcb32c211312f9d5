"""The edges of the orders, against the plainest memory there is: a set of everything that passed."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.messages.streams import Order
from holdfast.ordering import fifo, unordered
from holdfast.ordering.edge import new_edge
from holdfast.ordering.fifo import Fifo
from holdfast.ordering.order import Edge
from holdfast.ordering.unordered import WINDOW, Unordered
from holdfast.ordering.watchful import Watchful

#: Steps up and down that cross the window now and then.
STEPS = st.one_of(
    st.integers(-5, 5),
    st.sampled_from([-WINDOW - 1, -WINDOW, -WINDOW + 1, WINDOW - 1, WINDOW, WINDOW + 1, 10**9]),
)
MOVES = st.lists(st.tuples(st.sampled_from("pq"), STEPS), max_size=60)


def walk(moves: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Ticks from 1, each some steps away from the last of its pubend."""
    at = {"p": 1, "q": 1}
    ticks = []
    for pubend, step in moves:
        at[pubend] = max(1, at[pubend] + step)
        ticks.append((pubend, at[pubend]))
    return ticks


@given(MOVES)
@examples(300)
def test_fifo_admits_exactly_what_is_above_everything_before(moves: list[tuple[str, int]]) -> None:
    edge = Fifo()
    passed: dict[str, set[int]] = {"p": set(), "q": set()}
    for pubend, tick in walk(moves):
        assert edge.admits(pubend, tick) == (tick > max(passed[pubend], default=0))
        passed[pubend].add(tick)


@given(MOVES)
@examples(300)
def test_unordered_admits_exactly_what_has_not_passed_within_its_memory(moves: list[tuple[str, int]]) -> None:
    edge = Unordered()
    passed: dict[str, set[int]] = {"p": set(), "q": set()}
    for pubend, tick in walk(moves):
        mine = passed[pubend]
        is_too_old = tick <= max(mine, default=0) - WINDOW
        assert edge.admits(pubend, tick) == (tick not in mine and not is_too_old)
        mine.add(tick)


@given(MOVES, st.lists(st.integers(0, 60), max_size=3))
@examples(300)
def test_a_watchful_one_admits_as_fifo_does_and_misses_each_late_one_once(
    moves: list[tuple[str, int]], skips: list[int]
) -> None:
    edge, plain = Watchful(), Fifo()
    known: dict[str, set[int]] = {"p": set(), "q": set()}
    for at, (pubend, tick) in enumerate(walk(moves)):
        if at in skips:  # nobody waits for what is up to here
            edge.skip(pubend, tick)
            plain.admits(pubend, tick)
            known[pubend] |= set(range(max(1, tick - 2 * WINDOW), tick + 1))
            continue
        is_above = plain.admits(pubend, tick)
        assert edge.admits(pubend, tick) == is_above
        if not is_above:
            is_too_old = tick <= edge.last(pubend) - WINDOW
            assert edge.misses(pubend, tick) == (tick not in known[pubend] and not is_too_old)
        known[pubend].add(tick)


@given(MOVES, st.sets(st.integers(0, 60), max_size=5), st.sets(st.integers(0, 60), max_size=3))
@examples(300)
def test_a_watchful_one_knows_where_each_stood_when_somebody_came(
    moves: list[tuple[str, int]], comings: set[int], skips: set[int]
) -> None:
    edge = Watchful()
    stood = {edge.mark(): edge.highest()}
    for at, (pubend, tick) in enumerate(walk(moves)):
        if at in comings:
            stood[edge.mark()] = edge.highest()
        if at in skips:
            edge.skip(pubend, tick)
        else:
            edge.admits(pubend, tick)
        for mark, highest in stood.items():
            for each in ("p", "q"):
                oldest = edge.last(each) - WINDOW  # nothing up to here is missed any more
                assert max(edge.stood(each, mark), oldest) == max(highest.get(each, 0), oldest)


def test_a_watchful_one_remembers_no_more_of_those_who_came_than_of_what_passed() -> None:
    edge = Watchful()
    edge.admits("p", 1)
    assert not edge._stood, "all have come before everything"
    for tick in range(2, 5 * WINDOW):
        edge.mark()
        edge.admits("p", tick)
        assert len(edge._stood["p"]) <= WINDOW + 1
    for tick in (10 * WINDOW, 20 * WINDOW):
        edge.mark()
        edge.admits("p", tick)
    assert len(edge._stood["p"]) == 2


@pytest.mark.parametrize("order", list(Order))
@given(moves=MOVES)
@examples(100)
def test_no_edge_lets_anything_pass_twice_and_each_knows_the_highest(
    order: Order, moves: list[tuple[str, int]]
) -> None:
    edge: Edge = new_edge(order)
    passed: set[tuple[str, int]] = set()
    for pubend, tick in walk(moves):
        if edge.admits(pubend, tick):
            assert (pubend, tick) not in passed
            passed.add((pubend, tick))
    highest: dict[str, int] = {}
    for pubend, tick in passed:
        highest[pubend] = max(tick, highest.get(pubend, 0))
    assert edge.highest() == highest


@pytest.mark.parametrize("order", list(Order))
def test_what_is_handed_out_is_a_copy(order: Order) -> None:
    edge = new_edge(order)
    edge.admits("p", 3)
    edge.highest()["p"] = 99
    assert edge.highest() == {"p": 3}


def test_the_memory_of_no_order_is_one_number_of_so_many_bits() -> None:
    edge = Unordered()
    for tick in range(1, 5 * WINDOW):
        assert edge.admits("p", tick)
    assert edge._seen["p"][1].bit_length() <= WINDOW


@pytest.mark.parametrize(("order", "module"), [(Order.FIFO, fifo), (Order.NONE, unordered)])
def test_the_pubend_longest_unheard_is_forgotten_when_there_are_too_many(
    order: Order, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PUBENDS_MAX", 3)
    edge = new_edge(order)
    for tick, other in enumerate("uvwxyz", start=1):
        assert edge.admits("busy", tick)
        assert edge.admits(other, 1)
        assert not edge.admits("busy", tick), "it was heard a moment ago"
        assert len(edge.highest()) <= 3
