"""Sequence vectors and legitimacy: R0.17-R0.21, R0.38-R0.40, R0.45, B0.3, B0.5, B0.6."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from harness import Net
from wiretap import Wiretap

from holdfast.messages.overlay import Step, Trail
from holdfast.messages.subscriptions import Subscribe
from holdfast.node.trails import extended, is_increasing, is_legitimate, numbered, picked, vector_length


def names(trail: Trail) -> list[str]:
    return [step.node if step.incarnation is not None else f"{step.node}:⊥" for step in trail.steps]


def test_r017_a_vector_names_3_delta_plus_1_nodes() -> None:
    """R0.45: also those that only tell rows of the table apart; one length for everything [B0.6]."""
    assert [vector_length(delta) for delta in (1, 2, 3)] == [4, 7, 10]


def test_r020_a_forwarder_appends_itself_and_then_whom_it_bypasses_oldest_first() -> None:
    """B0.3: the last element is the neighbour of the receiver, whoever the sender is."""
    trail = extended(Trail((), []), Step("P", 1), [7], (), 2)
    trail = extended(trail, Step("N", 3), [9], ("A", "B"), 2)
    assert names(trail) == ["P", "N", "A:⊥", "B:⊥"]
    assert trail.numbers == [[7], [9]]


def test_r020_a_vector_is_cut_at_its_oldest_end_columns_and_all() -> None:
    trail = Trail((Step("Z", 1), Step("A", None), Step("B", 1), Step("C", 1)), [[1], [2], [3]])
    trail = extended(trail, Step("D", 1), [4], ("E",), 1)
    assert names(trail) == ["B", "C", "D", "E:⊥"]
    assert trail.numbers == [[2], [3], [4]]
    trail = extended(trail, Step("F", 1), [5], (), 1)
    assert names(trail) == ["C", "D", "E:⊥", "F"]
    assert trail.numbers == [[3], [4], [5]]


def test_r018_a_bypassed_node_is_named_and_has_no_column() -> None:
    trail = Trail((Step("A", 1), Step("B", None), Step("C", 2)), [[1, 2], [5, 6]])
    assert numbered(trail) == [(Step("A", 1), [1, 2]), (Step("C", 2), [5, 6])]
    assert picked(trail, [1]).numbers == [[2], [6]]
    assert picked(trail, []).numbers == [[], []]


def test_numbers_of_a_batch_increase() -> None:
    assert is_increasing([1, 2, 9])
    assert not is_increasing([1, 1])
    assert is_increasing([])


# Legitimacy


def trail_of(visited: list[bool]) -> Trail:
    return Trail(tuple(Step(str(i), 1 if each else None) for i, each in enumerate(visited)), [])


def definition_2(visited: list[bool], delta: int) -> bool:
    """[KJ §5.2], read literally: every window of 2δ+1 nodes has δ+1 that were visited."""
    window = 2 * delta + 1
    return all(sum(visited[i : i + window]) >= delta + 1 for i in range(len(visited) - window + 1))


def paths(length: int, delta: int) -> Iterator[list[bool]]:
    """All ways along a chain from its first to its last node that bypass at most δ nodes at a time."""
    for middle in product((True, False), repeat=length - 2):
        visited = [True, *middle, True]
        if "0" * (delta + 1) not in "".join(str(int(each)) for each in visited):
            yield visited


def every_sender_may(visited: list[bool], delta: int) -> bool:
    """The check of R0.39, by every sender, on the copy it sends: before the receiver is added."""
    return all(
        is_legitimate(trail_of(visited[:i][-vector_length(delta) :]), delta)
        for i in range(1, len(visited))
        if visited[i]
    )


@pytest.mark.parametrize("delta", [1, 2, 3])
def test_r039_the_senders_check_is_definition_2_up_to_delta_3(delta: int) -> None:
    """R0.38, B0.5: given hops that bypass at most δ, both agree on every way of up to 12 nodes."""
    for length in range(2, 13):
        for visited in paths(length, delta):
            assert every_sender_may(visited, delta) == definition_2(visited, delta), visited


def test_b05_from_delta_4_on_the_count_is_stricter_on_short_ways_and_never_laxer() -> None:
    differing = []
    for length in range(2, 11):
        for visited in paths(length, 4):
            by_count, by_definition = every_sender_may(visited, 4), definition_2(visited, 4)
            assert by_definition or not by_count, visited
            if by_count != by_definition:
                differing.append(visited)
    # S,⊥,⊥,⊥,⊥,X,⊥,N: vacuously legitimate, five bypassed
    assert [True, *[False] * 4, True, False, True] in differing
    assert all(len(visited) < 2 * 4 + 2 for visited in differing)


def test_b07_nulls_add_up_along_the_way_over_time() -> None:
    """One node down at a time, δ = 1: [A:⊥, X, B:⊥] may not be sent."""
    first = extended(Trail((), []), Step("Z", 1), [1], ("A",), 1)
    assert is_legitimate(first, 1)
    assert not is_legitimate(extended(first, Step("X", 1), [1], ("B",), 1), 1)
    assert is_legitimate(extended(first, Step("X", 1), [1], (), 1), 1)


# On the wire


def test_r021_each_copy_names_those_it_bypasses_itself() -> None:
    """Two ways out of X at once, one past a dead node, one not."""
    tap = Wiretap()
    net = Net("P-X-A-B-S X-C-T", 1, transcript=tap)
    net.subscribe("S")
    net.subscribe("T")
    net.run(1000)
    net.crash("A")
    net.run(1000)
    net.publish("P")
    net.run(200)
    steps = {(frame.node, frame.peer): names(relay.trail) for frame, relay in tap.relays()}
    assert steps["X", "B"] == ["P", "X", "A:⊥"]
    assert steps["X", "C"] == ["P", "X"]
    assert steps["B", "S"] == ["P", "X", "A:⊥", "B"]
    assert not tap.broken_laws(net)


def test_r020_subscriptions_carry_vectors_of_the_same_kind() -> None:
    tap = Wiretap()
    net = Net("S-A-B-C-D-P", 1, transcript=tap)
    net.crash("B")
    net.run(1000)
    net.subscribe("S")
    net.run(1000)
    vectors = {
        (frame.node, frame.peer): [
            each.node if each.counter is not None else f"{each.node}:⊥" for each in frame.message.vector
        ]
        for frame in tap.sent(Subscribe)
        if isinstance(frame.message, Subscribe)
    }
    assert vectors["A", "C"] == ["S", "A", "B:⊥"]
    assert vectors["C", "D"] == ["S", "A", "B:⊥", "C"]
    assert vectors["D", "P"] == ["A", "B:⊥", "C", "D"]
