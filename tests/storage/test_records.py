"""Records in one piece of memory, against a list of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.storage.records import Records

LISTS = st.lists(st.binary(max_size=6), max_size=8)


@examples(200)
@given(LISTS, LISTS, st.integers(-9, 9), st.integers(-9, 9), st.binary(max_size=3))
def test_they_are_what_a_list_is(
    one: list[bytes], two: list[bytes], start: int, stop: int, behind: bytes
) -> None:
    both = [*one, *two]
    joined = Records.joined([Records.of(one), Records.of(two)], behind)
    assert list(joined) == both
    assert [joined[i] for i in range(len(joined))] == both
    assert [joined[-i - 1] for i in range(len(joined))] == both[::-1]
    assert joined.size == sum(map(len, both))
    part = joined[start:stop]
    assert (len(part), list(part)) == (len(both[start:stop]), both[start:stop])
    assert list(Records.joined([part, joined[stop:]])) == both[start:stop] + both[stop:]
    assert list(part[1:]) == both[start:stop][1:]
    for beyond in (len(both), -len(both) - 1):
        with pytest.raises(IndexError):
            joined[beyond]


def test_those_of_a_list_are_cut_out_of_what_they_were_joined_to() -> None:
    records = Records.of([b"ab", b"", b"c"])
    assert records.content == b"abc"
    assert Records.of(records) is records
