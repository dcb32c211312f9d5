"""Numbers that wait for something, against a set of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.routing.port import Outstanding

NUMBERS = st.integers(1, 40)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sets(NUMBERS, min_size=1).map(sorted)),
        st.tuples(st.just("discard"), st.sets(NUMBERS).map(sorted)),
    ),
    max_size=20,
)


@examples(200)
@given(STEPS)
def test_outstanding_numbers_are_those_of_a_set(steps: list[tuple[str, list[int]]]) -> None:
    outstanding, model = Outstanding(), set[int]()
    for kind, numbers in steps:
        if kind == "add":
            outstanding.add(numbers)
            model.update(numbers)
        else:
            assert outstanding.discard(numbers) == bool(model & set(numbers))
            model.difference_update(numbers)
        assert len(outstanding) == len(model)
        assert bool(outstanding) == bool(model)
        if model:
            assert outstanding.lowest == min(model)
