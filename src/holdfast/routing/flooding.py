"""Flooding: a publication goes to every neighbour but the one it came from [SESDAD Alg. 1]; only clients are matched.

Subscriptions do not travel: the table holds those of our own clients.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.events.event import Content
from holdfast.routing.filtering import gather as gather_matching
from holdfast.routing.port import NeighbourPort, Port
from holdfast.routing.table import Table

__all__ = ["gather"]


def gather(
    table: Table,
    events: Sequence[Content],
    arrival: Port | None,
    neighbours: Sequence[NeighbourPort],
) -> list[Port]:
    """Give every port its share of the batch; the ports that have one."""
    touched: list[Port] = [port for port in neighbours if port is not arrival]
    for port in touched:
        port.at = list(range(len(events)))
    return touched + gather_matching(table, events, arrival)
