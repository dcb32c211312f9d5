"""What events take of a subscriber's credit, the same for whoever gives it and whoever uses it up.

Credit is counted in events, as applications think of their buffers; but so many large ones would be more than a
connection holds, and it would be given up as too slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.messages.publications import Batch

__all__ = ["CREDIT_BYTES", "affordable", "cost_of"]

#: An event takes the room of one, and of one more for each so many of its bytes.
CREDIT_BYTES: Final = 4_096


def _costs_in(batch: Batch) -> Sequence[int]:
    """What each event of a batch takes of a subscriber's credit; nothing, if each takes one, as nearly always."""
    if batch.costs is None:
        beyond = [len(publication.event) // CREDIT_BYTES for publication in batch.publications]
        batch.costs = [1 + each for each in beyond] if any(beyond) else ()
    return batch.costs


def cost_of(batch: Batch, at: Sequence[int]) -> int:
    """What the events at some positions take."""
    costs = _costs_in(batch)
    return sum([costs[i] for i in at]) if costs else len(at)


def affordable(batch: Batch, at: Sequence[int], credit: int) -> int:
    """For how many of the events at some positions there is credit: for each before which some is left."""
    costs = _costs_in(batch)
    if not costs:
        return max(0, min(len(at), credit))
    count = 0
    while count < len(at) and credit > 0:
        credit -= costs[at[count]]
        count += 1
    return count
