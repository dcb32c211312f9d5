"""What the counts mean: of each filter its share and rates, of one that is offered what it would add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.filters.cost import filter_cost
from holdfast.filters.expression import Filter
from holdfast.filters.text import filter_text
from holdfast.pipeline.cost.tally import Tally

__all__ = ["Costs", "FilterCost", "costs_of"]


@dataclass(frozen=True, slots=True)
class FilterCost:
    """Of one filter. Rates are None where the history does not say how long it took."""

    line: int | None  #: in the file of filters; None: it is offered
    filter: str
    work: int  #: to evaluate it once, in units of about one comparison
    matches: int
    share: float  #: of all events
    match_bytes: int
    events_per_second: float | None
    bytes_per_second: float | None
    added: int  #: events that would not come to the broker without it
    added_bytes: int
    added_events_per_second: float | None
    added_bytes_per_second: float | None
    covered_by: list[int] | None  #: lines of held filters; None: too many filters to say
    covers: list[int] | None  #: lines of held filters


@dataclass(frozen=True, slots=True)
class Costs:
    """Of all of them."""

    events: int
    event_bytes: int
    flowing: int  #: events that come to the broker: some held filter matches
    flowing_bytes: int
    seconds: float | None
    gaps: int
    held: list[FilterCost]
    offered: list[FilterCost]


def costs_of(
    held: Sequence[tuple[int, Filter]],
    offered: Sequence[Filter],
    tally: Tally,
    covering: list[list[int]] | None,
    seconds: float | None = None,
) -> Costs:
    """``covering`` is as ``coverings`` has it; ``seconds`` is how long the history took, if that is known better."""
    lines: list[int | None] = [*(line for line, _ in held), *(None for _ in offered)]
    filters = [*(filter for _, filter in held), *offered]
    took = seconds if seconds is not None else tally.seconds or None
    covers: list[list[int]] = [[] for _ in filters]
    for special, generals in enumerate(covering or []):
        for general in generals:
            if special < len(held):
                covers[general].append(held[special][0])

    def rate(count: int) -> float | None:
        return None if took is None else count / took

    found = [
        FilterCost(
            line=lines[i],
            filter=filter_text(filter),
            work=filter_cost(filter),
            matches=count.matches,
            share=count.matches / tally.events if tally.events else 0.0,
            match_bytes=count.match_bytes,
            events_per_second=rate(count.matches),
            bytes_per_second=rate(count.match_bytes),
            added=count.owing,
            added_bytes=count.owing_bytes,
            added_events_per_second=rate(count.owing),
            added_bytes_per_second=rate(count.owing_bytes),
            covered_by=None if covering is None else [held[j][0] for j in covering[i]],
            covers=None if covering is None or lines[i] is None else covers[i],
        )
        for i, (filter, count) in enumerate(zip(filters, tally.counts, strict=True))
    ]
    return Costs(
        tally.events,
        tally.event_bytes,
        tally.flowing,
        tally.flowing_bytes,
        took,
        tally.gaps,
        found[: len(held)],
        found[len(held) :],
    )
