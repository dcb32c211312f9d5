"""Sets of tick ranges, against a naive set of integers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.intervals import Intervals, Span

TICKS = st.integers(0, 40)
SPANS = st.tuples(TICKS, TICKS)
CHANGES = st.lists(st.tuples(st.sampled_from(["add", "remove"]), SPANS), max_size=25)


def ticks_of(span: Span) -> set[int]:
    return set(range(span[0] + 1, span[1] + 1))


def naive(changes: list[tuple[str, Span]]) -> set[int]:
    ticks: set[int] = set()
    for change, span in changes:
        ticks = ticks | ticks_of(span) if change == "add" else ticks - ticks_of(span)
    return ticks


def built(changes: list[tuple[str, Span]], kind: type[Intervals] = Intervals) -> Intervals:
    intervals = kind()
    for change, span in changes:
        (intervals.add if change == "add" else intervals.remove)(*span)
    return intervals


def ticks_in(spans: Intervals | list[Span]) -> set[int]:
    return {tick for span in spans for tick in ticks_of(span)}


def check_form(intervals: Intervals) -> None:
    """Ranges ascend, and neither overlap nor touch."""
    flat = [edge for span in intervals for edge in span]
    assert flat == sorted(set(flat))


@examples(200)
@given(CHANGES, TICKS)
def test_it_is_the_set_of_its_ticks(changes: list[tuple[str, Span]], tick: int) -> None:
    intervals, ticks = built(changes), naive(changes)
    check_form(intervals)
    assert ticks_in(intervals) == ticks
    assert intervals.size == len(ticks)
    assert intervals.last == max(ticks, default=None)
    assert (tick in intervals) == (tick in ticks)
    assert bool(intervals) == bool(ticks)
    assert intervals.reach(tick) == next(t for t in range(tick, 99) if t + 1 not in ticks)
    assert intervals.floor(tick) == next(t for t in range(tick, -2, -1) if t not in ticks)
    own = [span for span in intervals if tick in ticks_of(span)]
    assert intervals.around(tick) == (own[0] if own else (tick, tick))


@examples(200)
@given(CHANGES, SPANS)
def test_a_range_falls_into_parts_that_are_in_and_gaps(changes: list[tuple[str, Span]], span: Span) -> None:
    intervals, ticks = built(changes), naive(changes)
    inside, gaps = intervals.within(*span), intervals.gaps(*span)
    assert ticks_in(inside) == ticks & ticks_of(span)
    assert ticks_in(gaps) == ticks_of(span) - ticks
    assert inside == sorted(inside)
    assert gaps == sorted(gaps)
    assert all(after < upto for after, upto in inside + gaps)
    assert intervals.covers(*span) == (ticks_of(span) <= ticks)


@examples(200)
@given(CHANGES, CHANGES)
def test_two_sets_join_meet_and_differ(one: list[tuple[str, Span]], other: list[tuple[str, Span]]) -> None:
    a, b, in_a, in_b = built(one), built(other), naive(one), naive(other)
    for result, expected in [
        (a.union(b), in_a | in_b),
        (a.intersection(b), in_a & in_b),
        (a.difference(b), in_a - in_b),
    ]:
        check_form(result)
        assert ticks_in(result) == expected
    assert (a == b) == (in_a == in_b)
    assert ticks_in(a) == in_a, "none of this changes it"
    grown, shrunk = a.copy(), a.copy()
    grown.add_all(list(b))
    shrunk.remove_all(list(b))
    assert grown == a.union(b)
    assert shrunk == a.difference(b)


@examples(200)
@given(st.sets(st.integers(1, 99)), st.sets(st.integers(1, 99)))
def test_many_ranges_at_once_are_as_good_as_one_by_one(in_a: set[int], in_b: set[int]) -> None:
    a, b = Intervals(), Intervals()
    a.add_ticks(sorted(in_a))
    b.add_ticks(sorted(in_b))
    spans = [(tick - 1, tick) for tick in sorted(in_b)]  # which may touch
    grown, shrunk = a.copy(), a.copy()
    grown.add_all(spans)
    shrunk.remove_all(spans)
    for result, expected in [
        (a, in_a),
        (grown, in_a | in_b),
        (shrunk, in_a - in_b),
        (a.union(b), in_a | in_b),
        (a.intersection(b), in_a & in_b),
        (a.difference(b), in_a - in_b),
    ]:
        check_form(result)
        assert ticks_in(result) == expected
    assert ticks_in(a.within_all(spans)) == in_a & in_b
    assert ticks_in(a.gaps_all(spans)) == in_b - in_a


def test_single_ticks_join_into_ranges() -> None:
    intervals = Intervals()
    intervals.add_ticks([1, 2, 3, 9])
    intervals.add_ticks([4, 8])
    assert list(intervals) == [(0, 4), (7, 9)]


class Careless(Intervals):
    """Cuts only the first of the ranges that lie in what is taken out."""

    def remove(self, after: int, upto: int) -> None:
        spans = self.within(after, upto)
        if spans:
            super().remove(*spans[0])


def test_the_property_can_fail() -> None:
    changes = [("add", (0, 2)), ("add", (4, 6)), ("remove", (1, 5))]
    assert ticks_in(built(changes)) == naive(changes)
    with pytest.raises(AssertionError):
        assert ticks_in(built(changes, Careless)) == naive(changes)
