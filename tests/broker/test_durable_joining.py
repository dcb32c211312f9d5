"""Where a subscription goes on that was begun twice (``joining``)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.broker.durable.joining import acknowledged, had, joined
from holdfast.messages.durable import Stand

stands = st.tuples(*[st.integers(0, 12)] * 2).map(lambda each: Stand(min(each), max(each), max(each)))


@examples(300)
@given(stands, stands)
def test_nothing_is_missing_below_and_nothing_that_was_read_at_either_comes_again_without_need(
    one: Stand, other: Stand
) -> None:
    """Both are owed everything above where they began, and have read up to where they stand."""
    position = joined(had(one, is_first=True), had(other, is_first=True))
    begun = min(one.start, other.start)
    read = {n for each in (one, other) for n in range(each.start + 1, each.released + 1)}
    assert not set(range(begun + 1, position + 1)) - read, "lost"
    assert position + 1 not in read or position < begun, "told again, and nothing is missing before"
    assert position == joined(had(other, is_first=True), had(one, is_first=True))


known = st.tuples(*[st.integers(0, 12)] * 2).map(lambda each: Stand(0, min(each), max(each)))


@examples(300)
@given(st.integers(0, 12), known, known)
def test_from_what_it_has_acknowledged_to_where_it_goes_on_nothing_was_for_it(
    position: int, one: Stand, other: Stand
) -> None:
    silent = {n for each in (one, other) for n in range(each.acknowledged + 1, each.released + 1)}
    begins = acknowledged(position, one, other)
    assert begins <= position
    assert set(range(begins + 1, position + 1)) <= silent
    assert begins not in silent, "it is known farther back"


def test_of_one_that_has_moved_only_where_it_stands_is_known() -> None:
    assert had(Stand(3, 7, 9), is_first=False) == (9, 9)
    assert had(Stand(9, 7, 7), is_first=True) == (7, 7), (
        "it is still catching up with what it wanted from the past"
    )
    assert joined((9, 9), (2, 5)) == 5
