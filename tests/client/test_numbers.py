from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.client.numbers import Numbers
from holdfast.errors import InvalidEvent
from holdfast.events.value import INT_MAX


class Blocks:
    """A store that lives as long as the test, which is longer than one publisher."""

    def __init__(self, block: int) -> None:
        self.reserved = 0
        self._block = block

    def life(self) -> OneLife:
        return OneLife(self, self._block)


class OneLife:
    def __init__(self, store: Blocks, block: int) -> None:
        self._store = store
        self._block = block
        self._last = self._upto = 0

    def next_number(self, above: int) -> int:
        number = max(self._last, above) + 1
        if number > self._upto:
            number = max(number, self._store.reserved + 1)
            self._upto = self._store.reserved = number + self._block - 1
        self._last = number
        return number


def test_an_unnamed_client_counts_from_1() -> None:
    numbers = Numbers()
    assert [numbers.next_number() for _ in range(3)] == [1, 2, 3]


def test_a_named_client_starts_above_its_clock_and_above_what_the_network_has_seen() -> None:
    assert Numbers(1_700_000).next_number() == 1_700_001
    numbers = Numbers(1_700_000)
    numbers.raise_floor(1_800_000)
    assert numbers.next_number() == 1_800_001
    numbers.raise_floor(5)
    assert numbers.next_number() == 1_800_002


def test_an_application_may_count_for_itself_below_the_clock() -> None:
    numbers = Numbers(1_700_000)
    assert numbers.use(1) == 1
    assert numbers.use(7) == 7
    assert numbers.next_number() == 1_700_001
    with pytest.raises(InvalidEvent, match="n: is 8, not above 1700001, the last number used"):
        numbers.use(8)


@pytest.mark.parametrize(
    ("n", "problem"),
    [
        (0, "is 0, not between 1 and"),
        (-1, "is -1, not between 1 and"),
        (INT_MAX + 1, "not between 1 and"),
        (True, "must be an int, not bool"),
        ("7", "must be an int, not str"),
        (1.0, "must be an int, not float"),
    ],
)
def test_what_is_no_number_is_refused_by_name_and_changes_nothing(n: int, problem: str) -> None:
    numbers = Numbers()
    with pytest.raises(InvalidEvent, match=problem):
        numbers.use(n)
    assert numbers.next_number() == 1


def test_there_is_no_number_after_the_last() -> None:
    numbers = Numbers()
    numbers.use(INT_MAX)
    with pytest.raises(InvalidEvent, match="no number is left"):
        numbers.next_number()


@given(
    st.integers(1, 20),
    st.lists(st.lists(st.one_of(st.none(), st.integers(1, 200)), max_size=30), min_size=1, max_size=5),
)
def test_with_a_store_no_life_gives_a_number_that_another_gave_or_used(
    block: int, lives: list[list[int | None]]
) -> None:
    store = Blocks(block)
    highest = 0
    for wishes in lives:
        numbers = Numbers(source=store.life())
        for wish in wishes:
            if wish is None:
                n = numbers.next_number()
                assert n > highest
            elif wish <= numbers.last:
                continue
            else:
                n = numbers.use(wish)
            highest = max(highest, n)
