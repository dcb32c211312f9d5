"""Trails: the sequence vectors of a batch, and what can be told from them [KJ §3.4, §5].

A batch that came one way shares its vectors: the nodes are the same for all, and each node's numbers are a column. So
what the paper does per message is done here per batch, at the speed of lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import lt

from holdfast.messages.overlay import Step, Trail

__all__ = ["bypassed_in", "extended", "is_increasing", "is_legitimate", "numbered", "picked", "vector_length"]


def vector_length(delta: int) -> int:
    """How many nodes a vector names: δ that may be bypassed, and the 2δ+1 before them [B0.6].

    And two where δ is 0: a broker that has lost its memory is told the ways of its own clients by its neighbours.
    """
    return max(3 * delta + 1, 2)


def extended(trail: Trail, me: Step, numbers: list[int], bypassed: Sequence[str], delta: int) -> Trail:
    """The trail as ``me`` sends it on, past the nodes it bypasses: oldest first [B0.3], cut to its length."""
    steps = (*trail.steps, me, *(Step(name, None) for name in bypassed))
    columns = [*trail.numbers, numbers]
    cut = len(steps) - vector_length(delta)
    if cut > 0:
        columns = columns[sum(step.incarnation is not None for step in steps[:cut]) :]
        steps = steps[cut:]
    return Trail(steps, columns)


def is_legitimate(trail: Trail, delta: int) -> bool:
    """Whether at most δ of the last 2δ+1 nodes were bypassed [KJ §5.3, B0.5]."""
    return bypassed_in(trail.steps[-(2 * delta + 1) :]) <= delta


def bypassed_in(steps: Sequence[Step]) -> int:
    """How many were bypassed."""
    return sum(step.incarnation is None for step in steps)


def picked(trail: Trail, at: Sequence[int]) -> Trail:
    """The trail of some of the batch."""
    return Trail(trail.steps, [[column[i] for i in at] for column in trail.numbers])


def numbered(trail: Trail) -> list[tuple[Step, list[int]]]:
    """The steps that were not bypassed, each with its column."""
    passed = [step for step in trail.steps if step.incarnation is not None]
    return list(zip(passed, trail.numbers, strict=True))


def is_increasing(numbers: Sequence[int]) -> bool:
    """Whether each is above the one before."""
    return all(map(lt, numbers, numbers[1:]))
