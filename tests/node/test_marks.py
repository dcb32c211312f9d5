"""Duplicates by nearby numbers alone: R0.9, R0.41, R0.43, R0.46, B0.4, B0.8, B0.17, I8; and Lemma 1, executable."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import pytest

from holdfast.messages.overlay import Step, Trail
from holdfast.node.marks import LIVES_MAX, Marks
from holdfast.node.trails import extended, is_legitimate


def trail(*columns: tuple[str, int | None, list[int]]) -> Trail:
    steps = tuple(Step(node, incarnation) for node, incarnation, _ in columns)
    return Trail(steps, [numbers for _, incarnation, numbers in columns if incarnation is not None])


def test_r041_what_has_a_number_that_was_seen_is_a_duplicate() -> None:
    marks = Marks()
    assert marks.new(trail(("A", 1, [1, 2, 3])), 3) == [0, 1, 2]
    assert marks.new(trail(("A", 1, [2, 3, 4])), 3) == [2]
    assert marks.new(trail(("A", 1, [4])), 1) == []


def test_r041_one_known_number_is_enough_whoever_gave_it() -> None:
    marks = Marks()
    marks.new(trail(("A", 1, [5]), ("B", 1, [9])), 1)
    assert marks.new(trail(("A", 1, [5]), ("C", 1, [1])), 1) == []
    assert marks.new(trail(("A", 1, [6]), ("B", 1, [9])), 1) == []


def test_b04_a_bypassed_node_says_nothing() -> None:
    marks = Marks()
    marks.new(trail(("A", 1, [5]), ("B", None, [])), 1)
    assert marks.of("B", 1) == 0
    assert marks.new(trail(("B", 1, [1]), ("C", 1, [1])), 1) == [0]


def test_b04_every_element_of_a_duplicate_counts_from_now_on() -> None:
    """Fig 5 as printed returns at the first old element; C's number would be forgotten."""
    marks = Marks()
    marks.new(trail(("A", 1, [5])), 1)
    assert marks.new(trail(("A", 1, [5]), ("C", 1, [7])), 1) == []
    assert marks.of("C", 1) == 7


def test_b06_elements_beyond_the_last_2_delta_plus_1_count_too() -> None:
    """δ = 1: the fourth from the end is not needed for legitimacy, and still tells a duplicate."""
    marks = Marks()
    marks.new(trail(("Z", 1, [1]), ("A", None, []), ("X", 1, [1]), ("B", 1, [1])), 1)
    assert marks.new(trail(("Z", 1, [1]), ("A", 1, [1]), ("X", 2, [1]), ("B", None, [])), 1) == []


def test_b017_another_life_numbers_anew_and_is_not_mistaken_for_the_last() -> None:
    marks = Marks()
    marks.new(trail(("A", 1, [50])), 1)
    assert marks.new(trail(("A", 2, [1])), 1) == [0]
    assert marks.new(trail(("A", 1, [50])), 1) == []
    assert marks.new(trail(("A", 2, [1])), 1) == []
    assert marks.latest("A") == (2, 1)


def test_r046_of_every_node_a_few_lives_are_remembered_and_no_more() -> None:
    marks = Marks()
    for life in range(1, 100):
        marks.new(trail(("A", life, [1])), 1)
    assert len(marks) == 1
    assert sum(marks.of("A", life) > 0 for life in range(1, 100)) == LIVES_MAX
    assert marks.latest("A") == (99, 1)


def test_who_left_is_forgotten() -> None:
    marks = Marks()
    marks.new(trail(("A", 1, [1])), 1)
    marks.forget("A")
    marks.forget("never seen")
    assert len(marks) == 0
    assert marks.latest("A") == (0, 0)


@pytest.mark.parametrize("column", [[2, 1], [1, 1], [1], [1, 2, 3]])
def test_numbers_that_cannot_be_are_refused_and_leave_no_mark(column: list[int]) -> None:
    marks = Marks()
    with pytest.raises(ValueError, match="do not increase"):
        marks.new(trail(("A", 1, [1, 2]), ("B", 1, column)), 2)
    assert len(marks) == 0


# Lemma 1


def ways(length: int, delta: int) -> Iterator[tuple[bool, ...]]:
    """All legitimate propagations along a chain, from its first node to its last: each sender's check holds."""
    for middle in product((True, False), repeat=length - 2):
        visited = (True, *middle, True)
        if walked(visited, delta) is not None:
            yield visited


def walked(visited: tuple[bool, ...], delta: int) -> Trail | None:
    """The vector with which a message reaches the last node, every node numbering it with its place + 1."""
    stops = [i for i, each in enumerate(visited) if each]
    vector = Trail((), [])
    for here, there in pairwise(stops):
        bypassed = [str(i) for i in range(here + 1, there)]
        vector = extended(vector, Step(str(here), 1), [here + 1], bypassed, delta)
        if len(bypassed) > delta or not is_legitimate(vector, delta):
            return None
    return vector


@pytest.mark.parametrize("delta", [1, 2, 3])
@pytest.mark.parametrize("length", range(2, 11))
def test_kj54_lemma_1_two_legitimate_copies_have_a_node_in_common_and_the_second_is_a_duplicate(
    delta: int, length: int
) -> None:
    """R0.42, I8, over every pair of propagations along every chain of up to ten nodes."""
    window = 2 * delta + 1
    vectors = [walked(visited, delta) for visited in ways(length, delta)]
    assert vectors
    for first in vectors:
        assert first is not None
        seen = {step for step in first.steps[-window:] if step.incarnation is not None}
        for second in vectors:
            assert second is not None
            common = seen.intersection(second.steps[-window:])
            assert common, f"{first} and {second} could not be told for the same"
            marks = Marks()
            assert marks.new(first, 1) == [0]
            assert marks.new(second, 1) == []


@pytest.mark.parametrize("delta", [1, 2, 3])
def test_kj54_without_legitimacy_lemma_1_does_not_hold(delta: int) -> None:
    """The other half of the argument: ways that bypass δ at a time but too many in all need have nothing in common."""
    length = 2 * delta + 3
    middles = [tuple(bool(i % 2) for i in range(length - 2)), tuple(not i % 2 for i in range(length - 2))]
    seen = [
        {i for i, each in enumerate((True, *middle, True)[:-1]) if each and i >= length - 1 - (2 * delta + 1)}
        for middle in middles
    ]
    assert not seen[0] & seen[1]
    assert any(walked((True, *middle, True), delta) is None for middle in middles)
