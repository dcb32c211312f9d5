"""Which of many filters certainly cover which.

Asked of every pair this would take long. But a filter that covers another has matched whatever the other has; so the
tallies rule most pairs out, the topics most of the rest, and only few are proved by the covering relation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from holdfast.filters.covering import implies
from holdfast.filters.expression import Filter
from holdfast.filters.normal import NEVER, normalise
from holdfast.pipeline.cost.tally import Count

__all__ = ["FILTERS_MAX", "coverings"]

#: Of more filters it is not worked out: the pairs would be too many.
FILTERS_MAX: Final = 3_000


def coverings(
    filters: Sequence[Filter],
    counts: Sequence[Count],
    held: int,
    watch: Callable[[int], None] = lambda done: None,
) -> list[list[int]] | None:
    """For each filter the held ones that cover it, not itself; None if there are too many. ``watch`` hears how many."""
    if len(filters) > FILTERS_MAX:
        return None
    formulas = [normalise(each.condition) for each in filters]
    found: list[list[int]] = []
    for i, special in enumerate(filters):
        watch(i)
        covering: list[int] = []
        for j in range(held):
            if j == i or counts[j].matches < counts[i].matches:
                continue
            if formulas[i] == NEVER or (
                filters[j].pattern.covers(special.pattern) and implies(formulas[i], formulas[j])
            ):
                covering.append(j)
        found.append(covering)
    return found
