"""Which charts an experiment has, drawn from the data of its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from holdfast.bench.result import BadResult, Result
from holdfast.report.figures_durable import (
    auto_acknowledge_charts,
    chain_charts,
    disconnection_charts,
    filtering_charts,
    outage_charts,
    scaling_charts,
)
from holdfast.report.figures_other import link_charts, router_charts
from holdfast.report.figures_overlay import (
    acks_charts,
    delay_charts,
    load_charts,
    locality_charts,
    recovery_charts,
    vector_charts,
)
from holdfast.report.markup import Markup

__all__ = ["Chart", "drawn_charts"]


class Chart(Protocol):
    """What can be drawn."""

    @property
    def title(self) -> str:
        """What it shows, in words."""

    def svg(self) -> Markup:
        """Drawn."""


_CHARTS: Final[dict[str, Callable[[Result], Sequence[Chart]]]] = {
    "E0.1": load_charts,
    "E0.2": delay_charts,
    "E0.3": acks_charts,
    "E0.4": recovery_charts,
    "E0.5": locality_charts,
    "E0.6": vector_charts,
    "E1.1": chain_charts,
    "E1.2": scaling_charts,
    "E1.3": disconnection_charts,
    "E1.4": filtering_charts,
    "E1.5": auto_acknowledge_charts,
    "E1.6": outage_charts,
    "E2.3": router_charts,
    "E3.2": link_charts,
}


def drawn_charts(result: Result) -> list[tuple[str, Markup]]:
    """Those of one result, each with its title; none, where its table says it better.

    :raises BadResult: if the data are not what they should be.
    """
    make = _CHARTS.get(result.experiment)
    try:
        return [] if make is None else [(chart.title, chart.svg()) for chart in make(result)]
    except (LookupError, ValueError, ZeroDivisionError) as error:  # no such column, no number, no rows at all
        problem = f"has no {error}" if isinstance(error, KeyError) else str(error)
        raise BadResult(f"{result.experiment}: its figure cannot be drawn: {problem}") from error
