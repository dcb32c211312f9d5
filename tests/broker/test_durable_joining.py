"""Where a subscription goes on that was begun twice (``joining``)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.broker.durable.joining import had, joined
from holdfast.messages.durable import Stand

stands = st.tuples(*[st.integers(0, 12)] * 2).map(lambda each: Stand(min(each), max(each), max(each)))


@examples(300)
@given(stands, stands)
def test_nothing_is_missing_below_and_nothing_that_was_read_at_either_comes_again_without_need(
    one: Stand, other: Stand
) -> None:
    """Both are owed everything above where they began, and have read up to where they stand."""
    position = joined(had(one), had(other))
    begun = min(one.start, other.start)
    read = {n for each in (one, other) for n in range(each.start + 1, each.released + 1)}
    assert not set(range(begun + 1, position + 1)) - read, "lost"
    assert position + 1 not in read or position < begun, "told again, and nothing is missing before"
    assert position == joined(had(other), had(one))


def test_one_that_is_still_catching_up_has_read_nothing_of_what_came_since_it_went_on_there() -> None:
    assert had(Stand(9, 7, 7)) == (7, 7)
    assert had(Stand(3, 7, 9)) == (3, 9)
    assert joined((9, 9), (2, 5)) == 5
