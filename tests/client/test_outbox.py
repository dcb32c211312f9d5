"""What was submitted and not answered, whatever the order of the answers."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from answered import numbered
from holdfast.client.outbox import Outbox


def outbox(*numbers: int) -> Outbox:
    made = Outbox(1_000, 1_000_000)
    made.submit(numbered(*numbers))
    return made


def test_what_is_accepted_behind_something_that_waits_is_told_with_it() -> None:
    row = outbox(1, 2, 3, 4)
    assert row.accept_each([2, 4]) == 0
    assert (len(row), [each.n for each in row.waiting()]) == (2, [1, 3])
    assert row.accept_each([1]) == 2
    assert row.accept_each([3]) == 4
    assert len(row) == 0


def test_a_rejected_event_holds_nothing_up_and_is_not_told_as_accepted() -> None:
    row = outbox(1, 2, 3)
    assert row.reject(1)
    assert row.accept_each([2]) == 2
    assert row.reject(3)
    assert row.accept_each([]) == 0
    assert len(row) == 0


def test_what_is_accepted_cannot_be_rejected() -> None:
    row = outbox(1, 2)
    row.accept_each([2])
    assert not row.reject(2)


@given(st.permutations(range(1, 9)), st.sets(st.integers(1, 8)))
def test_everything_is_told_once_and_in_order(order: list[int], rejected: set[int]) -> None:
    row = outbox(*range(1, 9))
    told = []
    for n in order:
        if n in rejected:
            assert row.reject(n)
        upto = row.accept_each([] if n in rejected else [n])
        told += [upto] if upto else []
    accepted = [n for n in range(1, 9) if n not in rejected]
    assert told == sorted(set(told))
    assert told[-1:] == accepted[-1:]
    assert len(row) == 0


def test_what_is_rejected_is_kept_no_longer_though_nothing_is_accepted_for_hours() -> None:
    """A disk is full, and a publisher goes on."""
    row = outbox()
    for n in range(1, 1_001):
        row.submit(submitted := numbered(n))
        assert [heard for heard, _ in row.by_heard(row.due(submitted))] == [n - 1]
        assert row.reject(n)
        row.hear(n)
    assert not row.reject(7)
    assert len(pickle.dumps(row)) < 1_000
    row.submit(numbered(1_001))
    assert row.accept_each([1_001]) == 1_001
